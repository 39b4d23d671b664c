/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A driver for clients on a GLib main context, and a program that uses the
 * driver:
 *
 *     glib HOSTS PATH [HOLD_MS [TIMEOUT_MS]]
 *
 * acquires the lock PATH, holds it for HOLD_MS and releases it. The examples
 * libuv.c and libevent.c do the same with the same functions on other loops.
 *
 * The driver makes no probes: a client with `read_only` stays at a read-only
 * server until that server closes the connection.
 */

#include <errno.h>
#include <gio/gio.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

/* ---- the driver ---------------------------------------------------------- */

typedef enum stage {
  NONE,       /* no attempt, or it has failed */
  RESOLVING,  /* `lookup` is under way */
  RESOLVED,   /* `addresses` are known, the transport is not open yet */
  CONNECTING, /* TCP, or TLS */
  CONNECTED
} stage;

/* The driver of one client, which is a source of the main context. The client
   has one reference, and each lookup, since a cancelled lookup ends in a later
   turn of the loop. */
typedef struct driver {
  GSource source;       /* its ready time calls driver_update() */
  lk_client *client;    /* NULL: freed */
  bool changed;         /* since driver_update() has asked the client */
  uint64_t attempt;     /* lk_want.attempt */
  stage stage;          /* of the attempt */
  GCancellable *lookup; /* NULL unless RESOLVING */
  GList *addresses;     /* of GInetAddress, also for the attempts that follow */
  const lk_transport_type *type;
  lk_transport *transport;
  gpointer watch;          /* of the descriptor of the transport; or NULL */
  GIOCondition send_waits; /* G_IO_IN or G_IO_OUT; 0: send() need not wait */
  GIOCondition recv_waits;
} driver;

/* Have driver_update() called in the next turn of the loop. */
static void driver_schedule(driver *d)
{
  d->changed = true;
  g_source_set_ready_time(&d->source, 0);
}

/* on_resolved() is called even for a lookup that is cancelled. */
static void driver_close(driver *d)
{
  if (d->lookup != NULL)
    g_cancellable_cancel(d->lookup);
  g_clear_object(&d->lookup);
  if (d->watch != NULL)
    g_source_remove_unix_fd(&d->source, d->watch);
  d->watch = NULL;
  if (d->transport != NULL)
    d->type->close(d->transport);
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

static void on_resolved(GObject *resolver, GAsyncResult *result, gpointer arg)
{
  driver *d = arg;
  GError *error = NULL;
  GList *addresses =
      g_resolver_lookup_by_name_finish(G_RESOLVER(resolver), result, &error);

  if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    /* by driver_close(): another attempt has begun, or the client is freed */
  } else if (error != NULL) {
    driver_fail(d, LK_ERR_RESOLVE, error->message);
  } else {
    g_clear_object(&d->lookup);
    g_resolver_free_addresses(d->addresses);
    d->addresses = addresses;
    d->stage = RESOLVED;
    driver_schedule(d);
    lk_client_resolved(d->client, d->attempt, g_list_length(addresses));
  }
  g_clear_error(&error);
  g_source_unref(&d->source);
}

/* GLib copies the name. It resolves IP addresses, too, without a server. */
static void driver_resolve(driver *d, const lk_want *want)
{
  GResolver *resolver = g_resolver_get_default();

  d->lookup = g_cancellable_new();
  d->stage = RESOLVING;
  g_source_ref(&d->source);
  g_resolver_lookup_by_name_async(resolver, want->host, d->lookup, on_resolved,
                                  d);
  g_object_unref(resolver);
}

/* ---- connecting ---- */

/* Watch the descriptor for `events`. GLib watches its level, as poll(2). */
static void driver_watch(driver *d, GIOCondition events)
{
  if (d->watch == NULL)
    d->watch = g_source_add_unix_fd(&d->source, d->transport->fd, events);
  else
    g_source_modify_unix_fd(&d->source, d->watch, events);
}

static GIOCondition event_of(lk_flow flow)
{
  return flow == LK_FLOW_READ ? G_IO_IN : flow == LK_FLOW_WRITE ? G_IO_OUT : 0;
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
    d->recv_waits = G_IO_IN;
    driver_schedule(d);
    lk_client_connected(d->client, d->attempt);
    break;
  }
}

