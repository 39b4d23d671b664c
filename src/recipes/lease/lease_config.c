/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/call.h"
#include "recipes/lease/client_events.h"
#include "recipes/lease/heartbeat.h"
#include "recipes/lease/lease_config.h"
#include "recipes/lease/lease_watchdog.h"

/* ---- creation ----------------------------------------------------------- */

/* The client is being freed and gives back its reference. The session lease
 * remains until its last user ends, and must not use the client any more. */
static void on_client_freed(lk_session_lease *lease)
{
  lease->life.detached = true;
  lk__lease_unref(lease);
}

/* NULL: no memory. */
static lk_session_lease *lease_new(lk_client *c, const lk_lease_config *config)
{
  const lk_mem *mem = lk_client_mem(c);
  lk_session_lease *lease = lk__mem_new(mem, sizeof *lease);

  if (lease == NULL)
    return NULL;
  lease->mem = *mem;
  lease->client = c;
  lease->config = *config;
  lease->margin_ms = config->margin_ms;
  lease->refs = 1; /* the client's, see on_client_freed() */
  lease->watchdog_due_ms = INT64_MAX;
  lk__list_init(&lease->queues.local);
  lk__list_init(&lease->life.close_hooks);
  lk__safe_list_init(&lease->users);
  lease->watchdog = (lk_timer){.fire = lk__watchdog_on_timer, .arg = lease};
  lease->heartbeat.timer =
      (lk_timer){.fire = lk__heartbeat_on_timer, .arg = lease};
  lk__client_set_evidence_gap(c, config->gap_ms);
  lease->evidence = lk__client_evidence(c);
  lk__lease_attach_client(lease);
  lease->known_deadline_ms = lk__lease_deadline(lease);
  lease->known_timeout_ms = lease->evidence->timeout_ms;
  lk__client_set_lease(c, lease, on_client_freed);
  return lease;
}

lk_session_lease *lk__lease_of(lk_client *c)
{
  static const lk_lease_config defaults = {.size = sizeof defaults};
  lk_session_lease *lease = lk__client_lease(c);

  return lease == NULL ? lease_new(c, &defaults) : lease;
}

/* ---- public functions --------------------------------------------------- */

static bool assurance_is_valid(lk_assurance assurance)
{
  return assurance == LK_ASSURE_QUORUM || assurance == LK_ASSURE_SYNC ||
         assurance == LK_ASSURE_PING;
}

static bool lease_config_is_valid(const lk_lease_config *config)
{
  return config->margin_ms >= 0 && config->gap_ms >= 0 &&
         assurance_is_valid(config->assurance);
}

static bool lease_configs_are_equal(const lk_lease_config *a,
                                    const lk_lease_config *b)
{
  return a->assurance == b->assurance && a->margin_ms == b->margin_ms &&
         a->gap_ms == b->gap_ms && a->left_behind == b->left_behind &&
         a->arg == b->arg;
}

int lk_lease_configure(lk_client *c, const lk_lease_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_lease_config);
  const lk_session_lease *lease = lk__client_lease(c);
  lk_lease_config copy;

  if (lk__config_copy(c, &sized, &copy, config) != 0 ||
      !lease_config_is_valid(&copy))
    return LK_ERR_BAD_ARGUMENT;
  if (lease != NULL)
    return lease_configs_are_equal(&lease->config, &copy) ? 0 : LK_ERR_STATE;
  return lease_new(c, &copy) == NULL ? LK_ERR_NO_MEMORY : 0;
}

int64_t lk_lease_deadline(const lk_client *c)
{
  const lk_session_lease *lease = lk__client_lease(c);

  if (lk__client_is_forked(c))
    return LK_NO_LEASE;
  if (lease == NULL) /* the default assurance applies */
    return lk__evidence_deadline(lk__client_evidence(c), LK_ASSURE_QUORUM);
  return lk__lease_deadline(lease);
}

int lk_lease_set_margin(lk_client *c, int32_t margin_ms)
{
  if (margin_ms < 0)
    return LK_ERR_BAD_ARGUMENT;
  lk_session_lease *lease = lk__lease_of(c);

  if (lease == NULL)
    return LK_ERR_NO_MEMORY;
  lease->margin_ms = margin_ms;
  lk__watchdog_review_soon(lease);
  return 0;
}

size_t lk_lease_pending_cleanups(const lk_client *c)
{
  const lk_session_lease *lease = lk__client_lease(c);

  return lease == NULL ? 0 : lease->count[LK_LEASE_CLEANUP];
}
