/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A driver for clients on a libuv loop, and a program that uses the driver:
 *
 *     libuv HOSTS PATH [HOLD_MS [TIMEOUT_MS]]
 *
 * acquires the lock PATH, holds it for HOLD_MS and releases it. The examples
 * glib.c and libevent.c do the same with the same functions on other loops.
 *
 * The driver makes no probes: a client with `read_only` stays at a read-only
 * server until that server closes the connection.
 */

#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

/* ---- the driver ---------------------------------------------------------- */

typedef enum stage {
  NONE,       /* no attempt, or it has failed */
  RESOLVING,  /* `lookup` is under way */
  RESOLVED,   /* `addresses` are known, the transport is not open yet */
  CONNECTING, /* TCP, or TLS */
  CONNECTED
} stage;

/* The driver of one client. Handles and lookups of libuv end in a later turn of
   the loop, so they are freed by callbacks. */
typedef struct driver {
  uv_loop_t *loop;
  lk_client *client;          /* NULL: freed */
  uv_timer_t timer;           /* calls driver_update() */
  bool changed;               /* since driver_update() has asked the client */
  uint64_t attempt;           /* lk_want.attempt */
  stage stage;                /* of the attempt */
  uv_getaddrinfo_t *lookup;   /* NULL unless RESOLVING */
  struct addrinfo *addresses; /* also for the attempts that follow */
  const lk_transport_type *type;
  lk_transport *transport;
  uv_poll_t *poll; /* watches the descriptor of the transport; or NULL */
  int send_waits;  /* UV_READABLE or UV_WRITABLE; 0: send() need not wait */
  int recv_waits;
} driver;

static void driver_update(driver *d);

static void on_timer(uv_timer_t *timer)
{
  driver_update(timer->data);
}

/* Have driver_update() called in the next turn of the loop. */
static void driver_schedule(driver *d)
{
  d->changed = true;
  uv_timer_start(&d->timer, on_timer, 0, 0);
}

static void on_poll_closed(uv_handle_t *poll)
{
  free(poll);
}

/* on_resolved() is called even for a lookup that is cancelled. uv_close() stops
   watching at once, so the descriptor may be closed after it. */
static void driver_close(driver *d)
{
  if (d->lookup != NULL) {
    d->lookup->data = NULL;
    uv_cancel((uv_req_t *)d->lookup);
  }
  if (d->poll != NULL)
    uv_close((uv_handle_t *)d->poll, on_poll_closed);
  if (d->transport != NULL)
    d->type->close(d->transport);
  d->lookup = NULL;
  d->poll = NULL;
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

static void on_resolved(uv_getaddrinfo_t *lookup, int status,
                        struct addrinfo *addresses)
{
  driver *d = lookup->data; /* NULL: driver_close() has cancelled the lookup */
  uint32_t count = 0;

  free(lookup);
  if (d == NULL) {
    uv_freeaddrinfo(addresses);
    return;
  }
  d->lookup = NULL;
  if (status != 0) {
    driver_fail(d, LK_ERR_RESOLVE, uv_strerror(status));
    return;
  }
  for (const struct addrinfo *a = addresses; a != NULL; a = a->ai_next)
    count++;
  uv_freeaddrinfo(d->addresses);
  d->addresses = addresses;
  d->stage = RESOLVED;
  driver_schedule(d);
  lk_client_resolved(d->client, d->attempt, count);
}

/* libuv copies the name. It resolves IP addresses, too, without a server. */
static void driver_resolve(driver *d, const lk_want *want)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  uv_getaddrinfo_t *lookup = calloc(1, sizeof *lookup);
  char port[8];

  snprintf(port, sizeof port, "%u", (unsigned)want->port);
  if (lookup == NULL ||
      uv_getaddrinfo(d->loop, lookup, on_resolved, want->host, port, &hints)) {
    free(lookup);
    driver_fail(d, LK_ERR_RESOLVE, "cannot begin a lookup");
    return;
  }
  lookup->data = d;
  d->lookup = lookup;
  d->stage = RESOLVING;
}

/* ---- connecting ---- */

static void on_poll(uv_poll_t *poll, int status, int events);

/* Watch the descriptor for `events`. A uv_poll_t watches its level. */
static void driver_watch(driver *d, int events)
{
  if (d->poll == NULL) {
    uv_poll_t *poll = calloc(1, sizeof *poll);

    if (poll == NULL || uv_poll_init(d->loop, poll, d->transport->fd) != 0) {
      free(poll);
      driver_fail(d, LK_ERR_CONNECT, "cannot watch the descriptor");
      return;
    }
    poll->data = d;
    d->poll = poll;
  }
  uv_poll_start(d->poll, events, on_poll);
}

static int event_of(lk_flow flow)
{
  return flow == LK_FLOW_READ    ? UV_READABLE
         : flow == LK_FLOW_WRITE ? UV_WRITABLE
                                 : 0;
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
    d->recv_waits = UV_READABLE;
    driver_schedule(d);
    lk_client_connected(d->client, d->attempt);
    break;
  }
}

