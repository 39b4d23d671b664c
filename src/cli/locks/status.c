/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/locks/contenders.h"
#include "cli/options/verbs.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/output/system_clocks.h"

typedef struct status {
  cli_command command;
  cli_contenders queue;
} status;

/* ---- output -------------------------------------------------------------- */

static int64_t age_of_contender_ms(const cli_contender *c)
{
  int64_t age_ms = cli_wall_ms() - c->stat.ctime;

  /* The clock of the server may be ahead. */
  return age_ms < 0 ? 0 : age_ms;
}

static void show_session(cli_text *out, const cli_contender *c)
{
  if (cli_contender_is_ephemeral(c))
    cli_text_printf(out, "0x%" PRIx64, (uint64_t)c->stat.ephemeral_owner);
  else
    cli_text_puts(out, "none: not ephemeral");
}

static void show_contender(cli_text *out, const cli_contender *c)
{
  cli_text_puts(out, c->holds ? "holds  " : "waits  ");
  cli_contender_add_label(c, out);
  if (!c->hidden) {
    int64_t age_ms = age_of_contender_ms(c);
    int64_t tenths = age_ms % 1000 / 100;

    cli_text_printf(
        out, "  age %" PRId64 ".%" PRId64 " s  token %" PRIu64 "  session ",
        age_ms / 1000, tenths, (uint64_t)c->stat.czxid);
    show_session(out, c);
  }
  cli_text_puts(out, "  ");
  cli_text_add_printable(out, lk_text(c->name));
  cli_text_puts(out, "\n");
}

static void show_contenders(cli_text *out, const cli_contenders *queue,
                            bool that_hold)
{
  for (size_t i = 0; i < queue->count; i++)
    if (queue->all[i].holds == that_hold)
      show_contender(out, &queue->all[i]);
}

/* The waiters of a single-node lock are not known, so there is no number of
   them; and whenever the lock is free, its node is missing. */
static void show_state(cli_text *out, const status *s)
{
  const cli_contenders *queue = &s->queue;
  bool single_node = s->command.options->single_node;
  size_t holders = cli_contenders_count_holders(queue);

  if (queue->missing && !single_node)
    cli_text_puts(
        out, ": free: no such node; the first use of the lock creates it\n");
  else if (queue->count == 0)
    cli_text_puts(out, ": free\n");
  else if (single_node)
    cli_text_puts(out, ": held\n");
  else
    cli_text_printf(out, ": %s, %zu waiting\n", holders == 0 ? "free" : "held",
                    queue->count - holders);
}

static void show_status(status *s)
{
  const bool that_hold = true;
  cli_text *out = &s->command.out;

  cli_text_add_printable(out, lk_text(s->command.path));
  show_state(out, s);
  show_contenders(out, &s->queue, that_hold);
  show_contenders(out, &s->queue, !that_hold);
}

static void show_contender_json(cli_json *j, const cli_contenders *queue,
                                size_t i)
{
  const cli_contender *c = &queue->all[i];

  cli_json_open(j, NULL, '{');
  cli_contender_add_node_json(queue, i, j);
  if (!c->hidden) {
    cli_json_uint64(j, "token", (uint64_t)c->stat.czxid);
    cli_json_hex(j, "session", (uint64_t)c->stat.ephemeral_owner);
    if (!cli_contender_is_ephemeral(c))
      cli_json_bool(j, "ephemeral", false);
    cli_json_number(j, "age_ms", age_of_contender_ms(c));
  }
  cli_contender_add_label_json(c, j);
  cli_json_close(j, '}');
}

/* Adds an array of the holders, or of the other contenders. */
static void show_contenders_json(cli_json *j, const char *key,
                                 const cli_contenders *queue, bool that_hold)
{
  cli_json_open(j, key, '[');
  for (size_t i = 0; i < queue->count; i++)
    if (queue->all[i].holds == that_hold)
      show_contender_json(j, queue, i);
  cli_json_close(j, ']');
}

static void show_status_json(status *s)
{
  const bool that_hold = true;
  cli_json j = {.out = &s->command.out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "lock", lk_text(s->command.path));
  cli_json_text(
      &j, "state",
      lk_text(cli_contenders_count_holders(&s->queue) == 0 ? "free" : "held"));
  cli_json_bool(&j, "missing", s->queue.missing);
  show_contenders_json(&j, "holders", &s->queue, that_hold);
  show_contenders_json(&j, "waiters", &s->queue, !that_hold);
  cli_json_close(&j, '}');
  cli_text_puts(&s->command.out, "\n");
}

int cli_status(const cli_options *o, char **operands)
{
  status s = {.queue = {.command = NULL}};

  if (!cli_command_open(&s.command, o, "status", operands[0]))
    return CLI_EXIT_FAILED;
  int err = cli_contenders_list(&s.queue, &s.command);

  if (err == 0)
    err = cli_contenders_read_nodes(&s.queue);
  if (err == 0)
    cli_contenders_mark_holders(&s.queue);
  bool held = cli_contenders_count_holders(&s.queue) > 0;

  if (err == 0 && o->json)
    show_status_json(&s);
  else if (err == 0)
    show_status(&s);
  int code = cli_command_close(&s.command, err);

  cli_contenders_free(&s.queue);
  return code == CLI_EXIT_DONE && held ? CLI_EXIT_NO : code;
}
