/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_RUNNER_H
#define LK_CLI_RUN_RUNNER_H

#include "cli/clock.h"
#include "cli/options/acl_spec.h"
#include "cli/output/print.h"
#include "cli/run/events.h"
#include "cli/run/lock_kind.h"
#include "cli/run/supervisor.h"
#include "cli/session/session.h"

/**
 * @file
 * One `latchkey run`. run.c has its beginning and its end, acquire.c the way
 * to the lock, hold.c the time while COMMAND runs, leave.c the way out.
 */

typedef enum cli_phase {
  CLI_PHASE_CONNECTING,
  CLI_PHASE_QUEUEING,
  CLI_PHASE_RUNNING,   /**< COMMAND runs, or is being started or ended */
  CLI_PHASE_KEEPING,   /**< COMMAND has ended; --min-hold has not */
  CLI_PHASE_RELEASING, /**< until the lock's node is gone */
  CLI_PHASE_CLOSING,   /**< until the session is closed */
  CLI_PHASE_OVER
} cli_phase;

typedef struct cli_runner {
  const cli_options *options;
  const char *path; /**< of the lock */
  cli_phase phase;
  int code;    /**< exit code */
  int died_of; /**< INT or QUIT ended COMMAND or the wait; 0: neither */
  bool over;

  cli_job job;
  pid_t child; /**< COMMAND; 0: not known */
  bool owns_all_children; /**< all our children come from the supervisor */
  cli_supervisor supervisor;
  ev_io supervisor_watcher;
  ev_io signals;

  cli_session session;
  cli_events events;
  cli_acl acl;
  cli_lock_kind kind;
  lk_lock *lock;        /**< that of `kind` */
  lk_listener listener; /**< for new lease deadlines */
  ev_timer timer;       /**< -n: the answer; a look at permits; --min-hold;
                             releasing: the session timeout */
  int64_t wait_until;   /**< -w: when, on lk_client_clock(); else
                             LK_NO_LIMIT */
  uint64_t label_requests; /**< numbers the questions who holds */
  int64_t permits_seen; /**< pzxid of their directory, as last seen */
  int permit_checks;    /**< so many so far */
  int64_t margin_ms;    /**< --kill-after */

  int64_t held_at; /**< since when, on cli_boottime_ms() */
  cli_order last_order; /**< what the supervisor knows of the lease */
  bool suspended;  /**< the connection is lost */
  bool lost;       /**< the lock, while COMMAND ran */
  bool acted;      /**< --on-lost did something */
  bool killing;    /**< and it is not over before nothing is left */
  bool ended;      /**< COMMAND has; `code` is its exit code */
} cli_runner;

/* ---- acquire.c ---- */

/** Make the lock, and begin to connect. */
bool cli_acquire_prepare(cli_runner *r, cli_text *complaint);
/** For the link. */
void cli_acquire_on_session(cli_session *s, void *arg);
void cli_acquire_on_no_session(cli_session *s, int err, void *arg);

/* ---- permits.c ---- */

/** First in the queue of a semaphore, without permits enough: see whether
   others count another number than -p. */
void cli_permit_count_check_later(cli_runner *r);

/* ---- hold.c ---- */

/** The lock is held: start COMMAND. */
void cli_hold_begin(cli_runner *r);
/** What the lock tells while COMMAND runs. */
void cli_hold_event(cli_runner *r, const lk_lock_event *event);
/** The supervisor has news, has room for orders, or is gone. */
void cli_hold_supervisor_ready(cli_runner *r);
/** A signal came. */
void cli_hold_signal(cli_runner *r, cli_signal signal);
/** An answer may have moved the lease deadline. */
void cli_hold_lease_moved(cli_runner *r);

/* ---- leave.c ---- */

/** Before COMMAND was started: end without the lock, with `code` and `reason`,
    for people unless `silently`. */
void cli_run_fail(cli_runner *r, int code, const char *reason, bool silently);
/** COMMAND has ended: release, close, and exit with r->code. */
void cli_run_release(cli_runner *r);
/** --min-hold is over, or of no use any more. */
void cli_run_end_min_hold(cli_runner *r);
/** Do not wait any longer for the lock's node to go. */
void cli_run_stop_releasing(cli_runner *r);

#endif
