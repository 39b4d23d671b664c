/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"

/**
 * @file
 * A follower: it logs what is proposed and applies what is committed, some
 * time after the leader. Whom it has heard it tells when it is pinged.
 */

static void acknowledge(sim_server *s, enum sim_message_type type)
{
  sim_message m = {.type = type, .place = s->logged};

  sim_send(s, s->leader, &m);
}

void sim_follow_logged(sim_server *s)
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

/* All that came before has to be on disk. */
static void accept(sim_server *s, int32_t epoch)
{
  s->epoch = s->promised_epoch = epoch;
  s->logged = s->logging = s->count;
  sim_server_undo(s, SIM_DUTY_DISK);
  acknowledge(s, SIM_MSG_ACCEPT);
}

static void serve(sim_server *s, size_t place)
{
  SIM_SAY(s->ensemble->trace, s->name, "serves");
  if (s->last_session < s->ensemble->agenda->now_us)
    s->last_session = s->ensemble->agenda->now_us;
  s->serves = true;
  sim_pipeline_commit(s, place);
}

static void validated(sim_server *s, const sim_message *m)
{
  sim_conn *c = sim_conn_of(s, m->session);

  if (c != NULL && c->waits)
    sim_conn_welcome(c, m->valid);
}

void sim_follow_message(sim_server *s, const sim_message *m)
{
  s->heard_us = s->ensemble->agenda->now_us;
  switch (m->type) {
  case SIM_MSG_TRUNCATE: sim_log_truncate(s, m->place); break;
  case SIM_MSG_PROPOSE: sim_log_add(s, m->txn); break;
  case SIM_MSG_NEW_LEADER: accept(s, m->epoch); break;
  case SIM_MSG_SERVE: serve(s, m->place); break;
  case SIM_MSG_COMMIT:
    if (s->serves)
      sim_pipeline_commit(s, m->place);
    break;
  case SIM_MSG_PING: answer_ping(s); break;
  case SIM_MSG_VALID: validated(s, m); break;
  case SIM_MSG_SYNCED: sim_pipeline_synced(s, m->session, m->xid); break;
  case SIM_MSG_BYE: sim_enter_looking(s, "its leader hung up"); break;
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

void sim_follow_silence(sim_server *s)
{
  sim_ensemble *e = s->ensemble;
  int64_t limit = e->config.sync_limit * sim_tick_us(e);
  int64_t silent = e->agenda->now_us - s->heard_us;

  if (silent >= limit)
    sim_enter_looking(s, "does not hear its leader");
  else
    sim_server_do(s, SIM_DUTY_SILENCE, limit - silent);
}
