/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/output/error_report.h"
#include "cli/run/job.h"
#include "cli/run/lock_target.h"
#include "cli/run/runner.h"
#include "cli/session/session.h"

/* The target of `join`: COMMAND runs as a member of a group. A lost membership
   does not end COMMAND: the member joins again. */

/* ---- events -------------------------------------------------------------- */

static void say_not_joined(const cli_runner *r, int err, cli_text *out)
{
  bool has_chroot = *lk_client_chroot(r->session.client) != '\0';

  cli_text_add_printable(out, lk_text(r->path));
  cli_text_puts(out, ": ");
  /* The member creates all missing parent nodes but the chroot. */
  if (err == LK_ERR_NO_NODE && has_chroot) {
    cli_session_say_no_chroot(&r->session, out);
    return;
  }
  err = cli_session_error(&r->session, err);
  cli_text_printf(out, "cannot join: %s%s%s", cli_error_reason(err),
                  cli_error_advice(err), cli_error_doctor_advice(err));
}

/* Joining the first time was refused with `err`. */
static void fail_to_join(cli_runner *r, int err)
{
  cli_text text = {0};

  say_not_joined(r, err, &text);
  const char *line = cli_text_end(&text);

  cli_run_fail(r, CLI_EXIT_FAILED,
               line == NULL ? lk_error_text(LK_ERR_NO_MEMORY) : line);
  cli_text_free(&text);
}

static void handle_event_while_joining(cli_runner *r,
                                       const lk_membership_event *event)
{
  switch (event->type) {
  case LK_MEMBERSHIP_EVENT_JOINED: cli_hold_begin(r); break;
  case LK_MEMBERSHIP_EVENT_NAME_TAKEN:
    cli_events_notice(&r->events,
                      "%s exists already: joining when it is gone, at the end "
                      "of its session or by a delete",
                      lk_membership_path(r->membership));
    cli_events_status(&r->events, "waiting until %s is gone",
                      lk_membership_path(r->membership));
    break;
  case LK_MEMBERSHIP_EVENT_RETRYING:
  case LK_MEMBERSHIP_EVENT_ENDED: fail_to_join(r, event->err); break;
  case LK_MEMBERSHIP_EVENT_LEFT: break;
  }
}

static void report_left(cli_runner *r, int err)
{
  const char *reason = err == LK_ERR_NO_NODE ? "another client deleted its node"
                                             : lk_error_text(err);

  cli_events_member(&r->events, "left", r->membership, r->session.client,
                    reason);
  cli_events_notice(&r->events, "%s: no longer a member: %s", r->path, reason);
}

static void handle_event_while_running(cli_runner *r,
                                       const lk_membership_event *event)
{
  switch (event->type) {
  case LK_MEMBERSHIP_EVENT_JOINED:
    cli_events_member(&r->events, "joined", r->membership, r->session.client,
                      NULL);
    cli_events_notice(&r->events, "%s: a member again", r->path);
    break;
  case LK_MEMBERSHIP_EVENT_LEFT: report_left(r, event->err); break;
  case LK_MEMBERSHIP_EVENT_NAME_TAKEN:
    cli_events_notice(&r->events,
                      "%s exists already: joining when it is gone, at the end "
                      "of its session or by a delete",
                      lk_membership_path(r->membership));
    break;
  case LK_MEMBERSHIP_EVENT_RETRYING:
    cli_events_notice(&r->events, "%s: cannot join again: %s; trying again",
                      r->path, lk_error_text(event->err));
    break;
  case LK_MEMBERSHIP_EVENT_ENDED:
    cli_events_notice(&r->events, "%s: cannot join again: %s%s", r->path,
                      lk_error_text(event->err), cli_error_advice(event->err));
    break;
  }
}

static void on_membership_event(lk_membership *m,
                                const lk_membership_event *event, void *arg)
{
  cli_runner *r = arg;

  (void)m;
  if (r->phase == CLI_PHASE_ACQUIRING)
    handle_event_while_joining(r, event);
  else if (r->phase == CLI_PHASE_RUNNING)
    handle_event_while_running(r, event);
}

/* ---- join ---------------------------------------------------------------- */

static int create_membership(cli_runner *r)
{
  lk_membership_config config = {.size = sizeof config,
                                 .acl = &r->acl.list,
                                 .on_event = on_membership_event,
                                 .arg = r};
  cli_text label = {0};

  cli_own_label_add(r->options, &label);
  int err = label.failed ? LK_ERR_NO_MEMORY : 0;

  config.data = lk_bytes_of(label.at, label.len);
  if (err == 0)
    err = lk_membership_new(&r->membership, r->session.client, r->path,
                            r->options->member_name, &config);
  cli_text_free(&label);
  return err;
}

static void report_open_group_acl(cli_runner *r)
{
  cli_events_detail(&r->events,
                    "if this run creates the group, every client may read, "
                    "create and delete in it; --acl creator with --auth-file "
                    "or --cert restricts that");
}

static void join_group(cli_runner *r)
{
  int err = lk_membership_join(r->membership);

  if (err != 0)
    fail_to_join(r, err);
}

static void report_joined(cli_runner *r)
{
  cli_events_member(&r->events, "joined", r->membership, r->session.client,
                    NULL);
  cli_events_detail(&r->events, "%s: joined", r->path);
}

static void add_member_environment(const cli_runner *r, cli_text *out)
{
  cli_environment_add(out, "LATCHKEY_GROUP", r->path);
  cli_environment_add(out, "LATCHKEY_NODE", lk_membership_path(r->membership));
  cli_environment_add_session(out, r->session.client);
}

/* ---- leave --------------------------------------------------------------- */

static void on_server_reached(lk_client *c, int err, const lk_stat *stat,
                              void *arg)
{
  cli_runner *r = arg;

  (void)c;
  (void)err;
  (void)stat;
  if (r->phase == CLI_PHASE_RELEASING)
    cli_run_close_session(r);
}

/* Closing the session deletes the node. A read comes first: a connection may be
   silent, and a close waits for a short time only. */
static void leave_group(cli_runner *r)
{
  const lk_call call = {.size = sizeof call, .repeat = true};
  bool has_node = lk_membership_has_joined(r->membership);

  if (!has_node)
    lk_membership_leave(r->membership); /* sends no create any more */
  if (has_node &&
      lk_exists(r->session.client, "/", &call, on_server_reached, r) == 0)
    cli_run_limit_release(r);
  else
    cli_run_close_session(r);
}

static void free_membership(cli_runner *r)
{
  lk_membership_free(r->membership);
}

const cli_run_target cli_member_target = {
    .path_key = "group",
    .status = "COMMAND runs as a member of",
    .create = create_membership,
    .report_open_acl = report_open_group_acl,
    .acquire = join_group,
    .report_acquired = report_joined,
    .add_environment = add_member_environment,
    .release = leave_group,
    .free = free_membership,
    .not_released = "no server is reachable to leave the group; the member is "
                    "gone once the servers have had a quorum for one session "
                    "timeout"};
