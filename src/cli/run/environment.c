/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/run/environment.h"

void cli_environment_add(cli_text *out, const char *name, const char *value)
{
  cli_text_printf(out, "%s=%s", name, value);
  cli_text_add(out, "", 1);
}

void cli_environment_add_session(cli_text *out, const lk_client *c)
{
  char text[32];

  snprintf(text, sizeof text, "0x%" PRIx64, (uint64_t)lk_client_session(c).id);
  cli_environment_add(out, "LATCHKEY_SESSION", text);
}
