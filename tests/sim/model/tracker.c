/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * @file Sessions as the leader tracks them. A session expires at a tick of the
 * leader's clock: the first one after its timeout has passed since the last
 * touch.
 */

sim_tracked *sim_tracker_find(const sim_server *s, int64_t id)
{
  const sim_tracker *t = &s->tracker;

  for (size_t i = t->count; i-- > 0;) {
    if (t->sessions[i].id == id)
      return &t->sessions[i];
  }
  return NULL;
}

bool sim_tracker_touch(sim_server *s, int64_t id, int32_t timeout_ms)
{
  sim_tracked *session = sim_tracker_find(s, id);
  int64_t tick_ms = s->ensemble->config.tick_ms;

  if (session == NULL || session->closing)
    return false;
  int64_t timed_out_ms = sim_server_now_ms(s) + timeout_ms;

  session->expires_ms = (timed_out_ms / tick_ms + 1) * tick_ms; /* next tick */
  return true;
}

bool sim_tracker_resume(sim_server *s, int64_t id, int32_t timeout_ms,
                        unsigned owner)
{
  const sim_ensemble_hooks *hooks = &s->ensemble->hooks;
  sim_tracked *session = sim_tracker_find(s, id);

  if (session == NULL || !sim_tracker_touch(s, id, timeout_ms))
    return false;
  session->owner = (int)owner;
  if (hooks->session_resumed != NULL)
    hooks->session_resumed(id, timeout_ms, hooks->arg);
  return true;
}

void sim_tracker_add(sim_server *s, int64_t id, int32_t timeout_ms, int owner)
{
  sim_tracker *t = &s->tracker;
  sim_tracked *session = sim_tracker_find(s, id);

  if (session == NULL) {
    if (t->count == t->cap) {
      t->cap = t->cap == 0 ? 16 : t->cap * 2;
      t->sessions = realloc(t->sessions, t->cap * sizeof *t->sessions);
    }
    session = &t->sessions[t->count++];
    *session = (sim_tracked){.id = id, .owner = owner};
  }
  sim_tracker_touch(s, id, timeout_ms);
}

void sim_tracker_remove(sim_server *s, int64_t id)
{
  sim_tracker *t = &s->tracker;
  sim_tracked *session = sim_tracker_find(s, id);

  if (session == NULL)
    return;
  size_t after = t->count - (size_t)(session - t->sessions) - 1;

  memmove(session, session + 1, after * sizeof *session);
  t->count--;
}

void sim_tracker_start(sim_server *s)
{
  s->tracker.count = 0;
  for (size_t i = 0; i < s->tree.nsessions; i++)
    sim_tracker_add(s, s->tree.sessions[i].id, s->tree.sessions[i].timeout_ms,
                    SIM_NO_OWNER);
}

int sim_tracker_check(sim_server *s, int64_t id, int owner)
{
  sim_tracked *session = sim_tracker_find(s, id);

  if (session == NULL || session->closing)
    return LK_ERR_SESSION_EXPIRED;
  if (session->owner == SIM_NO_OWNER)
    session->owner = owner;
  return session->owner == owner ? 0 : LK_ERR_SESSION_MOVED;
}

void sim_tracker_expire(sim_server *s)
{
  int64_t now = sim_server_now_ms(s);

  for (size_t i = 0; i < s->tracker.count; i++) {
    sim_tracked *session = &s->tracker.sessions[i];

    if (session->closing || session->expires_ms > now)
      continue;
    sim_write_request *request =
        lk__arena_take(&s->ensemble->arena, 1, sizeof *request);

    SIM_TRACE(s->ensemble->trace, s->name, "session %" PRIx64 " has expired",
              (uint64_t)session->id);
    session->closing = true;
    *request = (sim_write_request){
        .session = session->id, .op = LK_OPCODE_CLOSE_SESSION, .expired = true};
    sim_pipeline_submit(s, NULL, request);
  }
}
