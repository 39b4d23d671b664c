/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <stddef.h>

#include "cli/options/number.h"

/* The result in milliseconds fits an int32_t. */
enum { MOST_SECONDS = INT32_MAX / 1000 };

static bool is_decimal_digit(char c)
{
  return c >= '0' && c <= '9';
}

const char *cli_number_seconds(const char *text, int64_t *out_ms)
{
  const char *s = text;
  int64_t seconds = 0;
  int64_t unit = 100; /* of the next decimal; 0 after three decimals */
  bool rest = false;  /* less than a millisecond is left */

  for (; is_decimal_digit(*s); s++) {
    seconds = seconds * 10 + (*s - '0');
    if (seconds > MOST_SECONDS)
      return "is too long (24 days at most)";
  }
  int64_t ms = seconds * 1000;
  bool has_digit = s > text;

  if (*s == '.') {
    for (s++; is_decimal_digit(*s); s++) {
      has_digit = true;
      rest = rest || (unit == 0 && *s != '0');
      ms += unit * (*s - '0');
      unit /= 10;
    }
  }
  if (*s != '\0' || !has_digit)
    return "is not a number of seconds, such as 10 or 0.5";
  *out_ms = ms + (rest ? 1 : 0);
  return NULL;
}

const char *cli_number_whole(const char *text, int64_t least, int64_t most,
                             int64_t *out)
{
  bool minus = *text == '-';
  const char *s = text + (minus ? 1 : 0);
  int64_t n = 0;

  if (*s == '\0')
    return "is not a whole number";
  for (; *s != '\0'; s++) {
    if (!is_decimal_digit(*s))
      return "is not a whole number";
    if (n > (INT64_MAX - 9) / 10) /* the next line would overflow */
      return "is out of range";
    n = n * 10 + (*s - '0');
  }
  n = minus ? -n : n;
  if (n < least || n > most)
    return "is out of range";
  *out = n;
  return NULL;
}
