/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/agenda.h"

#include <stddef.h>

/* The key of a job in the heap has its time in the upper bits, and the order of
 * scheduling in the lower ones. The time is enough for runs of 100 days, the
 * order for a million jobs at one time. */
enum { ORDER_BITS = 20 };
#define TIME_MAX_US (INT64_MAX >> ORDER_BITS)

void sim_schedule_at(sim_agenda *a, sim_job *job, int64_t at_us)
{
  uint64_t order = a->scheduled++ & ((UINT64_C(1) << ORDER_BITS) - 1);

  if (at_us < a->now_us)
    at_us = a->now_us;
  if (at_us > TIME_MAX_US)
    at_us = TIME_MAX_US;
  lk__heap_remove(&a->jobs, &job->node);
  lk__heap_add(&a->jobs, &job->node,
               (int64_t)((uint64_t)at_us << ORDER_BITS | order));
}

void sim_schedule_in(sim_agenda *a, sim_job *job, int64_t in_us)
{
  sim_schedule_at(a, job, a->now_us + in_us);
}

void sim_unschedule(sim_agenda *a, sim_job *job)
{
  lk__heap_remove(&a->jobs, &job->node);
}

int64_t sim_next_us(const sim_agenda *a)
{
  return a->jobs.root == NULL ? INT64_MAX : a->jobs.root->at >> ORDER_BITS;
}

bool sim_step(sim_agenda *a)
{
  lk_heap_node *first = a->jobs.root;

  if (first == NULL)
    return false;
  sim_job *job = (sim_job *)(void *)((char *)first - offsetof(sim_job, node));

  a->now_us = sim_next_us(a);
  lk__heap_remove(&a->jobs, first);
  a->done++;
  job->run(job->arg);
  return true;
}
