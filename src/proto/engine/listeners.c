/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"

/* A notification of all listeners in one list. It skips listeners that are
 * detached while it runs, and does not notify those that are attached behind
 * `last` meanwhile. A listener may close the client, which begins another
 * notification inside this one. */
typedef struct lk_notification {
  int list;
  lk_listener *next;             /* the next to be notified; NULL: no more */
  lk_listener *last;             /* the last to be notified */
  struct lk_notification *outer; /* the notification during which this one
                                    began, or NULL */
} lk_notification;

_Static_assert(sizeof((lk_listener *)0)->in_list /
                       sizeof((lk_listener *)0)->in_list[0] ==
                   LK_LISTENER_LISTS,
               "a listener has links for each list");

static void begin_notification(lk_client *c, lk_notification *n, int list)
{
  *n = (lk_notification){list, c->listeners.lists[list].first,
                         c->listeners.lists[list].last, c->listeners.notifying};
  c->listeners.notifying = n;
}

/* The next one, or NULL at the end. */
static lk_listener *listener_behind(const lk_notification *n,
                                    const lk_listener *l)
{
  return l == n->last ? NULL : l->in_list[n->list].next;
}

static lk_listener *next_listener(lk_notification *n)
{
  lk_listener *l = n->next;

  if (l != NULL)
    n->next = listener_behind(n, l);
  return l;
}

/* Do not notify `l` any more: it is being detached. */
static void skip_listener(lk_client *c, const lk_listener *l)
{
  for (lk_notification *n = c->listeners.notifying; n != NULL; n = n->outer) {
    if (n->next == l)
      n->next = listener_behind(n, l);
    else if (n->last == l)
      n->last = l->in_list[n->list].prev;
  }
}

static bool is_in_list(const lk_client *c, const lk_listener *l, int list)
{
  return l->in_list[list].prev != NULL || c->listeners.lists[list].first == l;
}

static void add_to_list(lk_client *c, lk_listener *l, int list)
{
  lk_listener *last = c->listeners.lists[list].last;

  l->in_list[list].next = NULL;
  l->in_list[list].prev = last;
  if (last == NULL)
    c->listeners.lists[list].first = l;
  else
    last->in_list[list].next = l;
  c->listeners.lists[list].last = l;
}

static void add_to_front(lk_client *c, lk_listener *l, int list)
{
  lk_listener *first = c->listeners.lists[list].first;

  l->in_list[list].next = first;
  l->in_list[list].prev = NULL;
  if (first == NULL)
    c->listeners.lists[list].last = l;
  else
    first->in_list[list].prev = l;
  c->listeners.lists[list].first = l;
}

static void remove_from_list(lk_client *c, lk_listener *l, int list)
{
  lk_listener *next = l->in_list[list].next, *prev = l->in_list[list].prev;

  if (prev == NULL)
    c->listeners.lists[list].first = next;
  else
    prev->in_list[list].next = next;
  if (next == NULL)
    c->listeners.lists[list].last = prev;
  else
    next->in_list[list].prev = prev;
  l->in_list[list].next = NULL;
  l->in_list[list].prev = NULL;
}

void lk_client_attach(lk_client *c, lk_listener *l)
{
  memset(l->in_list, 0, sizeof l->in_list);
  add_to_list(c, l, LK_LISTENERS_ALL);
  if (l->reply != NULL)
    add_to_list(c, l, LK_LISTENERS_OF_REPLIES);
}

void lk__client_attach_first(lk_client *c, lk_listener *l)
{
  memset(l->in_list, 0, sizeof l->in_list);
  add_to_front(c, l, LK_LISTENERS_ALL);
  if (l->reply != NULL)
    add_to_front(c, l, LK_LISTENERS_OF_REPLIES);
}

void lk_client_detach(lk_client *c, lk_listener *l)
{
  skip_listener(c, l);
  for (int list = 0; list < LK_LISTENER_LISTS; list++)
    if (is_in_list(c, l, list))
      remove_from_list(c, l, list);
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
  begin_notification(c, &n, LK_LISTENERS_ALL);
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
  if (c->listeners.lists[LK_LISTENERS_OF_REPLIES].first == NULL)
    return; /* a client without locks usually has none */
  begin_notification(c, &n, LK_LISTENERS_OF_REPLIES);
  for (lk_listener *l; (l = next_listener(&n)) != NULL;) {
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
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
  begin_notification(c, &n, LK_LISTENERS_ALL);
  for (lk_listener *l; (l = next_listener(&n)) != NULL;) {
    lk__invariants_check(c, LK_MOMENT_CALLBACK);
    if (l->closing != NULL)
      l->closing(c, l->arg);
  }
  c->listeners.notifying = n.outer;
}
