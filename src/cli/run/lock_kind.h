/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_LOCK_KIND_H
#define LK_CLI_RUN_LOCK_KIND_H

#include <latchkey/latchkey.h>

#include "cli/options/options.h"
#include "cli/output/text.h"

/** What `run` takes: a mutex, a side of a read-write lock, several locks, or
    permits of a semaphore. */
typedef struct cli_lock_kind {
  lk_lock *lock;
  lk_rwlock *rw; /**< whose side `lock` is; or NULL */
  bool several;  /**< `lock` is a multi-lock */
} cli_lock_kind;

/** Whether the options go together; else what is wrong. */
const char *cli_lock_kind_check(const cli_options *o);
/** The path of -l number `i`. */
const char *cli_lock_kind_path(const cli_options *o, size_t i);
/** Make it, with LOCK at `path`. 0, or why not. */
int cli_lock_kind_open(cli_lock_kind *k, const cli_options *o,
                       lk_client *client, const char *path,
                       const lk_lock_config *config);
void cli_lock_kind_free(cli_lock_kind *k);

/** What concerns LOCK itself, at `path`, of all that are held. */
uint64_t cli_lock_kind_token(const cli_lock_kind *k, const char *path);
/** Our node in its queue; NULL: not known. */
const char *cli_lock_kind_node(const cli_lock_kind *k, const char *path);
/** A line "TOKEN PATH" for each lock, LOCK first, without the last line's end:
    for LATCHKEY_FENCING_TOKENS. */
void cli_lock_kind_tokens(const cli_lock_kind *k, const cli_options *o,
                          const char *path, cli_text *out);

/** "exclusive", "shared", "permits": for LATCHKEY_MODE. */
const char *cli_lock_kind_mode(const cli_options *o);

#endif
