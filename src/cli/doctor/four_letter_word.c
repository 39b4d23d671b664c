/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/doctor/four_letter_word.h"

const char *const cli_four_letter_words[] = {"srvr", "isro", "ruok", NULL};

static bool is_text(lk_bytes b, const char *text)
{
  return b.len == strlen(text) && memcmp(b.at, text, b.len) == 0;
}

/* Returns the bytes after the first `mark` in `b`; its `at` is NULL if `b` has
   no `mark`. */
static lk_bytes text_behind(lk_bytes b, const char *mark)
{
  size_t len = strlen(mark);

  for (size_t i = 0; i + len <= b.len; i++) {
    const char *s = (const char *)b.at + i;

    if (memcmp(s, mark, len) == 0)
      return lk_bytes_of(s + len, b.len - i - len);
  }
  return lk_text(NULL);
}

/* Returns the start of `b`, up to the first NUL or character of `ends`. */
static lk_bytes text_up_to(lk_bytes b, const char *ends)
{
  const char *s = b.at;

  for (size_t i = 0; i < b.len; i++)
    if (s[i] == '\0' || strchr(ends, s[i]) != NULL)
      return lk_bytes_of(s, i);
  return b;
}

bool cli_four_letter_is_disabled(lk_bytes text)
{
  return text_behind(text, "is not executed because it is not in the whitelist")
             .at != NULL;
}

/* Returns what is behind the name of the software, and sets out->software. */
static lk_bytes read_software(cli_four_letter_reply *out, lk_bytes text)
{
  static const struct {
    const char *name, *mark;
  } known[] = {{"ZooKeeper", "Zookeeper version: "},
               {"RaftKeeper", "RaftKeeper version: "},
               {"ClickHouse Keeper", "ClickHouse Keeper version: "}};

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    lk_bytes version = text_behind(text, known[i].mark);

    if (version.at != NULL) {
      out->software = known[i].name;
      return version;
    }
  }
  return lk_text(NULL);
}

static void read_version_and_mode(cli_four_letter_reply *out, lk_bytes text)
{
  lk_bytes version = read_software(out, text);
  lk_bytes mode = text_behind(text, "\nMode: ");

  if (version.at == NULL)
    return;
  /* As in "3.8.4-9316c2a, built on ...". */
  out->version = text_up_to(version, "-, \n");
  if (mode.at != NULL)
    out->mode = text_up_to(mode, "\n");
  if (mode.at == NULL)
    out->state = CLI_FOUR_LETTER_UNKNOWN;
  else if (is_text(out->mode, "read-only"))
    out->state = CLI_FOUR_LETTER_READ_ONLY;
  else
    out->state = CLI_FOUR_LETTER_SERVING;
}

void cli_four_letter_reply_read(cli_four_letter_reply *out, lk_bytes text)
{
  /* The replies of isro; the one to ruok is "imok". */
  const char *read_only = "ro", *read_write = "rw", *not_serving = "null";

  memset(out, 0, sizeof *out);
  out->state = CLI_FOUR_LETTER_NOT_ZOOKEEPER;
  if (cli_four_letter_is_disabled(text) || is_text(text, "imok"))
    out->state = CLI_FOUR_LETTER_UNKNOWN;
  else if (text_behind(text, "not currently serving requests").at != NULL ||
           is_text(text, not_serving))
    out->state = CLI_FOUR_LETTER_NO_QUORUM;
  else if (is_text(text, read_only))
    out->state = CLI_FOUR_LETTER_READ_ONLY;
  else if (is_text(text, read_write))
    out->state = CLI_FOUR_LETTER_SERVING;
  else
    read_version_and_mode(out, text);
}

/* No part of a version has more digits, and they do not overflow. */
enum { MAX_VERSION_DIGITS = 6 };

/* Reads the number at the start of `*b`, and moves `*b` after it and a dot. */
static bool take_version_number(lk_bytes *b, unsigned *out)
{
  lk_bytes digits = text_up_to(*b, ".");
  const char *s = digits.at;
  bool dot_follows = digits.len < b->len;
  size_t used = digits.len + (dot_follows ? 1 : 0);

  *out = 0;
  if (digits.len == 0 || digits.len > MAX_VERSION_DIGITS)
    return false;
  for (size_t i = 0; i < digits.len; i++) {
    if (s[i] < '0' || s[i] > '9')
      return false;
    *out = *out * 10 + (unsigned)(s[i] - '0');
  }
  *b = lk_bytes_of((const char *)b->at + used, b->len - used);
  return true;
}

bool cli_version_is_before(lk_bytes version, lk_bytes other)
{
  unsigned number, other_number;

  while (take_version_number(&version, &number) &&
         take_version_number(&other, &other_number)) {
    if (number != other_number)
      return number < other_number;
  }
  return false;
}
