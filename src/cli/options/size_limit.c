/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/options/number.h"
#include "cli/options/size_limit.h"

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
  return cli_number_size(text, LEAST, size_limits[limit].most, out);
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
