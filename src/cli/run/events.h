/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_EVENTS_H
#define LK_CLI_RUN_EVENTS_H

#include <latchkey/lock.h>

#include "cli/options/options.h"
#include "cli/output/line_backlog.h"
#include "cli/run/lock_kind.h"

/**
 * The output of `run`: lines for people on standard error, and JSON events for
 * programs, there or on another descriptor.
 */
typedef struct cli_events {
  cli_line_backlog people;   /**< standard error */
  cli_line_backlog programs; /**< the descriptor of --events-fd */
  cli_line_backlog *json;    /**< one of the two above; NULL: no JSON */
  bool json_only;           /**< standard error is JSON: no lines for people */
  bool progress;            /**< report the position in the queue */
  bool verbose;
  bool quiet;
  const char *lock; /**< path of the lock; borrowed */
  /* of the grant */
  cli_text node;
  uint64_t token;
  int64_t session;
} cli_events;

/** Keeps COMMAND from inheriting the descriptor for events, and returns the
    descriptor to use. Returns -1 for -1, and -1 with errno if no descriptor is
    left. */
int cli_events_take_fd(int fd);

/** Opens the outputs. `fd` is the descriptor for JSON, or -1. */
void cli_events_open(cli_events *e, const cli_options *o, int fd,
                     const char *lock, lk_loop *loop);
void cli_events_close(cli_events *e);

/** Writes a line for people: always; unless -q is given; only with -v. */
void cli_events_say(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_events_notice(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_events_detail(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Whether cli_events_waiting() has an output. */
bool cli_events_wants_waiting(const cli_events *e);

/** Reports a position in the queue: 1 is the next holder. `holder` is the label
    of the current holder; a null pointer in it: not known. */
void cli_events_waiting(cli_events *e, const char *node, size_t position,
                        lk_bytes holder);

/** Reports that the lock is acquired, and stores its node, token and session
    for later events. */
void cli_events_acquired(cli_events *e, const cli_lock_kind *k,
                         const lk_client *c);

/** Writes the event "unsure", "held", "revoked", "lost" (with `reason`) or
    "released". `l` is NULL if the lock is no longer held. */
void cli_events_lock(cli_events *e, const char *event, const lk_lock *l,
                     const lk_client *c, const char *reason);

/** Reports that the lock was not acquired or COMMAND could not be run. `code`
    is the exit code. Unless `silently`, people get the reason as a line. */
void cli_events_failed(cli_events *e, int code, const char *reason,
                       bool silently);

#endif
