/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <unistd.h>

#include "cli/output/system_clocks.h"
#include "cli/run/own_label.h"

void cli_own_label_add(const cli_options *o, cli_text *out)
{
  char host[256] = "localhost";

  if (o->label != NULL) {
    cli_text_puts(out, o->label);
    return;
  }
  gethostname(host, sizeof host - 1);
  cli_text_printf(out, "%s %ld ", host, (long)getpid());
  cli_text_time(out, cli_wall_ms());
}
