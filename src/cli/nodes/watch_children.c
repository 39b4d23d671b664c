/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/subscribe.h>

#include "cli/nodes/child_names.h"
#include "cli/nodes/watch_children.h"
#include "cli/output/exit_code.h"
#include "cli/output/system_clocks.h"
#include "cli/session/follow.h"

/* Appends one object in a line. */
static void add_children_json(cli_text *out, const char *path, bool missing,
                              const lk_bytes *names, size_t count)
{
  cli_json j = {.out = out};

  cli_json_open(&j, NULL, '{');
  cli_json_text(&j, "path", lk_text(path));
  cli_json_bool(&j, "missing", missing);
  cli_json_time(&j, "time", cli_wall_ms());
  cli_child_names_json(&j, "children", names, count);
  cli_json_close(&j, '}');
  cli_text_puts(out, "\n");
}

/* Appends the names, one a line, and an empty line. */
static void add_children_text(cli_text *out, const lk_bytes *names,
                              size_t count)
{
  cli_child_names_text(out, names, count);
  cli_text_puts(out, "\n");
}

/* A missing node is reported as an empty list. */
static void on_watched_children(lk_subscription *s, int err,
                                const lk_bytes *names, size_t count,
                                const lk_stat *stat, void *arg)
{
  cli_follow *f = arg;
  bool missing = err == LK_ERR_NO_NODE;
  cli_text report = {0};

  (void)s;
  (void)stat;
  if (f->done)
    return;
  if (err != 0 && !missing) {
    cli_follow_stop(f, err);
    return;
  }
  if (f->command.options->json)
    add_children_json(&report, f->command.path, missing, names, count);
  else
    add_children_text(&report, names, count);
  cli_follow_put_newest(f, &report);
}

int cli_watch_children(const cli_options *o, const char *path)
{
  cli_follow f = {.done = false};
  lk_subscription *subscription;

  if (!cli_follow_open(&f, o, "watch", path))
    return CLI_EXIT_FAILED;
  cli_follow_begin(&f);
  int err = lk_subscribe_children(&subscription, f.command.session.client, path,
                                  NULL, on_watched_children, &f);

  if (err != 0)
    cli_follow_stop(&f, err);
  cli_follow_run(&f);
  lk_subscription_free(subscription);
  return cli_follow_end(&f);
}
