/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/records.h"
#include "support/wire.h"
#include "support/words.h"

#include <stdio.h>
#include <stdlib.h>

/* Below the errors of the server (-1 to -999) and those of the library. */
enum { LOWEST_ERROR = -1100 };

static void abort_test(const words *w, const char *what)
{
  fprintf(stderr, "transcript: %s, after:", what);
  for (size_t i = 0; i < w->at; i++)
    fprintf(stderr, " %s", w->items[i].text);
  fprintf(stderr, "\n");
  abort();
}

static unsigned hex_digit(const words *w, char c)
{
  const char *digits = "0123456789abcdef";
  /* strchr() would find the NUL that ends the digits. */
  const char *at = c == '\0' ? NULL : strchr(digits, c);

  if (at == NULL)
    abort_test(w, "not a hex digit");
  return (unsigned)(at - digits);
}

enum { BYTE_ESCAPE_LEN = sizeof "\\xNN" - 1 };

/* Copy the word that begins at `s` to `*room`, and move `*room` behind the
   copy. Returns the end of the word. */
static const char *cut_word(words *w, word *out, const char *s, const char *end,
                            char **room)
{
  bool in_quotes = false;

  *out = (word){.text = *room};
  for (; s < end && (in_quotes || *s != ' '); s++) {
    char c = *s;

    if (c == '"') {
      in_quotes = !in_quotes;
      out->quoted = true;
      continue;
    }
    if (c == '\\' && end - s >= BYTE_ESCAPE_LEN) {
      c = (char)(hex_digit(w, s[2]) << 4 | hex_digit(w, s[3]));
      s += BYTE_ESCAPE_LEN - 1;
    }
    out->text[out->len++] = c;
  }
  out->text[out->len] = '\0';
  *room += out->len + 1;
  return s;
}

void words_cut(words *w, const char *line, size_t len)
{
  const char *end = line + len;
  char *room = w->room;

  w->count = 0;
  w->at = 0;
  /* A NUL follows each word: words of one byte need twice their room. */
  if (len >= sizeof w->room / 2)
    abort_test(w, "a line is too long");
  for (const char *s = line; s < end;) {
    if (*s == ' ') {
      s++;
      continue;
    }
    if (w->count == sizeof w->items / sizeof w->items[0])
      abort_test(w, "too many words");
    s = cut_word(w, &w->items[w->count++], s, end, &room);
  }
}

bool words_left(const words *w)
{
  return w->at < w->count;
}

const word *words_take(words *w, const char *what)
{
  if (!words_left(w))
    abort_test(w, what);
  return &w->items[w->at++];
}

const char *words_text(words *w, const char *what)
{
  return words_take(w, what)->text;
}

lk_bytes words_bytes(words *w, const char *what)
{
  const word *taken = words_take(w, what);

  if (!taken->quoted && strcmp(taken->text, "null") == 0)
    return lk_bytes_of(NULL, 0);
  return lk_bytes_of(taken->text, taken->len);
}

static int64_t number(const words *w, const char *text)
{
  char *end;
  int64_t n = strtoll(text, &end, 0);

  if (*text == '\0' || *end != '\0')
    abort_test(w, "not a number");
  return n;
}

int64_t words_number(words *w, const char *what)
{
  return number(w, words_text(w, what));
}

bool words_are(words *w, const char *text)
{
  if (!words_left(w) || w->items[w->at].quoted ||
      strcmp(w->items[w->at].text, text) != 0)
    return false;
  w->at++;
  return true;
}

const char *words_value(words *w, const char *key)
{
  size_t len = strlen(key);

  if (!words_left(w))
    return NULL;
  const char *text = w->items[w->at].text;

  if (strncmp(text, key, len) != 0 || text[len] != '=')
    return NULL;
  w->at++;
  return text + len + 1;
}

int words_error(words *w)
{
  const char *name = words_text(w, "an error is missing");

  if (strcmp(name, "ok") == 0)
    return 0;
  for (int err = -1; err >= LOWEST_ERROR; err--) {
    const char *candidate = lk_error_name(err);

    if (candidate != NULL && strcmp(name, candidate) == 0)
      return err;
  }
  return (int)number(w, name);
}

/* ---- bytes of a frame --------------------------------------------------- */

static void put_hex(words *w, const char *digits, lk_buf *out)
{
  for (; digits[0] != '\0'; digits += 2) {
    unsigned char byte =
        (unsigned char)(hex_digit(w, digits[0]) << 4 | hex_digit(w, digits[1]));

    if (!lk__buf_append(out, &byte, 1))
      abort();
  }
}

static void put_zeros(int64_t count, lk_buf *out)
{
  if (!lk__buf_reserve(out, (size_t)count))
    abort();
  memset(lk__buf_room(out), 0, (size_t)count);
  out->end += (size_t)count;
}

static void put_stat(int64_t zxid, lk_buf *out)
{
  struct lk_stat_reply r = {{.czxid = zxid, .mzxid = zxid, .pzxid = zxid}};

  wire_record(out, &lk__stat_reply_record, &r);
}

static void put_part(words *w, const char *text, lk_buf *out)
{
  char *comma;
  struct lk_multi_header h = {.type = (int32_t)strtol(text, &comma, 10)};

  if (*comma != ',')
    abort_test(w, "part=TYPE,ERR");
  h.err = (int32_t)number(w, comma + 1);
  wire_record(out, &lk__multi_header_record, &h);
}

static void put_long(int64_t v, lk_buf *out)
{
  wire_int(out, (int32_t)(v >> 32));
  wire_int(out, (int32_t)v);
}

/* The header behind the last part of a multi. */
static void put_end(lk_buf *out)
{
  struct lk_multi_header h = {-1, true, -1};

  wire_record(out, &lk__multi_header_record, &h);
}

void words_encode(words *w, lk_buf *out)
{
  const char *v;

  while (words_left(w)) {
    if ((v = words_value(w, "int")) != NULL ||
        (v = words_value(w, "count")) != NULL)
      wire_int(out, (int32_t)number(w, v));
    else if ((v = words_value(w, "long")) != NULL)
      put_long(number(w, v), out);
    else if ((v = words_value(w, "stat")) != NULL)
      put_stat(number(w, v), out);
    else if ((v = words_value(w, "part")) != NULL)
      put_part(w, v, out);
    else if ((v = words_value(w, "hex")) != NULL)
      put_hex(w, v, out);
    else if ((v = words_value(w, "zeros")) != NULL)
      put_zeros(number(w, v), out);
    else if (words_are(w, "end"))
      put_end(out);
    else
      wire_bytes(out, words_bytes(w, "bytes"));
  }
}
