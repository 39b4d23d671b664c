/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/locks/contenders.h"
#include "cli/run/runner.h"

/**
 * @file
 * Warns if other clients use LOCK with other options than this one: another
 * kind of lock or layout, or another number of permits.
 */

/* In Curator's layout a semaphore has its nodes below LOCK/locks and
   LOCK/leases, and the number of permits is in none of them. */
static bool is_curator_semaphore(const cli_runner *r)
{
  return r->options->permits > 0 && r->options->layout == LK_LAYOUT_CURATOR;
}

/* ---- another kind of lock ------------------------------------------------ */

void cli_run_warn_mixed_queue(cli_runner *r, const char *node)
{
  cli_events_notice(&r->events,
                    "warning: %s belongs to another kind of lock or another "
                    "--layout, and perhaps does not wait for this lock; use "
                    "the same options everywhere, or another path",
                    node);
}

static void on_children_of_lock(lk_client *c, int err, const lk_bytes *names,
                                size_t count, const lk_stat *stat, void *arg)
{
  cli_runner *r = arg;

  (void)c;
  (void)stat;
  if (err != 0)
    return;
  for (size_t i = 0; i < count; i++) {
    if (!cli_is_sequential_name(names[i]))
      continue;
    cli_text node = {0};

    cli_text_printf(&node, "%s/", r->path);
    cli_text_add_printable(&node, names[i]);
    const char *path = cli_text_end(&node);

    cli_run_warn_mixed_queue(r, path == NULL ? r->path : path);
    cli_text_free(&node);
    return;
  }
}

/* The contender of a semaphore does not see the nodes of a mutex or a
   read-write lock, which are children of LOCK. In other layouts the library
   finds such nodes. */
void cli_run_check_other_kind(cli_runner *r)
{
  lk_call call = {.size = sizeof call, .repeat = true};

  if (is_curator_semaphore(r))
    (void)lk_get_children(r->session.client, r->path, &call,
                          on_children_of_lock, r);
}

/* ---- another number of permits ------------------------------------------- */

/* The first contender has created its own permits while it waits. So there
   should be at most these and the -p permits of others. More exist for a moment
   when a contender arrives: it creates its contender node and its permits at
   once, and deletes the permits if it is not the first. So the warning is only
   printed if the list is the same a second later. */

enum { CHECK_INTERVAL_MS = 1000, MAX_CHECKS = 10 };

static void on_permit_names(lk_client *c, int err, const lk_bytes *names,
                            size_t count, const lk_stat *stat, void *arg)
{
  cli_runner *r = arg;
  int32_t take =
      r->options->permits_to_take > 0 ? r->options->permits_to_take : 1;
  int64_t max_expected = (int64_t)r->options->permits + take;

  (void)c;
  (void)names;
  if (err != 0 || r->phase != CLI_PHASE_ACQUIRING)
    return;
  bool unchanged = stat->pzxid == r->permits_pzxid;

  r->permits_pzxid = stat->pzxid;
  if ((int64_t)count <= max_expected)
    return;
  if (!unchanged) {
    cli_run_check_permits_later(r);
    return;
  }
  r->permit_checks = MAX_CHECKS; /* warns once */
  cli_events_notice(&r->events,
                    "warning: %s: other clients hold %zu permits, but -p says "
                    "%d; all clients must use the same number",
                    r->path, count - (size_t)take, (int)r->options->permits);
}

static void on_permit_check_timer(lk_loop_timer *t)
{
  cli_runner *r = LK_OWNER(t, cli_runner, timer);
  lk_call call = {.size = sizeof call, .repeat = true};
  cli_text text = {0};

  cli_text_printf(&text, "%s/leases", r->path);
  const char *path = cli_text_end(&text);

  if (path != NULL && r->phase == CLI_PHASE_ACQUIRING)
    (void)lk_get_children(r->session.client, path, &call, on_permit_names, r);
  cli_text_free(&text);
}

void cli_run_check_permits_later(cli_runner *r)
{
  /* With -n the timer limits the wait for a reply. */
  if (!is_curator_semaphore(r) || r->options->wait_ms == 0 ||
      r->permit_checks >= MAX_CHECKS)
    return;
  r->permit_checks++;
  r->timer.on_timer = on_permit_check_timer;
  lk__loop_set_timer(r->session.loop, &r->timer, CHECK_INTERVAL_MS);
}
