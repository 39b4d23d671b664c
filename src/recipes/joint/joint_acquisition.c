/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/joint/joint_acquisition.h"
#include "recipes/queue/contender_start.h"
#include "recipes/queue/contender_step.h"

#include "base/mem.h"

enum { MAX_MISSES = 3 };

/* ---- life -------------------------------------------------------------- */

size_t lk__joint_room(size_t count)
{
  return count * (sizeof(lk_joint_member) + sizeof(lk_contender *));
}

void lk__joint_init(lk_joint_acquisition *g, const lk_joint_kind *kind,
                    lk_session_lease *lease,
                    const lk_acquisition_callbacks *callbacks, void *arg,
                    void *room, size_t count)
{
  g->kind = kind;
  g->lease = lease;
  lk__lease_ref(lease);
  g->refs = 1;
  g->callbacks = callbacks;
  g->callbacks_arg = arg;
  g->members = room;
  for (size_t i = 0; i < count; i++)
    g->members[i] = (lk_joint_member){g, i};
  g->acquisition.kind = &kind->acquisition;
  g->acquisition.parts = (lk_contender **)(void *)(g->members + count);
}

void lk__joint_ref(lk_joint_acquisition *g)
{
  g->refs++;
}

void lk__joint_unref(lk_joint_acquisition *g)
{
  lk_session_lease *lease = g->lease;

  if (--g->refs > 0)
    return;
  for (size_t i = 0; i < g->acquisition.count; i++)
    lk__contender_unref(g->acquisition.parts[i]);
  lk__mem_free(&lease->mem, g);
  lk__lease_unref(lease);
}

/* ---- contenders -------------------------------------------------------- */

lk_contender *lk__joint_add(lk_joint_acquisition *g,
                            const lk_contender_config *config,
                            const lk_acquisition_callbacks *callbacks)
{
  lk_acquisition *a = &g->acquisition;
  lk_contender *ct =
      lk__contender_new(g->lease, config, callbacks, &g->members[a->count]);

  if (ct == NULL)
    return NULL;
  lk__contender_ref(ct);
  a->parts[a->count++] = ct;
  return ct;
}

void lk__joint_stop_members(lk_joint_acquisition *g, bool report_gone)
{
  for (size_t i = 0; i < g->acquisition.count; i++) {
    if (g->acquisition.parts[i]->callbacks != NULL)
      lk__contender_stop(g->acquisition.parts[i], report_gone);
  }
}

void lk__joint_member_gone(void *arg, int err)
{
  lk_joint_member *member = arg;
  lk_joint_acquisition *g = member->joint;
  const lk_acquisition_callbacks *callbacks = g->callbacks;

  if (err != 0)
    g->left_err = err;
  if (--g->leaving == 0) {
    g->callbacks = NULL;
    if (callbacks != NULL)
      callbacks->gone(g->callbacks_arg, g->left_err);
  }
  lk__joint_unref(g);
}

/* ---- end ---------------------------------------------------------------- */

/* The contenders are not freed: active calls may still use them. */
static void joint_close(lk_joint_acquisition *g, bool report_gone)
{
  g->over = true;
  g->kind->close(g);
  lk__joint_stop_members(g, report_gone);
  g->kind->closed(g);
}

void lk__joint_end(lk_joint_acquisition *g, int err)
{
  const lk_acquisition_callbacks *callbacks = g->callbacks;
  void (*report)(void *arg, int err) = NULL;

  if (g->over)
    return;
  if (callbacks != NULL)
    report = g->acquisition.whole ? callbacks->lost : callbacks->ended;
  g->callbacks = NULL;
  joint_close(g, false);
  if (report != NULL)
    report(g->callbacks_arg, err);
  lk__joint_unref(g);
}

bool lk__joint_may_begin_again(lk_joint_acquisition *g, int err)
{
  if (g->lease->over != 0)
    return false;
  return err == LK_ERR_SESSION_EXPIRED ? !g->fail_on_expiry
                                       : ++g->misses < MAX_MISSES;
}

/* ---- notices ------------------------------------------------------------- */

void lk__joint_notify(lk_joint_acquisition *g, const lk_notice *notice)
{
  if (g->callbacks != NULL)
    g->callbacks->notice(g->callbacks_arg, notice);
}

void lk__joint_notify_whole(lk_joint_acquisition *g, lk_notice_type type)
{
  lk_notice notice = {.type = type,
                      .deadline_ms = lk__acquisition_deadline(&g->acquisition)};

  lk__joint_notify(g, &notice);
}

void lk__joint_notify_revoked(lk_joint_acquisition *g)
{
  lk_notice notice = {.type = LK_NOTICE_REVOKED};
  bool some = false;

  for (size_t i = 0; i < g->acquisition.count; i++)
    some = some || g->acquisition.parts[i]->holding.revoked;
  if (!some || !g->acquisition.whole || g->over || g->revoked)
    return;
  g->revoked = true;
  lk__joint_notify(g, &notice);
}

void lk__joint_member_unsure(lk_joint_acquisition *g)
{
  if (!g->acquisition.whole || g->unsure)
    return;
  g->unsure = true;
  lk__joint_notify_whole(g, LK_NOTICE_UNSURE);
}

void lk__joint_member_proven(lk_joint_acquisition *g)
{
  if (!g->acquisition.whole) {
    g->kind->try_grant(g);
  } else if (g->unsure && !lk__acquisition_is_unsure(&g->acquisition)) {
    g->unsure = false;
    lk__joint_notify_whole(g, LK_NOTICE_LEASE_PROVEN);
  }
}

/* ---- as an acquisition --------------------------------------------------- */

static lk_joint_acquisition *joint_of(lk_acquisition *a)
{
  return (lk_joint_acquisition *)(void *)a;
}

void lk__joint_stop(lk_acquisition *a, bool report_gone)
{
  lk_joint_acquisition *g = joint_of(a);

  lk__joint_ref(g);
  if (!report_gone)
    g->callbacks = NULL;
  g->leaving = report_gone ? a->count : 0;
  g->refs += g->leaving;
  joint_close(g, report_gone);
  lk__joint_unref(g);
  lk__joint_unref(g);
}

void lk__joint_remove_callbacks(lk_acquisition *a)
{
  joint_of(a)->callbacks = NULL;
}

void lk__joint_ref_acquisition(lk_acquisition *a)
{
  lk__joint_ref(joint_of(a));
}

void lk__joint_unref_acquisition(lk_acquisition *a)
{
  lk__joint_unref(joint_of(a));
}
