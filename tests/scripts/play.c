/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "scripts/inputs.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

static void run_line(player *y, const char *line, size_t len);

/* ---- the client --------------------------------------------------------- */

static void react(peer *p, const char *name, const char *event)
{
  player *y = p->arg;
  char both[96];

  snprintf(both, sizeof both, "%s:%s", name, event);
  for (size_t i = 0; i < y->count; i++) {
    plan *at = &y->plans[i];

    if (at->when[0] == '\0')
      continue; /* done */
    if (strcmp(at->when, both) != 0 && strcmp(at->when, name) != 0)
      continue;
    at->when[0] = '\0';
    run_line(y, at->line, strlen(at->line));
    if (p->client == NULL)
      return;
  }
}

static size_t undone(const player *y)
{
  size_t count = 0;

  for (size_t i = 0; i < y->count; i++)
    count += y->plans[i].when[0] != '\0';
  return count;
}

/* ---- lines -------------------------------------------------------------- */

static void run_line(player *y, const char *line, size_t len)
{
  words *w = malloc(sizeof *w); /* not static: an input can run another line in
                                   a callback */

  if (w == NULL)
    abort();
  words_cut(w, line, len);
  const input *in = input_find(words_text(w, "an input"));

  if (y->p.client != NULL || in->early)
    in->run(y, w);
  free(w);
}

static void flush(player *y, lk_buf *out)
{
  lk_buf *log = &y->p.log;

  if (!lk__buf_append(out, lk__buf_bytes(log), lk__buf_len(log)))
    abort();
  lk__buf_consume(log, lk__buf_len(log));
}

static void play_line(player *y, const char *line, size_t len, lk_buf *out)
{
  bool takes = len > 2 && line[0] == '>';

  if (!takes && len > 0 && line[0] != '#')
    return; /* an expected output */
  wire_say(out, "%.*s\n", (int)len, line);
  if (!takes)
    return;
  y->asleep = false;
  run_line(y, line + 2, len - 2);
  if (y->p.client != NULL && !y->asleep)
    peer_settle(&y->p);
  flush(y, out);
}

void play(const char *text, play_mode *mode, lk_buf *out)
{
  player *y = calloc(1, sizeof *y);

  if (y == NULL)
    abort();
  if (mode != NULL)
    y->mode = *mode;
  failing_mem_init(&y->p.mem);
  y->p.mem.fail_at = y->mode.fail_at;
  y->p.mem.for_good = y->mode.for_good;
  y->p.step = y->mode.step;
  y->p.log = wire_buf();
  y->p.react = react;
  y->p.arg = y;
  while (*text != '\0') {
    size_t len = strcspn(text, "\n");

    play_line(y, text, len, out);
    text += len + (text[len] == '\n');
  }
  if (mode != NULL)
    mode->undone = undone(y);
  if (mode != NULL)
    mode->failed = y->mode.failed || failing_mem_failed(&y->p.mem);
  peer_done(&y->p);
  free(y);
}
