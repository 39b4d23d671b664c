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
 * inputs. After each input, clients and server run until only the passing of
 * time makes anything else happen.
 */
typedef struct lock_play_mode {
  size_t fail_at; /**< the number of the allocation that fails in each client;
                       0: none */
  bool cut;       /**< the connection of each client breaks once, after `at`
                       bytes from the server */
  size_t at;
  bool happened; /**< output: an allocation has failed, or a connection broke */
} lock_play_mode;

/** Play `text`, and append the inputs with the actual outputs to `out`. With
    `mode` NULL the result equals `text` if all outputs are as expected. Aborts
    if a node or memory is left. */
void lock_play(const char *text, lock_play_mode *mode, lk_buf *out);

#endif
