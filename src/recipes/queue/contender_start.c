/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/lease/session_lease.h"
#include "recipes/queue/contender_session.h"
#include "recipes/queue/contender_start.h"
#include "recipes/queue/contender_step.h"
#include "recipes/queue/place_lost.h"
#include "recipes/queue/retry_backoff.h"

/* ---- functions of lk_acquisition_kind ----------------------------------- */

static lk_contender *contender_of(lk_acquisition *a)
{
  return a->parts[0];
}

static void contender_begin(lk_acquisition *a)
{
  lk__contender_begin(contender_of(a));
}

static void contender_stop(lk_acquisition *a, bool report_gone)
{
  lk__contender_stop(contender_of(a), report_gone);
}

static void contender_remove_callbacks(lk_acquisition *a)
{
  contender_of(a)->callbacks = NULL;
}

static void contender_ref(lk_acquisition *a)
{
  lk__contender_ref(contender_of(a));
}

static void contender_unref(lk_acquisition *a)
{
  lk__contender_unref(contender_of(a));
}

static const lk_acquisition_kind acquisition_of_one_node = {
    .begin = contender_begin,
    .stop = contender_stop,
    .remove_callbacks = contender_remove_callbacks,
    .ref = contender_ref,
    .unref = contender_unref};

/* ---- creation ----------------------------------------------------------- */

static void on_pause_end(lk_client *c, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  lk__contender_ref(ct);
  if (lk__lease_is_online(ct->lease))
    lk__contender_resume(ct);
  lk__contender_unref(ct);
}

lk_contender *lk__contender_new(lk_session_lease *lease,
                                const lk_contender_config *config,
                                const lk_acquisition_callbacks *callbacks,
                                void *arg)
{
  const char *name =
      config->name == NULL ? config->role->kind->text : config->name;
  size_t size =
      lk__own_node_size(config->identity, config->dir, name, config->data);
  lk_contender *ct = lk__mem_new(&lease->mem, sizeof *ct + size);

  if (ct == NULL)
    return NULL;
  ct->self = ct;
  ct->acquisition = (lk_acquisition){.kind = &acquisition_of_one_node,
                                     .held_with_parts = true,
                                     .parts = &ct->self,
                                     .count = 1};
  ct->lease = lease;
  ct->refs = 1;
  ct->callbacks = callbacks;
  ct->callbacks_arg = arg;
  ct->config = config;
  ct->role = config->role;
  ct->machine = config->machine;
  ct->state = LK_CONTENDER_IDLE;
  ct->pause.timer.fire = on_pause_end;
  ct->pause.timer.arg = ct;
  char *behind_struct = (char *)(ct + 1);

  lk__own_node_init(&ct->own, behind_struct, config->identity, config->dir,
                    name, config->data);
  lk__contender_prepare_create(ct);
  ct->lease_user.kind = &lk__contender_lease_user;
  lk__lease_add_user(lease, &ct->lease_user);
  return ct;
}

/* ---- IDLE, PAUSED ------------------------------------------------------- */

/* Whether to list the queue or to create the own node first. No list is needed
 * if a joint acquisition has sent the create already, or if this contender
 * downgrades a writer of the same owner. */
static lk_contender_event contender_first_event(const lk_contender *ct)
{
  bool lists_first = ct->machine->reads_first(ct) &&
                     ct->own.state == LK_OWN_NONE &&
                     ct->downgrade.writer == NULL;

  return lists_first ? LK_CONTENDER_ON_LIST_FIRST : LK_CONTENDER_ON_START;
}

void lk__contender_begin(lk_contender *ct)
{
  if (lk__lease_is_online(ct->lease))
    lk__contender_step(ct, contender_first_event(ct));
  else
    lk__contender_step(ct, LK_CONTENDER_ON_PAUSE);
}

static void contender_resume(lk_contender *ct)
{
  lk__lease_stop_timer(ct->lease, &ct->pause.timer);
  ct->round.checked = false;
  switch (ct->own.state) {
  case LK_OWN_NONE: lk__contender_step(ct, contender_first_event(ct)); break;
  case LK_OWN_IN_DOUBT:
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_IN_DOUBT);
    break;
  case LK_OWN_CREATED:
    lk__contender_step(ct, LK_CONTENDER_ON_OWN_EXISTS);
    break;
  case LK_OWN_REQUESTED: /* wait for the reply to the create */
    lk__contender_start_pause(ct, lk__contender_backoff_ms(ct));
    break;
  }
}

const lk_contender_rules lk__rules_idle = {
    .next = {LK_ON(START, CREATING), LK_ON(LIST_FIRST, LISTING_FIRST),
             LK_ON_ANY_BEFORE_GRANT}};

/* LIST_NEEDED stays: the last read of a recovery may complete after the
 * connection loss has paused the contender. The next connection lists. */
const lk_contender_rules lk__rules_paused = {
    .next = {LK_ON(START, CREATING), LK_ON(LIST_FIRST, LISTING_FIRST),
             LK_ON(OWN_IN_DOUBT, RECOVERING), LK_ON(OWN_EXISTS, LISTING),
             LK_ON(LIST_NEEDED, STAY), LK_ON_ANY_IN_QUEUE},
    .resume = contender_resume};
