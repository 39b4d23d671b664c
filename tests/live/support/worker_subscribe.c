/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Subscriptions. Each callback prints "notified err=... names=..." or "notified
 * err=... data=...".
 */

#include "live/support/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void on_names(lk_subscription *s, int err, const lk_bytes *names,
                     size_t count, const lk_stat *stat, void *arg)
{
  const object *o = arg;

  (void)s;
  print_line(o->name, "notified err=%s count=%zu pzxid=%" PRId64 " names=%s",
             error_word(err), count, stat == NULL ? 0 : stat->pzxid,
             join_names(names, count));
}

static void on_data(lk_subscription *s, int err, const lk_bytes *data,
                    const lk_stat *stat, void *arg)
{
  const object *o = arg;

  (void)s;
  print_line(o->name, "notified err=%s mzxid=%" PRId64 " data=%s",
             error_word(err), stat == NULL ? 0 : stat->mzxid,
             hex(err == 0 ? *data : lk_text(NULL)));
}

/* "subscribe NAME client=... path=... check=MS" subscribes to the children, and
 * with data=1 to the data. */
static void execute_subscribe(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);
  lk_subscription_config config = {
      .size = sizeof config,
      .check_ms = option_number(cmd, "check", -1)};

  (void)none;
  if (client == NULL)
    return;
  object *o = object_new(cmd->name);
  int err = option_flag(cmd, "data")
                ? lk_subscribe_data(&o->subscription, client, option_path(cmd),
                                    &config, on_data, o)
                : lk_subscribe_children(&o->subscription, client,
                                        option_path(cmd), &config, on_names, o);

  if (err != 0)
    object_forget(o);
  report_made(cmd, err);
}

void object_free_subscription(object *o)
{
  lk_subscription_free(o->subscription);
  object_forget(o);
}

const verb subscribe_verbs[] = {{"subscribe", execute_subscribe}, {NULL, NULL}};
