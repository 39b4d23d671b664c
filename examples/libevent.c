/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A driver for clients on a libevent loop, and a program that uses the driver:
 *
 *     libevent HOSTS PATH [HOLD_MS [TIMEOUT_MS]]
 *
 * acquires the lock PATH, holds it for HOLD_MS and releases it. The examples
 * libuv.c and glib.c do the same with the same functions on other loops.
 *
 * The driver makes no probes: a client with `read_only` stays at a read-only
 * server until that server closes the connection.
 */

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- the driver ---------------------------------------------------------- */

typedef enum stage {
  NONE,       /* no attempt, or it has failed */
  RESOLVING,  /* `lookup` is under way */
  RESOLVED,   /* `addresses` are known, the transport is not open yet */
  CONNECTING, /* TCP, or TLS */
  CONNECTED
} stage;

/* The driver of one client. */
typedef struct driver {
  struct event_base *loop;
  struct evdns_base *dns;
  lk_client *client;   /* NULL: freed */
  unsigned refs;       /* of the client, of lookups and of running callbacks */
  struct event *timer; /* calls driver_update() */
  bool changed;        /* since driver_update() has asked the client */
  uint64_t attempt;    /* lk_want.attempt */
  stage stage;         /* of the attempt */
  struct evdns_getaddrinfo_request *lookup; /* NULL unless RESOLVING */
  struct evutil_addrinfo *addresses; /* also for the attempts that follow */
  const lk_transport_type *type;
  lk_transport *transport;
  struct event *watch; /* of the descriptor of the transport; or NULL */
  short watched;       /* EV_READ, EV_WRITE or both */
  short send_waits;    /* EV_READ or EV_WRITE; 0: send() need not wait */
  short recv_waits;
} driver;

static void driver_unref(driver *d)
{
  if (--d->refs > 0)
    return;
  if (d->transport != NULL && d->type->end != NULL)
    d->type->end(d->transport);
  free(d->transport);
  if (d->addresses != NULL)
    evutil_freeaddrinfo(d->addresses);
  if (d->timer != NULL)
    event_free(d->timer);
  free(d);
}

/* Have driver_update() called in the next turn of the loop. */
static void driver_schedule(driver *d)
{
  static const struct timeval now = {0, 0};

  d->changed = true;
  event_add(d->timer, &now);
}

/* on_resolved() is called even for a lookup that is cancelled, but later. */
static void driver_close(driver *d)
{
  if (d->lookup != NULL)
    evdns_getaddrinfo_cancel(d->lookup);
  if (d->watch != NULL)
    event_free(d->watch);
  if (d->transport != NULL)
    d->type->close(d->transport);
  d->lookup = NULL;
  d->watch = NULL;
  d->stage = NONE;
}

/* Each input may free the client: hook_freed() has then closed the driver. */
static void driver_fail(driver *d, int err, const char *why)
{
  driver_close(d);
  driver_schedule(d);
  if (err == LK_ERR_TLS)
    lk_client_failed_tls(d->client, d->attempt, d->transport->cause, why);
  else
    lk_client_failed(d->client, d->attempt, err, why);
}

static void driver_fail_transport(driver *d)
{
  driver_fail(d, d->transport->err, d->transport->why);
}

/* ---- resolving ---- */

static void on_resolved(int error, struct evutil_addrinfo *addresses, void *arg)
{
  driver *d = arg;
  uint32_t count = 0;

  for (const struct evutil_addrinfo *a = addresses; a != NULL; a = a->ai_next)
    count++;
  if (error == EVUTIL_EAI_CANCEL) {
    /* by driver_close(): another attempt has begun, or the client is freed */
  } else if (error != 0) {
    d->lookup = NULL;
    driver_fail(d, LK_ERR_RESOLVE, evutil_gai_strerror(error));
  } else {
    d->lookup = NULL;
    if (d->addresses != NULL)
      evutil_freeaddrinfo(d->addresses);
    d->addresses = addresses;
    d->stage = RESOLVED;
    driver_schedule(d);
    lk_client_resolved(d->client, d->attempt, count);
  }
  driver_unref(d);
}

