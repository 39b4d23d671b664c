/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/doctor/access_check.h"
#include "cli/output/error_report.h"
#include "cli/output/print.h"
#include "cli/session/session.h"

#include <latchkey/multi.h>

/* The operations of a transaction that always fails, so that nothing is
   changed. It creates a node, deletes it, and checks that it exists, which it
   does not. If an earlier operation fails, its permission is missing. */
enum { CREATE, DELETE, CHECK, OPERATIONS };

typedef struct access_check {
  cli_command *command;
  char *path;                /* the node, or its nearest ancestor that exists */
  bool node_exists;          /* `path` is the node itself */
  int read_err;              /* 0: reading is permitted */
  int op_errors[OPERATIONS]; /* 0: the operation is permitted */
  int transaction_err;
} access_check;

static void on_access_data(lk_client *c, int err, const lk_bytes *data,
                           const lk_stat *stat, void *arg)
{
  (void)c;
  (void)data;
  (void)stat;
  cli_command_complete(arg, err);
}

static int read_node(access_check *check)
{
  lk_call call = cli_command_repeatable_call(check->command);
  int err = lk_get(check->command->session.client, check->path, &call,
                   on_access_data, check->command);

  return cli_command_wait(check->command, err);
}

/* Sets `path` to the node or its nearest existing ancestor. Returns
   LK_ERR_NO_NODE if not even "/" exists, since the chroot is missing. */
static int find_nearest_node(access_check *check)
{
  check->node_exists = true;
  for (;;) {
    check->read_err = read_node(check);
    if (check->read_err != LK_ERR_NO_NODE)
      return check->read_err == LK_ERR_NO_AUTH ? 0 : check->read_err;
    if (strcmp(check->path, "/") == 0)
      return LK_ERR_NO_NODE;
    char *slash = strrchr(check->path, '/');
    char *end = slash == check->path ? slash + 1 : slash; /* "/" is kept */

    *end = '\0';
    check->node_exists = false;
  }
}

static void on_transaction_results(lk_client *c, int err,
                                   const lk_op_result *results, size_t count,
                                   void *arg)
{
  access_check *check = arg;

  /* A server that keeps the session as a local one refuses ephemeral nodes so.
   * The session is too young to have expired. */
  bool session_is_local =
      err == LK_ERR_SESSION_EXPIRED && lk_client_reply(c) != NULL;

  check->transaction_err =
      session_is_local ? LK_ERR_EPHEMERAL_ON_LOCAL_SESSION : err;
  for (size_t i = 0; i < count && i < OPERATIONS; i++)
    check->op_errors[i] = results[i].err;
  cli_command_complete(check->command, 0);
}

static int try_create_and_delete(access_check *check)
{
  lk_call call = cli_command_unrepeatable_call(check->command);
  const lk_acls *open_acl = NULL;
  cli_text node = {0};
  uint64_t random;

  lk_client_random(check->command->session.client, &random, sizeof random);
  cli_text_printf(&node, "%s/latchkey-doctor-%016" PRIx64,
                  strcmp(check->path, "/") == 0 ? "" : check->path, random);
  const char *path = cli_text_end(&node);
  lk_op ops[OPERATIONS] = {
      [CREATE] = lk_op_create(path, lk_text(""), open_acl, LK_EPHEMERAL),
      [DELETE] = lk_op_delete(path, CLI_ANY_VERSION),
      [CHECK] = lk_op_check(path, CLI_ANY_VERSION)};
  int err = path == NULL
                ? LK_ERR_NO_MEMORY
                : lk_multi(check->command->session.client, ops, OPERATIONS,
                           &call, on_transaction_results, check);

  err = cli_command_wait(check->command, err);
  cli_text_free(&node);
  return err;
}

/* ---- report -------------------------------------------------------------- */

static void report_access_error(const access_check *check, int err,
                                cli_doctor_report *report)
{
  cli_text said = {0};
  cli_json *facts =
      cli_doctor_report_begin(report, CLI_VERDICT_BROKEN, cli_error_layer(err));
  const char *advice = cli_error_advice(err);
  bool has_advice = *advice != '\0';

  cli_json_text(facts, "path", lk_text(check->command->path));
  cli_text_printf(&said, "%s: %s", check->path, lk_error_text(err));
  cli_doctor_report_end(report, &said,
                        has_advice ? advice + strlen("; ") : NULL);
}

