/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/read_only.h"

#include "proto/wire/opcode.h"

void sim_read_only_begin(sim_server *s)
{
  SIM_TRACE(s->ensemble->trace, s->name, "serves reads, without a quorum");
  s->read_only = true;
}

void sim_read_only_end(sim_server *s)
{
  sim_server_cancel(s, SIM_TASK_READ_ONLY);
  if (!s->read_only)
    return;
  s->read_only = false;
  sim_conns_close_all(s);
}

/* A read-only server cannot know which sessions exist, so it accepts any
 * session id. */
void sim_read_only_connect(sim_conn *c, bool accepts_read_only, int64_t session)
{
  if (!accepts_read_only) {
    sim_conn_hang_up(c);
    return;
  }
  if (session == 0 && c->server->ensemble->config.no_local_sessions &&
      c->server->has[SERVER_READ_ONLY_SESSIONS_ARE_LOCAL]) {
    /* a reply in place of a session; the connection stays open */
    sim_serve_without_body(c, 0, c->server->tree.zxid, LK_ERR_NOT_READ_ONLY);
    return;
  }
  c->session = session != 0 ? session : sim_conn_new_session(c->server);
  sim_conn_accept_session(c);
}

void sim_read_only_receive(sim_conn *c, int32_t xid, int32_t op,
                           lk_reader *body)
{
  if (lk__opcode_info(op)->served_read_only) {
    sim_serve_read(c, xid, op, body);
  } else if (op != LK_OPCODE_CLOSE_SESSION) {
    sim_serve_without_body(c, xid, c->server->tree.zxid, LK_ERR_NOT_READ_ONLY);
  } else { /* the session exists only as long as the connection */
    sim_serve_without_body(c, xid, c->server->tree.zxid, 0);
    sim_conn_hang_up(c);
  }
}

void sim_answer_isro(sim_conn *c)
{
  const sim_server *s = c->server;

  if (s->serves || s->read_only)
    sim_conn_send(c, s->serves ? "rw" : "ro", 2);
  sim_conn_hang_up(c);
}
