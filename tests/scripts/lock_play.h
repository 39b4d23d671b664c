/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_LOCK_PLAY_H
#define LK_SCRIPTS_LOCK_PLAY_H

#include "base/buf.h"

/**
 * Plays a transcript of locks: a text with what happens to clients and locks
 * on one server in memory, and what they do. Lines that begin with "> " are
 * inputs, those with "#" and empty ones are for the reader, all others are
 * what was done, in order: "one: create2 getChildren2" is a write of a client,
 * "a: waiting 1 0000000000" what a lock was told. lock_play.c has the table of
 * inputs. After each all that can happen at once does.
 */
typedef struct lock_play_mode {
  size_t fail_at; /**< which allocation of each client fails; 0: none */
  bool cut;       /**< each connection ends, once, when `at` bytes arrived */
  size_t at;
  bool happened; /**< gets: whether that was ever the case */
} lock_play_mode;

/** Play `text` and add what happened to `out`: with `mode` NULL the same text,
    if all do what it says. Aborts if a node or memory is left at the end. */
void lock_play(const char *text, lock_play_mode *mode, lk_buf *out);

#endif
