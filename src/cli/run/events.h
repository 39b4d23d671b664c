/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_EVENTS_H
#define LK_CLI_RUN_EVENTS_H

#include <latchkey/lock.h>

#include "cli/options/options.h"
#include "cli/output/line_writer.h"
#include "cli/run/lock_kind.h"

/**
 * What `run` tells of itself: lines for people on standard error, and JSON for
 * programs, there or elsewhere.
 */
typedef struct cli_events {
  cli_line_writer people;   /**< standard error */
  cli_line_writer programs; /**< another descriptor, where asked for */
  cli_line_writer *json;    /**< one of the two above; NULL: no JSON */
  bool json_only;           /**< standard error is JSON: no lines for people */
  bool progress;            /**< tell how waiting goes */
  bool verbose;
  bool quiet;
  const char *lock; /**< its path; borrowed */
  /* of the grant */
  cli_text node;
  uint64_t token;
  int64_t session;
} cli_events;

/** See that the descriptor for events does not reach a command that is started
    from now on; gives the one to use. -1 gives -1; so does, with errno, a lack
    of descriptors. */
int cli_events_keep(int fd);

/** `fd` for JSON, or -1. */
void cli_events_open(cli_events *e, const cli_options *o, int fd,
                     const char *lock, struct ev_loop *loop);
void cli_events_close(cli_events *e);

/** For people: whatever -q says; unless -q; only with -v. */
void cli_events_say(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_events_notice(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_events_detail(cli_events *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Whether cli_events_waiting() has an output. */
bool cli_events_wants_waiting(const cli_events *e);

/** A place in the queue: 1 is the next to hold. `holder` is the label of who
    holds; null: not known. */
void cli_events_waiting(cli_events *e, const char *node, size_t position,
                        lk_bytes holder);

/** The lock was obtained; its facts are remembered for what follows. */
void cli_events_acquired(cli_events *e, const cli_lock_kind *k,
                         const lk_client *c);

/** "unsure", "held", "lost" (with `reason`) or "released". `l` NULL: it is not
    held any more. */
void cli_events_lock(cli_events *e, const char *event, const lk_lock *l,
                     const lk_client *c, const char *reason);

/** It ends without the lock, or the command could not be run: `code` is the
    exit code. For people the reason is a line of its own, unless it is said
    `silently`. */
void cli_events_failed(cli_events *e, int code, const char *reason,
                       bool silently);

#endif
