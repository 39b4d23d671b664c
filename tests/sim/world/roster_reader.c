/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

#include "sim/world/allocate.h"
#include "sim/world/digest.h"
#include "sim/world/facts.h"

#include <latchkey/roster.h>
#include <stdlib.h>

/*
 * A roster reader subscribes to the roster of the group or of the election. It
 * unsubscribes and subscribes again, also in callbacks. At the end it must have
 * seen the last roster, in the right order.
 */

enum { NO_CHECKS = -1, MOST_ENTRIES = 64, NUMBER_DIGITS = 10 };

#define TRACE(a, ...) \
  SIM_TRACE(&(a)->process->world->trace, (a)->name, __VA_ARGS__)

static void unsubscribe(sim_actor *a)
{
  lk_roster *r = a->roster->roster;

  a->roster->roster = NULL;
  lk_roster_free(r);
}

/* ---- digests ------------------------------------------------------------- */

static uint64_t add_entry(uint64_t digest, lk_bytes name, lk_bytes data,
                          const lk_stat *stat)
{
  digest = sim_digest_add(digest, name.at, name.len);
  digest = sim_digest_add(digest, data.at, data.len);
  digest = sim_digest_add(digest, &stat->czxid, sizeof stat->czxid);
  return sim_digest_add(digest, &stat->mzxid, sizeof stat->mzxid);
}

static const char *number_in(const char *name)
{
  return name + strlen(name) - NUMBER_DIGITS;
}

static int by_name(const void *a, const void *b)
{
  const sim_node *const *x = a, *const *y = b;

  return strcmp((*x)->name, (*y)->name);
}

/* All candidates have numbers of ten digits: their counter does not
 * overflow. */
static int by_number(const void *a, const void *b)
{
  const sim_node *const *x = a, *const *y = b;

  return strcmp(number_in((*x)->name), number_in((*y)->name));
}

/* What the roster must have reported in the end. */
static uint64_t committed_digest(const sim_actor *a, int *err)
{
  const sim_roster *r = a->roster;
  const sim_node *dir = sim_tree_find(
      sim_ensemble_committed_tree(a->process->world->ensemble), r->path);
  const sim_node *nodes[MOST_ENTRIES];
  uint64_t digest = SIM_DIGEST;
  size_t count = 0;

  *err = dir == NULL ? LK_ERR_NO_NODE : 0;
  if (dir == NULL)
    return digest;
  for (const sim_node *n = dir->children; n != NULL && count < MOST_ENTRIES;
       n = n->next)
    nodes[count++] = n;
  qsort(nodes, count, sizeof nodes[0], r->election ? by_number : by_name);
  for (size_t i = 0; i < count; i++)
    digest = add_entry(
        digest, lk_text(nodes[i]->name),
        lk_bytes_of(nodes[i]->data, (size_t)nodes[i]->stat.data_length),
        &nodes[i]->stat);
  return digest;
}

bool sim_roster_is_up_to_date(const sim_actor *a)
{
  const sim_roster *r = a->roster;
  int err;
  uint64_t digest = committed_digest(a, &err);

  return r->notified && r->err == err && r->digest == digest;
}

/* ---- operations ---------------------------------------------------------- */

static void on_roster(lk_roster *roster, int err,
                      const lk_roster_entry *entries, size_t count, void *arg)
{
  sim_actor *a = arg;
  sim_roster *r = a->roster;
  bool after_free = roster != r->roster;

  TRACE(a, "roster of %s: %s, %zu entries", r->path,
        err == 0 ? "0" : lk_error_name(err), count);
  sim_report_fact(a->process->world->checker,
                  &(sim_fact){.type = SIM_ROSTER_EVENT,
                              .roster_actor = a,
                              .roster_freed = after_free});
  if (after_free)
    return;
  r->notified = true;
  r->err = err;
  r->digest = SIM_DIGEST;
  for (size_t i = 0; i < count && err == 0; i++)
    if (entries[i].err == 0)
      r->digest = add_entry(r->digest, entries[i].name, entries[i].data,
                            entries[i].stat);
  if (!a->stopping && sim_one_in(&a->rng, 16))
    unsubscribe(a);
}

static void subscribe(sim_actor *a)
{
  sim_roster *r = a->roster;
  lk_roster_config config = {.size = sizeof config,
                             .layout = sim_election_layout(a->process->world),
                             .check_ms =
                                 sim_one_in(&a->rng, 4) ? 100 : NO_CHECKS};

  *r = (sim_roster){.election = sim_one_in(&a->rng, 2)};
  r->path = r->election ? SIM_ELECTION_DIR : SIM_GROUP_DIR;
  config.election = r->election;
  if (lk_roster_subscribe(&r->roster, a->process->client, r->path, &config,
                          on_roster, a) != 0)
    r->roster = NULL;
}

static void roster_reader_act(sim_actor *a)
{
  sim_roster *r = a->roster;

  if (r->roster == NULL)
    subscribe(a);
  else if (!a->stopping && sim_one_in(&a->rng, 24))
    unsubscribe(a);
  a->idle = a->stopping && r->roster != NULL && sim_roster_is_up_to_date(a);
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a) / 2));
}

static void roster_reader_start(sim_actor *a)
{
  if (a->roster == NULL)
    a->roster = sim_allocate(sizeof *a->roster);
  *a->roster = (sim_roster){.roster = NULL};
  sim_actor_act_in(a, sim_between(&a->rng, 0, sim_actor_T_us(a)));
}

const sim_actor_kind sim_roster_reader = {.start = roster_reader_start,
                                          .act = roster_reader_act,
                                          .leave = unsubscribe,
                                          .reports_idle = true};
