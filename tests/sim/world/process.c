/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/process.h"

#include "sim/world/actors.h"
#include "sim/world/checker.h"
#include "sim/world/conditions.h"
#include "sim/world/driver.h"
#include "sim/world/leases.h"
#include "sim/world/limits.h"
#include "sim/world/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- clock -------------------------------------------------------------- */

/* With clock_rate(): virtual time in microseconds, times the rate, divided by
 * PER_MS is the clock in milliseconds. A clock without drift has USUAL_RATE. */
#define PER_MS     INT64_C(1000000000)
#define USUAL_RATE INT64_C(1000000)

static int64_t clock_rate(const sim_process *p)
{
  return USUAL_RATE + p->drift_ppm;
}

int64_t sim_process_clock(const sim_process *p)
{
  int64_t now_us = p->world->agenda.now_us;

  if (now_us < p->busy_until_us)
    now_us = p->busy_until_us;
  return p->clock_base_ms + now_us * clock_rate(p) / PER_MS;
}

bool sim_lease_lasts(const sim_process *p, const lk_lock *l)
{
  return lk_lock_deadline(l) > sim_process_clock(p);
}

int64_t sim_process_true_us(const sim_process *p, int64_t ms)
{
  if (ms <= p->clock_base_ms)
    return 0;
  int64_t since = ms - p->clock_base_ms;

  if (since > INT32_MAX) /* the run ends before; also, no overflow below */
    return INT64_MAX;
  int64_t rounding_up = clock_rate(p) - 1;

  return (since * PER_MS + rounding_up) / clock_rate(p);
}

/* ---- memory ------------------------------------------------------------- */

/* The header of each block. */
typedef struct sim_block {
  struct sim_block *next;
  struct sim_block *prev;
  size_t size;
  size_t padding; /* aligns the bytes behind the header */
} sim_block;

static void free_block(sim_process *p, sim_block *b)
{
  if (b->prev == NULL)
    p->blocks = b->next;
  else
    b->prev->next = b->next;
  if (b->next != NULL)
    b->next->prev = b->prev;
  p->memory -= b->size;
  free(b);
}

static bool allocation_must_fail(sim_process *p)
{
  if (p->failing_allocations == 0)
    return false;
  if (p->allocations_until_failure > 0) {
    p->allocations_until_failure--;
    return false;
  }
  p->failing_allocations--;
  return true;
}

static void *process_resize(void *arg, void *old, size_t size)
{
  sim_process *p = arg;
  sim_block *old_block = old == NULL ? NULL : (sim_block *)old - 1;
  sim_block *b;

  if (size == 0) {
    if (old_block != NULL)
      free_block(p, old_block);
    return NULL;
  }
  if (allocation_must_fail(p))
    return NULL;
  b = malloc(sizeof *b + size);
  if (b == NULL)
    abort();
  *b = (sim_block){.next = p->blocks, .size = size};
  if (b->next != NULL)
    b->next->prev = b;
  p->blocks = b;
  p->memory += size;
  if (old_block != NULL) {
    memcpy(b + 1, old, old_block->size < size ? old_block->size : size);
    free_block(p, old_block);
  }
  return b + 1;
}

/* ---- client ------------------------------------------------------------- */

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  sim_process *p = arg;

  (void)c;
  p->state = state;
  SIM_TRACE(&p->world->trace, p->name, "session state: %s%s%s",
            lk_state_text(state), err == 0 ? "" : ", ",
            err == 0 ? "" : lk_error_name(err));
  /* With one_session, an expired client is freed and replaced. */
  if (p->one_session && state == LK_STATE_EXPIRED && !p->freeing_client)
    sim_schedule_in(&p->world->agenda, &p->resume_job, 0);
}

static void on_log(void *arg, lk_log_level level, int err, const char *text)
{
  sim_process *p = arg;

  (void)level;
  if (err == LK_ERR_UNIMPLEMENTED && strstr(text, "does not know") != NULL &&
      strstr(text, "setWatches2") == NULL)
    p->rejected_us = p->world->agenda.now_us;
  SIM_TRACE(&p->world->trace, p->name, "logs: %s", text);
}

