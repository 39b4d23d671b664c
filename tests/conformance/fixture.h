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
  test_client own_client;
  test_client rival_client;
  locker own;   /**< the tested lock, of `own_client` */
  locker rival; /**< a lock of `rival_client`, which cannot be held
                   together with `own` */
} fixture;

extern fixture fx;

/** A timeout of locker_acquire(). */
enum { FOREVER = -1 };

/** Set up the cell: create the directories of the kind, connect both clients,
    and empty their logs. */
void fixture_begin(const kind *k);
/** The same with options for both locks. */
void fixture_begin_with(const kind *k, lk_lock_config options);
/** Set up only the model server, with the directories of the kind. */
void fixture_begin_server(const kind *k);
/** The same without directories. */
void fixture_begin_empty(const kind *k);
/** Free all, and check that no contender node, watch or memory is left. */
void fixture_end(void);
/** End both sessions, and then call fixture_end(): for scenarios in which
    clients leave their nodes to the end of their sessions. */
void fixture_end_sessions(void);

/** Make a lock of the tested kind for a client. false: no memory. */
bool fixture_try_make(locker *l, test_client *p, const lk_lock_config *options);
/** These options and those of the kind. */
lk_lock_config fixture_config(lk_lock_config options);

/** The number of contender nodes of both clients. */
size_t fixture_count_nodes(void);
/** The path of the i-th node of the client's session, or NULL; valid until the
    next call. */
const char *fixture_node_of(const test_client *p, size_t i);
/** The largest czxid of the nodes of the client's session. */
uint64_t fixture_newest_czxid(const test_client *p);

/** Acquire a lock, which must be granted at once. */
void fixture_hold(locker *l);
/** Release a lock, and expect success. */
void fixture_release(locker *l);
/** Have the rival hold its lock and `own` wait, and empty the logs. */
void fixture_wait_behind_rival(void);
/** Empty the logs of requests and of events. */
void fixture_clear_logs(void);
/** Break the connection of a client, which reconnects only after
    fixture_reconnect(). */
void fixture_break_connection(test_client *p);
void fixture_reconnect(void);
/** End the session of a client while it has no connection. */
void fixture_expire(test_client *p);

/** Define a scenario: a looped test of Check that runs once for each kind. Its
    index `_i` selects the kind, which the body has as `k`. */
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
