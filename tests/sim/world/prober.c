/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/prober.h"

#include <string.h>

static void on_ready(void *arg)
{
  sim_process_schedule_loop(arg);
}

void sim_prober_stop(sim_process *p, sim_close_mode mode)
{
  sim_pipe_close(p->prober.pipe, mode);
  p->prober = (sim_prober){0};
}

void sim_prober_update(sim_process *p)
{
  sim_prober *prober = &p->prober;
  unsigned server;
  lk_want want;

  want = *lk_client_want_probe(p->client);
  if (want.attempt == prober->attempt)
    return;
  sim_prober_stop(p, SIM_CLOSE);
  prober->attempt = want.attempt;
  if (prober->attempt == 0) /* the client wants no probe */
    return;
  bool is_name_of_one_server = want.host[1] >= '0' && want.host[1] <= '9';

  if (is_name_of_one_server) /* such as "s1" */
    server = (unsigned)(want.host[1] - '0');
  else
    server = p->addresses[sim_roll(&p->rng, p->naddresses)];
  if (server != SIM_DEAD)
    prober->pipe =
        sim_pipe_open(p->world->network, p->index, server, on_ready, p);
}

/* Sends the rest of the probe. Returns whether the connection has ended: the
 * server has answered and closed, or the connection has failed. */
static bool send_or_see_end(sim_prober *prober)
{
  static const char probe[] = LK_PROBE;

  switch (sim_pipe_get_state(prober->pipe)) {
  case SIM_PIPE_CLOSED:
  case SIM_PIPE_RESET:
  case SIM_PIPE_REFUSED: return true;
  case SIM_PIPE_OPEN:
    prober->sent += sim_pipe_send(prober->pipe, &probe[prober->sent],
                                  strlen(&probe[prober->sent]));
    return false;
  case SIM_PIPE_CONNECTING: return false;
  }
  return false;
}

void sim_prober_read(sim_process *p)
{
  sim_prober *prober = &p->prober;
  size_t room = sizeof prober->answer - prober->len;

  if (prober->pipe == NULL)
    return;
  size_t arrived = sim_pipe_arrived(prober->pipe);
  size_t len = arrived < room ? arrived : room;

  if (len > 0)
    sim_pipe_receive(prober->pipe, prober->answer + prober->len, len);
  prober->len += len;
  if (!send_or_see_end(prober))
    return;
  sim_prober done = *prober;

  sim_pipe_close(prober->pipe, SIM_CLOSE);
  prober->pipe = NULL;
  lk_client_probed(p->client, done.attempt, done.answer, done.len);
}