static void hosts_of(const sim_process *p, char *out, size_t size)
{
  size_t at = 0;

  if (p->naddresses > 0) { /* one name for all servers */
    snprintf(out, size, "ensemble%s", p->chroot);
    return;
  }
  for (unsigned i = 0; i < p->world->config.servers; i++)
    at += (size_t)snprintf(out + at, size - at, "%ss%u", i == 0 ? "" : ",", i);
  snprintf(out + at, size - at, "%s", p->chroot);
}

/* The bounds of the limit of a request's size. It is larger than each request
 * that cannot be split. */
enum { SEND_LIMIT_MIN = 7000, SEND_LIMIT_MAX = 8192 };

static void process_start(sim_process *p)
{
  char hosts[64];
  lk_client_config cc = {.size = sizeof cc,
                         .hosts = hosts,
                         .session_timeout_ms = p->world->timeout_ms,
                         .one_session = p->one_session,
                         .read_only = p->read_only,
                         .mem = &p->mem,
                         .log = on_log,
                         .log_arg = p};
  lk_hooks hooks = sim_driver_hooks(p);

  bool gives_up_soon = p->index % 2 == 0; /* half of the processes */

  if (sim_has_condition(p->world, SIM_WRITERS) && gives_up_soon)
    cc.give_up_ms = (int32_t)sim_between(&p->rng, p->world->timeout_ms / 2,
                                         p->world->timeout_ms);
  if (sim_has_condition(p->world, SIM_MANY_READERS))
    cc.send_limit =
        (size_t)sim_between(&p->rng, SEND_LIMIT_MIN, SEND_LIMIT_MAX);

  p->life++;
  sim_limit_client(p, &cc);
  p->failing_allocations = 0;
  p->freeing_client = false;
  p->closing = false;
  p->state = LK_STATE_CONNECTING;
  hosts_of(p, hosts, sizeof hosts);
  p->has_resumed = p->session_to_resume.id != 0;
  if (p->has_resumed)
    cc.resume = &p->session_to_resume;
  if (lk_client_new(&p->client, &cc, &hooks) != 0)
    abort();
  sim_lease_maybe_make(p);
  p->listener =
      (lk_listener){.size = sizeof(lk_listener), .state = on_state, .arg = p};
  lk_client_attach(p->client, &p->listener);
  SIM_TRACE(&p->world->trace, p->name, "starts, life %" PRIu64 "%s", p->life,
            p->has_resumed ? ", with the session of the last" : "");
  sim_checker_note_process_started(p->world->checker, p);
  sim_actors_start(p);
  p->session_to_resume.id = 0;
  /* The nodes of the previous process are deleted only when the session
   * ends. */
  if (p->has_resumed)
    sim_process_close_in(p, sim_between(&p->rng, 0, 2 * p->world->timeout_ms) *
                                SIM_MS);
  if (p->world->faults_over)
    sim_actors_stop(p);
  sim_process_schedule_loop(p);
}

/* ---- start and end ------------------------------------------------------ */

/* A pause ends, the process starts, or a client with one_session is
 * replaced. */
static void on_resume(void *arg)
{
  sim_process *p = arg;

  if (p->paused) {
    p->paused = false;
    SIM_TRACE(&p->world->trace, p->name, "continues");
    sim_process_schedule_loop(p);
  }
  if (p->client == NULL) {
    process_start(p);
  } else if (p->one_session &&
             (p->state == LK_STATE_EXPIRED || p->state == LK_STATE_CLOSED)) {
    sim_process_free_client(p);
    sim_process_start_in(p, 100 * SIM_MS);
  }
}

/* A clock at the start of the run, in milliseconds. It is small or large, or
 * soon exceeds 31 or 32 bits. */