static void driver_open(driver *d, const lk_want *want)
{
  const struct addrinfo *a = d->addresses;

  for (uint32_t i = 0; i < want->address_index && a->ai_next != NULL; i++)
    a = a->ai_next;
  lk_endpoint to = {.address = a->ai_addr,
                    .address_len = a->ai_addrlen,
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

    d->recv_waits = flow == LK_FLOW_WRITE ? UV_WRITABLE : UV_READABLE;
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
   libuv stand still while the machine sleeps, hook_now() does not. */
static void driver_set_timer(driver *d)
{
  int64_t at_ms = lk_client_deadline(d->client);
  int64_t left_ms = at_ms - lk_client_clock(d->client);

  if (at_ms == INT64_MAX)
    uv_timer_stop(
        &d->timer); /* a closed client does not keep the loop running */
  else
    uv_timer_start(&d->timer, on_timer,
                   left_ms < 0      ? 0
                   : left_ms > 1000 ? 1000
                                    : (uint64_t)left_ms,
                   0);
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

/* After an error of the descriptor libuv has stopped watching it, and the next
   step of the transport fails. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
  driver *d = poll->data;

  if (status != 0)
    events = UV_READABLE | UV_WRITABLE;
  if (d->stage == CONNECTING) {
    driver_connect(d, d->type->handshake(d->transport));
  } else {
    if ((events & d->send_waits) != 0)
      d->send_waits = 0; /* driver_update() sends */
    if ((events & d->recv_waits) != 0)
      driver_receive(d);
  }
  driver_update(d);
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
  if (uv_random(NULL, NULL, out, len, 0, NULL) != 0)
    abort();
}

/* Most inputs are not allowed here, so this only schedules. */
static void hook_wake(lk_client *c, void *arg)
{
  (void)c;
  driver_schedule(arg);
}

static void on_timer_closed(uv_handle_t *timer)
{
  driver *d = timer->data;

  if (d->transport != NULL && d->type->end != NULL)
    d->type->end(d->transport);
  free(d->transport);
  uv_freeaddrinfo(d->addresses);
  free(d);
}

static void hook_freed(lk_client *c, void *arg)
{
  driver *d = arg;

  (void)c;
  driver_close(d);
  d->client = NULL;
  uv_close((uv_handle_t *)&d->timer, on_timer_closed);
}

/* Make a client on the loop. It keeps uv_run() running until it is closed;
   after lk_client_free() the loop must run once more to free the driver. */
static int driver_client_new(lk_client **out, uv_loop_t *loop,
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
  d->loop = loop;
  uv_timer_init(loop, &d->timer);
  d->timer.data = d;
  d->type = lk_transport_of(d->client);
  if (d->type != NULL)
    d->transport = calloc(1, d->type->size);
  if (d->transport == NULL) {
    lk_client_free(d->client); /* calls hook_freed() */
    return d->type == NULL ? LK_ERR_UNIMPLEMENTED : LK_ERR_NO_MEMORY;
  }
  d->transport->fd = -1;
  driver_schedule(d); /* the first tick of a client is due at once */
  *out = d->client;
  return 0;
}

/* ---- the program --------------------------------------------------------- */

typedef struct program {
  lk_client *client;
  lk_lock *lock;
  uv_timer_t hold; /* runs while the lock is held */
  uint64_t hold_ms;
  int exit_code;
} program;

static void on_closed(lk_client *client, int err, void *arg)
{
  program *p = arg;

  (void)err;
  lk_lock_free(p->lock);
  lk_client_free(client); /* takes effect when this callback has returned */
  uv_close((uv_handle_t *)&p->hold, NULL);
}

static void finish(program *p, int exit_code)
{
  p->exit_code = exit_code;
  uv_timer_stop(&p->hold);
  lk_client_close(p->client, on_closed, p);
}

static void on_released(lk_lock *lock, int err, void *arg)
{
  printf("%s: released\n", lk_lock_path(lock));
  finish(arg, err == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static void on_hold_end(uv_timer_t *timer)
{
  program *p = timer->data;

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
    uv_timer_start(&p->hold, on_hold_end, p->hold_ms, 0);
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
    fprintf(stderr, "usage: libuv HOSTS PATH [HOLD_MS [TIMEOUT_MS]]\n");
    return EXIT_FAILURE;
  }
  uv_loop_t *loop = uv_default_loop();
  program p = {.hold_ms = argc > 3 ? strtoul(argv[3], NULL, 10) : 1000};
  int64_t timeout_ms = argc > 4 ? atoi(argv[4]) : 60000;
  lk_client_config config = {.size = sizeof config, .hosts = argv[1]};
  lk_lock_config options = {
      .size = sizeof options, .on_event = on_event, .arg = &p};
  int err;

  setvbuf(stdout, NULL, _IOLBF, 0);
  uv_timer_init(loop, &p.hold);
  p.hold.data = &p;
  if ((err = driver_client_new(&p.client, loop, &config)) == 0 &&
      (err = lk_lock_new(&p.lock, p.client, argv[2], &options)) == 0)
    err = lk_lock_acquire(p.lock, timeout_ms, on_acquired, &p);
  if (err != 0) {
    fprintf(stderr, "%s: %s\n", argv[1], lk_error_text(err));
    p.exit_code = EXIT_FAILURE;
    on_closed(p.client, err, &p);
  }
  uv_run(loop, UV_RUN_DEFAULT); /* until all handles are closed */
  uv_loop_close(loop);
  return p.exit_code;
}
