/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/calls.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <latchkey/types.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

fake_calls calls;

bool kernel_is_emulated(void)
{
  const char *emulator = getenv("LATCHKEY_EMULATOR");

  return emulator != NULL && *emulator != '\0';
}

ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __real_recv(int fd, void *room, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *room, size_t size, int flags);
ssize_t __wrap___recv_chk(int fd, void *room, size_t size, size_t room_size,
                          int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *value,
                           struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
                           struct itimerspec *old);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_timerfd_create(clockid_t clock, int flags);
int __wrap_timerfd_create(clockid_t clock, int flags);
ssize_t __real_getrandom(void *out, size_t len, unsigned flags);
ssize_t __wrap_getrandom(void *out, size_t len, unsigned flags);
int __real_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
pid_t __real_getpid(void);
pid_t __wrap_getpid(void);

static int fail_with(int error)
{
  errno = error;
  return -1;
}

/* --wrap does not reach libev, which is a shared library. But libev finds this
   function of the program before the one of the C library. */
LK_API int epoll_ctl(int poll, int how, int fd, struct epoll_event *event)
{
  calls.epoll_ctl++;
  if (calls.no_epoll && how != EPOLL_CTL_DEL)
    return fail_with(ENOMEM);
  return (int)syscall(SYS_epoll_ctl, poll, how, fd, event);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags)
{
  int error = calls.send_error;

  calls.send++;
  calls.send_error = 0;
  ck_assert_int_ne(flags & MSG_NOSIGNAL, 0);
  if (error != 0)
    return fail_with(error);
  ssize_t sent = __real_send(fd, bytes, len, flags);

  if (sent > 0)
    calls.bytes_sent += (size_t)sent;
  return sent;
}

ssize_t __wrap_recv(int fd, void *room, size_t size, int flags)
{
  calls.recv++;
  if (calls.recv_is_endless) {
    memset(room, 0, size);
    return (ssize_t)size;
  }
  ssize_t received = __real_recv(fd, room, size, flags);

  if (received > 0)
    calls.bytes_received += (size_t)received;
  return received;
}

/* A fortified build calls this one in place of recv(). */
ssize_t __wrap___recv_chk(int fd, void *room, size_t size, size_t room_size,
                          int flags)
{
  (void)room_size;
  return __wrap_recv(fd, room, size, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *value,
                           struct itimerspec *old)
{
  calls.settime++;
  calls.timer_value = value->it_value;
  return __real_timerfd_settime(fd, flags, value, old);
}

int __wrap_timerfd_create(clockid_t clock, int flags)
{
  if (calls.timer_error != 0)
    return fail_with(calls.timer_error);
  if (calls.no_boottime && clock == CLOCK_BOOTTIME)
    return fail_with(EINVAL);
  return __real_timerfd_create(clock, flags);
}

int __wrap_eventfd(unsigned count, int flags)
{
  return calls.eventfd_error != 0 ? fail_with(calls.eventfd_error)
                                  : __real_eventfd(count, flags);
}

ssize_t __wrap_getrandom(void *out, size_t len, unsigned flags)
{
  return calls.no_random ? fail_with(ENOSYS)
                         : __real_getrandom(out, len, flags);
}

int __wrap_madvise(void *at, size_t len, int advice)
{
  if (calls.any_advice)
    return 0;
  return calls.no_wipe_on_fork ? fail_with(EINVAL)
                               : __real_madvise(at, len, advice);
}

int __wrap_socket(int domain, int type, int protocol)
{
  struct sockaddr_in local = {.sin_family = AF_INET,
                              .sin_port = htons(calls.local_port)};
  int fd;

  calls.socket++;
  if (calls.no_socket)
    return fail_with(EMFILE);
  fd = __real_socket(domain, type, protocol);
  local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (calls.local_port != 0)
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&local, sizeof local), 0);
  return fd;
}

pid_t __wrap_getpid(void)
{
  calls.getpid++;
  return __real_getpid();
}
