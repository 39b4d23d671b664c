/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sync/call.h"

/* Members of groups. The thread of the handle runs them. */

struct lk_sync_membership {
  lk_sync_client *client;
  size_t calls_inside; /* calls that wait; under the client's mutex */
  void (*on_event)(lk_sync_membership *m, const lk_membership_event *event,
                   void *arg);
  void *arg;
  const char *path;       /* of `source`; constant */
  atomic_bool has_joined; /* written by the thread of the handle */

  /* For the thread of the handle. */
  lk_membership *source; /* NULL: it is being freed */
  lk_link waiting;       /* list of lk_wait, each of a join_call */
};

/** A caller that waits until the member has joined. */
typedef struct join_call {
  lk_wait wait; /* in lk_sync_membership.waiting */
  lk_sync_membership *membership;
} join_call;

/* ---- the thread of the handle -------------------------------------------- */

/* A caller may free its call as soon as that is completed. */
static void membership_end_waits(lk_sync_membership *m, int err)
{
  while (!lk__list_empty(&m->waiting))
    lk__wait_end(LK_OWNER(m->waiting.next, lk_wait, link), err);
}

static void on_membership_event(lk_membership *source,
                                const lk_membership_event *event, void *arg)
{
  lk_sync_membership *m = arg;

  atomic_store(&m->has_joined, lk_membership_has_joined(source));
  if (m->on_event != NULL)
    m->on_event(m, event, m->arg);
  switch (event->type) {
  case LK_MEMBERSHIP_EVENT_JOINED: membership_end_waits(m, 0); break;
  case LK_MEMBERSHIP_EVENT_RETRYING:
  case LK_MEMBERSHIP_EVENT_ENDED: membership_end_waits(m, event->err); break;
  case LK_MEMBERSHIP_EVENT_LEFT:
  case LK_MEMBERSHIP_EVENT_NAME_TAKEN: break;
  }
}

static void begin_join(lk_blocking_call *b)
{
  join_call *join = LK_OWNER(b, join_call, wait.call);
  lk_sync_membership *m = join->membership;
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = m->source == NULL ? LK_ERR_CLOSED : lk_membership_join(m->source);
  if (err != 0 || lk_membership_has_joined(m->source))
    lk__blocking_call_complete(b, err);
  else
    lk__wait_add(&join->wait, &m->waiting);
}

/** A call that the thread of the handle completes at once. */
typedef struct membership_call {
  lk_blocking_call call;
  lk_sync_membership *membership;
  lk_bytes data; /* for lk_sync_membership_set_data() */
  /* For the constructor. */
  const char *path;
  const char *name;
  const lk_membership_config *config;
} membership_call;

static void begin_new(lk_blocking_call *b)
{
  membership_call *call = LK_OWNER(b, membership_call, call);
  lk_sync_membership *m = call->membership;
  int err = lk__blocking_call_refusal(b);

  if (err == 0)
    err = lk_membership_new(&m->source, m->client->client, call->path,
                            call->name, call->config);
  if (err == 0)
    m->path = lk_membership_path(m->source);
  lk__blocking_call_complete(b, err);
}

static void begin_leave(lk_blocking_call *b)
{
  lk_sync_membership *m = LK_OWNER(b, membership_call, call)->membership;

  lk_membership_leave(m->source);
  membership_end_waits(m, LK_ERR_CANCELLED);
  lk__blocking_call_complete(b, 0);
}

static void begin_set_data(lk_blocking_call *b)
{
  const membership_call *call = LK_OWNER(b, membership_call, call);

  lk__blocking_call_complete(
      b, lk_membership_set_data(call->membership->source, call->data));
}

static void begin_free(lk_blocking_call *b)
{
  lk_sync_membership *m = LK_OWNER(b, membership_call, call)->membership;

  lk_membership_free(m->source);
  m->source = NULL;
  membership_end_waits(m, LK_ERR_CLOSED);
  lk__blocking_call_complete(b, 0);
}

/* ---- callers ------------------------------------------------------------- */

static int check_new(lk_sync_membership **out, const lk_sync_client *c,
                     const char *path)
{
  if (out == NULL)
    return LK_ERR_BAD_ARGUMENT;
  *out = NULL;
  int err = lk__sync_refusal(c);

  return err == 0 && path == NULL ? LK_ERR_BAD_PATH : err;
}

static int membership_make(lk_sync_membership **out, lk_sync_client *c,
                           membership_call *call,
                           const lk_sync_membership_config *options)
{
  lk_sync_membership *m = lk__mem_new(&c->mem, sizeof *m);

  if (m == NULL)
    return LK_ERR_NO_MEMORY;
  const lk_membership_config source = {.size = sizeof source,
                                       .data = options->data,
                                       .acl = options->acl,
                                       .parent_acl = options->parent_acl,
                                       .persistent_parents =
                                           options->persistent_parents,
                                       .on_event = on_membership_event,
                                       .arg = m};

  m->client = c;
  m->on_event = options->on_event;
  m->arg = options->arg;
  atomic_init(&m->has_joined, false);
  lk__list_init(&m->waiting);
  call->membership = m;
  call->config = &source;
  int err = lk__blocking_call_do(&call->call, c, begin_new);

  if (err != 0)
    lk__mem_free(&c->mem, m);
  else
    *out = m;
  return err;
}

int lk_sync_membership_new(lk_sync_membership **out, lk_sync_client *c,
                           const char *path, const char *name,
                           const lk_sync_membership_config *config)
{
  static const lk_sized_struct sized =
      LK_SIZED_STRUCT(lk_sync_membership_config);
  membership_call call = {.path = path, .name = name};
  lk_sync_membership_config options;
  int err = check_new(out, c, path);

  if (err == 0)
    err = lk__sync_copy_options(c, &sized, &options, config);
  return err != 0 ? err : membership_make(out, c, &call, &options);
}

int lk_sync_membership_free(lk_sync_membership *m)
{
  membership_call call = {.membership = m};

  if (m == NULL)
    return 0;
  int err = lk__blocking_call_do(&call.call, m->client, begin_free);

  if (err != 0)
    return lk__sync_free_result(m->client, err, "lk_sync_membership_free");
  lk__sync_await_calls(m->client, &m->calls_inside);
  lk__mem_free(&m->client->mem, m);
  return 0;
}

int lk_sync_membership_join(lk_sync_membership *m, const lk_sync_call *call)
{
  join_call join = {.membership = m};

  if (m == NULL)
    return LK_ERR_BAD_ARGUMENT;
  return lk__wait_do(&join.wait, m->client, &m->calls_inside, call, begin_join);
}

int lk_sync_membership_leave(lk_sync_membership *m)
{
  membership_call call = {.membership = m};

  return lk__blocking_call_do(&call.call, m == NULL ? NULL : m->client,
                              begin_leave);
}

int lk_sync_membership_set_data(lk_sync_membership *m, lk_bytes data)
{
  membership_call call = {.membership = m, .data = data};

  return lk__blocking_call_do(&call.call, m == NULL ? NULL : m->client,
                              begin_set_data);
}

bool lk_sync_membership_has_joined(const lk_sync_membership *m)
{
  return m != NULL && !lk__driver_in_child(&m->client->driver) &&
         atomic_load(&m->has_joined);
}

const char *lk_sync_membership_path(const lk_sync_membership *m)
{
  return m == NULL ? NULL : m->path;
}
