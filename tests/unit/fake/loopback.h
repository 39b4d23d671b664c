/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_LOOPBACK_H
#define LK_UNIT_FAKE_LOOPBACK_H

#include <pthread.h>

#include "support/model_server.h"

enum { LOOPBACK_CONNECTIONS = 64 };

/**
 * The model server on a port of loopback, with a thread of its own, for
 * programs whose client has threads too. Sessions do not expire by themselves.
 * What is in `server` may be looked at and changed between loopback_lock() and
 * loopback_unlock(), which sends what that brought about.
 */
typedef struct loopback {
  model_server server;
  char hosts[32]; /**< of its clients */
  bool quiet;     /**< keep no log of requests */
  bool frozen;    /**< answers nothing, not even a handshake */

  pthread_mutex_t mutex;
  pthread_t thread;
  int listener;
  int wake;
  bool stopping;
  struct {
    int fd;
    lk_buf in; /**< not a whole frame yet */
    model_link *link;
  } connections[LOOPBACK_CONNECTIONS];
  size_t count;
} loopback;

void loopback_start(loopback *b);
/** Closes all connections. */
void loopback_stop(loopback *b);

void loopback_lock(loopback *b);
void loopback_unlock(loopback *b);

/** Close all connections that there are now. */
void loopback_drop(loopback *b);
/** Answer nothing any more, or again. */
void loopback_freeze(loopback *b, bool frozen);
/** How many requests of that name have come over all connections. */
unsigned loopback_requests(loopback *b, const char *name);
/** Wait until there are at least so many; ten seconds at most. */
void loopback_await(loopback *b, const char *name, unsigned count);

#endif
