/* SPDX-License-Identifier: Apache-2.0 */
/* A client in a loop with epoll(7); loop.h has the program. */
#include "loop.h"

#include <sys/epoll.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  program p;
  int fd = program_begin(&p, argc, argv);

  if (fd >= 0) {
    struct epoll_event event = {.events = EPOLLIN};
    int loop = epoll_create1(EPOLL_CLOEXEC);

    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
    do
      epoll_wait(loop, &event, 1, -1);
    while (program_dispatch(&p));
    close(loop);
  }
  return program_end(&p);
}
