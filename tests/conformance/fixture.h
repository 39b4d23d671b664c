/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CONFORMANCE_FIXTURE_H
#define LK_CONFORMANCE_FIXTURE_H

#include "conformance/kinds.h"

#include <check.h>

/** One cell of the table: two clients on a model server, with a lock each. */
typedef struct fixture {
  const kind *kind;
  const char *scenario;
  model_server server;
  test_client ours;
  test_client theirs;
  locker own;   /**< of ours: the lock that is tested */
  locker rival; /**< of theirs: excludes it */
} fixture;

extern fixture fx;

/** The directories of the kind exist, both clients are connected, and nothing
    is in their logs. */
void fixture_begin(const kind *k);
/** The same with options for both locks. */
void fixture_begin_with(const kind *k, lk_lock_config options);
/** The model server alone, with the first `dirs` directories. */
void fixture_begin_empty(const kind *k, size_t dirs);
/** Free all. Neither nodes nor watches nor memory are left. */
void fixture_end(void);
/** The same where clients may be gone: their sessions expire. */
void fixture_end_sessions(void);

/** A lock of the kind that is tested. false: no memory. */
bool fixture_try_init(locker *l, test_client *p, const lk_lock_config *options);
/** Add the layout of the kind to these options. */
lk_lock_config fixture_config(lk_lock_config options);

/** The contender nodes of both clients. */
size_t fixture_count_nodes(void);
/** The i-th node of the client's session, or NULL. Until the next call. */
const char *fixture_node_of(const test_client *p, size_t i);

void fixture_acquire(locker *l);
/** Acquire; it must be granted at once. */
void fixture_hold(locker *l);
void fixture_release(locker *l);
/** The rival holds its lock, the own client waits. The logs are empty. */
void fixture_wait_behind_rival(void);
/** Empty the logs of requests and of events. */
void fixture_clear_logs(void);
/** Break the connection; it does not come back before fixture_reconnect(). */
void fixture_break_connection(test_client *p);
void fixture_reconnect(void);
/** The session ends while the client has no connection. */
void fixture_expire(test_client *p);

/** A scenario: a test of Check that runs once for each kind, which it has as
    `k`. */
#define SCENARIO(name)                    \
  static void name##_with(const kind *k); \
  START_TEST(name)                        \
  {                                       \
    fx.scenario = #name;                  \
    name##_with(&kinds[_i]);              \
  }                                       \
  END_TEST                                \
  static void name##_with(const kind *k)

#endif
