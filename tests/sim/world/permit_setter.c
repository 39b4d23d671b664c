/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/actor.h"

/*
 * A permit setter changes the number of permits at random. At the end it sets
 * the largest number that any actor acquires, so that all can be granted. An
 * earlier set, of a session that the client has given up, may be executed after
 * that. So the permit setter goes on to read the number, and repeats the final
 * set if it finds another one.
 */

enum { ANY_VERSION = -1, FINAL_PERMITS = SIM_MOST_PERMITS };

/* The most significant byte comes first. */
static void put_int(unsigned char at[4], int32_t n)
{
  for (int i = 0; i < 4; i++)
    at[i] = (unsigned char)((uint32_t)n >> (24 - 8 * i));
}

/* The permit setter is idle when the final number is set. */
static void on_final_set(lk_client *c, int err, const lk_stat *stat, void *arg)
{
  sim_actor *a = arg;

  (void)c;
  (void)stat;
  if (err == 0)
    a->idle = true;
}

static void set_permits(sim_actor *a, int32_t permits)
{
  unsigned char bytes[4];
  lk_bytes data = lk_bytes_of(bytes, sizeof bytes);
  lk_client *c = a->process->client;

  put_int(bytes, permits);
  SIM_TRACE(&a->process->world->trace, a->name, "sets %d permits",
            (int)permits);
  if (a->stopping) /* the node may not exist yet */
    (void)lk_create(c, SIM_LIMIT, data, NULL, LK_PERSISTENT, NULL, NULL, NULL);
  (void)lk_set(c, SIM_LIMIT, data, ANY_VERSION, NULL,
               a->stopping ? on_final_set : NULL, a);
}

static void on_permits_read(lk_client *c, int err, const lk_bytes *data,
                            const lk_stat *stat, void *arg)
{
  unsigned char final[4];

  (void)c;
  (void)stat;
  put_int(final, FINAL_PERMITS);
  if (err == 0 &&
      (data->len != sizeof final || memcmp(data->at, final, data->len) != 0))
    set_permits(arg, FINAL_PERMITS);
}

static void permit_setter_act(sim_actor *a)
{
  if (a->idle) /* the final number was set */
    (void)lk_get(a->process->client, SIM_LIMIT, NULL, on_permits_read, a);
  else if (a->stopping)
    set_permits(a, FINAL_PERMITS);
  else
    set_permits(a, (int32_t)sim_between(&a->rng, 0, FINAL_PERMITS + 1));
  sim_actor_act_in(a, sim_between(&a->rng, 0, 2 * sim_actor_T_us(a)));
}

static void permit_setter_start(sim_actor *a)
{
  sim_actor_act_in(a, sim_between(&a->rng, 0, 2 * sim_actor_T_us(a)));
}

const sim_actor_kind sim_permit_setter = {.start = permit_setter_start,
                                          .act = permit_setter_act,
                                          .reports_idle = true};
