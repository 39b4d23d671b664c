/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_PLAY_H
#define LK_SCRIPTS_PLAY_H

#include "support/peer.h"

/**
 * Plays a transcript: a text with inputs for one client and what it does.
 * Lines that begin with "> " are inputs, those with "#" and empty ones are for
 * the reader, all others are what the client did, in order. inputs.c has the
 * table of inputs. After each the client is given what it wants, as a driver
 * would: its deadline is looked at, its wish followed, its output taken.
 */
typedef struct play_mode {
  size_t step;    /**< most bytes that move at once; 0: all there are */
  size_t fail_at; /**< which allocation fails; 0: none */
  bool for_good;  /**< and all after it */
  bool cut;       /**< the server hangs up when it has said `at` bytes */
  size_t at;
  bool failed;   /**< gets: whether what was to fail has failed */
  size_t undone; /**< gets: how often "on" waited in vain */
} play_mode;

/** Play `text` and add what happened to `out`: with `mode` NULL the same text,
    if the client does what it says. */
void play(const char *text, play_mode *mode, lk_buf *out);

#endif