static void report_no_chroot(const access_check *check,
                             cli_doctor_report *report)
{
  cli_text advice = {0};
  cli_text said = {0};
  cli_json *facts =
      cli_doctor_report_begin(report, CLI_VERDICT_BROKEN, "access");

  cli_json_text(facts, "path", lk_text(check->command->path));
  cli_text_printf(&said, "the chroot %s does not exist",
                  lk_client_chroot(check->command->session.client));
  cli_session_say_chroot_command(&check->command->session, &advice);
  cli_doctor_report_end(report, &said, cli_text_end(&advice));
  cli_text_free(&advice);
}

static void add_to_list(cli_text *list, const char *word)
{
  cli_text_printf(list, "%s%s", list->len == 0 ? "" : ", ", word);
}

/* If the node does not exist yet, the user needs only the permission to create
   it: its own access list is not known. The transaction stops at a refused
   create: whether delete is permitted is not known then. */
static void list_missing_rights(const access_check *check, cli_text *out)
{
  bool may_create = check->op_errors[CREATE] == 0;

  if (check->node_exists && check->read_err != 0)
    add_to_list(out, "read");
  if (!may_create)
    add_to_list(out, "create");
  if (check->node_exists && may_create && check->op_errors[DELETE] != 0)
    add_to_list(out, "delete");
}

static void report_rights(const access_check *check, cli_doctor_report *report)
{
  bool may_create = check->op_errors[CREATE] == 0;
  cli_text said = {0};
  cli_text missing = {0};

  list_missing_rights(check, &missing);
  bool has_all_rights = missing.len == 0 && !missing.failed;
  cli_json *facts = cli_doctor_report_begin(
      report, has_all_rights ? CLI_VERDICT_OK : CLI_VERDICT_BROKEN, "access");

  cli_json_text(facts, "path", lk_text(check->command->path));
  cli_json_text(facts, "node", lk_text(check->path));
  cli_json_bool(facts, "read", check->read_err == 0);
  cli_json_bool(facts, "create", may_create);
  if (may_create)
    cli_json_bool(facts, "delete", check->op_errors[DELETE] == 0);
  if (!check->node_exists)
    cli_text_printf(&said, "%s does not exist yet; ", check->command->path);
  if (has_all_rights)
    cli_text_printf(&said, "%s: %s", check->path,
                    check->node_exists ? "permission to read, create and delete"
                                       : "permission to create");
  else
    cli_text_printf(&said, "%s: no permission to %.*s", check->path,
                    (int)missing.len, missing.at);
  said.failed = said.failed || missing.failed;
  cli_text_free(&missing);
  cli_doctor_report_end(report, &said,
                        has_all_rights ? NULL
                                       : CLI_ADVICE_IDENTITY
                            ", or change the access list");
}

static void report_access(const access_check *check, int err,
                          cli_doctor_report *report)
{
  bool has_chroot = *lk_client_chroot(check->command->session.client) != '\0';
  bool only_check_failed = check->op_errors[CHECK] == LK_ERR_NO_NODE &&
                           check->transaction_err == LK_ERR_NO_NODE;

  if (err == LK_ERR_NO_NODE && has_chroot)
    report_no_chroot(check, report);
  else if (err != 0)
    report_access_error(check, err, report);
  else if (only_check_failed || check->transaction_err == LK_ERR_NO_AUTH)
    report_rights(check, report);
  else
    report_access_error(check, check->transaction_err, report);
}

void cli_access_check(cli_command *command, cli_doctor_report *report)
{
  access_check check = {.command = command, .path = strdup(command->path)};
  int err = check.path == NULL ? LK_ERR_NO_MEMORY : find_nearest_node(&check);

  if (err == 0)
    err = try_create_and_delete(&check);
  if (check.path != NULL)
    report_access(&check, err, report);
  else
    report->code = cli_fail_request(command->verb, command->path, err);
  free(check.path);
}