static void driver_open(driver *d, const lk_want *want)
{
  GInetAddress *address = g_list_nth_data(d->addresses, want->address_index);
  GSocketAddress *server = g_inet_socket_address_new(address, want->port);
  struct sockaddr_storage native;
  gssize len = g_socket_address_get_native_size(server);

  g_socket_address_to_native(server, &native, sizeof native, NULL);
  g_object_unref(server);
  lk_endpoint to = {.address = (struct sockaddr *)&native,
                    .address_len = (unsigned)len,
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

    d->recv_waits = flow == LK_FLOW_WRITE ? G_IO_OUT : G_IO_IN;
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

/* Have driver_update() called at the deadline, but within a second: the clock
   of GLib stands still while the machine sleeps, hook_now() does not. */
static void driver_set_timer(driver *d)
{
  int64_t at_ms = lk_client_deadline(d->client);
  int64_t left_ms = at_ms - lk_client_clock(d->client);

  if (at_ms == INT64_MAX)
    g_source_set_ready_time(&d->source, -1);
  else
    g_source_set_ready_time(&d->source, g_get_monotonic_time() +
                                            CLAMP(left_ms, 0, 1000) * 1000);
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

/* After an error of the descriptor the next step of the transport fails. */
static void driver_on_events(driver *d, GIOCondition events)
{
  if ((events & (G_IO_ERR | G_IO_HUP)) != 0)
    events = G_IO_IN | G_IO_OUT;
  if (d->stage == CONNECTING) {
    driver_connect(d, d->type->handshake(d->transport));
  } else {
    if ((events & d->send_waits) != 0)
      d->send_waits = 0; /* driver_update() sends */
    if ((events & d->recv_waits) != 0)
      driver_receive(d);
  }
}

/* GLib has a reference to the source during this call. */
static gboolean on_ready(GSource *source, GSourceFunc callback, gpointer arg)
{
  driver *d = (driver *)source;
  GIOCondition events =
      d->watch == NULL ? 0 : g_source_query_unix_fd(source, d->watch);

  (void)callback;
  (void)arg;
  if (events != 0)
    driver_on_events(d, events);
  driver_update(d);
  return G_SOURCE_CONTINUE;
}

static void on_finalize(GSource *source)
{
  driver *d = (driver *)source;

  if (d->transport != NULL && d->type->end != NULL)
    d->type->end(d->transport);
  g_free(d->transport);
  g_resolver_free_addresses(d->addresses);
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
  for (size_t done = 0; done < len;) {
    ssize_t got = getrandom((char *)out + done, len - done, 0);

    if (got < 0 && errno != EINTR)
      abort();
    done += got < 0 ? 0 : (size_t)got;
  }
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
  g_source_destroy(&d->source);
  g_source_unref(&d->source);
}

/* Make a client on the main context; NULL is the default one. */
static int driver_client_new(lk_client **out, GMainContext *context,
                             const lk_client_config *config)
{
  static GSourceFuncs functions = {.dispatch = on_ready,
                                   .finalize = on_finalize};
  GSource *source = g_source_new(&functions, sizeof(driver));
  driver *d = (driver *)source;
  lk_hooks hooks = {.now = hook_now,
                    .random = hook_random,
                    .wake = hook_wake,
                    .freed = hook_freed,
                    .arg = d};
  int err = lk_client_new(&d->client, config, &hooks);

  *out = NULL;
  if (err != 0) {
    g_source_unref(source);
    return err;
  }
  d->type = lk_transport_of(d->client);
  if (d->type == NULL) {
    lk_client_free(d->client); /* calls hook_freed() */
    return LK_ERR_UNIMPLEMENTED;
  }
  d->transport = g_malloc0(d->type->size);
  d->transport->fd = -1;
  g_source_attach(source, context);
  driver_schedule(d); /* the first tick of a client is due at once */
  *out = d->client;
  return 0;
}

/* ---- the program --------------------------------------------------------- */

typedef struct program {
  GMainLoop *loop;
  lk_client *client;
  lk_lock *lock;
  guint hold; /* the source that ends the hold; 0: none */
  guint hold_ms;
  int exit_code;
} program;

static void on_closed(lk_client *client, int err, void *arg)
{
  program *p = arg;

  (void)err;
  lk_lock_free(p->lock);
  lk_client_free(client); /* takes effect when this callback has returned */
  g_main_loop_quit(p->loop);
}

static void finish(program *p, int exit_code)
{
  p->exit_code = exit_code;
  g_clear_handle_id(&p->hold, g_source_remove);
  lk_client_close(p->client, on_closed, p);
}

static void on_released(lk_lock *lock, int err, void *arg)
{
  printf("%s: released\n", lk_lock_path(lock));
  finish(arg, err == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

static gboolean on_hold_end(gpointer arg)
{
  program *p = arg;

  p->hold = 0;
  lk_lock_release(p->lock, on_released, p);
  return G_SOURCE_REMOVE;
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
    p->hold = g_timeout_add(p->hold_ms, on_hold_end, p);
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
    fprintf(stderr, "usage: glib HOSTS PATH [HOLD_MS [TIMEOUT_MS]]\n");
    return EXIT_FAILURE;
  }
  program p = {.loop = g_main_loop_new(NULL, FALSE),
               .hold_ms = argc > 3 ? (guint)atoi(argv[3]) : 1000};
  int64_t timeout_ms = argc > 4 ? atoi(argv[4]) : 60000;
  lk_client_config config = {.size = sizeof config, .hosts = argv[1]};
  lk_lock_config options = {
      .size = sizeof options, .on_event = on_event, .arg = &p};
  int err;

  setvbuf(stdout, NULL, _IOLBF, 0);
  if ((err = driver_client_new(&p.client, NULL, &config)) == 0 &&
      (err = lk_lock_new(&p.lock, p.client, argv[2], &options)) == 0)
    err = lk_lock_acquire(p.lock, timeout_ms, on_acquired, &p);
  if (err == 0) {
    g_main_loop_run(p.loop);
  } else {
    fprintf(stderr, "%s: %s\n", argv[1], lk_error_text(err));
    p.exit_code = EXIT_FAILURE;
    on_closed(p.client, err, &p);
  }
  g_main_loop_unref(p.loop);
  return p.exit_code;
}
