/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "scripts/inputs.h"
#include "support/wire.h"

#include <stdio.h>
#include <stdlib.h>

static void run_line(script_player *player, const char *line, size_t len);

/* ---- planned inputs ---------------------------------------------------------
 */

/* Runs the inputs that were planned for this callback. */
static void run_plans(harness *h, const char *name, const char *event)
{
  script_player *player = h->arg;
  char name_and_event[96];

  snprintf(name_and_event, sizeof name_and_event, "%s:%s", name, event);
  for (size_t i = 0; i < player->nplans; i++) {
    plan *next = &player->plans[i];

    if (next->when[0] == '\0')
      continue; /* it was run before */
    if (strcmp(next->when, name_and_event) != 0 &&
        strcmp(next->when, name) != 0)
      continue;
    next->when[0] = '\0';
    run_line(player, next->line, strlen(next->line));
    if (h->client == NULL)
      return;
  }
}

static size_t count_plans_not_run(const script_player *player)
{
  size_t count = 0;

  for (size_t i = 0; i < player->nplans; i++) {
    if (player->plans[i].when[0] != '\0')
      count++;
  }
  return count;
}

/* ---- lines -------------------------------------------------------------- */

static void run_line(script_player *player, const char *line, size_t len)
{
  /* On the heap, since `words` is large. It cannot be static, since an input
   * can run another line in a callback. */
  words *w = malloc(sizeof *w);

  if (w == NULL)
    abort();
  words_cut(w, line, len);
  const input *in = input_find(words_text(w, "an input"));

  if (player->h.client != NULL || in->needs_no_client)
    in->run(player, w);
  free(w);
}

/* Moves what the harness has logged to the output. */
static void move_log(script_player *player, lk_buf *out)
{
  lk_buf *log = &player->h.log;

  if (!lk__buf_append(out, lk__buf_bytes(log), lk__buf_len(log)))
    abort();
  lk__buf_consume(log, lk__buf_len(log));
}

enum { INPUT_MARK_LEN = 2 }; /* of "> " */

static void play_line(script_player *player, const char *line, size_t len,
                      lk_buf *out)
{
  bool is_input = len > INPUT_MARK_LEN && line[0] == '>';

  if (!is_input && len > 0 && line[0] != '#')
    return; /* an expected output */
  wire_say(out, "%.*s\n", (int)len, line);
  if (!is_input)
    return;
  player->asleep = false;
  run_line(player, line + INPUT_MARK_LEN, len - INPUT_MARK_LEN);
  if (player->h.client != NULL && !player->asleep)
    harness_settle(&player->h);
  move_log(player, out);
}

void play(const char *text, play_mode *mode, lk_buf *out)
{
  script_player *player = calloc(1, sizeof *player);

  if (player == NULL)
    abort();
  if (mode != NULL)
    player->mode = *mode;
  failing_mem_init(&player->h.mem);
  player->h.mem.fail_at = player->mode.fail_at;
  player->h.mem.for_good = player->mode.for_good;
  player->h.step = player->mode.step;
  player->h.log = wire_buf();
  player->h.react = run_plans;
  player->h.arg = player;
  while (*text != '\0') {
    size_t len = strcspn(text, "\n");

    play_line(player, text, len, out);
    text += len;
    if (*text == '\n')
      text++;
  }
  if (mode != NULL) {
    mode->undone = count_plans_not_run(player);
    mode->failed = player->mode.failed || failing_mem_failed(&player->h.mem);
  }
  harness_done(&player->h);
  free(player);
}
