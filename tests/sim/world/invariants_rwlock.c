/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "recipes/locks/lock.h"

#include <string.h>

/* Read-write locks. */

/* ---- sides held at the same time ---------------------------------------- */

/* The holders of one lock. */
typedef struct holders {
  const sim_handle *alone;  /* the handle that holds it alone, or NULL */
  const sim_handle *shared; /* the first handle that shares it, or NULL */
} holders;

/* A violation if one handle holds a lock alone and another shares it. A writer
 * may hold its own read side, too. */
static void check_pair(sim_checker *checker, const sim_handle *alone,
                       const sim_handle *shared, unsigned lock_index)
{
  if (alone != NULL && shared != NULL && alone->other != shared)
    sim_violated(checker, "%s holds %s, and %s reads", alone->name,
                 checker->world->locks[lock_index], shared->name);
}

/* `of_locks`: for each lock, the holders before `h`; of readers only the first.
 * Both sides of a lock follow each other in the list of handles, so a writer's
 * own read side never hides another reader. */
static void check_rwlock_holder(sim_checker *checker, const sim_handle *h,
                                holders *of_locks)
{
  for (size_t i = 0; i < h->nplaces && h->kind != SIM_SEMAPHORE; i++) {
    unsigned lock = h->places[i].lock_index;
    holders *others = &of_locks[lock];

    if (h->places[i].shares) {
      check_pair(checker, others->alone, h, lock);
      if (others->shared == NULL)
        others->shared = h;
    } else {
      check_pair(checker, h, others->shared, lock);
      others->alone = h;
    }
  }
}

static void check_rwlock_holders(sim_checker *checker)
{
  holders of_locks[SIM_MOST_LOCKS] = {{NULL, NULL}};

  SIM_EACH_HANDLE(checker, h)
  {
    if (sim_certainly_holds(checker, h))
      check_rwlock_holder(checker, h, of_locks);
  }
}

/* ---- foreign lockers ---------------------------------------------------- */

/* Curator's mutexes and read-write locks ignore each other's nodes. */
static bool in_same_queue(const sim_entry *e, const sim_handle *h,
                          const sim_place *place)
{
  bool handle_is_rwlock =
      h->kind == SIM_RWLOCK || place->shares || place->writes;
  bool node_is_of_rwlock = e->is_reader || e->is_write_side;

  return handle_is_rwlock == node_is_of_rwlock;
}

static void check_foreign_holder(sim_checker *checker, const sim_entry *e)
{
  SIM_EACH_HANDLE(checker, h)
  {
    const sim_place *place = sim_place_at(h, e->lock_index);

    if (place != NULL && h->kind != SIM_SEMAPHORE &&
        in_same_queue(e, h, place) && !(e->is_reader && place->shares) &&
        sim_certainly_holds(checker, h))
      sim_violated(checker, "%s holds %s, and so does %s", h->name,
                   checker->world->locks[e->lock_index], e->name);
  }
}

static void check_foreign_holders(sim_checker *checker)
{
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->foreign_holds && e->is_contender)
      check_foreign_holder(checker, e);
  }
}

/* ---- watched node ------------------------------------------------------- */

static const sim_entry *predecessor_of(const sim_checker *checker,
                                       const lk_contender *ct)
{
  for (const sim_entry *e = checker->history.newest; e != NULL; e = e->older) {
    if (strcmp(e->path, ct->predecessors.path[0]) == 0)
      return e;
  }
  return NULL;
}

/* A waiter watches its direct predecessor, and readers do not wait for
 * readers. */
static void check_watched_node(sim_checker *checker, const sim_contender *a)
{
  const sim_entry *own = sim_entry_of(checker, a->ct);
  const sim_entry *predecessor =
      own == NULL ? NULL : predecessor_of(checker, a->ct);

  if (predecessor == NULL)
    return;
  if (own->is_reader && predecessor->is_reader)
    sim_violated(checker, "%s waits for %s, which does not exclude it",
                 own->name, predecessor->name);
  for (const sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (sim_excludes(e, own) && e->suffix > predecessor->suffix &&
        e->created_zxid <= a->list_zxid)
      sim_violated(checker, "%s watches %s, and %s is nearer", own->name,
                   predecessor->name, e->name);
  }
}

/* A writer excludes all, readers share; each watches its direct predecessor. */
void sim_rw_matrix(sim_checker *checker, const sim_fact *f)
{
  if (sim_has_only_mutexes(checker->world))
    return;
  if (f->type == SIM_JOB_DONE) {
    check_rwlock_holders(checker);
    check_foreign_holders(checker);
    return;
  }
  const lk_contender *ct = f->contender->ct;

  if (ct->state == LK_CONTENDER_WAITING && !ct->wait.watches_directory) {
    check_watched_node(checker, f->contender);
  }
}

/* ---- downgrade and upgrade ---------------------------------------------- */

/* The read node of a writer has the number of its write node. With a new
 * number, another contender could be granted in between. */
static void check_downgrade_number(sim_checker *checker, const sim_entry *e)
{
  const sim_handle *h = e->handle;

  if (h == NULL || !e->is_reader || h->other_side_node == NULL ||
      !sim_holds(h->other) || h->other->held.at[0] != h->other_side_node ||
      h->other_side_node->deleted_zxid != 0)
    return;
  if (e->downgraded_from != h->other_side_node)
    sim_violated(checker, "%s is the downgrade of %s, with another number",
                 e->name, h->other_side_node->name);
}

/* A downgraded writer reads under its own number and keeps its token. */
void sim_rw_downgrade(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (f->type == SIM_NODE_CREATED) {
    check_downgrade_number(checker, f->entry);
    return;
  }
  if (f->err != 0 || h->is_reentry || h->held.count != 1 ||
      h->held.at[0]->downgraded_from == NULL)
    return;
  if (lk_lock_token(h->lock) !=
      (uint64_t)h->held.at[0]->downgraded_from->created_zxid)
    sim_violated(checker,
                 "%s is downgraded with token 0x%" PRIx64
                 ", and wrote with 0x%" PRIx64,
                 h->name, lk_lock_token(h->lock),
                 (uint64_t)h->held.at[0]->downgraded_from->created_zxid);
}

/* A reader that wants to write is refused and leaves nothing. */
void sim_rw_upgrade(sim_checker *checker, const sim_fact *f)
{
  const sim_handle *h = f->handle;

  if (f->expected_err != LK_ERR_DEADLOCK || h->kind != SIM_RWLOCK)
    return;
  if (f->err != LK_ERR_DEADLOCK && f->err != LK_ERR_CLOSED)
    sim_violated(checker, "%s acquires the write side and gets %s", h->name,
                 lk_error_name(f->err));
  else if (h->lock != NULL && h->lock->acquisition != NULL)
    sim_violated(checker, "%s is refused, and an acquisition remains", h->name);
}
