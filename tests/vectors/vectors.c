/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "vectors/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void abort_with(const char *what)
{
  fprintf(stderr, "vectors: %s\n", what);
  abort();
}

unsigned char *exactly(const void *bytes, size_t len)
{
  unsigned char *copy = malloc(len);

  if (copy == NULL && len > 0)
    abort_with("out of memory");
  if (len > 0)
    memcpy(copy, bytes, len);
  return copy;
}

static unsigned hex_digit(char c)
{
  const char *digits = "0123456789abcdef";
  const char *at = strchr(digits, c);

  if (c == '\0' || at == NULL)
    abort_with("not a hex hex_digit");
  return (unsigned)(at - digits);
}

/* Decodes hex into a block of exactly its size. "-" gives no block. */
static void read_hex(const char *hex, size_t len, vector *out)
{
  if (len == 1 && hex[0] == '-')
    return;
  if (len % 2 != 0)
    abort_with("half a byte");
  out->len = len / 2;
  out->bytes = malloc(out->len);
  if (out->bytes == NULL)
    abort_with("out of memory");
  for (size_t i = 0; i < out->len; i++)
    out->bytes[i] =
        (unsigned char)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
}

/* Copies the next word of a line into `out`. Returns the place behind it. */
static const char *take_word(const char *line, char *out, size_t size)
{
  size_t len = strcspn(line, " \n");

  if (len == 0 || len >= size)
    abort_with("a word is missing or too long");
  memcpy(out, line, len);
  out[len] = '\0';
  return line + len + strspn(line + len, " ");
}

static vector read_line(const char *line)
{
  vector v = {.bytes = NULL};
  char direction[2];
  size_t len;

  line = take_word(line, v.name, sizeof v.name);
  line = take_word(line, direction, sizeof direction);
  v.from_server = direction[0] == 'S';
  len = strcspn(line, " \n");
  read_hex(line, len, &v);
  take_word(line + len + 1, v.kind, sizeof v.kind);
  return v;
}

static FILE *open_file(const char *path)
{
  const char *srcdir = getenv("srcdir");
  char text[4096];

  if (path == NULL) {
    snprintf(text, sizeof text, "%s/tests/vectors/vectors.txt",
             srcdir == NULL ? "." : srcdir);
    path = text;
  }
  return fopen(path, "r");
}

vectors vectors_load(const char *path)
{
  vectors all = {NULL, 0};
  char line[16384];
  FILE *in = open_file(path);

  if (in == NULL)
    abort_with("cannot be opened");
  while (fgets(line, sizeof line, in) != NULL) {
    vector *more;

    if (line[0] == '#')
      continue;
    if (strchr(line, '\n') == NULL)
      abort_with("a line is too long");
    more = realloc(all.frames, (all.count + 1) * sizeof *more);
    if (more == NULL)
      abort_with("out of memory");
    all.frames = more;
    all.frames[all.count++] = read_line(line);
  }
  if (ferror(in) != 0 || all.count == 0)
    abort_with("cannot be read");
  fclose(in);
  return all;
}

void vectors_free(vectors *v)
{
  for (size_t i = 0; i < v->count; i++)
    free(v->frames[i].bytes);
  free(v->frames);
}
