/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "program.h"

unsigned take_byte(fuzz_program *g)
{
  return g->at == g->end ? 0 : *g->at++;
}

lk_bytes take_bytes(fuzz_program *g)
{
  size_t len = take_byte(g), left = (size_t)(g->end - g->at);
  lk_bytes b = {g->at, len < left ? len : left};

  g->at += b.len;
  return b;
}

void run_action(fuzz_program *g, const action *table, size_t count)
{
  const action *chosen = &table[take_byte(g) % count];

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
  g->at = data;
  g->end = data + size;
  if (begin(g)) {
    while (g->at != g->end && g->h.client != NULL)
      run_action(g, table, count);
  }
  g->deferred = 0;
  harness_done(&g->h);
  free(g);
}
