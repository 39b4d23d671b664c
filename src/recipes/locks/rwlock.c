/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/rwlock.h>

#include "base/mem.h"
#include "recipes/locks/lock.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"

struct lk_rwlock {
  lk_session_lease *lease;
  lk_lock *read;
  lk_lock *write;
};

int lk__rwlock_side_refusal(const lk_lock *l)
{
  const lk_lock *other_side = l->partner;
  bool writes = l->options.contender.role->exclusive;

  if (other_side->acquisition == NULL)
    return 0;
  if (!lk__lock_holds(other_side)) /* it is being acquired */
    return LK_ERR_STATE;
  /* The owner would wait for its own node of the other side. Only a reader does
   * not wait for its write node, if the layout has downgrades. */
  return writes || !l->options.rules->downgrades ? LK_ERR_DEADLOCK : 0;
}

/* If the owner holds the write side, acquiring the read side is a downgrade. */
static lk_acquisition *
rwlock_make_reader(lk_lock *l, const lk_acquisition_callbacks *callbacks)
{
  const lk_lock *writer = l->partner;
  lk_acquisition *a = lk__lock_make_contender(l, callbacks);

  if (a != NULL && writer != NULL && lk__lock_holds(writer))
    lk__downgrade_set_writer(a->parts[0], writer->acquisition->parts[0]);
  return a;
}

int lk_rwlock_new(lk_rwlock **out, lk_client *client, const char *path,
                  const lk_lock_config *config)
{
  lk_lock_config options;
  int err = lk__lock_config_copy(client, &options, config);

  *out = NULL;
  if (err != 0 || options.prefix != NULL)
    return LK_ERR_BAD_ARGUMENT;
  lk_session_lease *lease = lk__lease_get_or_new(client);
  lk_rwlock *rw = lease == NULL ? NULL : lk__mem_new(&lease->mem, sizeof *rw);

  if (rw == NULL)
    return LK_ERR_NO_MEMORY;
  rw->lease = lease;
  lk__client_ref(lease->client);
  err = lk__lock_make(&rw->read, client, path, &options, LK_MULTILOCK_READ);

  if (err == 0)
    err = lk__lock_make(&rw->write, client, path, &options, LK_MULTILOCK_WRITE);
  if (err != 0) {
    lk_rwlock_free(rw);
    return err;
  }
  rw->read->partner = rw->write;
  rw->write->partner = rw->read;
  rw->read->source.make = rwlock_make_reader;
  *out = rw;
  return 0;
}

int lk_rwlock_clone(lk_rwlock **out, const lk_rwlock *rw,
                    lk_lock_event_cb on_event, void *arg)
{
  lk_lock_config config = lk__lock_config_of(rw->read);

  config.on_event = on_event;
  config.arg = arg;
  return lk_rwlock_new(out, rw->lease->client, lk_lock_path(rw->read), &config);
}

/* lk_lock_free() completes pending calls of its side. Their callbacks must not
 * use the other side, which may be freed already, so `partner` is removed
 * first. */
void lk_rwlock_free(lk_rwlock *rw)
{
  if (rw == NULL)
    return;
  lk_session_lease *lease = rw->lease;
  lk_lock *read = rw->read;
  lk_lock *write = rw->write;

  lk__mem_free(&lease->mem, rw);
  if (read != NULL)
    read->partner = NULL;
  if (write != NULL)
    write->partner = NULL;
  lk_lock_free(read);
  lk_lock_free(write);
  lk__client_unref(lease->client);
}

lk_lock *lk_rwlock_read_side(const lk_rwlock *rw)
{
  return rw->read;
}

lk_lock *lk_rwlock_write_side(const lk_rwlock *rw)
{
  return rw->write;
}
