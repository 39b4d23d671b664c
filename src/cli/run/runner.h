/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_RUNNER_H
#define LK_CLI_RUN_RUNNER_H

#include <latchkey/member.h>

#include "cli/options/acl_spec.h"
#include "cli/output/print.h"
#include "cli/output/system_clocks.h"
#include "cli/run/events.h"
#include "cli/run/lock_kind.h"
#include "cli/run/orphans.h"
#include "cli/run/run.h"
#include "cli/run/supervisor_handle.h"
#include "cli/session/session.h"

/**
 * @file
 * The state of one `latchkey run`. run.c starts and ends it. lock_target.c
 * acquires and releases the lock, or member_target.c joins and leaves the
 * group. hold.c connects, supervises COMMAND, keeps the lock until --min-hold
 * is over, and closes the session.
 */

typedef enum cli_phase {
  CLI_PHASE_CONNECTING,
  CLI_PHASE_ACQUIRING, /**< waits for the lock, or joins the group */
  CLI_PHASE_RUNNING,   /**< COMMAND runs, or is being started or ended */
  CLI_PHASE_KEEPING,   /**< COMMAND has ended; --min-hold has not */
  CLI_PHASE_RELEASING, /**< until the lock's node is gone */
  CLI_PHASE_CLOSING,   /**< until the session is closed */
  CLI_PHASE_OVER
} cli_phase;

typedef struct cli_runner cli_runner;

/** What COMMAND runs with: a lock (run, elect), or membership of a group
    (join). Each function is called in the phase that it names. */
typedef struct cli_run_target {
  const char *path_key; /**< key of the path in JSON events */
  const char *status;   /**< what the service manager shows while COMMAND runs,
                             followed by the path */
  /** Creates the handle; no request is sent yet. Returns 0 or an error code.
      CLI_PHASE_CONNECTING. */
  int (*create)(cli_runner *r);
  /** Tells what other clients may do with created nodes; called if the access
      list is open. CLI_PHASE_ACQUIRING. */
  void (*report_open_acl)(cli_runner *r);
  /** Acquires the lock or joins the group. Ends with cli_hold_begin() or
      cli_run_fail(). CLI_PHASE_ACQUIRING. */
  void (*acquire)(cli_runner *r);
  /** Adapts to the new session timeout. May be NULL. CLI_PHASE_ACQUIRING or
      CLI_PHASE_RUNNING. */
  void (*reconnected)(cli_runner *r);
  /** Reports that COMMAND may be started. CLI_PHASE_RUNNING. */
  void (*report_acquired)(cli_runner *r);
  /** Appends the variables of COMMAND. CLI_PHASE_RUNNING. */
  void (*add_environment)(const cli_runner *r, cli_text *out);
  /** Stops acquiring. May be NULL: the close of the session does it.
      CLI_PHASE_CLOSING. */
  void (*cancel)(cli_runner *r);
  /** Deletes the own node, and then calls cli_run_close_session().
      CLI_PHASE_RELEASING. */
  void (*release)(cli_runner *r);
  void (*free)(cli_runner *r);
  const char *not_released; /**< the warning if the own node may still exist */
} cli_run_target;

extern const cli_run_target cli_lock_target;
extern const cli_run_target cli_member_target;

struct cli_runner {
  const cli_options *options;
  const char *path; /**< path of LOCK, or of the group */
  const cli_run_target *target;
  cli_phase phase;
  int code;    /**< exit code of latchkey */
  int died_of; /**< the signal, INT or QUIT, that ended COMMAND or the wait; 0:
                  neither signal did */
  bool over;   /**< the phase is CLI_PHASE_OVER; ends the loop */

  cli_job job;
  cli_children children_before; /**< the supervisor */
  cli_text environment; /**< what was added to that of COMMAND; see orphans.h */
  cli_supervisor supervisor;
  lk_loop_io supervisor_io;
  cli_signal_watcher signals;

  cli_session session;
  cli_events events;
  int events_fd; /**< of --events-fd, or a copy of it; -1: not given */
  cli_service_manager *manager; /**< outlives the run */
  cli_acl acl;
  cli_lock_kind kind;
  lk_membership *membership; /**< NULL: the target is another one */
  lk_lock *lock; /**< the same as kind.lock; NULL: the target is another one */
  lk_listener listener; /**< for new lease deadlines and session states */
  /** In CLI_PHASE_ACQUIRING: the time limit for a reply with -n, or the next
      check by lock_kind.c. In CLI_PHASE_KEEPING: the end of --min-hold.
      In CLI_PHASE_RELEASING and CLI_PHASE_CLOSING: the time limit of the phase.
   */
  lk_loop_timer timer;
  int64_t blocked_in_session; /**< id of the session in which the lock was last
                                 found held; 0: that is not known */
  char *waits_for; /**< with -l, the path of the lock that was last found held;
                      own memory; NULL: not known */
  int64_t answered_ms; /**< when the servers last replied, on lk_client_clock();
                          see on_run_reply() */
  int64_t wait_ends_at;    /**< end of -w, on lk_client_clock(); LK_NO_LIMIT: no
                              -w */
  uint64_t label_requests; /**< number of requests for the holder's label; only
                              the reply to the last one is shown */
  int64_t permits_pzxid;   /**< of the permits' directory at the last check */
  int permit_checks;       /**< number of checks by lock_kind.c */
  int64_t margin_ms;       /**< --kill-after, or its default */

