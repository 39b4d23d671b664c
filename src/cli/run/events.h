/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_EVENTS_H
#define LK_CLI_RUN_EVENTS_H

#include <latchkey/lock.h>
#include <latchkey/member.h>

#include "cli/options/options.h"
#include "cli/output/line_backlog.h"
#include "cli/run/lock_kind.h"
#include "cli/run/service_manager.h"

/**
 * The output of `run`: lines for people on standard error, JSON events for
 * programs, there or on another descriptor, and the status for the service
 * manager.
 */
typedef struct cli_events {
  cli_line_backlog people;   /**< standard error */
  cli_line_backlog programs; /**< the descriptor of --events-fd */
  cli_line_backlog *json;    /**< one of the two above; NULL: no JSON */
  const cli_service_manager *manager; /**< borrowed */
  bool json_only; /**< standard error is JSON: no lines for people */
  bool progress;  /**< report the position in the queue */
  bool verbose;
  bool quiet;
  const char *path_key; /**< key of `path` in JSON */
  const char *path;     /**< of the lock or the group; borrowed */
  bool holds; /**< "acquired" was written, and not yet "lost" or "released" */
  /* set by cli_events_acquired() */
  cli_text node;
  uint64_t token;
  int64_t session; /**< id of the session */
} cli_events;

/** Makes sure that COMMAND does not inherit `fd`, the descriptor for events.
    Returns the descriptor to use instead. Returns -1 if `fd` is -1, and -1 with
    errno if no descriptor is left. */
int cli_events_take_fd(int fd);

/** Opens the outputs. `fd` is the descriptor for JSON, or -1. `path` is the
    path of the lock or the group, and `path_key` its key in JSON. */
void cli_events_open(cli_events *e, const cli_options *o, int fd,
                     const cli_service_manager *manager, const char *path_key,
                     const char *path, lk_loop *loop);
void cli_events_close(cli_events *e);

/** Writes a line, or a JSON event if standard error is for JSON. */
void cli_events_say(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Writes a notice, unless -q is given: a line, or a JSON event if standard
    error is for JSON. */
void cli_events_notice(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Writes a line for people if -v is given. */
void cli_events_detail(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Shows a status in the service manager only. */
void cli_events_status(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Whether cli_events_waiting() would write anything. */
bool cli_events_wants_waiting(const cli_events *e);

/** Reports the position in the queue; position 1 acquires the lock next.
    Position 0 is not shown: the lock has no queue. `waits_for` is the path of
    the lock of -l that is held; NULL: without -l. `node` is the own node, or
    NULL. `holder` is the label of the current holder; its `at` is NULL if the
    label is not known. */
void cli_events_waiting(cli_events *e, const char *waits_for, const char *node,
                        size_t position, lk_bytes holder);

/** Reports that the lock is acquired, and stores its node, token and session
    for later events. */
void cli_events_acquired(cli_events *e, const cli_lock_kind *kind,
                         const lk_client *c);

/** Writes the event "unsure", "held" or "revoked" of the lock that is held. */
void cli_events_lock(cli_events *e, const char *event, const lk_lock *l,
                     const lk_client *c);
/** Writes the event "lost", unless the lock is lost or released already. */
void cli_events_lost(cli_events *e, const char *reason);
/** Writes the event "released", likewise. */
void cli_events_released(cli_events *e);

/** Writes the event "joined" or "left". `reason` is NULL except for "left". */
void cli_events_member(cli_events *e, const char *event, const lk_membership *m,
                       const lk_client *c, const char *reason);

/** Reports that the lock was not acquired or COMMAND could not be run. `code`
    is the exit code. Writes a line and a JSON event. */
void cli_events_failed(cli_events *e, int code, const char *reason);
/** Writes only the JSON event of cli_events_failed(), no line. */
void cli_events_failed_silently(cli_events *e, int code, const char *reason);

#endif