static int64_t random_clock(sim_rng *r)
{
  enum { CHOICES = 4 };

  static const int64_t bases[CHOICES] = {0, INT32_MAX - 9000, UINT32_MAX - 9000,
                                         INT64_C(1) << 41};

  return bases[sim_roll(r, CHOICES)] + sim_between(r, 0, 10000);
}

/* A drift in parts per million: at most 1 %, often or always exactly that. */
static int32_t random_drift(sim_rng *r, bool always_largest)
{
  enum { ONE_PERCENT = 10000 };

  switch (sim_roll(r, always_largest ? 2 : 4)) {
  case 0: return -ONE_PERCENT;
  case 1: return ONE_PERCENT;
  default: return (int32_t)sim_between(r, -ONE_PERCENT, ONE_PERCENT);
  }
}

/* Mostly quorum. */
static lk_assurance random_assurance(sim_rng *r)
{
  if (!sim_one_in(r, 4))
    return LK_ASSURE_QUORUM;
  return sim_one_in(r, 2) ? LK_ASSURE_PING : LK_ASSURE_SYNC;
}

/* Different chroots name the same nodes, as if the server had a namespace for
 * each. */
static const char *random_chroot(const sim_process *p)
{
  enum { CHOICES = 3 };

  static const char *const chroots[CHOICES] = {"", "/c",
                                               "/tenants/of this one"};
  sim_rng r = sim_rng_fork(&p->rng, 'c');

  if (!sim_has_condition(p->world, SIM_CHROOTS))
    return "";
  return chroots[sim_roll(&r, CHOICES)];
}

static bool accepts_read_only(const sim_process *p)
{
  sim_rng r = sim_rng_fork(&p->rng, 'r');

  return sim_has_condition(p->world, SIM_READ_ONLY) && !sim_one_in(&r, 4);
}

void sim_process_init(sim_process *p, sim_world *w, unsigned index)
{
  sim_rng r = sim_rng_fork(&w->rng, 'p' * 256 + index);

  memset(p, 0, sizeof *p);
  p->world = w;
  p->index = index;
  snprintf(p->name, sizeof p->name, "p%u", index);
  p->clock_base_ms = random_clock(&r);
  p->drift_ppm = random_drift(&r, w->scenario->drift);
  p->assurance = random_assurance(&r);
  p->one_session = sim_one_in(&r, 8);
  p->mem = (lk_mem){.resize = process_resize, .arg = p};
  p->resume_job = (sim_job){.run = on_resume, .arg = p};
  p->rng = r;
  p->chroot = random_chroot(p);
  p->read_only = accepts_read_only(p);
  sim_driver_init(p);
}

void sim_watch_cancel(const sim_process *p, lk_watch *w, bool on_server)
{
  if (on_server)
    (void)lk_watch_remove(p->client, w, NULL, NULL);
  else
    lk_watch_cancel(p->client, w);
}

void sim_process_destroy(sim_process *p)
{
  sim_unschedule(&p->world->agenda, &p->resume_job);
  sim_unschedule(&p->world->agenda, &p->close_job);
  sim_driver_stop(p, SIM_CLOSE_SILENTLY);
  sim_actors_destroy(p);
}

void sim_process_start_in(sim_process *p, int64_t in_us)
{
  if (!p->paused)
    sim_schedule_in(&p->world->agenda, &p->resume_job, in_us);
}

/* Called when the client was freed and when the locks were, in either order;
 * acts on the second call. */
void sim_process_ended(sim_process *p)
{
  if (p->client != NULL || p->has_locks)
    return;
  sim_checker_note_process_ended(p->world->checker, p);
  SIM_TRACE(&p->world->trace, p->name, "has ended");
}

