/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/members/member_node.h"
#include "recipes/members/member_requests.h"
#include "recipes/members/member_step.h"

/*
 * The next request of a member. Requests are sent only while there is a
 * connection: what a reply has shown is then true of the present session. After
 * a lost connection the member looks at the node, behind a transaction, before
 * it writes or deletes it, since another client may have made it anew.
 */

/* The node of an earlier session is gone, or not the own one any more. */
static void membership_begin_session(lk_membership *m, int64_t session)
{
  if (m->node.session == session)
    return;
  m->node.session = session;
  m->node.may_exist = false;
  m->node.seen_on = 0;
}

static bool membership_has_seen_node(const lk_membership *m)
{
  return m->node.seen_on == lk_client_connection(m->client);
}

static int membership_leave_step(lk_membership *m)
{
  if (!m->node.may_exist)
    return 0;
  return membership_has_seen_node(m) ? lk__membership_delete_node(m)
                                     : lk__membership_look(m);
}

static int membership_join_step(lk_membership *m)
{
  if (m->node.may_exist && !m->joined)
    return lk__membership_look(m);
  /* A watch without an own node is of another's node, whose end is awaited. */
  return m->node.watch == NULL ? lk__membership_create_node(m) : 0;
}

static int membership_stay_step(lk_membership *m)
{
  int err = m->node.watch == NULL ? lk__membership_watch(m) : 0;

  if (err != 0 || !m->data_changed)
    return err;
  return membership_has_seen_node(m) ? lk__membership_write_data(m)
                                     : lk__membership_look(m);
}

int lk__membership_step(lk_membership *m)
{
  if (m->busy || m->pause.running ||
      lk_client_state(m->client) != LK_STATE_CONNECTED)
    return 0;
  membership_begin_session(m, lk_client_session(m->client).id);
  if (!m->wanted)
    return membership_leave_step(m);
  return m->joined ? membership_stay_step(m) : membership_join_step(m);
}

/* A member that was freed has no client any more when nothing is left to do. */
static void membership_finish_if_done(lk_membership *m)
{
  if (m->freed && !m->busy && !m->node.may_exist)
    lk__membership_leave_client(m);
}

void lk__membership_step_or_retry(lk_membership *m)
{
  int err = m->client == NULL ? 0 : lk__membership_step(m);

  if (err != 0)
    lk__membership_retry(m, err);
  membership_finish_if_done(m);
}