/* libevent copies the name. It resolves IP addresses and names in /etc/hosts at
   once: on_resolved() is then called inside evdns_getaddrinfo(). */
static void driver_resolve(driver *d, const lk_want *want)
{
  struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM};
  char port[8];

  snprintf(port, sizeof port, "%u", (unsigned)want->port);
  d->stage = RESOLVING;
  d->refs++;
  struct evdns_getaddrinfo_request *lookup =
      evdns_getaddrinfo(d->dns, want->host, port, &hints, on_resolved, d);

  if (lookup != NULL)
    d->lookup = lookup;
}

/* ---- connecting ---- */

static void on_events(evutil_socket_t fd, short events, void *arg);

/* Watch the descriptor for `events`. libevent watches its level by default. */
static void driver_watch(driver *d, short events)
{
  if (d->watch != NULL && d->watched == events)
    return;
  if (d->watch != NULL)
    event_free(d->watch);
  d->watched = events;
  d->watch = event_new(d->loop, d->transport->fd, (short)(events | EV_PERSIST),
                       on_events, d);
  if (d->watch == NULL || event_add(d->watch, NULL) != 0)
    driver_fail(d, LK_ERR_CONNECT, "cannot watch the descriptor");
}

static short event_of(lk_flow flow)
{
  return flow == LK_FLOW_READ ? EV_READ : flow == LK_FLOW_WRITE ? EV_WRITE : 0;
}

/* open() or handshake() has returned `flow`. */
static void driver_connect(driver *d, lk_flow flow)
{
  switch (flow) {
  case LK_FLOW_READ:
  case LK_FLOW_WRITE: driver_watch(d, event_of(flow)); break;
  case LK_FLOW_END:
    driver_fail(d, LK_ERR_CONNECT, "the server closed the connection");
    break;
  case LK_FLOW_FAILED: driver_fail_transport(d); break;
  case LK_FLOW_DONE:
    d->stage = CONNECTED;
    d->send_waits = 0;
    d->recv_waits = EV_READ;
    driver_schedule(d);
    lk_client_connected(d->client, d->attempt);
    break;
  }
}

static void driver_open(driver *d, const lk_want *want)
{
  const struct evutil_addrinfo *a = d->addresses;

  for (uint32_t i = 0; i < want->address_index && a->ai_next != NULL; i++)
    a = a->ai_next;
  lk_endpoint to = {.address = a->ai_addr,
                    .address_len = (unsigned)a->ai_addrlen,
                    .host = want->host,
                    .tls = lk_client_tls(d->client)};

  d->stage = CONNECTING;
  driver_connect(d, d->type->open(d->transport, &to));
}

/* Follow the client: another attempt than the present one means to close the
   connection and to make the one that is wanted. */
static void driver_follow(driver *d)
{
  lk_want want;

  lk_client_want(d->client, &want);
  if (want.attempt != d->attempt) {
    driver_close(d);
    d->attempt = want.attempt;
    if (want.attempt != 0 && want.address_index == 0)
      driver_resolve(d, &want); /* an input may follow: `want` has ended */
    else if (want.attempt != 0)
      driver_open(d, &want); /* the next address of the same name */
  } else if (d->stage == RESOLVED) {
    driver_open(d, &want);
  }
}

/* ---- sending and receiving ---- */

static void driver_receive(driver *d)
{
  char room[65536];
  size_t got;

  do {
    lk_flow flow = d->type->recv(d->transport, room, sizeof room, &got);

    d->recv_waits = flow == LK_FLOW_WRITE ? EV_WRITE : EV_READ;
    if (flow == LK_FLOW_FAILED)
      driver_fail_transport(d);
    if (flow == LK_FLOW_END)
      driver_fail(d, 0, NULL);
    if (flow != LK_FLOW_DONE)
      return;
    driver_schedule(d);
    lk_client_received(d->client, d->attempt, room, got);
  } while (d->stage == CONNECTED && d->type->has_more != NULL &&
           d->type->has_more(d->transport));
}

