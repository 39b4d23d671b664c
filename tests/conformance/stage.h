/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CONFORMANCE_STAGE_H
#define LK_CONFORMANCE_STAGE_H

#include "conformance/kinds.h"

#include <check.h>

/** One cell of the table: two clients on a model server, with a lock each. */
typedef struct stage {
  const kind *kind;
  const char *scenario;
  model_server server;
  party ours;
  party theirs;
  locker own;   /**< of ours: the lock that is tested */
  locker rival; /**< of theirs: excludes it */
} stage;

extern stage st;

/** The directories of the kind exist, both clients are connected, and nothing
    is in their logs. */
void stage_begin(const kind *k);
/** The same with options for both locks. */
void stage_begin_with(const kind *k, lk_lock_config options);
/** The model server alone, with the first `dirs` directories. */
void stage_begin_empty(const kind *k, size_t dirs);
/** Free all. Neither nodes nor watches nor memory are left. */
void stage_end(void);
/** The same where clients may be gone: their sessions expire. */
void stage_end_sessions(void);

/** A lock of the kind that is tested. false: no memory. */
bool stage_try_init(locker *l, party *p, const lk_lock_config *options);
/** Add the layout of the kind to these options. */
lk_lock_config stage_config(lk_lock_config options);

/** All nodes of locks, of everybody. */
size_t stage_nodes(void);
/** The i-th node of the client's session, or NULL. Until the next call. */
const char *stage_node_of(const party *p, size_t i);

void stage_want(locker *l);
/** Acquire; it must be granted at once. */
void stage_hold(locker *l);
void stage_release(locker *l);
/** The rival holds its lock, the own client waits. The logs are empty. */
void stage_wait(void);
/** Empty the logs and what was told. */
void stage_forget(void);
/** Break the connection; it does not come back before stage_reconnect(). */
void stage_cut(party *p);
void stage_reconnect(void);
/** The session ends while the client has no connection. */
void stage_expire(party *p);

/** A scenario: a test of Check that runs once for each kind, which it has as
    `k`. */
#define SCENARIO(name)                    \
  static void name##_with(const kind *k); \
  START_TEST(name)                        \
  {                                       \
    st.scenario = #name;                  \
    name##_with(&kinds[_i]);              \
  }                                       \
  END_TEST                                \
  static void name##_with(const kind *k)

#endif
