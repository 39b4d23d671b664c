/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_CLOCKS_H
#define LK_CLI_CLOCKS_H

#include <ev.h>
#include <stdint.h>

/** How often to look, in ms. */
enum { CLI_CLOCKS_TICK_MS = 50 };

/** What the clocks of this machine say at a moment, in ms. */
typedef struct cli_moment {
  int64_t boot; /**< runs while the machine sleeps */
  int64_t wall; /**< can be set */
} cli_moment;

/** How the clocks ran while somebody looked at them. */
typedef struct cli_clocks {
  cli_moment first;
  cli_moment last;
  int64_t longest; /**< between two looks, on the first clock */
  ev_timer ticker;
} cli_clocks;

cli_moment cli_clocks_now(void);

void cli_clocks_begin(cli_clocks *c, cli_moment now);
void cli_clocks_look(cli_clocks *c, cli_moment now);

/** Look as long as `loop` runs, until the end of this. */
void cli_clocks_start(cli_clocks *c, struct ev_loop *loop);
void cli_clocks_stop(cli_clocks *c, struct ev_loop *loop);

/** How long this took. */
int64_t cli_clocks_took(const cli_clocks *c);
/** How long this process stood still, or its machine; 0: no longer than what
    is usual where much is going on. */
int64_t cli_clocks_stood(const cli_clocks *c);
/** By how much somebody set the wall clock; 0: by no more than what keeps it
    right. */
int64_t cli_clocks_set(const cli_clocks *c);

#endif
