/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"

#include <stdarg.h>
#include <stdio.h>

void lk_client_log(const lk_client *c, int level, int err, const char *text)
{
  if (c->options.log != NULL)
    c->options.log(c->options.log_arg, level, err, text);
}

void lk__client_logf(const lk_client *c, int level, int err, const char *format,
                     ...)
{
  char text[320];
  va_list args;

  if (c->options.log == NULL)
    return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  c->options.log(c->options.log_arg, level, err, text);
}
