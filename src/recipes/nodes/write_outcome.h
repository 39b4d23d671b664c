/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NODES_WRITE_OUTCOME_H
#define LK_RECIPES_NODES_WRITE_OUTCOME_H

#include <latchkey/client.h>

/**
 * @file
 * The outcome of a write whose reply was lost, derived from the node as it was
 * read afterwards. The zxid of the node's last change is compared with
 * `seen_zxid`, the largest zxid of the replies that came before the lost one.
 * If it is not larger, the change is older than our write. A larger zxid
 * belongs to our write or to that of another client.
 */

typedef enum lk_write_kind {
  LK_WRITE_CREATE,
  LK_WRITE_SET,
  LK_WRITE_DELETE
} lk_write_kind;

typedef struct lk_lost_write {
  lk_write_kind kind;
  int flags;         /**< of a create: lk_create_flags */
  int32_t version;   /**< that a set or delete requires; -1: any version */
  bool sole;         /**< no other client writes the node */
  int64_t seen_zxid; /**< largest zxid before the lost reply; 0: no reply yet */
  int64_t lost_in_session; /**< id of the session in which the reply was lost */
} lk_lost_write;

/** What the requests after the lost reply have shown. */
typedef struct lk_node_facts {
  int64_t session;       /**< id of the present session */
  int read_err;          /**< 0 or LK_ERR_NO_NODE */
  lk_stat stat;          /**< valid if `read_err` is 0 */
  bool data_equal;       /**< the node's data are those of the write */
  bool parent_unchanged; /**< no child created or deleted since `seen_zxid` */
} lk_node_facts;

enum { LK_WRITE_SEND_AGAIN = 1 }; /**< errors are negative */

/** Whether the write creates an ephemeral node. */
bool lk__write_creates_ephemeral(const lk_lost_write *w);
/** @return 0: the write was executed; LK_WRITE_SEND_AGAIN: it was not, and may
    be sent again; or the error with which it completes. */
int lk__write_outcome(const lk_lost_write *w, const lk_node_facts *node);

#endif
