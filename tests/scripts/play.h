/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_PLAY_H
#define LK_SCRIPTS_PLAY_H

#include "support/harness.h"

/**
 * Plays a transcript: a text with inputs for one client and the outputs that
 * must follow. Lines that begin with "> " are inputs, those with "#" and empty
 * ones are comments, all others are outputs of the client, in order. inputs.c
 * has the table of inputs. After each input the player acts as a driver: it
 * ticks the client if its deadline has passed, follows lk_client_want(), and
 * takes the output.
 */
typedef struct play_mode {
  size_t step;    /**< how many bytes move at once at most; 0: no limit */
  size_t fail_at; /**< the number of the allocation that fails; 0: none */
  bool for_good;  /**< all allocations after `fail_at` fail, too */
  bool cut;       /**< the server closes when it has sent `at` bytes */
  size_t at;
  bool failed; /**< output: an allocation has failed, or the server closed */
  /** output: number of inputs for callbacks ("on") that were not called */
  size_t undone;
} play_mode;

/** Play `text`, and append the inputs with the actual outputs to `out`. With
    `mode` NULL the result equals `text` if the client's outputs are as
    expected.
 */
void play(const char *text, play_mode *mode, lk_buf *out);

#endif
