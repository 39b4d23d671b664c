/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/locks/contenders.h"
#include "cli/run/runner.h"

/**
 * @file
 * Warns if LOCK is used without -p by others. A semaphore of Curator's layout
 * has its nodes below LOCK/locks and LOCK/leases, so its contender does not see
 * the nodes of a mutex or a read-write lock, which are children of LOCK. In
 * other layouts the library finds such nodes.
 */

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

void cli_run_check_other_kind(cli_runner *r)
{
  lk_call call = {.size = sizeof call, .repeat = true};
  bool is_curator_semaphore =
      r->options->permits > 0 && r->options->layout == LK_LAYOUT_CURATOR;

  if (is_curator_semaphore)
    (void)lk_get_children(r->session.client, r->path, &call,
                          on_children_of_lock, r);
}
