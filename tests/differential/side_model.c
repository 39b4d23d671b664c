/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The model as a side. Its virtual time passes while the caller waits. */

#include "differential/side.h"
#include "sim/model/raw_client.h"
#include "support/server_version.h"

#include <stdlib.h>

#define PATIENCE_US         (60 * 1000 * SIM_MS)
#define WALL_CLOCK_START_MS INT64_C(1700000000000)

typedef struct model_conn {
  side *side;
  unsigned number;
  sim_conn *conn; /* NULL: closed by the server */
} model_conn;

typedef struct model {
  side base;
  sim_lab lab;
  unsigned leader;
  model_conn conns[SIDE_CONNS];
} model;

static model *model_of(side *s)
{
  return (model *)s;
}

static void on_output(const void *bytes, size_t len, void *arg)
{
  model_conn *c = arg;

  if (!lk__buf_append(&c->side->conns[c->number].in, bytes, len))
    abort();
}

static void on_closed(void *arg)
{
  model_conn *c = arg;

  c->conn = NULL;
  c->side->conns[c->number].closed = true;
}

/* The index in the model of a side's server. Number 0 of a side is the leader,
 * which has changed places with server 0. */
static unsigned server_index(const model *m, unsigned number)
{
  if (number == 0)
    return m->leader;
  return number == m->leader ? 0 : number;
}

static void open_conn(side *s, unsigned conn, unsigned number)
{
  model *m = model_of(s);
  model_conn *c = &m->conns[conn];
  sim_conn_hooks hooks = {on_output, on_closed, c};

  c->side = s;
  c->number = conn;
  c->conn = sim_server_accept(sim_lab_server(&m->lab, server_index(m, number)),
                              &hooks);
}

static void send_bytes(side *s, unsigned conn, const void *bytes, size_t len)
{
  model_conn *c = &model_of(s)->conns[conn];

  if (c->conn != NULL)
    sim_conn_input(c->conn, bytes, len);
}

static bool wait_for_bytes(side *s, unsigned conn)
{
  sim_agenda *agenda = &model_of(s)->lab.agenda;
  size_t before = lk__buf_len(&s->conns[conn].in);
  int64_t end = agenda->now_us + PATIENCE_US;

  while (lk__buf_len(&s->conns[conn].in) == before && !s->conns[conn].closed) {
    if (agenda->now_us > end || !sim_step(agenda))
      return false;
  }
  return true;
}

static void close_conn(side *s, unsigned conn)
{
  model_conn *c = &model_of(s)->conns[conn];

  if (c->conn != NULL)
    sim_conn_close(c->conn);
  c->conn = NULL;
}

static void pass_time(side *s)
{
  sim_step(&model_of(s)->lab.agenda); /* to the time of the next job */
}

static int64_t now_ms(side *s)
{
  return WALL_CLOCK_START_MS + model_of(s)->lab.agenda.now_us / SIM_MS;
}

static void free_model(side *s)
{
  sim_lab_free(&model_of(s)->lab);
  free(s);
}

side *side_model_new(const side_config *config, const side *real, uint64_t seed)
{
  static const side_kind kind = {"model",        open_conn,  send_bytes,
                                 wait_for_bytes, close_conn, pass_time,
                                 now_ms,         free_model};
  model *m = calloc(1, sizeof *m);

  if (m == NULL)
    abort();
  const sim_ensemble_config all = {
      .servers = config->servers,
      .tick_ms = config->tick_ms,
      .min_timeout_ms = config->min_timeout_ms,
      .max_timeout_ms = config->max_timeout_ms,
      .sweep_ms = config->sweep_ms,
      .ttls = config->ttls,
      .version = server_tested_version(),
      .members = real->members[0] == '\0' ? NULL : m->base.members,
      .wall_clock_start_ms = WALL_CLOCK_START_MS};

  memcpy(m->base.members, real->members, sizeof real->members);
  m->base.kind = &kind;
  m->base.servers = config->servers;
  sim_lab_init(&m->lab, &all, seed, NULL);
  m->leader = (unsigned)sim_lab_wait_leader(&m->lab);
  return &m->base;
}
