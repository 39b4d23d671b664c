/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <ares.h>
#include <ev.h>
#include <string.h>

/* One of the channel's sockets. */
typedef struct port {
  ev_io io;
  lk_link link;
} port;

struct lk_name_service {
  const lk_mem *mem;
  struct ev_loop *loop;
  bool open;    /* there is a channel */
  bool starved; /* there was no memory to listen to it */
  ares_channel channel;
  ev_timer timer;
  lk_link ports;
};

/* Our watchers keep no loop alive: each start is followed by an ev_unref(). */
static void stop_timer(lk_name_service *n)
{
  if (!ev_is_active(&n->timer))
    return;
  ev_ref(n->loop);
  ev_timer_stop(n->loop, &n->timer);
}

/* After each call into the channel: when does it want to be called next? */
static void set_timer(lk_name_service *n)
{
  struct timeval left;

  if (n->starved) {
    n->starved = false;
    ares_cancel(n->channel);
  }
  if (ares_timeout(n->channel, NULL, &left) == NULL) {
    stop_timer(n);
    return;
  }
  bool fresh = !ev_is_active(&n->timer);

  n->timer.repeat = (double)left.tv_sec + (double)left.tv_usec * 1e-6 + 1e-3;
  ev_timer_again(n->loop, &n->timer);
  if (fresh)
    ev_unref(n->loop);
}

static void on_port(struct ev_loop *loop, ev_io *w, int revents)
{
  lk_name_service *n = w->data;
  ares_socket_t fd = w->fd;

  (void)loop;
  ares_process_fd(n->channel, (revents & EV_READ) != 0 ? fd : ARES_SOCKET_BAD,
                  (revents & EV_WRITE) != 0 ? fd : ARES_SOCKET_BAD);
  set_timer(n);
}

static void on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
  lk_name_service *n = w->data;

  (void)loop;
  (void)revents;
  ares_process_fd(n->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  set_timer(n);
}

static port *find(lk_name_service *n, ares_socket_t fd)
{
  for (lk_link *l = n->ports.next; l != &n->ports; l = l->next) {
    port *p = LK_OWNER(l, port, link);

    if (p->io.fd == fd)
      return p;
  }
  return NULL;
}

static void close_port(lk_name_service *n, port *p)
{
  if (ev_is_active(&p->io)) {
    ev_ref(n->loop);
    ev_io_stop(n->loop, &p->io);
  }
  lk__list_remove(&p->link);
  lk__mem_free(n->mem, p);
}

static port *open_port(lk_name_service *n)
{
  port *p = lk__mem_new(n->mem, sizeof *p);

  n->starved = n->starved || p == NULL;
  if (p == NULL)
    return NULL;
  ev_init(&p->io, on_port);
  p->io.data = n;
  lk__list_add(&n->ports, &p->link);
  return p;
}

/* The channel says what it waits for. */
static void on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
  lk_name_service *n = arg;
  port *p = find(n, fd);

  if (readable == 0 && writable == 0) {
    if (p != NULL)
      close_port(n, p);
    return;
  }
  if (p == NULL)
    p = open_port(n);
  if (p == NULL)
    return;
  if (ev_is_active(&p->io)) {
    ev_ref(n->loop);
    ev_io_stop(n->loop, &p->io);
  }
  ev_io_set(&p->io, fd,
            (readable != 0 ? EV_READ : 0) | (writable != 0 ? EV_WRITE : 0));
  ev_io_start(n->loop, &p->io);
  ev_unref(n->loop);
}

int lk__name_service_new(lk_name_service **out, struct ev_loop *loop,
                         const lk_mem *mem)
{
  lk_name_service *n = lk__mem_new(mem, sizeof *n);

  *out = n;
  if (n == NULL)
    return LK_ERR_NO_MEMORY;
  n->mem = mem;
  n->loop = loop;
  lk__list_init(&n->ports);
  ev_init(&n->timer, on_timer);
  n->timer.data = n;
  return 0;
}

/* A channel knows only the name servers there were when it was opened, so it
   lives no longer than the queries. */
static int open_channel(lk_name_service *n)
{
  struct ares_options options;

  if (n->open)
    return ARES_SUCCESS;
  memset(&options, 0, sizeof options);
  options.sock_state_cb = on_socket;
  options.sock_state_cb_data = n;

  int status = ares_init_options(&n->channel, &options, ARES_OPT_SOCK_STATE_CB);

  n->open = status == ARES_SUCCESS;
  return status;
}

static void close_channel(lk_name_service *n)
{
  if (!n->open)
    return;
  n->open = false;
  ares_destroy(n->channel);
  stop_timer(n);
}

static void on_found(void *arg, int status, int timeouts,
                     struct ares_addrinfo *found)
{
  lk_name_query *q = arg;

  (void)timeouts;
  for (const struct ares_addrinfo_node *a = found == NULL ? NULL : found->nodes;
       a != NULL; a = a->ai_next)
    lk__name_query_add_address(q, a->ai_addr);
  if (found != NULL)
    ares_freeaddrinfo(found);
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
      .ai_flags = ARES_AI_NOSORT, /* they are shuffled anyway */
  };
  int status = open_channel(n);

  if (status != ARES_SUCCESS) {
    lk__name_query_complete(q, ares_strerror(status));
    return;
  }
  ares_getaddrinfo(n->channel, q->host, NULL, &hints, on_found, q);
  set_timer(n);
}

void lk__name_service_idle(lk_name_service *n)
{
  close_channel(n);
}

void lk__name_service_free(lk_name_service *n, bool forked)
{
  (void)forked; /* closing sends nothing */
  close_channel(n);
  lk__mem_free(n->mem, n);
}
