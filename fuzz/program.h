/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_FUZZ_PROGRAM_H
#define LK_FUZZ_PROGRAM_H

#include "input.h"
#include "support/harness.h"
#include "target.h"

/**
 * An input that is read as a program: a byte selects an action from a table,
 * and the action takes its operands from the bytes that follow. The corpora
 * depend on the order of the tables and on the number of bytes that each action
 * takes.
 */
typedef struct fuzz_program {
  harness h; /**< the client under test and the oracle of its promises */
  fuzz_input in;
  unsigned number;   /**< number of the next request, part of its name */
  unsigned deferred; /**< how many actions the next callbacks run */
  char name[24];     /**< of the request that is being made */

  char watch[24];  /**< engine: of the watch that is being set */
  int64_t session; /**< engine: the id in the last connect response */

  fake_mechanism mechanism; /**< sasl: unless it is DIGEST-MD5 */
  bool digest;              /**< sasl: the mechanism is DIGEST-MD5 */
} fuzz_program;

/** An action; the log that a failure prints shows its name. */
typedef struct action {
  const char *name;
  void (*run)(fuzz_program *g);
} action;

/** Run the action that the next byte selects. */
void run_action(fuzz_program *g, const action *table, size_t count);

/** Hand the bytes to the client as if they came from its server; frees the
    buffer. */
void receive_from_server(fuzz_program *g, lk_buf *b);

/**
 * Run a whole input: `begin` makes the client, and actions of the table follow
 * until the input or the client has ended. `begin` returns false where no
 * client could be made.
 */
void run_program(const uint8_t *data, size_t size,
                 bool (*begin)(fuzz_program *g), const action *table,
                 size_t count);

#endif
