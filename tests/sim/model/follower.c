/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"

#include <stdlib.h>

/**
 * @file A follower. It logs proposals, and applies committed transactions some
 * time after the leader. When it answers a ping, it names the sessions whose
 * clients it has heard from.
 */

static void acknowledge(sim_server *s, enum sim_message_type type)
{
  sim_message m = {.type = type, .log_pos = s->logged};

  sim_send(s, s->leader, &m);
}

void sim_follower_add_touch(sim_server *s, int64_t session, int32_t timeout_ms)
{
  for (size_t i = 0; i < s->ntouches; i++) {
    if (s->touches[i].session == session) {
      s->touches[i].timeout_ms = timeout_ms;
      return;
    }
  }
  if (s->ntouches == s->touches_cap) {
    s->touches_cap = s->touches_cap == 0 ? 16 : s->touches_cap * 2;
    s->touches = realloc(s->touches, s->touches_cap * sizeof *s->touches);
  }
  s->touches[s->ntouches++] = (sim_touch){session, timeout_ms};
}

void sim_follower_on_logged(sim_server *s)
{
  acknowledge(s, SIM_MSG_ACK);
}

static void answer_ping(sim_server *s)
{
  sim_message m = {.type = SIM_MSG_TOUCH};

  for (size_t i = 0; i < s->ntouches; i++) {
    m.session = s->touches[i].session;
    m.timeout_ms = s->touches[i].timeout_ms;
    sim_send(s, s->leader, &m);
  }
  s->ntouches = 0;
  m.type = SIM_MSG_PONG;
  sim_send(s, s->leader, &m);
}

/* A follower accepts NEW_LEADER when all earlier proposals are on disk. */
static void accept_new_leader(sim_server *s, int32_t epoch)
{
  s->epoch = s->promised_epoch = epoch;
  sim_log_flush_at_once(s);
  acknowledge(s, SIM_MSG_ACCEPT);
}

static void start_serving(sim_server *s, size_t log_pos)
{
  SIM_TRACE(s->ensemble->trace, s->name, "serves");
  sim_conns_renew_session_ids(s);
  s->serves = true;
  sim_pipeline_commit(s, log_pos);
}

static void on_revalidated(sim_server *s, const sim_message *m)
{
  sim_conn *c = sim_conn_of_session(s, m->session);

  if (c == NULL || !c->awaits_session)
    return;
  if (m->valid)
    sim_conn_accept_session(c);
  else
    sim_conn_refuse_session(c);
}

void sim_follower_receive(sim_server *s, const sim_message *m)
{
  s->leader_heard_us = s->ensemble->agenda->now_us;
  switch (m->type) {
  case SIM_MSG_TRUNCATE: sim_log_truncate(s, m->log_pos); break;
  case SIM_MSG_PROPOSE: sim_log_add(s, m->txn); break;
  case SIM_MSG_NEW_LEADER: accept_new_leader(s, m->epoch); break;
  case SIM_MSG_SERVE: start_serving(s, m->log_pos); break;
  case SIM_MSG_COMMIT:
    if (s->serves)
      sim_pipeline_commit(s, m->log_pos);
    break;
  case SIM_MSG_PING: answer_ping(s); break;
  case SIM_MSG_VALID: on_revalidated(s, m); break;
  case SIM_MSG_SYNCED: sim_pipeline_complete_sync(s, m->session, m->xid); break;
  case SIM_MSG_BYE:
    sim_enter_looking(s, "its leader closed the channel");
    break;
  case SIM_MSG_JOIN:
  case SIM_MSG_ACK:
  case SIM_MSG_ACCEPT:
  case SIM_MSG_REQUEST:
  case SIM_MSG_SYNC:
  case SIM_MSG_REVALIDATE:
  case SIM_MSG_TOUCH:
  case SIM_MSG_PONG: break;
  }
}

void sim_follower_check_silence(sim_server *s)
{
  sim_ensemble *e = s->ensemble;
  int64_t limit_us = e->config.sync_limit * sim_tick_us(e);
  int64_t silent_us = e->agenda->now_us - s->leader_heard_us;

  if (silent_us >= limit_us)
    sim_enter_looking(s, "no message from its leader");
  else
    sim_server_schedule(s, SIM_TASK_SILENCE, limit_us - silent_us);
}
