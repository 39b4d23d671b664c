/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LINE_H
#define LK_CLI_LINE_H

#include "cli/ask.h"
#include "cli/queue.h"

/** Who queues for a lock, or holds and wants permits of a semaphore. */
typedef struct cli_line {
  cli_ask *ask;     /**< its path is the lock's */
  const char *part; /**< of a semaphore: "locks/", "leases/"; else "" */
  bool semaphore;
  bool missing; /**< there is no such node, so nobody can queue */
  cli_contender *all;
  size_t count; /**< of those that are still there */
  size_t found;
} cli_line;

/** List them, in any order; nobody if the node is not there. Gives the error;
    free it in any case. */
int cli_line_read(cli_line *l, cli_ask *ask);
/** Ask each what it says of itself: its label and its Stat. Who holds permits is
    known from these. */
int cli_line_look(cli_line *l);
/** Put them in order and mark the holders, by what is known of them. */
void cli_line_order(cli_line *l);
size_t cli_line_holders(const cli_line *l);
/** The whole path of number `i`, own memory; NULL: none is left. */
char *cli_line_path(const cli_line *l, size_t i);
void cli_line_free(cli_line *l);

#endif
