/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "program.h"

void run_action(fuzz_program *g, const action *table, size_t count)
{
  const action *chosen = &table[take_byte(&g->in) % count];

  harness_log_line(&g->h, "> %s", chosen->name);
  chosen->run(g);
}

void receive_from_server(fuzz_program *g, lk_buf *b)
{
  harness_receive(&g->h, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_free(b);
}

void run_program(const uint8_t *data, size_t size,
                 bool (*begin)(fuzz_program *g), const action *table,
                 size_t count)
{
  fuzz_program *g = calloc(1, sizeof *g);

  must(g != NULL);
  g->in = input_of(data, size);
  if (begin(g)) {
    while (!input_ended(&g->in) && g->h.client != NULL)
      run_action(g, table, count);
  }
  g->deferred = 0;
  harness_done(&g->h);
  free(g);
}
