/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/error_report.h"
#include "cli/output/print.h"
#include "cli/session/command.h"
#include "cli/session/session.h"

static void on_command_log(cli_session *s, const char *text, void *arg)
{
  (void)s;
  (void)arg;
  cli_notice("%s", text);
}

static void on_command_without_session(cli_session *s, const char *text,
                                       void *arg)
{
  (void)s;
  (void)arg;
  cli_notice("%s", text);
}

bool cli_command_begin(cli_command *command, const cli_options *o,
                       const char *verb, const char *path, cli_text *complaint)
{
  memset(command, 0, sizeof *command);
  command->options = o;
  command->verb = verb;
  command->path = path;
  command->session.on_log = on_command_log;
  command->session.on_no_session_yet = on_command_without_session;
  if (cli_session_open(&command->session, o, complaint))
    return true;
  cli_command_free(command);
  return false;
}

/* Whether the command is `create /`, which creates the chroot. */
static bool creates_chroot(const cli_command *command)
{
  return strcmp(command->verb, "create") == 0 &&
         strcmp(command->path, "/") == 0;
}

static void on_chroot_stat(lk_client *c, int err, const lk_stat *stat,
                           void *arg)
{
  (void)c;
  (void)stat;
  cli_command_complete(arg, err);
}

/* Checks that the chroot, if there is one, exists. Returns false after it has
   printed a complaint. */
static bool check_chroot(cli_command *command)
{
  lk_call call = cli_command_repeatable_call(command);
  cli_text line = {0};
  bool has_chroot = *lk_client_chroot(command->session.client) != '\0';
  bool may_wait_for_chroot = strcmp(command->verb, "watch") == 0;

  if (!has_chroot || creates_chroot(command))
    return true;
  int err =
      lk_exists(command->session.client, "/", &call, on_chroot_stat, command);

  /* The request of the verb gets any other error, too, and reports it. */
  if (cli_command_wait(command, err) != LK_ERR_NO_NODE)
    return true;
  cli_session_say_no_chroot(&command->session, &line);
  if (!may_wait_for_chroot) {
    cli_fail_text(CLI_EXIT_FAILED, command->verb, &line);
    return false;
  }
  const char *text = cli_text_end(&line);

  cli_warn("%s", text == NULL ? "the chroot does not exist" : text);
  cli_text_free(&line);
  return true;
}

/* Waits for the first session. Returns false after it has printed why there is
   no session. */
static bool wait_for_session(cli_session *s)
{
  cli_session_run(s, &s->decided);
  if (s->decided && s->err == 0)
    return true;
  cli_text text = {0};

  cli_session_say_no_session(s, &text);
  cli_fail_text(CLI_EXIT_FAILED, NULL, &text);
  return false;
}

bool cli_command_open(cli_command *command, const cli_options *o,
                      const char *verb, const char *path)
{
  cli_text complaint = {0};

  if (!cli_command_begin(command, o, verb, path, &complaint)) {
    cli_fail_text(CLI_EXIT_FAILED, NULL, &complaint);
    return false;
  }
  cli_tls_warn(&o->tls, o->hosts, o->quiet);
  if (!wait_for_session(&command->session)) {
    cli_command_free(command);
    return false;
  }
  if (!check_chroot(command)) {
    cli_session_close(&command->session);
    cli_command_free(command);
    return false;
  }
  if (lk_client_state(command->session.client) == LK_STATE_READ_ONLY)
    cli_warn("%s has no quorum; what it shows may be old",
             lk_client_server(command->session.client));
  return true;
}

/* The deadline is the end of -w, or a session timeout (as the server has
   granted it) from now if that is earlier. */
lk_call cli_command_unrepeatable_call(cli_command *command)
{
  lk_call call = {.size = sizeof call};
  int64_t end_of_wait_ms = cli_session_deadline(&command->session);

  call.deadline_ms = lk_client_clock(command->session.client) +
                     lk_client_timeout_ms(command->session.client);
  if (end_of_wait_ms != LK_NO_LIMIT && end_of_wait_ms < call.deadline_ms)
    call.deadline_ms = end_of_wait_ms;
  command->deadline_ms = call.deadline_ms;
  return call;
}

lk_call cli_command_repeatable_call(cli_command *command)
{
  lk_call call = cli_command_unrepeatable_call(command);

  call.repeat = true;
  return call;
}

void cli_command_complete(cli_command *command, int err)
{
  command->err = err;
  command->done = true;
}

int cli_command_wait(cli_command *command, int err)
{
  if (err == 0) {
    cli_session_run(&command->session, &command->done);
    err = command->done ? command->err : LK_ERR_CLOSED;
  }
  command->done = false;
  return err;
}

void cli_command_free(cli_command *command)
{
  cli_session_free(&command->session);
  cli_text_free(&command->out);
}

/* Prints why the command has failed. */
static int fail_command(const cli_command *command, int err)
{
  cli_text line = {0};
  bool is_late =
      lk_client_clock(command->session.client) >= command->deadline_ms;

  if (err == LK_ERR_IN_DOUBT && is_late) /* the reason, not the outcome */
    err = LK_ERR_DEADLINE;
  if (err != LK_ERR_NO_NODE || !creates_chroot(command))
    return cli_fail_request(command->verb, command->path,
                            cli_session_error(&command->session, err));
  /* A parent of the chroot is missing, which -p does not create. */
  cli_text_puts(&line, "/: ");
  cli_session_say_no_chroot(&command->session, &line);
  return cli_fail_text(cli_error_exit_code(err), "create", &line);
}

int cli_command_close(cli_command *command, int err)
{
  int code = err != 0 ? fail_command(command, err) : cli_print(&command->out);

  cli_session_close(&command->session);
  cli_command_free(command);
  return code;
}
