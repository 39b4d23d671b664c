/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_WRITE_OUTCOME_H
#define LK_RECIPES_NODES_WRITE_OUTCOME_H

#include <latchkey/client.h>

/**
 * @file
 * The outcome of a write whose reply was lost, derived from the node as it was
 * read afterwards. Its zxid is compared with `seen_zxid`, the largest zxid of
 * the replies that came before the lost one. A zxid up to `seen_zxid` proves
 * that the change is not ours. A larger zxid belongs to our write or to that of
 * another client.
 */

typedef enum lk_write_kind {
  LK_WRITE_CREATE,
  LK_WRITE_SET,
  LK_WRITE_DELETE
} lk_write_kind;

typedef struct lk_lost_write {
  lk_write_kind kind;
  int flags;         /**< of a create */
  int32_t version;   /**< that a set or delete requires, or -1 */
  bool sole;         /**< no other client writes the node */
  int64_t seen_zxid; /**< largest zxid before the lost reply; 0: no reply yet */
  int64_t lost_in_session; /**< in which the reply was lost */
} lk_lost_write;

/** What the requests after the lost reply have shown. */
typedef struct lk_node_facts {
  int64_t session;       /**< the present one */
  int read_err;          /**< 0 or LK_ERR_NO_NODE */
  lk_stat stat;          /**< valid if `read_err` is 0 */
  bool data_equal;       /**< the node's data are those of the write */
  bool parent_unchanged; /**< no child created or deleted since `seen_zxid` */
} lk_node_facts;

enum { LK_WRITE_SEND_AGAIN = 1 }; /**< errors are negative */

bool lk__write_creates_ephemeral(const lk_lost_write *w);
/** @return 0: the write was executed; LK_WRITE_SEND_AGAIN: it was not, and may
    be sent again; or the error with which it completes. */
int lk__write_outcome(const lk_lost_write *w, const lk_node_facts *node);

#endif
