/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/options/acl_spec.h"
#include "cli/options/verbs.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/session/command.h"

#include <latchkey/acl.h>

/* ---- show ---------------------------------------------------------------- */

/* Appends a line "scheme:id:perms". */
static void show_acl_entry(cli_text *out, const lk_acl *entry)
{
  lk_acls list = {.entries = entry, .count = 1};
  size_t len = lk_acl_print(NULL, 0, &list); /* only returns the length */
  char *text = malloc(len + 1);

  if (text == NULL) {
    out->failed = true;
    return;
  }
  lk_acl_print(text, len + 1, &list);
  cli_text_add_printable(out, lk_bytes_of(text, len));
  cli_text_puts(out, "\n");
  free(text);
}

static void show_acl(cli_text *out, const lk_acls *acl)
{
  for (size_t i = 0; i < acl->count; i++)
    show_acl_entry(out, &acl->entries[i]);
}

/* Adds the permission letters, or their number if it has unknown bits.
   lk_acl_print() prints whole entries only. So an entry with the same
   permissions is printed, and the text after its "x::" is added. */
static void show_perms_json(cli_json *j, const lk_acl *entry)
{
  lk_acl same_perms = {
      .perms = entry->perms, .scheme = lk_text("x"), .id = lk_text("")};
  lk_acls list = {.entries = &same_perms, .count = 1};
  char text[32];

  lk_acl_print(text, sizeof text, &list);
  cli_json_text(j, "perms", lk_text(text + strlen("x::")));
}

static void show_acl_json(cli_command *command, const lk_acls *acl,
                          const lk_stat *stat)
{
  cli_json j = {.out = &command->out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(command->path));
  cli_json_number(&j, "aversion", stat->aversion);
  cli_json_open(&j, "acl", '[');
  for (size_t i = 0; i < acl->count; i++) {
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "scheme", acl->entries[i].scheme);
    cli_json_text(&j, "id", acl->entries[i].id);
    show_perms_json(&j, &acl->entries[i]);
    cli_json_close(&j, '}');
  }
  cli_json_close(&j, ']');
  cli_json_close(&j, '}');
  cli_text_puts(&command->out, "\n");
}

static void on_acl_reply(lk_client *c, int err, const lk_acls *acl,
                         const lk_stat *stat, void *arg)
{
  cli_command *command = arg;

  (void)c;
  cli_command_complete(command, err);
  if (err == 0 && command->options->json)
    show_acl_json(command, acl, stat);
  else if (err == 0)
    show_acl(&command->out, acl);
}

static int get_acl(const cli_options *o, const char *path)
{
  cli_command command;

  if (!cli_command_open(&command, o, "acl", path))
    return CLI_EXIT_FAILED;
  lk_call call = cli_command_repeatable_call(&command);
  int err = lk_get_acl(command.session.client, command.path, &call,
                       on_acl_reply, &command);

  return cli_command_close(&command, cli_command_wait(&command, err));
}

/* ---- replace ------------------------------------------------------------- */

static void on_acl_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  cli_command *command = arg;

  (void)c;
  cli_command_complete(command, err);
  if (err == 0 && command->options->verbose)
    cli_notice("the access list of %s has version %" PRId32, command->path,
               stat->aversion);
}

static int set_acl(const cli_options *o, const char *path, const lk_acls *acl)
{
  cli_command command;

  if (!cli_command_open(&command, o, "acl", path))
    return CLI_EXIT_FAILED;
  lk_call call = cli_command_unrepeatable_call(&command);
  int err = lk_set_acl(command.session.client, command.path, acl,
                       CLI_ANY_VERSION, &call, on_acl_set, &command);

  return cli_command_close(&command, cli_command_wait(&command, err));
}

int cli_acl_verb(const cli_options *o, char **operands)
{
  cli_text complaint = {0};
  cli_acl acl;

  if (operands[1] == NULL)
    return get_acl(o, operands[0]);
  if (!cli_acl_read(&acl, "SPEC", operands[1], &complaint))
    return cli_fail_text(CLI_EXIT_FAILED, "acl", &complaint);
  int code = set_acl(o, operands[0], &acl.list);

  cli_acl_free(&acl);
  return code;
}
