/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_LOCKS_H
#define LK_SUPPORT_LOCKS_H

#include "support/model_server.h"

#include <latchkey/lock.h>
#include <latchkey/rwlock.h>

/**
 * Clients and locks on one model server, for tests of the recipes. A locker
 * records the events and completions of its lock.
 */
enum {
  T = 4000,       /* session timeout, ms */
  NOT_YET = 12345 /* in place of the result of a call that has not completed */
};

typedef struct test_client {
  model_link *link;
  failing_mem mem;
  unsigned warnings;     /* logged */
  unsigned errors;       /* logged */
  char left_behind[256]; /* "ERROR path" of each node left, a line each */
} test_client;

typedef struct locker {
  test_client *p;
  lk_lock *lock;
  lk_rwlock *rw; /* of which the lock is one side, or NULL */
  int acquired;  /* the result of the acquire, or NOT_YET */
  int released;
  int verified;
  unsigned calls;    /* of all callbacks */
  char events[2048]; /* reported to it, a line each */
  /** Called at the end of each callback; `what`: the event, as in `events`,
      "acquired", "released" or "verified". May be NULL. */
  void (*react)(struct locker *l, const char *what);
  void *arg;
} locker;

/** A client and its session lease, not connected yet. `config` NULL: the
    defaults. */
void test_client_init(test_client *p, model_server *s,
                      const lk_lease_config *config);
/** The same; false: no memory. */
bool test_client_try_init(test_client *p, model_server *s,
                          const lk_lease_config *config);
/** Free the client, if it is not gone already. */
void test_client_free(test_client *p);

/** lk_lock_config.on_event of lockers; `arg` is the locker. */
void locker_on_event(lk_lock *lock, const lk_lock_event *e, void *arg);
/** Set it up without a lock, which the test creates. */
void locker_clear(locker *l, test_client *p);
/** A lock at /locks/x. */
void locker_init(locker *l, test_client *p, const lk_lock_config *config);
bool locker_try_init(locker *l, test_client *p, const lk_lock_config *config);
/** Start an acquire. Returns the result of the call. */
int locker_acquire(locker *l, int64_t timeout_ms);
void locker_release(locker *l);
/** Start a release. Returns the result of the call. */
int locker_try_release(locker *l);
int locker_verify(locker *l);
void locker_free(locker *l);
/** Whether exactly these events were reported since the last check. Discards
    them. */
bool locker_check_events(locker *l, const char *text);

#define LOCKS "/locks/x"

/** Two clients on a server where the directory exists, each with a handle of
    the same lock. */
typedef struct lock_pair {
  model_server server;
  test_client one;
  test_client two;
  locker a; /* one's */
  locker b; /* two's */
} lock_pair;

/** The configs may be NULL. */
void lock_pair_begin(lock_pair *lp, const lk_lease_config *kc,
                     const lk_lock_config *lc);
/** Free all; no node and no memory is left. */
void lock_pair_end(lock_pair *lp);
/** a holds, b waits behind it; the logs are empty. */
void lock_pair_queue(lock_pair *lp);
/** a holds; its log is empty. */
void lock_pair_hold(lock_pair *lp);

#endif
