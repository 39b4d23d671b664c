/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_PLAY_H
#define LK_SCRIPTS_PLAY_H

#include "support/peer.h"

/**
 * Plays a transcript: a text with inputs for one client and the outputs that
 * must follow. Lines that begin with "> " are inputs, those with "#" and empty
 * ones are comments, all others are outputs of the client, in order. inputs.c
 * has the table of inputs. After each input the player acts as a driver: it
 * ticks the client if its deadline has passed, follows lk_client_want(), and
 * takes the output.
 */
typedef struct play_mode {
  size_t step;    /**< most bytes that move at once; 0: all there are */
  size_t fail_at; /**< which allocation fails; 0: none */
  bool for_good;  /**< and all after it */
  bool cut;       /**< the server closes when it has sent `at` bytes */
  size_t at;
  bool failed;   /**< output: whether the allocation has failed */
  size_t undone; /**< output: inputs of "on" whose callback never came */
} play_mode;

/** Play `text` and add inputs and outputs to `out`. With `mode` NULL this is
   the same text if the client follows the transcript. */
void play(const char *text, play_mode *mode, lk_buf *out);

#endif
