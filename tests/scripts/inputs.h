/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SCRIPTS_INPUTS_H
#define LK_SCRIPTS_INPUTS_H

#include "scripts/play.h"
#include "support/words.h"

/** The inputs of a transcript, for play.c only. */

enum { PLANS_MAX = 16 };

/** An input that is run once, in a callback. */
typedef struct plan {
  char when[64];  /**< the callback, as NAME or NAME:EVENT; "": it was run */
  char line[512]; /**< the input */
} plan;

/** The player of a transcript. */
typedef struct script_player {
  harness h;
  play_mode mode;
  bool asleep;     /**< the driver does not run after this line */
  size_t received; /**< how many bytes the client has received */
  plan plans[PLANS_MAX];
  size_t nplans;
  fake_mechanism sasl;
} script_player;

typedef struct input {
  const char *name;
  void (*run)(script_player *player, words *w);
  bool needs_no_client; /**< also run when there is no client */
} input;

/** The input of that name; aborts if there is none. */
const input *input_find(const char *name);

/** Take the name of a call, which is its first word. */
harness_call input_take_name(words *w);
/** Take the options of a call, which are its last words. */
void input_take_options(harness_call *call, words *w);
/** Take the flags of a create. */
int input_take_flags(words *w);
/** Take NAME, PATH and options, and call `call`. */
void input_read(script_player *player, words *w,
                int (*call)(harness *h, const harness_call *call,
                            const char *path));

/* inputs_seldom.c */
void input_count(script_player *player, words *w);
void input_ephemerals(script_player *player, words *w);
void input_get_acl(script_player *player, words *w);
void input_set_acl(script_player *player, words *w);
void input_create_ttl(script_player *player, words *w);
void input_multi_read(script_player *player, words *w);
void input_who_am_i(script_player *player, words *w);
void input_config(script_player *player, words *w);
void input_reconfig(script_player *player, words *w);
void input_add_watch(script_player *player, words *w);

#endif
