/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LOCKS_CONTENDERS_H
#define LK_CLI_LOCKS_CONTENDERS_H

/**
 * @file
 * The contenders of a lock or a semaphore: which nodes they are, their labels,
 * and which of them hold.
 */

#include <latchkey/types.h>

#include "cli/output/json.h"
#include "cli/session/command.h"

/** A child of a lock's node that queues for the lock. */
typedef struct cli_contender {
  char *name; /**< relative to the lock's node; of a single node, its name */
  int64_t number;
  bool shared;         /**< a reader of a read-write lock */
  bool permit;         /**< a permit of a semaphore, not a place in its queue */
  bool in_kazoo_queue; /**< a child of the queue of kazoo's semaphore, whose
                  path is the lock's path with a suffix */
  bool holds;          /**< set by cli_queue_mark_lock_holders() and
                  cli_queue_mark_permit_holders() */
  bool gone;           /**< deleted while the queue was read */
  bool hidden;         /**< no permission to read it */
  lk_stat stat;
  lk_bytes label; /**< data of the node; own memory */
  bool asked;     /**< was asked to release the lock: LK_REVOKE_MESSAGE has
                  replaced the label */
} cli_contender;

/** Sorts the contenders by number, deleted ones last. Marks the holders: the
    first contender, and all readers before the first writer. Returns the number
    of existing contenders. */
size_t cli_queue_mark_lock_holders(cli_contender *all, size_t count);
/** Sorts the contenders and permits of a semaphore by number, deleted ones
    last. Marks the permits as holders. The first contender in the queue creates
    its permits before it knows whether they are free. Until it holds them, they
    are moved to the end and not counted. Returns the number of existing
    contenders and held permits. */
size_t cli_queue_mark_permit_holders(cli_contender *all, size_t count);

/** The contenders of a lock, or the permits and contenders of a semaphore. The
    lock of a single node (--layout single) has one contender, the holder:
    clients that wait for it create no nodes. */
typedef struct cli_contenders {
  cli_command *command;  /**< its path is the path of the lock */
  const char *directory; /**< the directory that is being listed: "" for the
                            lock's node; for a semaphore also "locks/",
                            "leases/" or "-__lock__/", appended to the path */
  lk_layout layout; /**< of the contenders: that of the options; or, if none was
                       given and there are candidates only, that of elect */
  bool semaphore;
  bool missing;  /**< the lock's node does not exist, so there is no queue; a
                    single node is missing whenever the lock is free */
  size_t others; /**< number of children of the lock's node that are sequential
                    nodes or permits, and none of the selected layout */
  cli_contender *all;
  size_t count;     /**< number of contenders; deleted ones are not counted */
  size_t all_count; /**< number of items of `all`, deleted ones included */
} cli_contenders;

/** Whether `name` ends as a server names sequential nodes. */
bool cli_is_sequential_name(lk_bytes name);
/** Lists the contenders in any order; none if the node does not exist. Returns
    the error; cli_contenders_free() is needed in any case. */
int cli_contenders_list(cli_contenders *queue, cli_command *command);
/** Reads the label and the Stat of each contender. For a semaphore,
    cli_contenders_mark_holders() uses the Stats to find waiting permits. */
int cli_contenders_read_nodes(cli_contenders *queue);
/** Sorts the contenders and marks the holders. */
void cli_contenders_mark_holders(cli_contenders *queue);
size_t cli_contenders_count_holders(const cli_contenders *queue);
/** Whether the node of `c` is ephemeral. If it is not, no session owns it, and
    it exists until a client deletes it. The Stat of `c` must be known: by
    cli_contenders_read_nodes(), or for a single node also by
    cli_contenders_list(). */
bool cli_contender_is_ephemeral(const cli_contender *c);
/** Whether `data`, read from a contender's node, is LK_REVOKE_MESSAGE: then it
    has replaced the label. */
bool cli_is_revoke_message(const lk_bytes *data);
/** Appends the label, or a word in brackets that says why there is none. */
void cli_contender_add_label(const cli_contender *c, cli_text *out);
/** Writes the path of contender `i` as the member "node". */
void cli_contender_add_node_json(const cli_contenders *queue, size_t i,
                                 cli_json *j);
/** Writes the member "label", or "asked_to_release" if LK_REVOKE_MESSAGE has
    replaced the label. Writes nothing if the node is not readable. */
void cli_contender_add_label_json(const cli_contender *c, cli_json *j);
/** Returns the path of contender `i`, to be freed; NULL: out of memory. */
char *cli_contenders_path(const cli_contenders *queue, size_t i);
void cli_contenders_free(cli_contenders *queue);

#endif
