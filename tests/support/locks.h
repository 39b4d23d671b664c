/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_LOCKS_H
#define LK_SUPPORT_LOCKS_H

#include "support/model_server.h"

#include <latchkey/lock.h>
#include <latchkey/rwlock.h>

/**
 * Clients and locks on one server in memory, for tests of the
 * recipes. A lock writes down what it is told.
 */
enum {
  T = 4000,       /* session timeout, ms */
  NOT_YET = 12345 /* what a callback has not been called with */
};

typedef struct party {
  model_link *link;
  failing_mem mem;
  unsigned warnings;     /* logged */
  unsigned errors;       /* logged */
  char left_behind[256]; /* "NAME path" of each, a line each */
} party;

typedef struct locker {
  party *p;
  lk_lock *lock;
  lk_rwlock *rw; /* whose side the lock is, or NULL */
  int acquired; /* what acquire ended with, or NOT_YET */
  int released;
  int verified;
  unsigned calls;  /* of any callback */
  char told[2048]; /* events, a line each */
  /** Called at the end of each callback; `what` as in `told`. May be NULL. */
  void (*react)(struct locker *l, const char *what);
  void *arg;
} locker;

/** A client and its session lease, not connected yet. `config` NULL: the
    defaults. */
void party_join(party *p, model_server *s, const lk_lease_config *config);
/** The same where memory may run out; false: it did. */
bool party_try_join(party *p, model_server *s, const lk_lease_config *config);
/** Free the client, if it is not gone already. */
void party_leave(party *p);

/** lk_lock_config.on_event of lockers; `arg` is the locker. */
void locker_on_event(lk_lock *lock, const lk_lock_event *e, void *arg);
/** Without a lock, which the test makes. */
void locker_clear(locker *l, party *p);
/** A lock at /locks/x. */
void locker_init(locker *l, party *p, const lk_lock_config *config);
bool locker_try_init(locker *l, party *p, const lk_lock_config *config);
/** Ask for it; the result of the call. */
int locker_want(locker *l, int64_t timeout_ms);
void locker_release(locker *l);
/** The result of the call. */
int locker_try_release(locker *l);
int locker_verify(locker *l);
void locker_free(locker *l);
/** Whether exactly that was told since the last time. */
bool locker_told(locker *l, const char *text);

#define LOCKS "/locks/x"

/** Two sessions on a server where the directory exists, each with a handle for
    the same lock. */
typedef struct scene {
  model_server server;
  party one;
  party two;
  locker a; /* one's */
  locker b; /* two's */
} scene;

/** The configs may be NULL. */
void scene_begin(scene *sc, const lk_lease_config *kc,
                 const lk_lock_config *lc);
/** Free all; no node and no memory is left. */
void scene_end(scene *sc);
/** a holds, b waits behind it; the logs are empty. */
void scene_queue(scene *sc);
/** a holds; its log is empty. */
void scene_hold(scene *sc);

#endif
