/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"

/* A notification of all listeners. It skips listeners that are detached while
 * it runs, and does not notify those that are attached behind `last` meanwhile.
 * A listener may close the client, which begins another notification inside
 * this one. */
typedef struct lk_notification {
  lk_listener *next;             /* the next to be notified; NULL: no more */
  lk_listener *last;             /* the last to be notified */
  struct lk_notification *outer; /* the notification during which this one
                                    began, or NULL */
} lk_notification;

static void begin_notification(lk_client *c, lk_notification *n)
{
  *n = (lk_notification){c->listeners.first, c->listeners.last,
                         c->listeners.notifying};
  c->listeners.notifying = n;
}

static lk_listener *next_listener(lk_notification *n)
{
  lk_listener *l = n->next;

  if (l != NULL)
    n->next = l == n->last ? NULL : l->next;
  return l;
}

/* Do not notify `l` any more: it is being detached. */
static void skip_listener(lk_client *c, const lk_listener *l)
{
  for (lk_notification *n = c->listeners.notifying; n != NULL; n = n->outer) {
    if (n->next == l)
      n->next = l == n->last ? NULL : l->next;
    else if (n->last == l)
      n->last = l->prev;
  }
}

void lk_client_attach(lk_client *c, lk_listener *l)
{
  l->next = NULL;
  l->prev = c->listeners.last;
  if (l->prev == NULL)
    c->listeners.first = l;
  else
    l->prev->next = l;
  c->listeners.last = l;
}

void lk_client_detach(lk_client *c, lk_listener *l)
{
  if (l->prev == NULL && c->listeners.first != l)
    return; /* it is not attached */
  skip_listener(c, l);
  if (l->prev == NULL)
    c->listeners.first = l->next;
  else
    l->prev->next = l->next;
  if (l->next == NULL)
    c->listeners.last = l->prev;
  else
    l->next->prev = l->prev;
  l->next = NULL;
  l->prev = NULL;
}

static bool is_without_session(lk_state state)
{
  return state == LK_STATE_EXPIRED || state == LK_STATE_AUTH_FAILED ||
         state == LK_STATE_CLOSED;
}

void lk__client_enter_state(lk_client *c, lk_state state, int err)
{
  lk_notification n;

  c->session.state = state;
  if (is_without_session(state))
    lk__evidence_clear(&c->evidence);
  begin_notification(c, &n);
  for (lk_listener *l; (l = next_listener(&n)) != NULL;) {
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    if (l->state != NULL)
      l->state(c, state, err, l->arg);
  }
  c->listeners.notifying = n.outer;
}

void lk__client_notify_reply(lk_client *c, const lk_reply *reply)
{
  lk_notification n;

  if (!c->close.begun)
    lk__evidence_add(&c->evidence, reply, c->session.timeout_ms);
  if (c->listeners.first == NULL)
    return; /* a client without locks usually has no listeners */
  begin_notification(c, &n);
  for (lk_listener *l; (l = next_listener(&n)) != NULL;) {
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    if (l->reply != NULL)
      l->reply(c, reply, l->arg);
  }
  c->listeners.notifying = n.outer;
}

void lk__client_notify_closing(lk_client *c)
{
  lk_notification n;

  /* c->close.begun is set, so lk__client_notify_reply() adds no more evidence.
   */
  lk__evidence_clear(&c->evidence);
  begin_notification(c, &n);
  for (lk_listener *l; (l = next_listener(&n)) != NULL;) {
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    if (l->closing != NULL)
      l->closing(c, l->arg);
  }
  c->listeners.notifying = n.outer;
}
