/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/members/member.h"

/* ---- lifetime and events ------------------------------------------------- */

void lk__membership_ref(lk_membership *m)
{
  m->refs++;
}

void lk__membership_unref(lk_membership *m)
{
  lk_mem mem = m->mem;

  if (--m->refs > 0)
    return;
  lk__mem_free(&mem, m->acl);
  lk__mem_free(&mem, m->parent_acl);
  lk__mem_free(&mem, m->data);
  lk__mem_free(&mem, m);
}

void lk__membership_notify(lk_membership *m, lk_membership_event event)
{
  if (m->on_event != NULL && !m->freed)
    m->on_event(m, &event, m->arg);
}

void lk__membership_joined(lk_membership *m, int64_t czxid)
{
  m->joined = true;
  m->node.czxid = czxid;
  m->node.name_taken = false;
  m->undisturbed_since_ms = lk_client_clock(m->client);
  m->node.directory_made = false;
  lk__membership_notify(
      m,
      (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_JOINED, .zxid = czxid});
}

void lk__membership_left(lk_membership *m, int err)
{
  if (!m->joined)
    return;
  m->joined = false;
  lk__membership_notify(
      m, (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_LEFT, .err = err});
}

/* ---- the client ---------------------------------------------------------- */

void lk__membership_stop_watch(lk_membership *m)
{
  lk_subscription_free(m->node.watch);
  m->node.watch = NULL;
  m->node.name_taken = false;
}

void lk__membership_leave_client(lk_membership *m)
{
  if (m->client == NULL)
    return;
  lk__retry_pause_stop(&m->pause, m->client);
  lk__membership_stop_watch(m);
  lk_client_detach(m->client, &m->listener);
  m->client = NULL;
  lk__membership_unref(m);
}

void lk__membership_end(lk_membership *m, int err)
{
  bool wanted = m->wanted;

  m->wanted = false;
  m->end_err = err;
  lk__membership_leave_client(m);
  lk__membership_left(m, err);
  if (wanted)
    lk__membership_notify(
        m,
        (lk_membership_event){.type = LK_MEMBERSHIP_EVENT_ENDED, .err = err});
}
