/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_ROSTER_ROSTER_CHILD_H
#define LK_RECIPES_ROSTER_ROSTER_CHILD_H

/**
 * @file
 * A child in a roster: its subscription, and a copy of its data.
 */

#include <latchkey/subscribe.h>

typedef struct lk_roster_child lk_roster_child;

/** How a child reports to its roster. */
typedef struct lk_roster_child_callbacks {
  /** The child has a new state. `was_known`: it had one before. */
  void (*changed)(void *arg, const lk_roster_child *child, bool was_known);
  /** There is no memory for a request or the data: open the child again. */
  void (*needs_retry)(void *arg);
  void *arg;
} lk_roster_child_callbacks;

struct lk_roster_child {
  const lk_mem *mem;
  const lk_roster_child_callbacks *callbacks;
  lk_subscription *subscription; /**< NULL: to be opened again */
  bool known; /**< a state was reported; `err` and the following are valid */
  int err;    /**< 0, LK_ERR_NO_NODE, or why the data cannot be read */
  lk_stat stat;
  void *data;
  size_t data_len;
  bool data_are_null; /**< which is not the same as empty */
  int64_t number; /**< the sequence number of a candidate */
  lk_bytes name;  /**< the end of `path` */
  char path[];
};

/** Make a child without a subscription. NULL: no memory. */
lk_roster_child *
lk__roster_child_new(const lk_mem *mem, const char *dir, lk_bytes name,
                     int64_t number,
                     const lk_roster_child_callbacks *callbacks);
/** Subscribe to the data, if that is not done yet. If no request for them can
    be made, because old servers allowed more characters in a name or because it
    is longer than the client sends, the child is known from then on, with this
    error. Returns 0, or an error after which the child is to be opened again.
    */
int lk__roster_child_open(lk_roster_child *child, lk_client *client);
/** End the subscription; the memory stays. */
void lk__roster_child_close(lk_roster_child *child);
/** Free a child that is closed. */
void lk__roster_child_free(lk_roster_child *child);

/** The data; empty if they cannot be read. */
lk_bytes lk__roster_child_data(const lk_roster_child *child);

/** Whether the child belongs to the roster: it is known, and exists. */
static inline bool lk__roster_child_exists(const lk_roster_child *child)
{
  return child->known && child->err != LK_ERR_NO_NODE;
}

#endif
