/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_FAKE_INPUTS_H
#define LK_FAKE_INPUTS_H

#include "fake/play.h"
#include "fake/words.h"

/** For play.c alone: what the lines of a transcript do. */

enum { MAX_PLANS = 16 };

/** What is to be done in a callback, once. */
typedef struct plan {
  char when[64]; /**< "" once it is done */
  char line[512];
} plan;

/** Who plays a transcript. */
typedef struct player {
  peer p;
  play_mode mode;
  bool asleep; /**< nobody looks at the client after this line */
  size_t received;
  plan plans[MAX_PLANS];
  size_t count;
} player;

typedef struct input {
  const char *name;
  void (*run)(player *y, words *w);
  bool early; /**< also without a client */
} input;

/** The input of that name; aborts if there is none. */
const input *input_find(const char *name);

#endif
