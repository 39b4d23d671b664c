/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_TRACE_H
#define LK_SIM_MODEL_TRACE_H

#include "sim/model/agenda.h"

#include <stdio.h>

/**
 * The trace: a line for each event of a run, with the virtual time in front.
 * Lines are formatted only if they are printed or kept, since most runs need no
 * trace.
 */
typedef struct sim_trace {
  const sim_agenda *agenda;
  FILE *out;   /**< destination of each line; NULL: none */
  char *lines; /**< the last lines, for sim_trace_print(); NULL: not kept */
  size_t count; /**< lines added while they were kept */
} sim_trace;

enum {
  SIM_TRACE_LINES = 120, /**< number of lines kept */
  SIM_TRACE_WIDTH = 200  /**< bytes of a line, with the NUL */
};

/** Keep the last lines. */
void sim_trace_keep(sim_trace *t);
void sim_trace_free(sim_trace *t);
/** Print the kept lines. */
void sim_trace_print(const sim_trace *t, FILE *out);

static inline bool sim_tracing(const sim_trace *t)
{
  return t->out != NULL || t->lines != NULL;
}

/** Add a line: a printf format and its arguments follow `actor`, which is "p2",
    "server 1", "network", "checker", … */
#define SIM_TRACE(t, ...)             \
  do {                                \
    if (sim_tracing(t))               \
      sim_trace_line(t, __VA_ARGS__); \
  } while (0)
void sim_trace_line(sim_trace *t, const char *actor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
