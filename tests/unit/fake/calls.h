/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_CALLS_H
#define LK_UNIT_FAKE_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/**
 * System calls of the driver, counted, and refused where a test says so. They
 * come here by the linker's --wrap; what a test calls to play the peer, read()
 * and write(), does not.
 */
typedef struct fake_calls {
  unsigned send;
  unsigned recv;
  unsigned settime; /**< timerfd_settime() */
  struct timespec alarm; /**< the time last passed to it */
  unsigned getpid;
  unsigned epoll_ctl; /**< of libev, which finds ours before the system's */
  bool endless;      /**< recv() always fills its room */
  bool no_boottime;  /**< timerfd_create() refuses that clock */
  bool no_timer;     /**< and every other */
  bool no_random;    /**< getrandom() fails */
  bool no_wipe;      /**< madvise() fails */
  bool no_socket;    /**< socket() fails: no descriptors */
  bool no_epoll;     /**< the poll set takes no change: no memory */
  int send_error;    /**< of the next send(); then 0 again */
  uint16_t own_port; /**< sockets are bound to 127.0.0.1 and this one */
} fake_calls;

extern fake_calls calls;

#endif
