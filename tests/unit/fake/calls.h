/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_CALLS_H
#define LK_UNIT_FAKE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/**
 * System calls of the driver, counted, and refused where a test says so. They
 * come here by the linker's --wrap. read() and write(), which a test calls to
 * play the peer, are not wrapped.
 */
typedef struct fake_calls {
  /* Numbers of calls, which a test sets back to 0. */
  unsigned send;
  unsigned recv;
  unsigned socket;
  unsigned settime; /**< timerfd_settime() */
  unsigned getpid;
  unsigned epoll_ctl; /**< of libev */
  /* All bytes that send() has taken and recv() has given. */
  size_t bytes_sent, bytes_received;

  struct timespec timer_value; /**< of the last timerfd_settime() */

  /* Faults, which a test switches on and off. */
  bool recv_is_endless; /**< recv() always fills its buffer */
  bool no_boottime;     /**< timerfd_create() refuses CLOCK_BOOTTIME */
  int timer_error;      /**< errno of timerfd_create(); 0: it works */
  int eventfd_error;    /**< errno of eventfd(); 0: it works */
  bool no_random;       /**< getrandom() fails */
  bool no_wipe_on_fork; /**< madvise() fails */
  bool any_advice;      /**< madvise() accepts all and does nothing */
  bool no_socket;       /**< socket() fails: no descriptors */
  bool no_epoll;        /**< epoll_ctl() adds no descriptor: no memory */
  int send_error;       /**< errno of the next send(), which sets it to 0 */

  uint16_t local_port; /**< each socket is bound to it; 0: to no port */
} fake_calls;

extern fake_calls calls;

/** Whether the program runs under qemu (script/ports), which accepts any advice
    for memory and follows little of it. */
bool kernel_is_emulated(void);

/** How many calls of timerfd_settime() set an alarm. */
#ifdef HAVE_TIMERFD_CREATE
enum { FAKE_SETTIME_PER_ALARM = 1 };
#else
enum { FAKE_SETTIME_PER_ALARM = 0 };
#endif

#endif
