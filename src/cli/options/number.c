/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ------------------------------------------------------------- */

/* The result in milliseconds fits an int32_t. */
enum { MAX_SECONDS = INT32_MAX / 1000 };

static bool is_decimal_digit(char c)
{
  return c >= '0' && c <= '9';
}

const char *cli_number_seconds(const char *text, int64_t *out_ms)
{
  const char *s = text;
  int64_t seconds = 0;
  int64_t decimal_ms = 100; /* value of the next decimal; 0 after the third */
  bool round_up = false;    /* the number contains a part of a millisecond */

  for (; is_decimal_digit(*s); s++) {
    seconds = seconds * 10 + (*s - '0');
    if (seconds > MAX_SECONDS)
      return "is too long (24 days at most)";
  }
  int64_t ms = seconds * 1000;
  bool has_digit = s > text;

  if (*s == '.') {
    for (s++; is_decimal_digit(*s); s++) {
      has_digit = true;
      round_up = round_up || (decimal_ms == 0 && *s != '0');
      ms += decimal_ms * (*s - '0');
      decimal_ms /= 10;
    }
  }
  if (*s != '\0' || !has_digit)
    return "is not a number of seconds, such as 10 or 0.5";
  *out_ms = ms + (round_up ? 1 : 0);
  return NULL;
}

/* Returns NULL if `text` does not begin with a digit. Else returns its rest
   behind the digits; `*out` gets the number, or -1 if it is too large. */
static const char *read_digits(const char *text, int64_t *out)
{
  const char *s = text;

  *out = 0;
  for (; is_decimal_digit(*s); s++)
    if (*out >= 0 && *out <= (INT64_MAX - 9) / 10)
      *out = *out * 10 + (*s - '0');
    else
      *out = -1;
  return s > text ? s : NULL;
}

/* Parses a number of bytes from `least` to `most`, with K, M or G behind it
   for 2^10, 2^20 or 2^30. */
static const char *number_size(const char *text, int64_t least, int64_t most,
                               int64_t *out)
{
  static const char units[] = "KMG";
  enum { UNIT_BITS = 10 };
  int shift = 0;
  int64_t n;
  const char *rest = read_digits(text, &n);
  const char *unit =
      rest == NULL || *rest == '\0' ? NULL : strchr(units, *rest);

  if (unit != NULL) {
    shift = UNIT_BITS * (int)(unit - units + 1);
    rest++;
  }
  if (rest == NULL || *rest != '\0')
    return "is not a number of bytes, such as 65536 or 16M";
  if (n < 0 || n > most >> shift || n << shift < least)
    return "is out of range";
  *out = n << shift;
  return NULL;
}

const char *cli_number_whole(const char *text, int64_t least, int64_t most,
                             int64_t *out)
{
  bool minus = *text == '-';
  int64_t n;
  const char *rest = read_digits(text + (minus ? 1 : 0), &n);

  if (rest == NULL || *rest != '\0')
    return "is not a whole number";
  if (n < 0)
    return "is out of range";
  n = minus ? -n : n;
  if (n < least || n > most)
    return "is out of range";
  *out = n;
  return NULL;
}

/* ---- limits of sizes ----------------------------------------------------- */

/* A reply to the request of a session and a short list fit in. */
enum { LEAST = 1024 };

static const struct {
  const char *variable;
  int64_t most;
} size_limits[] = {
    [CLI_MAX_REQUEST] = {"LATCHKEY_MAX_REQUEST", CLI_MOST_REQUEST_BYTES},
    [CLI_MAX_REPLY] = {"LATCHKEY_MAX_REPLY", INT32_MAX}};

const char *cli_size_limit_parse(cli_size_limit limit, const char *text,
                                 int64_t *out)
{
  return number_size(text, LEAST, size_limits[limit].most, out);
}

bool cli_size_limit_read(cli_size_limit limit, int64_t given, size_t *out,
                         cli_text *complaint)
{
  const char *variable = size_limits[limit].variable;
  const char *value = getenv(variable);
  int64_t bytes = given;
  const char *wrong = given != 0 || value == NULL || *value == '\0'
                          ? NULL
                          : cli_size_limit_parse(limit, value, &bytes);

  *out = (size_t)bytes;
  if (wrong == NULL)
    return true;
  cli_text_printf(complaint, "%s: \"", variable);
  cli_text_add_printable(complaint, lk_text(value));
  cli_text_printf(complaint, "\" %s", wrong);
  return false;
}
