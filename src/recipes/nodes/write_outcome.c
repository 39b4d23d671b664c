/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/nodes/write_outcome.h"

#include <latchkey/error.h>

/**
 * @file
 * The outcome of a write whose reply was lost. `seen_zxid` is the largest zxid
 * of the replies before the lost one, so a larger zxid belongs to the write or
 * to a later one. If the write is `sole`, no other client writes the node.
 */

bool lk__write_creates_ephemeral(const lk_lost_write *w)
{
  return w->kind == LK_WRITE_CREATE && (w->flags & LK_EPHEMERAL) != 0;
}

static int conclude_ephemeral_create(const lk_lost_write *w,
                                     const lk_node_facts *node)
{
  if (node->session != w->lost_in_session)
    return LK_ERR_SESSION_EXPIRED;
  else if (node->read_err == LK_ERR_NO_NODE)
    return LK_WRITE_SEND_AGAIN;
  else if (node->stat.czxid <= w->seen_zxid ||
           node->stat.ephemeral_owner != w->lost_in_session)
    return LK_ERR_NODE_EXISTS;
  else
    return 0;
}

/* A missing node may have been created by the write and then deleted by another
 * client. If `seen_zxid` is 0, the client had received no reply, and an
 * existing node may be older than the write. */
static int conclude_create(const lk_lost_write *w, const lk_node_facts *node)
{
  if (node->read_err == LK_ERR_NO_NODE && (w->sole || node->parent_unchanged))
    return LK_WRITE_SEND_AGAIN;
  else if (node->read_err == LK_ERR_NO_NODE || w->seen_zxid == 0)
    return LK_ERR_IN_DOUBT;
  else if (node->stat.czxid <= w->seen_zxid || (w->sole && !node->data_equal))
    return LK_ERR_NODE_EXISTS;
  else if (w->sole)
    return 0;
  else
    return LK_ERR_IN_DOUBT;
}

/* Whether the only change since `version` was made by another client: there was
 * one change, and the data differ from those of the write. */
static bool only_change_is_foreign(const lk_lost_write *w,
                                   const lk_node_facts *node)
{
  enum { ANY_VERSION = -1 };
  bool requires_version = w->version != ANY_VERSION;
  bool is_same_node = node->stat.czxid <= w->seen_zxid;
  bool changed_once = (uint32_t)node->stat.version == (uint32_t)w->version + 1;

  return requires_version && is_same_node && changed_once && !node->data_equal;
}

/* Whether the set was not executed. If the write is `sole`, other data or an
 * unchanged version show that as well. */
static bool set_may_be_resent(const lk_lost_write *w, const lk_node_facts *node)
{
  return node->stat.mzxid <= w->seen_zxid ||
         (w->sole && (!node->data_equal || node->stat.version == w->version));
}

static int conclude_set(const lk_lost_write *w, const lk_node_facts *node)
{
  if (node->read_err == LK_ERR_NO_NODE)
    return w->sole ? LK_ERR_NO_NODE : LK_ERR_IN_DOUBT;
  else if (set_may_be_resent(w, node))
    return LK_WRITE_SEND_AGAIN;
  else if (w->sole)
    return 0;
  else
    return only_change_is_foreign(w, node) ? LK_ERR_BAD_VERSION
                                           : LK_ERR_IN_DOUBT;
}

static int conclude_delete(const lk_lost_write *w, const lk_node_facts *node)
{
  if (node->read_err == 0 && (w->sole || node->stat.czxid <= w->seen_zxid))
    return LK_WRITE_SEND_AGAIN;
  else
    return w->sole ? 0 : LK_ERR_IN_DOUBT;
}

int lk__write_outcome(const lk_lost_write *w, const lk_node_facts *node)
{
  switch (w->kind) {
  case LK_WRITE_CREATE:
    return lk__write_creates_ephemeral(w) ? conclude_ephemeral_create(w, node)
                                          : conclude_create(w, node);
  case LK_WRITE_SET: return conclude_set(w, node);
  case LK_WRITE_DELETE: return conclude_delete(w, node);
  }
  return LK_ERR_STATE;
}
