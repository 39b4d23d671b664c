/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include <latchkey/nodes.h>

#include "cli/nodes/ephemeral.h"
#include "cli/nodes/node_data.h"
#include "cli/options/acl_spec.h"
#include "cli/options/verbs.h"
#include "cli/output/json.h"
#include "cli/output/print.h"
#include "cli/session/command.h"

/* ---- requests ----------------------------------------------------------- */

typedef struct creation {
  cli_command command;
  cli_text created_path; /* path of the created node, from the reply */
} creation;

static void on_node_created(lk_client *c, int err, const char *path,
                            const lk_stat *stat, void *arg)
{
  creation *n = arg;
  cli_command *command = &n->command;
  cli_json j = {.out = &command->out};

  (void)c;
  (void)stat;
  cli_command_complete(command, err);
  if (err != 0)
    return;
  cli_text_puts(&n->created_path, path);
  if (command->options->json) {
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "path", lk_text(path));
    cli_json_close(&j, '}');
  } else {
    cli_text_add_printable(&command->out, lk_text(path));
  }
  cli_text_puts(&command->out, "\n");
}

static int create_mode(const cli_options *o)
{
  if (o->container)
    return LK_CONTAINER;
  return (o->ephemeral ? LK_EPHEMERAL : 0) |
         (o->sequential ? LK_SEQUENTIAL : 0);
}

static int create_with_parents(creation *n, lk_bytes data, const lk_acls *acl)
{
  cli_command *command = &n->command;
  lk_parents_config parents = {.size = sizeof parents, .acl = acl};
  lk_call call = cli_command_unrepeatable_call(command);

  return lk_create_with_parents(command->session.client, command->path, data,
                                acl, create_mode(command->options), &parents,
                                &call, on_node_created, n);
}

static void on_ancestors_created(lk_client *c, int err, const char *path,
                                 const lk_stat *stat, void *arg)
{
  bool all_existed = err == LK_ERR_NODE_EXISTS;

  (void)c;
  (void)path;
  (void)stat;
  cli_command_complete(arg, all_existed ? 0 : err);
}

/* Creates only the missing ancestors of the node. */
static int create_ancestors(cli_command *command, const lk_acls *acl)
{
  size_t parent_len = (size_t)(strrchr(command->path, '/') - command->path);
  lk_parents_config parents = {.size = sizeof parents, .acl = acl};
  lk_call call = cli_command_unrepeatable_call(command);
  cli_text path = {0};

  if (parent_len == 0) /* the parent is "/" */
    return 0;
  cli_text_add(&path, command->path, parent_len);
  const char *parent = cli_text_end(&path);
  int err =
      parent == NULL
          ? LK_ERR_NO_MEMORY
          : lk_create_with_parents(command->session.client, parent, lk_text(""),
                                   acl, LK_PERSISTENT, &parents, &call,
                                   on_ancestors_created, command);

  cli_text_free(&path);
  return cli_command_wait(command, err);
}

/* Creates a TTL node. The create is not repeated after a lost reply: nothing
   would show whether this client has created the node. */
static int create_ttl(creation *n, lk_bytes data, const lk_acls *acl)
{
  cli_command *command = &n->command;
  int err = command->options->parents ? create_ancestors(command, acl) : 0;
  lk_call call = cli_command_unrepeatable_call(command);

  if (err != 0)
    return err;
  return lk_create_ttl(command->session.client, command->path, data, acl,
                       create_mode(command->options), command->options->ttl_ms,
                       &call, on_node_created, n);
}

static int create_reliably(creation *n, lk_bytes data, const lk_acls *acl)
{
  cli_command *command = &n->command;
  lk_call call = cli_command_repeatable_call(command);
  const bool sole = false; /* other clients may write the node, too */

  return lk_create_reliable(command->session.client, command->path, data, acl,
                            create_mode(command->options), sole, &call,
                            on_node_created, n);
}

static int create_node(creation *n, lk_bytes data, const lk_acls *acl)
{
  const cli_options *o = n->command.options;
  int err;

  if (o->ttl_ms != 0)
    err = create_ttl(n, data, acl);
  else if (o->parents)
    err = create_with_parents(n, data, acl);
  else
    err = create_reliably(n, data, acl);
  return cli_command_wait(&n->command, err);
}

/* Closes the command, and prints the path of the created node, if `err` is 0.
 */
static int create_and_close(creation *n, lk_bytes data, const lk_acls *acl)
{
  return cli_command_close(&n->command, create_node(n, data, acl));
}

/* Prints the path, and keeps the session open until interrupted. */
static int print_and_keep(creation *n, cli_interrupt *interrupt)
{
  cli_command *command = &n->command;
  const char *path = cli_text_end(&n->created_path);
  int code = path == NULL ? cli_fail(CLI_EXIT_FAILED, "%s",
                                     lk_error_text(LK_ERR_NO_MEMORY))
                          : cli_print(&command->out);

  command->out.len = 0; /* cli_command_close() does not print it again */
  if (code == CLI_EXIT_DONE)
    return cli_ephemeral_keep(command, path, interrupt);
  cli_interrupt_close(interrupt);
  return code;
}

/* Keeps the session, and with it the node, until interrupted. Signals are
   blocked before the node is created, so that none can kill latchkey and leave
   the node behind. */
static int create_and_keep(creation *n, lk_bytes data, const lk_acls *acl)
{
  cli_command *command = &n->command;
  const int no_error = 0;
  cli_interrupt interrupt;

  cli_interrupt_open(&interrupt, command->session.loop, &command->done);
  int err = create_node(n, data, acl);
  bool created = n->created_path.len > 0;

  if (err == 0 && created) {
    int code = print_and_keep(n, &interrupt);
    int close_code = cli_command_close(command, no_error);

    return code != CLI_EXIT_DONE ? code : close_code;
  }
  int number = interrupt.number;

  cli_interrupt_close(&interrupt);
  if (number == 0)
    return cli_command_close(command, err);
  (void)cli_command_close(command, no_error);
  return CLI_EXIT_SIGNAL + number;
}

/* Returns a complaint about options that exclude each other, or NULL. */
static const char *find_option_conflict(const cli_options *o)
{
  if (o->container && o->ephemeral)
    return "-c and -e exclude each other";
  if (o->container && o->sequential)
    return "-c and -s exclude each other";
  if (o->ttl_ms != 0 && o->ephemeral)
    return "-t and -e exclude each other";
  if (o->ttl_ms != 0 && o->container)
    return "-t and -c exclude each other";
  return NULL;
}

int cli_create(const cli_options *o, char **operands)
{
  const char *conflict = find_option_conflict(o);
  cli_text complaint = {0};
  cli_text data = {0};
  int code = CLI_EXIT_FAILED;
  creation n = {.created_path = {.len = 0}};
  cli_acl acl;

  if (conflict != NULL)
    return cli_fail(CLI_EXIT_FAILED,
                    "create: %s; latchkey create --help explains them",
                    conflict);
  if (!cli_acl_read(&acl, "--acl", o->acl, &complaint))
    return cli_fail_text(CLI_EXIT_FAILED, "create", &complaint);
  if (cli_node_data_read(operands[1], &data) &&
      cli_command_open(&n.command, o, "create", operands[0]))
    code = o->ephemeral
               ? create_and_keep(&n, cli_node_data_bytes(&data), &acl.list)
               : create_and_close(&n, cli_node_data_bytes(&data), &acl.list);
  cli_text_free(&n.created_path);
  cli_text_free(&data);
  cli_acl_free(&acl);
  return code;
}
