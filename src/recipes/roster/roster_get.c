/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/call.h"

#include <latchkey/roster.h>

/* A read of a roster: a subscription that ends with its first report. */
typedef struct roster_read {
  lk_client *client;
  lk_roster *roster;
  lk_timer timer; /* the deadline */
  lk_roster_get_cb done;
  void *arg;
} roster_read;

/* The roster is destroyed after the callback, so its entries are valid until
 * then. */
static void roster_read_complete(roster_read *read, int err,
                                 const lk_roster_entry *entries, size_t count)
{
  lk_client *c = read->client;
  lk_roster_get_cb done = read->done;
  void *arg = read->arg;

  lk_timer_stop(c, &read->timer);
  lk_roster_free(read->roster);
  lk__mem_free(lk_client_mem(c), read);
  if (done != NULL)
    done(c, err, entries, count, arg);
}

static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  (void)r;
  roster_read_complete(arg, err, entries, count);
}

static void on_deadline(lk_client *c, void *arg)
{
  (void)c;
  roster_read_complete(arg, LK_ERR_DEADLINE, NULL, 0);
}

int lk_roster_get(lk_client *client, const char *path,
                  const lk_roster_config *config, const lk_call *call,
                  lk_roster_get_cb done, void *arg)
{
  lk_call options;
  int err = lk__call_options_copy(client, &options, call);

  if (err != 0)
    return err;
  int64_t deadline_ms = lk__call_deadline(client, &options);

  if (deadline_ms <= lk_client_clock(client))
    return LK_ERR_DEADLINE;
  const lk_mem *mem = lk_client_mem(client);
  roster_read *read = lk__mem_new(mem, sizeof *read);

  if (read == NULL)
    return LK_ERR_NO_MEMORY;
  *read = (roster_read){.client = client, .done = done, .arg = arg};
  read->timer = (lk_timer){.fire = on_deadline, .arg = read};
  err =
      lk_roster_subscribe(&read->roster, client, path, config, on_roster, read);
  if (err != 0) {
    lk__mem_free(mem, read);
    return err;
  }
  if (deadline_ms != INT64_MAX)
    lk_timer_start(client, &read->timer, deadline_ms);
  return 0;
}
