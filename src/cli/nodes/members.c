/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/roster.h>

#include "cli/options/verbs.h"
#include "cli/output/exit_code.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/output/system_clocks.h"
#include "cli/session/follow.h"

/* ---- output -------------------------------------------------------------- */

/* A line "NAME DATA" for each member. */
static void add_member_lines(cli_text *out, const lk_roster_entry *entries,
                             size_t count)
{
  for (size_t i = 0; i < count; i++) {
    cli_text_add_printable(out, entries[i].name);
    if (entries[i].err != 0)
      cli_text_printf(out, " (%s)", lk_error_text(entries[i].err));
    else if (entries[i].data.len > 0)
      cli_text_puts(out, " ");
    cli_text_add_printable(out, entries[i].data);
    cli_text_puts(out, "\n");
  }
}

static void add_member_json(cli_json *j, const lk_roster_entry *e)
{
  cli_json_open(j, NULL, '{');
  cli_json_text(j, "name", e->name);
  if (e->err == 0) {
    cli_json_data(j, "data", e->data);
    cli_json_hex(j, "session", (uint64_t)e->stat->ephemeral_owner);
    cli_json_time(j, "since", e->stat->ctime);
  } else {
    cli_json_text(j, "error", lk_text(lk_error_text(e->err)));
  }
  cli_json_close(j, '}');
}

static void add_members_json(cli_text *out, const char *path, bool missing,
                             const lk_roster_entry *entries, size_t count)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(path));
  cli_json_bool(&j, "missing", missing);
  cli_json_time(&j, "time", cli_wall_ms());
  cli_json_open(&j, "members", '[');
  for (size_t i = 0; i < count; i++)
    add_member_json(&j, &entries[i]);
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
  cli_text_puts(out, "\n");
}

/* A group without a directory has no members. */
static void add_members(const cli_command *command, cli_text *out, int err,
                        const lk_roster_entry *entries, size_t count)
{
  if (command->options->json)
    add_members_json(out, command->path, err == LK_ERR_NO_NODE, entries, count);
  else
    add_member_lines(out, entries, count);
}

/* ---- once ---------------------------------------------------------------- */

static void on_members(lk_client *c, int err, const lk_roster_entry *entries,
                       size_t count, void *arg)
{
  cli_command *command = arg;

  (void)c;
  if (err == LK_ERR_NO_NODE)
    cli_notice("members %s: no such node, so the group has no members",
               command->path);
  if (err == 0 || err == LK_ERR_NO_NODE) {
    add_members(command, &command->out, err, entries, count);
    err = 0;
  }
  cli_command_complete(command, err);
}

static int show_members(const cli_options *o, const char *path)
{
  cli_command command;

  if (!cli_command_open(&command, o, "members", path))
    return CLI_EXIT_FAILED;
  const lk_call call = cli_command_unrepeatable_call(&command);
  int err = lk_roster_get(command.session.client, path, NULL, &call, on_members,
                          &command);

  return cli_command_close(&command, cli_command_wait(&command, err));
}

/* ---- until interrupted --------------------------------------------------- */

/* Each report is followed by an empty line, or is an object of its own. */
static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  cli_follow *f = arg;
  cli_text lines = {0};

  (void)r;
  if (f->done)
    return;
  if (err != 0 && err != LK_ERR_NO_NODE) {
    cli_follow_stop(f, err);
    return;
  }
  add_members(&f->command, &lines, err, entries, count);
  if (!f->command.options->json)
    cli_text_puts(&lines, "\n");
  cli_follow_put_newest(f, &lines);
}

static int follow_members(const cli_options *o, const char *path)
{
  cli_follow f = {.done = false};
  lk_roster *roster;

  if (!cli_follow_open(&f, o, "members", path))
    return CLI_EXIT_FAILED;
  cli_follow_begin(&f);
  int err = lk_roster_subscribe(&roster, f.command.session.client, path, NULL,
                                on_roster, &f);

  if (err != 0)
    cli_follow_stop(&f, err);
  cli_follow_run(&f);
  lk_roster_free(roster);
  return cli_follow_end(&f);
}

int cli_members(const cli_options *o, char **operands)
{
  return o->follow ? follow_members(o, operands[0])
                   : show_members(o, operands[0]);
}
