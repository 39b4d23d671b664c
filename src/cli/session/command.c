/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/print.h"
#include "cli/session/command.h"
#include "cli/session/session_messages.h"

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

bool cli_command_begin(cli_command *a, const cli_options *o, const char *verb,
                       const char *path, cli_text *complaint)
{
  memset(a, 0, sizeof *a);
  a->options = o;
  a->verb = verb;
  a->path = path;
  a->session.log = on_command_log;
  a->session.no_session_yet = on_command_without_session;
  if (cli_session_open(&a->session, o, complaint))
    return true;
  cli_command_free(a);
  return false;
}

static void on_chroot_stat(lk_client *c, int err, const lk_stat *stat,
                           void *arg)
{
  (void)c;
  (void)stat;
  cli_command_complete(arg, err);
}

/* Checks that the chroot exists. Returns false if it does not, after it has
   printed a complaint. `create` may create the chroot, so it is not checked.
   `watch` may wait for the chroot, so only a warning is printed. Another error
   is reported when the request of the verb gets it, too. */
static bool check_chroot(cli_command *a)
{
  lk_call call = cli_command_call_options(a, true);
  cli_text line = {0};

  if (*lk_client_chroot(a->session.client) == '\0' ||
      strcmp(a->verb, "create") == 0)
    return true;
  int err = lk_exists(a->session.client, "/", &call, on_chroot_stat, a);

  if (cli_command_wait(a, err) != LK_ERR_NO_NODE)
    return true;
  cli_session_say_no_chroot(&a->session, &line);
  if (strcmp(a->verb, "watch") != 0) {
    cli_fail_text(CLI_EXIT_FAILED, a->verb, &line);
    return false;
  }
  const char *text = cli_text_end(&line);

  cli_warn("%s", text == NULL ? "the chroot does not exist" : text);
  cli_text_free(&line);
  return true;
}

/* Waits for the first session. With --read-only, a session of a read-only
   server counts after a second in which no other server was found. Returns
   false after it has printed why there is no session. */
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

bool cli_command_open(cli_command *a, const cli_options *o, const char *verb,
                      const char *path)
{
  cli_text complaint = {0};

  if (!cli_command_begin(a, o, verb, path, &complaint)) {
    cli_fail_text(CLI_EXIT_FAILED, NULL, &complaint);
    return false;
  }
  cli_tls_warn(&o->tls, o->hosts, o->quiet);
  if (!wait_for_session(&a->session)) {
    cli_command_free(a);
    return false;
  }
  if (!check_chroot(a)) {
    cli_session_close(&a->session);
    cli_command_free(a);
    return false;
  }
  if (lk_client_state(a->session.client) == LK_STATE_READ_ONLY)
    cli_warn("%s has no quorum; what it shows may be old",
             lk_client_server(a->session.client));
  return true;
}

lk_call cli_command_call_options(const cli_command *a, bool repeat)
{
  lk_call call = {.size = sizeof call, .repeat = repeat};
  int64_t deadline = cli_session_deadline(&a->session);

  call.deadline_ms =
      lk_client_clock(a->session.client) + a->options->session_timeout_ms;
  if (deadline != LK_NO_LIMIT && deadline < call.deadline_ms)
    call.deadline_ms = deadline;
  return call;
}

void cli_command_complete(cli_command *a, int err)
{
  a->err = err;
  a->done = true;
}

int cli_command_wait(cli_command *a, int err)
{
  if (err == 0) {
    cli_session_run(&a->session, &a->done);
    err = a->done ? a->err : LK_ERR_CLOSED;
  }
  a->done = false;
  return err;
}

void cli_command_free(cli_command *a)
{
  cli_session_free(&a->session);
  cli_text_free(&a->out);
}

int cli_command_close(cli_command *a, int err)
{
  int code = err != 0 ? cli_fail_request(a->verb, a->path,
                                         cli_session_error(&a->session, err))
                      : cli_print(&a->out);

  cli_session_close(&a->session);
  cli_command_free(a);
  return code;
}