void sim_process_crash(sim_process *p, sim_close_mode mode)
{
  if (p->client == NULL)
    return;
  SIM_TRACE(&p->world->trace, p->name, "dies%s",
            mode == SIM_CLOSE_SILENTLY ? " with its machine" : "");
  p->paused = false;
  sim_unschedule(&p->world->agenda, &p->resume_job);
  sim_unschedule(&p->world->agenda, &p->close_job);
  sim_driver_stop(p, mode);
  sim_actors_forget(p);
  p->client = NULL;
  while (p->blocks != NULL)
    free_block(p, p->blocks);
  sim_process_ended(p);
}

/* Frees the locks and then the client, or in one of three cases the client
 * first. A client that is freed in a callback ends after the callback. */
void sim_process_free_client(sim_process *p)
{
  lk_client *client = p->client;
  bool client_first = sim_one_in(&p->rng, 3);

  if (p->client == NULL || p->freeing_client)
    return;
  SIM_TRACE(&p->world->trace, p->name, "frees its client");
  sim_unschedule(&p->world->agenda, &p->close_job);
  p->freeing_client = true;
  p->has_locks = true;
  if (client_first)
    lk_client_free(client);
  sim_actors_free(p);
  p->has_locks = false;
  if (client_first)
    sim_process_ended(p);
  else
    lk_client_free(client); /* hook_freed() calls sim_process_ended() */
}

static void advance_clock(sim_process *p, int64_t for_us)
{
  if (p->busy_until_us < p->world->agenda.now_us)
    p->busy_until_us = p->world->agenda.now_us;
  p->busy_until_us += for_us;
}

void sim_process_spend_in_callback(sim_process *p, int64_t for_us)
{
  if (!p->in_loop)
    return;
  advance_clock(p, for_us);
  SIM_TRACE(&p->world->trace, p->name, "spends in a callback %" PRId64 " ms",
            for_us / SIM_MS);
}

/* The time to the next deadline of the client, or a millisecond more or
 * less. */
static int64_t random_time_to_deadline(sim_process *p)
{
  int64_t due = p->client == NULL ? INT64_MAX : lk_client_deadline(p->client);
  int64_t us = sim_process_true_us(p, due);
  int64_t now = p->world->agenda.now_us;

  if (us == INT64_MAX || us < now)
    return SIM_MS;
  return us - now + sim_between(&p->rng, -1, 1) * SIM_MS;
}

int64_t sim_process_read_clock(sim_process *p)
{
  if (p->jump_after_readings > 0 && !p->world->in_checker &&
      --p->jump_after_readings == 0) {
    int64_t us = p->jump_us > 0 ? p->jump_us : random_time_to_deadline(p);

    SIM_TRACE(&p->world->trace, p->name, "clock jumps by %" PRId64 " us", us);
    p->clock_before_jump_ms = sim_process_clock_before(p);
    p->jumped_us = p->world->agenda.now_us;
    if (us > 0)
      advance_clock(p, us);
  }
  return sim_process_clock(p);
}

int64_t sim_process_clock_before(const sim_process *p)
{
  return p->jumped_us > 0 && p->jumped_us == p->world->agenda.now_us
             ? p->clock_before_jump_ms
             : sim_process_clock(p);
}

void sim_process_pause_for_spent_time(sim_process *p)
{
  int64_t us = p->busy_until_us - p->world->agenda.now_us;

  if (us > 0)
    sim_process_pause(p, us);
}

void sim_process_pause_at_step(sim_process *p, int64_t for_us, unsigned step)
{
  if (step == SIM_LOOP_NO_STEP) {
    sim_process_pause(p, for_us);
  } else if (sim_process_runs(p)) {
    p->pause_at_step = step;
    p->pause_at_step_us = for_us;
  }
}

void sim_process_pause(sim_process *p, int64_t for_us)
{
  sim_agenda *a = &p->world->agenda;

  if (!sim_process_runs(p))
    return;
  p->paused = true;
  p->paused_until_us = a->now_us + for_us;
  SIM_TRACE(&p->world->trace, p->name, "is paused for %" PRId64 " ms",
            for_us / SIM_MS);
  sim_schedule_at(a, &p->resume_job, p->paused_until_us);
}