  bool resigned;    /**< a signal has ended the wait, or TERM, INT or QUIT was
                       passed   on to COMMAND */
  bool not_started; /**< COMMAND could not be started */
  bool revoked;     /**< another client has asked for the release */
  int64_t held_at;  /**< start of the hold, on cli_boottime_ms() */
  cli_order last_order; /**< the last order with a lease deadline */
  bool suspended;       /**< the connection is lost */
  bool lock_lost;       /**< while COMMAND ran */
  bool on_lost_acted; /**< --on-lost has stopped, continued or killed COMMAND */
  bool killing;       /**< --on-lost sent TERM or KILL: the run ends when no
                         descendant of COMMAND is left */
  pid_t refused;      /**< a process of COMMAND that may not be signalled */
  int refused_signal; /**< the signal that was refused last; 0: none */
  int slow_replies;   /**< that have come in a row */
  bool slow_replies_warned;  /**< by lock_target.c */
  bool not_ephemeral_warned; /**< by cli_run_warn_not_ephemeral() */
  bool no_shell_told;        /**< that no shell could continue latchkey */
  bool warned;               /**< by cli_run_warn_not_released() */
  bool command_ended; /**< COMMAND has ended or was not started; `code` is the
                         exit code */
};

/* ---- run.c ---- */

/** Checks the options and operands of `verb`, and finds COMMAND. Returns 0, or
    the exit code after the error was reported. */
int cli_run_check(const cli_options *o, const char *verb,
                  const cli_run_target *target, char **operands,
                  cli_command_line *out);
/** Runs COMMAND once. Of `r` only the options, the path, the target, the
    service manager and parts of the job are set, and the rest is zeros.
    `r->code` gets the exit code. */
void cli_run_once(cli_runner *r, cli_process_title title);
/** Opens the connection to the service manager that has started latchkey. Warns
    if that fails. */
void cli_run_open_manager(cli_service_manager *manager, const cli_options *o);
/** Kills this process if COMMAND or the wait ended by INT or QUIT. */
void cli_run_die_if_signalled(const cli_runner *r);

/* ---- hold.c ---- */

/** Creates the client and the target, and starts to connect. On false,
    `complaint` gets one line. */
bool cli_run_session_open(cli_runner *r, cli_text *complaint);

/* ---- lock_target.c ---- */

/** Reports the position in the queue, and who holds the lock. */
void cli_run_report_waiting(cli_runner *r, const lk_lock_event *event);
/** Warns, once in a run, if the holder's node is not ephemeral: it belongs to
    no session, so the end of none deletes it. Returns whether that is so. */
bool cli_run_warn_not_ephemeral(cli_runner *r, const char *node,
                                const lk_stat *stat);

/* ---- lock_kind.c ---- */

/** Warns that `node` in the queue is that of another kind of lock. */
void cli_run_warn_mixed_queue(cli_runner *r, const char *node);
/** With -p, reads whether LOCK has nodes of a lock without -p, and warns then.
    CLI_PHASE_ACQUIRING. */
void cli_run_check_other_kind(cli_runner *r);
/** Schedules a check whether other clients use another number of permits than
    -p. Called when the own contender is first in the queue and waits for
    permits. */
void cli_run_check_permits_later(cli_runner *r);

/* ---- hold.c ---- */

/** Starts COMMAND; called when the lock is acquired. */
void cli_hold_begin(cli_runner *r);
/** Handles an event of the lock while COMMAND runs. */
void cli_hold_event(cli_runner *r, const lk_lock_event *event);
/** Called when the supervisor's socket is readable, writable or closed. */
void cli_hold_supervisor_ready(cli_runner *r);
/** Handles a signal to latchkey while COMMAND runs. */
void cli_hold_signal(cli_runner *r, cli_signal signal);
/** Handles a signal to latchkey in CLI_PHASE_KEEPING. A signal that ends a wait
    ends --min-hold, too. */
void cli_min_hold_signal(cli_runner *r, int number);
/** Sends the lease deadline to the supervisor if it has changed. */
void cli_hold_lease_moved(cli_runner *r);

/* ---- hold.c ---- */

/** Ends the run with exit code `code` before COMMAND was started. `reason` goes
    to the JSON events and to standard error. */
void cli_run_fail(cli_runner *r, int code, const char *reason);
/** Ends the run as cli_run_fail() does, without a line on standard error. */
void cli_run_fail_silently(cli_runner *r, int code, const char *reason);
/** Releases the lock or leaves the group, closes the session and ends the run
    with exit code r->code. */
void cli_run_release(cli_runner *r);
/** Calls cli_run_stop_releasing() after one session timeout. */
void cli_run_limit_release(cli_runner *r);
/** Warns that the own node may still exist, once in a run. */
void cli_run_warn_not_released(cli_runner *r);
/** Closes the session, and ends the run. */
void cli_run_close_session(cli_runner *r);
/** Stops waiting for the deletion of the own node: warns, and closes the
    session. */
void cli_run_stop_releasing(cli_runner *r);

#endif
