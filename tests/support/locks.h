/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_LOCKS_H
#define LK_SUPPORT_LOCKS_H

#include "support/model_server.h"

#include <latchkey/lock.h>
#include <latchkey/rwlock.h>

/**
 * @file
 * Clients and locks on one model server, for tests of the recipes. A locker
 * records the events and completions of its lock.
 */

enum {
  T = 4000,       /* the session timeout in ms */
  NOT_YET = 12345 /* stands for the result of a call that has not completed */
};

typedef struct test_client {
  model_link *link;
  failing_mem mem;
  unsigned warnings;     /* how many the client has logged */
  unsigned errors;       /* how many the client has logged */
  char left_behind[256]; /* a line "ERROR path" for each node that a lock could
                            not delete */
} test_client;

typedef struct locker {
  test_client *p;
  lk_lock *lock;
  lk_rwlock *rw;     /* the read-write lock with `lock` as a side; or NULL */
  int acquired;      /* the result of the last acquire, or NOT_YET */
  int released;      /* the result of the last release, or NOT_YET */
  int verified;      /* the result of the last verify, or NOT_YET */
  unsigned calls;    /* how many times a callback was called */
  char events[2048]; /* a line for each event of the lock */
  /** Called at the end of each callback; `what`: the event, as in `events`,
      "acquired", "released" or "verified". May be NULL. */
  void (*react)(struct locker *l, const char *what);
  void *arg; /* for the test */
} locker;

/** Make a client, which is not connected yet, and configure its session lease.
    `config` NULL: the defaults. Aborts if there is no memory. */
void test_client_init(test_client *p, model_server *s,
                      const lk_lease_config *config);
/** test_client_init() with memory that was set up before. false: no memory. */
bool test_client_try_init(test_client *p, model_server *s,
                          const lk_lease_config *config);
/** Free the client, if it exists, and check that all its memory is freed. */
void test_client_free(test_client *p);

/** End the client's one-shot watches on `path`, by a persistent watch that is
    added and removed. */
void test_client_end_watches(test_client *p, const char *path);

/** lk_lock_config.on_event of lockers; `arg` is the locker. */
void locker_on_event(lk_lock *lock, const lk_lock_event *e, void *arg);
/** Prepare a locker for a lock that the test creates. */
void locker_clear(locker *l, test_client *p);
/** Prepare a locker and create its lock at /locks/x. */
void locker_init(locker *l, test_client *p, const lk_lock_config *config);
/** locker_init() that returns false if there is no memory. */
bool locker_try_init(locker *l, test_client *p, const lk_lock_config *config);
/** Start an acquire. Returns the result of the call. */
int locker_acquire(locker *l, int64_t timeout_ms);
/** lk_lock_try() */
int locker_try(locker *l);
/** lk_lock_try_until() without a deadline. */
int locker_try_with_next_connection(locker *l);
/** Start an acquire without a timeout, which must be accepted, and run the
    clients and the server until nothing more happens. */
void locker_request(locker *l);
/** Start a release, which must be accepted. */
void locker_release(locker *l);
/** Start a release. Returns the result of the call. */
int locker_try_release(locker *l);
/** Start a verification. Returns the result of the call. */
int locker_verify(locker *l);
void locker_free(locker *l);
/** Whether exactly these events were reported since the last check. Discards
    them. */
bool locker_check_events(locker *l, const char *text);

#define LOCKS "/locks/x"

/** Two clients, each with a handle of the lock at /locks/x, whose directory
    exists. */
typedef struct lock_pair {
  model_server server;
  test_client one;
  test_client two;
  locker a; /* the handle of client `one` */
  locker b; /* the handle of client `two` */
} lock_pair;

/** Create all of it. A configuration that is NULL stands for the defaults. */
void lock_pair_begin(lock_pair *lp, const lk_lease_config *lease_config,
                     const lk_lock_config *lock_config);
/** The same on a server that the test has initialized. */
void lock_pair_open(lock_pair *lp, const lk_lease_config *lease_config,
                    const lk_lock_config *lock_config);
/** Free all, and check that no node and no memory is left. */
void lock_pair_end(lock_pair *lp);
/** Create `count` nodes in the directory that belong to no contender. */
void lock_pair_add_others(lock_pair *lp, int count);
/** Delete them. */
void lock_pair_delete_others(lock_pair *lp, int count);
/** Have `a` hold the lock and `b` wait for it, and empty the logs. */
void lock_pair_queue(lock_pair *lp);
/** Have `a` hold the lock, and empty its log. */
void lock_pair_hold(lock_pair *lp);

#endif