static void driver_send(driver *d)
{
  lk_bytes bytes = lk_client_pending(d->client);
  size_t done;

  if (bytes.len == 0)
    return;
  lk_flow flow = d->type->send(d->transport, bytes.at, bytes.len, &done);

  d->send_waits = event_of(flow);
  lk_client_sent(d->client, d->attempt, done);
  if (flow != LK_FLOW_FAILED)
    return;
  driver_receive(d); /* the server may have replied before the failure */
  if (d->stage == CONNECTED)
    driver_fail_transport(d);
}

/* ---- events ---- */

/* Have driver_update() called at the deadline, but within a second: timers of
   libevent stand still while the machine sleeps, hook_now() does not. */
static void driver_set_timer(driver *d)
{
  int64_t at_ms = lk_client_deadline(d->client);
  int64_t left_ms = at_ms - lk_client_clock(d->client);
  struct timeval left = {.tv_sec = left_ms >= 1000,
                         .tv_usec = left_ms > 0 && left_ms < 1000
                                        ? (suseconds_t)left_ms * 1000
                                        : 0};

  if (at_ms == INT64_MAX)
    event_del(d->timer); /* a closed client does not keep the loop running */
  else
    event_add(d->timer, &left);
}

/* Do all that the client wants now. */
static void driver_update(driver *d)
{
  if (d->client != NULL &&
      lk_client_deadline(d->client) <= lk_client_clock(d->client))
    lk_client_tick(d->client);
  do {
    d->changed = false;
    if (d->client != NULL)
      driver_follow(d);
    if (d->stage == CONNECTED && d->send_waits == 0)
      driver_send(d);
  } while (d->client != NULL && d->changed);
  if (d->client != NULL)
    driver_set_timer(d);
  if (d->stage == CONNECTED)
    driver_watch(d, d->send_waits | d->recv_waits);
}

/* After an error of the descriptor libevent reports both events, and the next
   step of the transport fails. */
static void on_events(evutil_socket_t fd, short events, void *arg)
{
  driver *d = arg;

  (void)fd;
  d->refs++;
  if (d->stage == CONNECTING) {
    driver_connect(d, d->type->handshake(d->transport));
  } else {
    if ((events & d->send_waits) != 0)
      d->send_waits = 0; /* driver_update() sends */
    if ((events & d->recv_waits) != 0)
      driver_receive(d);
  }
  driver_update(d);
  driver_unref(d);
}

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
  driver *d = arg;

  (void)fd;
  (void)events;
  d->refs++;
  driver_update(d);
  driver_unref(d);
}

/* ---- clients ---- */

