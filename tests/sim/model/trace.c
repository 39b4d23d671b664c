/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void sim_trace_keep(sim_trace *t)
{
  t->lines = calloc(SIM_TRACE_LINES, SIM_TRACE_WIDTH);
  t->count = 0;
}

void sim_trace_free(sim_trace *t)
{
  free(t->lines);
  t->lines = NULL;
}

/* The place of a line; later lines overwrite it. */
static char *kept_line(const sim_trace *t, size_t number)
{
  return t->lines + number % SIM_TRACE_LINES * SIM_TRACE_WIDTH;
}

void sim_trace_print(const sim_trace *t, FILE *out)
{
  if (t->lines == NULL)
    return;
  size_t first = t->count > SIM_TRACE_LINES ? t->count - SIM_TRACE_LINES : 0;

  for (size_t i = first; i < t->count; i++)
    fprintf(out, "%s\n", kept_line(t, i));
}

void sim_trace_line(sim_trace *t, const char *actor, const char *format, ...)
{
  char line[SIM_TRACE_WIDTH];
  int64_t now = t->agenda->now_us;
  int prefix_len =
      snprintf(line, sizeof line, "%6" PRId64 ".%03" PRId64 " %-9s ",
               now / SIM_MS, now % SIM_MS, actor);
  va_list args;

  va_start(args, format);
  vsnprintf(line + prefix_len, sizeof line - (size_t)prefix_len, format, args);
  va_end(args);
  if (t->out != NULL)
    fprintf(t->out, "%s\n", line);
  if (t->lines != NULL)
    memcpy(kept_line(t, t->count++), line, sizeof line);
}
