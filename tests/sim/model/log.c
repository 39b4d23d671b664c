/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/model.h"

#include <stdlib.h>

/**
 * @file The log of a server: its proposals, in order. The first `logged` of
 * them are on disk, and the first `applied` are in the tree. One disk write
 * covers all proposals that wait for it. When the write under way has ended,
 * the first `logging` of them are on disk.
 */

static void start_disk_write(sim_server *s)
{
  const int64_t *delay = s->ensemble->config.disk_delay_us;

  s->logging = s->log_count;
  sim_server_schedule(s, SIM_TASK_DISK,
                      sim_between(&s->rng, delay[0], delay[1]));
}

static bool disk_is_writing(const sim_server *s)
{
  return s->logging > s->logged;
}

void sim_log_add(sim_server *s, const sim_txn *x)
{
  if (s->log_count == s->log_cap) {
    s->log_cap = s->log_cap == 0 ? 256 : s->log_cap * 2;
    s->log = realloc(s->log, s->log_cap * sizeof *s->log);
  }
  s->log[s->log_count++] = x;
  if (!disk_is_writing(s))
    start_disk_write(s);
}

void sim_log_flushed(sim_server *s)
{
  s->logged = s->logging;
  if (s->logged < s->log_count)
    start_disk_write(s);
  if (s->role == SIM_LEADING)
    sim_leader_on_logged(s);
  else if (s->role == SIM_FOLLOWING)
    sim_follower_on_logged(s);
}

void sim_log_flush_at_once(sim_server *s)
{
  s->logged = s->logging = s->log_count;
  sim_server_cancel(s, SIM_TASK_DISK);
}

void sim_log_truncate(sim_server *s, size_t count)
{
  if (count < s->applied)
    abort(); /* a committed transaction would be truncated */
  s->log_count = count;
  if (s->logged > count)
    s->logged = count;
  if (s->logging > count)
    s->logging = count;
}

int64_t sim_log_zxid(const sim_server *s)
{
  return s->log_count == 0 ? 0 : s->log[s->log_count - 1]->zxid;
}