static int64_t hook_now(void *arg)
{
  struct timespec t;

  (void)arg;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void hook_random(void *arg, void *out, size_t len)
{
  (void)arg;
  evutil_secure_rng_get_bytes(out, len);
}

/* Most inputs are not allowed here, so this only schedules. */
static void hook_wake(lk_client *c, void *arg)
{
  (void)c;
  driver_schedule(arg);
}

static void hook_freed(lk_client *c, void *arg)
{
  driver *d = arg;

  (void)c;
  driver_close(d);
  d->client = NULL;
  if (d->timer != NULL)
    event_del(d->timer);
  driver_unref(d);
}

/* Make a client on the loop. After lk_client_free() the loop must run once more
   if a lookup was under way. */
static int driver_client_new(lk_client **out, struct event_base *loop,
                             struct evdns_base *dns,
                             const lk_client_config *config)
{
  driver *d = calloc(1, sizeof *d);
  lk_hooks hooks = {.now = hook_now,
                    .random = hook_random,
                    .wake = hook_wake,
                    .freed = hook_freed,
                    .arg = d};
  int err =
      d == NULL ? LK_ERR_NO_MEMORY : lk_client_new(&d->client, config, &hooks);

  *out = NULL;
  if (err != 0) {
    free(d);
    return err;
  }
  d->refs = 1;
  d->loop = loop;
  d->dns = dns;
  d->timer = evtimer_new(loop, on_timer, d);
  d->type = lk_transport_of(d->client);
  if (d->type != NULL)
    d->transport = calloc(1, d->type->size);
  if (d->transport == NULL || d->timer == NULL) {
    err = d->type == NULL ? LK_ERR_UNIMPLEMENTED : LK_ERR_NO_MEMORY;
    lk_client_free(d->client); /* calls hook_freed() */
    return err;
  }
  d->transport->fd = -1;
  driver_schedule(d); /* the first tick of a client is due at once */
  *out = d->client;
  return 0;
}

/* ---- the program --------------------------------------------------------- */

typedef struct program {
  struct event_base *loop;
  lk_client *client;
  lk_lock *lock;
  struct event *hold; /* a timer that runs while the lock is held */
  struct timeval hold_time;
  int exit_code;
} program;

static void on_closed(lk_client *client, int err, void *arg)
{
  program *p = arg;

  (void)err;
  lk_lock_free(p->lock);
  lk_client_free(client); /* takes effect when this callback has returned */
  event_base_loopexit(p->loop, NULL); /* `dns` would keep it running */
}

static void finish(program *p, int exit_code)
{
  p->exit_code = exit_code;
  event_del(p->hold);
  lk_client_close(p->client, on_closed, p);
}

static void on_released(lk_lock *lock, int err, void *arg)
{
  printf("%s: released\n", lk_lock_path(lock));
  finish(arg, err == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void on_hold_end(evutil_socket_t fd, short events, void *arg)
{
  program *p = arg;

  (void)fd;
  (void)events;
  lk_lock_release(p->lock, on_released, p);
}

static void on_event(lk_lock *lock, const lk_lock_event *event, void *arg)
{
  printf("%s: %s\n", lk_lock_path(lock), lk_lock_event_text(event->type));
  if (event->type == LK_LOCK_EVENT_LOST)
    finish(arg, EXIT_FAILURE);
}

static void on_acquired(lk_lock *lock, int err, void *arg)
{
  program *p = arg;
  const char *cause;

  if (err == 0) {
    printf("%s: held, fencing token %llu\n", lk_lock_path(lock),
           (unsigned long long)lk_lock_token(lock));
    event_add(p->hold, &p->hold_time);
    return;
  }
  lk_client_last_error(p->client, &cause);
  fprintf(stderr, "%s: %s. %s\n", lk_lock_path(lock), lk_error_text(err),
          cause);
  finish(p, EXIT_FAILURE);
}

int main(int argc, char **argv)
{
  if (argc < 3) {
    fprintf(stderr, "usage: libevent HOSTS PATH [HOLD_MS [TIMEOUT_MS]]\n");
    return EXIT_FAILURE;
  }
  struct event_base *loop = event_base_new();
  struct evdns_base *dns =
      evdns_base_new(loop, EVDNS_BASE_INITIALIZE_NAMESERVERS);
  int hold_ms = argc > 3 ? atoi(argv[3]) : 1000;
  program p = {.loop = loop,
               .hold_time = {hold_ms / 1000, hold_ms % 1000 * 1000}};
  int64_t timeout_ms = argc > 4 ? atoi(argv[4]) : 60000;
  lk_client_config config = {.size = sizeof config, .hosts = argv[1]};
  lk_lock_config options = {
      .size = sizeof options, .on_event = on_event, .arg = &p};
  int err;

  if (dns == NULL) {
    fprintf(stderr, "cannot read /etc/resolv.conf\n");
    return EXIT_FAILURE;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  p.hold = evtimer_new(loop, on_hold_end, &p);
  if ((err = driver_client_new(&p.client, loop, dns, &config)) == 0 &&
      (err = lk_lock_new(&p.lock, p.client, argv[2], &options)) == 0)
    err = lk_lock_acquire(p.lock, timeout_ms, on_acquired, &p);
  if (err != 0) {
    fprintf(stderr, "%s: %s\n", argv[1], lk_error_text(err));
    p.exit_code = EXIT_FAILURE;
    on_closed(p.client, err, &p);
  }
  event_base_dispatch(loop); /* until on_closed() has ended it */
  event_free(p.hold);
  evdns_base_free(dns, 1);
  event_base_free(loop);
  return p.exit_code;
}
