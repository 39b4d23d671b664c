/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"

#include <stdlib.h>

/**
 * @file Messages between servers. A channel is one connection between two
 * servers; messages that were sent on an earlier channel are discarded.
 * Messages on a cut link wait until it is restored, as TCP retransmits them.
 */

/* Message `i` of those that wait; 0 is the oldest. */
static sim_message *message_at(const sim_link *l, size_t i)
{
  return &l->ring[(l->first + i) & (l->cap - 1)];
}

static void append_message(sim_link *l, const sim_message *m)
{
  if (l->count == l->cap) {
    size_t cap = l->cap == 0 ? 16 : l->cap * 2;
    sim_message *ring = malloc(cap * sizeof *ring);

    for (size_t i = 0; i < l->count; i++)
      ring[i] = *message_at(l, i);
    free(l->ring);
    l->ring = ring;
    l->first = 0;
    l->cap = cap;
  }
  l->count++;
  *message_at(l, l->count - 1) = *m;
}

static void schedule_delivery(sim_link *l)
{
  if (l->count > 0 && !l->cut && !l->delayed)
    sim_schedule_at(l->from->ensemble->agenda, &l->job,
                    message_at(l, 0)->due_us);
}

/* Passes a message to the server. JOIN opens a new channel, which a server that
 * does not lead closes again. */
static void receive(sim_server *s, unsigned from, const sim_message *m)
{
  if (m->type == SIM_MSG_JOIN) {
    s->channels[from] = m->channel;
    if (s->role != SIM_LEADING || !s->runs)
      sim_close_channel(s, from);
  }
  if (!s->runs || m->channel != s->channels[from])
    return;
  if (m->type == SIM_MSG_BYE)
    s->channels[from] = 0;
  if (s->role == SIM_LEADING)
    sim_leader_receive(s, from, m);
  else if (s->role == SIM_FOLLOWING && s->leader == from)
    sim_follower_receive(s, m);
}

static void deliver_due(void *arg)
{
  sim_link *l = arg;
  int64_t now = l->from->ensemble->agenda->now_us;

  while (l->count > 0 && message_at(l, 0)->due_us <= now && !l->cut) {
    if (l->to->stopped) {
      l->delayed = true;
      return;
    }
    sim_message m = *message_at(l, 0);

    l->first++;
    l->count--;
    receive(l->to, l->from->index, &m);
  }
  schedule_delivery(l);
}

void sim_link_init(sim_link *l, sim_server *from, sim_server *to)
{
  *l =
      (sim_link){.from = from, .to = to, .job = {.run = deliver_due, .arg = l}};
}

void sim_link_free(sim_link *l)
{
  sim_unschedule(l->from->ensemble->agenda, &l->job);
  free(l->ring);
}

void sim_link_resume(sim_link *l)
{
  l->delayed = false;
  schedule_delivery(l);
}

static void send_on_channel(sim_server *from, unsigned to, const sim_message *m)
{
  sim_ensemble *e = from->ensemble;
  sim_link *l = sim_link_of(e, from->index, to);
  sim_message copy = *m;

  copy.channel = from->channels[to];
  copy.due_us = e->agenda->now_us + l->extra_us +
                sim_between(&from->rng, e->config.peer_delay_us[0],
                            e->config.peer_delay_us[1]);
  if (copy.due_us < l->last_us) /* messages arrive in order */
    copy.due_us = l->last_us;
  l->last_us = copy.due_us;
  append_message(l, &copy);
  if (l->count == 1) /* otherwise, the delivery is scheduled already */
    schedule_delivery(l);
}

void sim_send(sim_server *from, unsigned to, const sim_message *m)
{
  if (from->channels[to] != 0)
    send_on_channel(from, to, m);
}

void sim_close_channel(sim_server *from, unsigned to)
{
  sim_message bye = {.type = SIM_MSG_BYE};

  sim_send(from, to, &bye);
  from->channels[to] = 0;
}

static void cut_one_way(sim_link *l)
{
  l->cut = true;
  sim_unschedule(l->from->ensemble->agenda, &l->job);
}

static void restore_one_way(sim_link *l)
{
  if (!l->cut)
    return;
  l->cut = false;
  schedule_delivery(l);
}

void sim_link_cut(sim_ensemble *e, unsigned a, unsigned b)
{
  cut_one_way(sim_link_of(e, a, b));
  cut_one_way(sim_link_of(e, b, a));
  SIM_TRACE(e->trace, "network", "link of servers %u and %u is cut", a, b);
}

void sim_link_restore(sim_ensemble *e, unsigned a, unsigned b)
{
  restore_one_way(sim_link_of(e, a, b));
  restore_one_way(sim_link_of(e, b, a));
  SIM_TRACE(e->trace, "network", "link of servers %u and %u is restored", a, b);
}

void sim_link_slow(sim_ensemble *e, unsigned a, unsigned b, int64_t extra_us)
{
  sim_link_of(e, a, b)->extra_us = extra_us;
  sim_link_of(e, b, a)->extra_us = extra_us;
  SIM_TRACE(e->trace, "network",
            "link of servers %u and %u is delayed by %g ms", a, b,
            (double)extra_us / SIM_MS);
}

bool sim_links_whole(const sim_ensemble *e)
{
  for (unsigned i = 0; i < e->count * e->count; i++) {
    if (e->links[i].cut)
      return false;
  }
  return true;
}

int64_t sim_links_slowest_us(const sim_ensemble *e)
{
  int64_t slowest_us = 0;

  for (size_t i = 0; i < (size_t)e->count * e->count; i++) {
    if (e->links[i].extra_us > slowest_us)
      slowest_us = e->links[i].extra_us;
  }
  return slowest_us;
}
