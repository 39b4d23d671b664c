/* SPDX-License-Identifier: Apache-2.0 */
/* A client in a loop of libevent; loop.h has the program. */
#include "loop.h"

#include <event2/event.h>

static struct event *readable;

static void on_readable(evutil_socket_t fd, short events, void *p)
{
  (void)fd, (void)events;
  if (!program_dispatch(p))
    event_del(readable);
}

int main(int argc, char **argv)
{
  program p;
  int fd = program_begin(&p, argc, argv);

  if (fd >= 0) {
    struct event_base *base = event_base_new();

    readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, &p);
    event_add(readable, NULL);
    event_base_dispatch(base); /* until no event is left */
    event_free(readable);
    event_base_free(base);
  }
  return program_end(&p);
}
