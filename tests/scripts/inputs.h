/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_INPUTS_H
#define LK_SCRIPTS_INPUTS_H

#include "scripts/play.h"
#include "support/words.h"

/** For play.c alone: the inputs of a transcript. */

enum { MAX_PLANS = 16 };

/** An input that runs once, in a callback. */
typedef struct plan {
  char when[64]; /**< "" once it is done */
  char line[512];
} plan;

/** The player of a transcript. */
typedef struct player {
  peer p;
  play_mode mode;
  bool asleep; /**< the client is not called after this line */
  size_t received;
  plan plans[MAX_PLANS];
  size_t count;
  fake_mechanism sasl;
} player;

typedef struct input {
  const char *name;
  void (*run)(player *y, words *w);
  bool early; /**< also without a client */
} input;

/** The input of that name; aborts if there is none. */
const input *input_find(const char *name);

/* The first and last words of calls. */
peer_call input_take_name(words *w);
void input_take_options(peer_call *call, words *w);
int input_take_flags(words *w);
/** NAME PATH and options. */
void input_read(player *y, words *w,
                int (*call)(peer *p, const peer_call *call, const char *path));

/* inputs_seldom.c */
void input_count(player *y, words *w);
void input_ephemerals(player *y, words *w);
void input_get_acl(player *y, words *w);
void input_set_acl(player *y, words *w);
void input_create_ttl(player *y, words *w);
void input_multi_read(player *y, words *w);
void input_who_am_i(player *y, words *w);
void input_config(player *y, words *w);
void input_reconfig(player *y, words *w);
void input_add_watch(player *y, words *w);

#endif
