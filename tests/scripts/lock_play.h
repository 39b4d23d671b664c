/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_LOCK_PLAY_H
#define LK_SCRIPTS_LOCK_PLAY_H

#include "base/buf.h"

/**
 * Plays a transcript of locks: a text with inputs for clients and locks on one
 * model server, and the outputs that must follow. Lines that begin with "> "
 * are inputs, those with "#" and empty ones are comments, all others are
 * outputs, in order: "one: create2 getChildren2" is a write of a client, "a:
 * waiting 1 0000000000" an event of a lock. lock_play.c has the table of
 * inputs. After each input, everything that can happen without a passing of
 * time does.
 */
typedef struct lock_play_mode {
  size_t fail_at; /**< which allocation of each client fails; 0: none */
  bool cut;       /**< each connection ends, once, when `at` bytes arrived */
  size_t at;
  bool happened; /**< output: whether that happened */
} lock_play_mode;

/** Play `text` and add inputs and outputs to `out`. With `mode` NULL this is
   the same text if all follow the transcript. Aborts if a node or memory is
   left. */
void lock_play(const char *text, lock_play_mode *mode, lk_buf *out);

#endif
