/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_WORLD_CHANGE_LOG_H
#define LK_SIM_WORLD_CHANGE_LOG_H

#include "sim/world/history.h"

#include <latchkey/client.h>

/**
 * Each change of a node in SIM_RAW, at any depth, in the order of the events
 * that servers make of them. Only kept for rare requesters and lookouts.
 */
enum { SIM_CHANGE_PATH = 48 };

/** The node as it was after the change; before it, if it went. */
typedef struct sim_change {
  int64_t zxid;
  lk_event_type type; /**< LK_EVENT_ENDED: only its access list has changed */
  char path[SIM_CHANGE_PATH];
  size_t dir_len; /**< of the path before its last part */
  lk_stat stat;
  char data[SIM_ENTRY_DATA];
  int32_t perms;     /**< what everybody may do */
  int32_t parent_perms; /**< … with its parent */
} sim_change;

typedef struct sim_change_log {
  sim_change *changes;
  size_t count;
  size_t cap;
} sim_change_log;

void sim_change_log_free(sim_change_log *j);
/** Nodes elsewhere are of no interest. */
void sim_change_log_add(sim_change_log *j, const sim_node *n,
                        lk_event_type type, int64_t zxid);

/** The number of the first change behind `zxid`. */
size_t sim_change_log_first_after(const sim_change_log *j, int64_t zxid);
/** A node by its last change up to `zxid`; NULL: there was none then. */
const sim_change *sim_change_log_at(const sim_change_log *j, const char *path,
                                    int64_t zxid);
/** How many nodes there were below a path then, at any depth or as its
    children. */
size_t sim_change_log_count_below(const sim_change_log *j, const char *path,
                                  bool children, int64_t zxid);
/** Whether that was written by anybody, and by which transaction; 0: no. */
int64_t sim_change_log_zxid_of(const sim_change_log *j, const char *data);

/** Whether `path` is below `top`. */
bool sim_is_below(const char *path, const char *top);
static inline bool sim_is_child(const sim_change *c, const char *of)
{
  return strlen(of) == c->dir_len && memcmp(c->path, of, c->dir_len) == 0;
}
/** Its name. */
static inline const char *sim_change_name(const sim_change *c)
{
  return c->path + c->dir_len + 1;
}

#endif
