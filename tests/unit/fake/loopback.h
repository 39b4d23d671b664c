/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_LOOPBACK_H
#define LK_UNIT_FAKE_LOOPBACK_H

#include <pthread.h>

#include "support/model_server.h"

enum { LOOPBACK_CONNECTIONS = 64 };

/**
 * The model server on a port of loopback, with a thread of its own, for
 * programs whose client has threads too. Sessions do not expire by themselves.
 * A test may read and change `server` between loopback_lock() and
 * loopback_unlock(). The latter sends the events and replies that follow.
 */
typedef struct loopback {
  model_server server;
  char hosts[32]; /**< for lk_client_config.hosts */
  bool quiet;     /**< keep no log of requests */
  bool frozen;    /**< answers nothing, not even a handshake */
  const char *four_letter_reply; /**< to commands such as srvr, behind which the
                                      connection is closed; NULL: none */

  pthread_mutex_t mutex;
  pthread_t thread;
  int listener;
  int wake_fd; /**< an eventfd that ends the thread's poll() */
  bool stopping;
  struct {
    int fd;
    lk_buf in; /**< bytes received and not served yet */
    model_link *link;
  } connections[LOOPBACK_CONNECTIONS];
  size_t count; /**< of connections */
} loopback;

void loopback_start(loopback *b);
/** Closes all connections. */
void loopback_stop(loopback *b);

void loopback_lock(loopback *b);
void loopback_unlock(loopback *b);

/** Close all connections that there are now. */
void loopback_drop(loopback *b);
/** Expire the sessions of all connections, and break these. */
void loopback_expire(loopback *b);
/** Answer nothing until loopback_thaw(). */
void loopback_freeze(loopback *b);
void loopback_thaw(loopback *b);
/** How many requests of that name have come over all connections. */
unsigned loopback_requests(loopback *b, const char *name);

#endif
