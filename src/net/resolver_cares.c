/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/name_service.h"

#include <ares.h>
#include <string.h>

#include "base/mem.h"

/* A socket that c-ares has opened, and the loop watches. */
typedef struct cares_socket {
  lk_loop_io io;
  lk_link link;
  lk_name_service *service;
} cares_socket;

struct lk_name_service {
  const lk_mem *mem;
  lk_loop *loop;
  const lk_fork_check *fork_check;
  ares_channel channel; /* the state of c-ares, with its sockets */
  bool open;            /* `channel` is initialised */
  bool no_memory;       /* there was no memory to watch a socket of c-ares */
  lk_loop_timer timer;
  lk_link sockets; /* of cares_socket */
};

/* ---- timeouts ------------------------------------------------------------ */

static int64_t milliseconds_rounded_up(const struct timeval *t)
{
  return (int64_t)t->tv_sec * 1000 + ((int64_t)t->tv_usec + 999) / 1000;
}

/* To be called after each call of c-ares: sets the timer for the next call. The
   timer is 1 ms late, so that c-ares finds that the time has passed. */
static void cares_update_timer(lk_name_service *n)
{
  struct timeval left;

  /* Without a watcher for its socket a query would only time out. */
  if (n->no_memory) {
    n->no_memory = false;
    ares_cancel(n->channel);
  }
  if (ares_timeout(n->channel, NULL, &left) == NULL)
    lk__loop_stop_timer(n->loop, &n->timer);
  else
    lk__loop_set_timer(n->loop, &n->timer, milliseconds_rounded_up(&left) + 1);
}

static void on_cares_timer(lk_loop_timer *t)
{
  lk_name_service *n = LK_OWNER(t, lk_name_service, timer);

  if (lk__fork_check_in_child(n->fork_check))
    return; /* it would ask again, on a socket of the parent */
  ares_process_fd(n->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  cares_update_timer(n);
}

/* ---- sockets ------------------------------------------------------------- */

static void on_cares_events(lk_loop_io *io, int events)
{
  lk_name_service *n = LK_OWNER(io, cares_socket, io)->service;
  ares_socket_t fd = io->fd;

  if (lk__fork_check_in_child(n->fork_check))
    return; /* the reply is for the parent, which shares the socket */
  ares_process_fd(n->channel,
                  (events & LK_LOOP_READ) != 0 ? fd : ARES_SOCKET_BAD,
                  (events & LK_LOOP_WRITE) != 0 ? fd : ARES_SOCKET_BAD);
  cares_update_timer(n);
}

static cares_socket *cares_find_socket(lk_name_service *n, ares_socket_t fd)
{
  for (lk_link *l = n->sockets.next; l != &n->sockets; l = l->next) {
    cares_socket *s = LK_OWNER(l, cares_socket, link);

    if (s->io.fd == fd)
      return s;
  }
  return NULL;
}

static void cares_socket_free(cares_socket *s)
{
  lk_name_service *n = s->service;

  lk__loop_stop_io(n->loop, &s->io);
  lk__list_remove(&s->link);
  lk__mem_free(n->mem, s);
}

static cares_socket *cares_socket_new(lk_name_service *n, ares_socket_t fd)
{
  cares_socket *s = lk__mem_new(n->mem, sizeof *s);

  n->no_memory = n->no_memory || s == NULL;
  if (s == NULL)
    return NULL;
  s->io.on_events = on_cares_events;
  s->io.fd = fd;
  s->service = n;
  lk__list_add(&n->sockets, &s->link);
  return s;
}

/* Called by c-ares with the events that it waits for on a socket. If it waits
   for none, it is about to close the socket. */
static void on_cares_socket(void *arg, ares_socket_t fd, int readable,
                            int writable)
{
  lk_name_service *n = arg;
  cares_socket *s = cares_find_socket(n, fd);
  int events = (readable != 0 ? LK_LOOP_READ : LK_LOOP_NONE) |
               (writable != 0 ? LK_LOOP_WRITE : LK_LOOP_NONE);

  if (events == LK_LOOP_NONE) {
    if (s != NULL)
      cares_socket_free(s);
    return;
  }
  if (s == NULL)
    s = cares_socket_new(n, fd);
  if (s != NULL)
    lk__loop_set_io(n->loop, &s->io, events);
}

/* ---- the channel --------------------------------------------------------- */

/* A channel keeps the name servers that were configured when it was opened.
   lk__name_service_on_idle() therefore closes it. */
static int cares_open_channel(lk_name_service *n)
{
  struct ares_options options;

  if (n->open)
    return ARES_SUCCESS;
  memset(&options, 0, sizeof options);
  options.sock_state_cb = on_cares_socket;
  options.sock_state_cb_data = n;

  int status = ares_init_options(&n->channel, &options, ARES_OPT_SOCK_STATE_CB);

  n->open = status == ARES_SUCCESS;
  return status;
}

static void cares_close_channel(lk_name_service *n)
{
  if (!n->open)
    return;
  n->open = false;
  ares_destroy(n->channel); /* frees each cares_socket by on_cares_socket() */
  lk__loop_stop_timer(n->loop, &n->timer);
}

static void on_cares_result(void *arg, int status, int timeouts,
                            struct ares_addrinfo *found)
{
  lk_name_query *q = arg;

  (void)timeouts;
  if (found != NULL) {
    for (const struct ares_addrinfo_node *a = found->nodes; a != NULL;
         a = a->ai_next)
      lk__name_query_add_address(q, a->ai_addr);
    ares_freeaddrinfo(found);
  }
  /* Queries are cancelled only by cares_update_timer(), for want of memory. */
  if (status == ARES_ECANCELLED)
    status = ARES_ENOMEM;
  lk__name_query_complete(q, status == ARES_SUCCESS ? NULL
                                                    : ares_strerror(status));
}

void lk__name_service_query(lk_name_service *n, lk_name_query *q)
{
  const struct ares_addrinfo_hints hints = {
      .ai_family = AF_UNSPEC,
      .ai_socktype = SOCK_STREAM,
      .ai_flags = ARES_AI_NOSORT, /* lk_address_list shuffles them */
  };
  int status = cares_open_channel(n);

  if (status != ARES_SUCCESS) {
    lk__name_query_complete(q, ares_strerror(status));
    return;
  }
  ares_getaddrinfo(n->channel, q->host, NULL, &hints, on_cares_result, q);
  cares_update_timer(n);
}

void lk__name_service_on_idle(lk_name_service *n)
{
  cares_close_channel(n);
}

int lk__name_service_new(lk_name_service **out, lk_loop *loop,
                         const lk_fork_check *fork_check, const lk_mem *mem)
{
  lk_name_service *n = lk__mem_new(mem, sizeof *n);

  *out = n;
  if (n == NULL)
    return LK_ERR_NO_MEMORY;
  n->mem = mem;
  n->loop = loop;
  n->fork_check = fork_check;
  lk__list_init(&n->sockets);
  n->timer.on_timer = on_cares_timer;
  return 0;
}

void lk__name_service_free(lk_name_service *n, bool forked)
{
  (void)forked; /* closing the channel sends nothing */
  cares_close_channel(n);
  lk__mem_free(n->mem, n);
}
