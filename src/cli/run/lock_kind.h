/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_LOCK_KIND_H
#define LK_CLI_RUN_LOCK_KIND_H

/**
 * @file
 * The kind of the lock that `run` acquires, and warnings if other clients use
 * LOCK with other options: another kind of lock or layout, or another number of
 * permits.
 */

#include <latchkey/rwlock.h>

#include "cli/options/options.h"
#include "cli/output/text.h"

/** The lock of `run`: a mutex, a side of a read-write lock, several locks,
    permits of a semaphore, or a single node. */
typedef struct cli_lock_kind {
  lk_lock *lock;
  lk_rwlock *rw; /**< the read-write lock that `lock` is a side of, or NULL */
  bool is_multilock; /**< `lock` is a multi-lock */
} cli_lock_kind;

/** Returns a complaint if the options for the lock do not fit together, else
    NULL. */
const char *cli_lock_kind_check(const cli_options *o);
/** Returns a complaint if LOCK, which is at `path`, and the locks of -l give
    one path two sides, else NULL. */
const char *cli_lock_kind_check_sides(const cli_options *o, const char *path);
/** Returns the path of the lock of -l number `i`, counted from 0. */
const char *cli_lock_kind_path(const cli_options *o, size_t i);
/** Creates the lock, with LOCK at `path`. Returns 0 or an error code. */
int cli_lock_kind_open(cli_lock_kind *kind, const cli_options *o,
                       lk_client *client, const char *path,
                       const lk_lock_config *config);
void cli_lock_kind_free(cli_lock_kind *kind);

/** Returns the fencing token of the lock at `path`: LOCK or a lock of -l. */
uint64_t cli_lock_kind_token(const cli_lock_kind *kind, const char *path);
/** Returns the own node in the queue of the lock at `path`; NULL: not known. */
const char *cli_lock_kind_node(const cli_lock_kind *kind, const char *path);
/** Appends the value of LATCHKEY_FENCING_TOKENS: a line "TOKEN PATH" for each
    lock, LOCK (at `path`) first. The last line has no newline. */
void cli_lock_kind_tokens(const cli_lock_kind *kind, const cli_options *o,
                          const char *path, cli_text *out);

/** Returns "exclusive", "shared" or "permits": for LATCHKEY_MODE. */
const char *cli_lock_kind_mode(const cli_options *o);

#endif
