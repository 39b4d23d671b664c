/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_CHANGE_LOG_H
#define LK_SIM_WORLD_CHANGE_LOG_H

#include "sim/world/history.h"

#include <latchkey/client.h>

/**
 * The log of all changes of nodes below SIM_REQUEST_DIR, in the order in which
 * servers send their events. It is kept only if the run has rare requesters and
 * watchers, or if its servers may throttle.
 */
enum { SIM_CHANGE_PATH = 48 };

/** sim_change.type of a change of the access list, which has no event. */
#define SIM_ACCESS_CHANGED LK_EVENT_ENDED

/** A change of a node. The members describe the node after the change; after a
    delete, the node before it. */
typedef struct sim_change {
  int64_t zxid;
  lk_event_type type; /**< or SIM_ACCESS_CHANGED */
  char path[SIM_CHANGE_PATH];
  size_t dir_len; /**< length of the parent's path */
  lk_stat stat;
  char data[SIM_ENTRY_DATA];
  int32_t perms;        /**< permissions of world:anyone */
  int32_t parent_perms; /**< permissions of world:anyone on the parent */
  bool is_hidden;       /**< servers send no event of the node, or of its
                           parent */
  bool is_hidden_at_parent;
} sim_change;

typedef struct sim_change_log {
  sim_change *changes;
  size_t count;
  size_t cap;
  bool events_need_read; /**< servers send no event of a node without READ */
} sim_change_log;

void sim_change_log_free(sim_change_log *log);
/** Add a change; nodes outside SIM_REQUEST_DIR are ignored. */
void sim_change_log_add(sim_change_log *log, const sim_node *n,
                        lk_event_type type, int64_t zxid);

/** The index of the first change after `zxid`. */
size_t sim_change_log_first_after(const sim_change_log *log, int64_t zxid);
/** The node at `path` at `zxid`; NULL: there was none. */
const sim_change *sim_change_log_at(const sim_change_log *log, const char *path,
                                    int64_t zxid);
/** The number of children of `path` at `zxid`. */
size_t sim_change_log_count_children(const sim_change_log *log,
                                     const char *path, int64_t zxid);
/** The number of nodes below `path` at `zxid`, at any depth. */
size_t sim_change_log_count_below(const sim_change_log *log, const char *path,
                                  int64_t zxid);
/** The zxid of the transaction that wrote `data`; 0: none. */
int64_t sim_change_log_zxid_of(const sim_change_log *log, const char *data);

/** Whether `path` is below `top`. */
bool sim_is_below(const char *path, const char *top);
static inline bool sim_is_child(const sim_change *c, const char *parent)
{
  return strlen(parent) == c->dir_len &&
         memcmp(c->path, parent, c->dir_len) == 0;
}
/** The name of the node. */
static inline const char *sim_change_name(const sim_change *c)
{
  return c->path + c->dir_len + 1;
}

#endif
