/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/driver.h"

#include "sim/world/checker.h"
#include "sim/world/conditions.h"
#include "sim/world/prober.h"

#include <stdlib.h>

enum {
  READS_MAX = 16, /* in an iteration of the loop */
  READ_SIZE = 64 * 1024,
  FAILED_LOOKUPS_PERMILLE = 10,
  USUAL_LOOKUP_US = 20000,
  LOOKUP_GAP_US = 1000000,
  REMEMBERED_US = 250000
};

/* ---- hooks of the client ------------------------------------------------ */

static int64_t hook_now(void *arg)
{
  return sim_process_read_clock(arg);
}

static void hook_random(void *arg, void *out, size_t len)
{
  sim_process *p = arg;
  unsigned char *bytes = out;

  for (size_t i = 0; i < len; i++)
    bytes[i] = (unsigned char)sim_roll(&p->rng, 256);
}

static void work_in_wake_hook(sim_process *p);

static void hook_wake(lk_client *c, void *arg)
{
  sim_process *p = arg;

  if (p->eager_faults > 0 && p->client == c && !p->paused)
    work_in_wake_hook(p);
  /* p->client is NULL while lk_client_new() runs */
  if (p->client == c || p->client == NULL)
    sim_process_schedule_loop(p);
}

static void hook_freed(lk_client *c, void *arg)
{
  sim_process *p = arg;

  (void)c;
  p->client = NULL;
  sim_driver_stop(p, SIM_CLOSE);
  sim_process_ended(p);
}

lk_hooks sim_driver_hooks(sim_process *p)
{
  return (lk_hooks){.size = sizeof(lk_hooks),
                    .now = hook_now,
                    .random = hook_random,
                    .wake = hook_wake,
                    .freed = hook_freed,
                    .arg = p};
}

/* ---- the connection: each of these may free the client ------------------ */

static void on_ready(void *arg)
{
  sim_process_schedule_loop(arg);
}

static void close_connection(sim_process *p, sim_close_mode mode)
{
  p->resolving = NULL;
  sim_unschedule(&p->world->agenda, &p->remembered_job);
  sim_pipe_close(p->pipe, mode);
  p->pipe = NULL;
  p->reported_open = false;
}

static void report_failure(sim_process *p, int err, const char *why)
{
  close_connection(p, SIM_CLOSE);
  lk_client_failed(p->client, p->attempt, err, why);
}

static void report_end_of_stream(sim_process *p)
{
  enum { NO_ERROR = 0 };

  report_failure(p, NO_ERROR, NULL);
}

/* No attempt to connect to a dead address is ever answered, so none is made. */
static void connect_to(sim_process *p, unsigned server)
{
  if (server == SIM_DEAD)
    return;
  p->pipe = sim_pipe_open(p->world->network, p->index, server, on_ready, p);
}

/* A name such as "s1"; other names have the addresses of all servers. */
static bool is_name_of_one_server(const lk_want *want)
{
  return want->host[1] >= '0' && want->host[1] <= '9';
}

static void connect_to_address(sim_process *p, const lk_want *want)
{
  connect_to(p, is_name_of_one_server(want)
                    ? (unsigned)(want->host[1] - '0')
                    : p->addresses[want->address_index % p->naddresses]);
}

static sim_name *name_of(sim_process *p, const lk_want *want)
{
  return is_name_of_one_server(want) ? &p->names[want->host[1] - '0']
                                     : &p->names[SIM_WORLD_SERVERS];
}

/* The addresses of the name are known. */
static void use_addresses(sim_process *p)
{
  uint64_t attempt = p->attempt;
  lk_want want;

  p->resolving = NULL;
  sim_unschedule(&p->world->agenda, &p->remembered_job);
  want = *lk_client_want(p->client);
  bool of_one_server = is_name_of_one_server(&want);

  lk_client_resolved(p->client, attempt, of_one_server ? 1 : p->naddresses);
  if (p->client == NULL)
    return;
  want = *lk_client_want(p->client);
  if (want.attempt == attempt)
    connect_to_address(p, &want);
}

static void end_lookup(sim_name *m)
{
  sim_process *p = m->process;
  bool failed = sim_chance(&p->rng, FAILED_LOOKUPS_PERMILLE);

  m->running = false;
  m->known = m->known || !failed;
  if (p->resolving != m)
    return;
  if (m->known)
    use_addresses(p);
  else
    report_failure(p, LK_ERR_RESOLVE, "no such name");
}

/* The results for a paused process arrive after the pause. */
static void on_lookup(void *arg)
{
  sim_name *m = arg;

  if (m->process->paused)
    sim_schedule_at(&m->process->world->agenda, &m->lookup_job,
                    m->process->paused_until_us);
  else
    end_lookup(m);
}

static void on_remembered(void *arg)
{
  sim_process *p = arg;

  if (p->paused)
    sim_schedule_at(&p->world->agenda, &p->remembered_job, p->paused_until_us);
  else
    use_addresses(p);
}

static int64_t lookup_duration(sim_process *p)
{
  const sim_world *w = p->world;

  return sim_between(&p->rng, 100,
                     w->slow_lookups > 0 ? 2 * w->timeout_ms * SIM_MS
                                         : USUAL_LOOKUP_US);
}

static void begin_lookup(sim_process *p, sim_name *m)
{
  sim_agenda *a = &p->world->agenda;
  bool asked_lately =
      m->began_us > 0 && a->now_us - m->began_us < LOOKUP_GAP_US;

  if (m->running || asked_lately)
    return;
  m->running = true;
  m->began_us = a->now_us;
  sim_schedule_in(a, &m->lookup_job, lookup_duration(p));
}

/* As the library's own driver: a name is looked up once a second, and addresses
 * that it had before are used after 250 ms. */
static void resolve(sim_process *p, sim_name *m)
{
  sim_agenda *a = &p->world->agenda;

  p->resolving = m;
  begin_lookup(p, m);
  if (!m->running && m->known) {
    use_addresses(p);
  } else if (!m->running) {
    report_failure(p, LK_ERR_RESOLVE, "no such name");
  } else if (m->known) {
    int64_t at_us = m->began_us + REMEMBERED_US;

    sim_schedule_at(a, &p->remembered_job,
                    at_us > a->now_us ? at_us : a->now_us);
  }
}

static void follow_want(sim_process *p)
{
  lk_want want;

  want = *lk_client_want(p->client);
  if (want.attempt == p->attempt)
    return;
  close_connection(p, SIM_CLOSE);
  p->attempt = want.attempt;
  if (p->attempt == 0) /* the client wants no connection */
    return;
  /* Without slow lookups the names of single servers take no time. */
  bool takes_time = !is_name_of_one_server(&want) ||
                    sim_has_condition(p->world, SIM_SLOW_NAMES);
  bool at_once = p->eager_faults > 0 && p->world->slow_lookups == 0;

  if (want.address_index > 0)
    connect_to_address(p, &want);
  else if (!takes_time || at_once)
    use_addresses(p);
  else
    resolve(p, name_of(p, &want));
}

/* Whether the connection of `attempt` still exists. */
static bool is_current(const sim_process *p, uint64_t attempt)
{
  return p->client != NULL && p->attempt == attempt && p->pipe != NULL;
}

/* Receives into the memory of the client, as drivers do in the middle of a long
 * frame. false: the client has none now. */
static bool read_into_client(sim_process *p, size_t len)
{
  size_t size;
  void *room = lk_client_receive_buffer(p->client, p->attempt, 1, &size);

  if (room == NULL)
    return false;
  if (len > size)
    len = size;
  sim_pipe_receive(p->pipe, room, len);
  sim_checker_note_received(p->world->checker, p, room, len);
  lk_client_received(p->client, p->attempt, room, len);
  return true;
}

static void read_available(sim_process *p)
{
  size_t len = sim_pipe_arrived(p->pipe);
  bool into_client = p->world->agenda.now_us % 2 == 0;

  if (len > READ_SIZE)
    len = READ_SIZE;
  if (into_client && read_into_client(p, len))
    return;
  /* exactly this size, so that the sanitizer finds reads beyond the end and
   * after the call */
  unsigned char *room = malloc(len);

  sim_pipe_receive(p->pipe, room, len);
  sim_checker_note_received(p->world->checker, p, room, len);
  lk_client_received(p->client, p->attempt, room, len);
  free(room);
}

static void read_all(sim_process *p)
{
  uint64_t attempt = p->attempt;

  for (int i = 0; i < READS_MAX && is_current(p, attempt); i++) {
    if (sim_pipe_arrived(p->pipe) > 0) {
      read_available(p);
      continue;
    }
    switch (sim_pipe_get_state(p->pipe)) {
    case SIM_PIPE_CLOSED: report_end_of_stream(p); return;
    case SIM_PIPE_RESET:
      report_failure(p, LK_ERR_CONNECTION_LOSS, "reset");
      return;
    case SIM_PIPE_REFUSED: report_failure(p, LK_ERR_CONNECT, "refused"); return;
    case SIM_PIPE_OPEN:
    case SIM_PIPE_CONNECTING: return;
    }
  }
  if (is_current(p, attempt) && sim_pipe_arrived(p->pipe) > 0)
    sim_process_schedule_loop(p);
}

/* Reports a new connection and passes what has arrived, as a loop with poll()
 * and read() would. */
static void read_socket(sim_process *p)
{
  if (p->pipe == NULL || sim_pipe_get_state(p->pipe) == SIM_PIPE_CONNECTING)
    return;
  if (!p->reported_open && sim_pipe_get_state(p->pipe) != SIM_PIPE_REFUSED) {
    p->reported_open = true;
    sim_checker_note_connected(p->world->checker, p);
    lk_client_connected(p->client, p->attempt);
    if (p->client == NULL || p->pipe == NULL)
      return;
  }
  read_all(p);
}

static void write_socket(sim_process *p)
{
  lk_bytes bytes = lk_client_pending(p->client);

  if (bytes.len == 0 || !p->reported_open)
    return;
  size_t taken = sim_pipe_send(p->pipe, bytes.at, bytes.len);

  if (taken == 0)
    return;
  sim_checker_note_sent(p->world->checker, p, bytes.at, taken);
  lk_client_sent(p->client, p->attempt, taken);
}

/* A driver may resolve, connect and send in its wake hook. A connect that fails
 * at once is reported at once. */
static void work_in_wake_hook(sim_process *p)
{
  follow_want(p);
  if (p->client == NULL)
    return;
  if (p->pipe != NULL && !p->reported_open &&
      !sim_server_runs(
          sim_ensemble_server(p->world->ensemble, sim_pipe_server(p->pipe)))) {
    report_failure(p, LK_ERR_CONNECT, "refused at once");
    return;
  }
  if (p->pipe != NULL)
    write_socket(p);
}

/* ---- loop iteration ----------------------------------------------------- */

static void call_tick(sim_process *p)
{
  if (lk_client_deadline(p->client) <= sim_process_clock(p))
    lk_client_tick(p->client);
}

static void set_timer(sim_process *p)
{
  int64_t at = sim_process_true_us(p, lk_client_deadline(p->client));

  if (at == INT64_MAX)
    sim_unschedule(&p->world->agenda, &p->deadline_job);
  else /* a timer may be late, never early */
    sim_schedule_at(&p->world->agenda, &p->deadline_job,
                    at + sim_between(&p->rng, 0, SIM_MS / 4));
}

static void read_connections(sim_process *p)
{
  read_socket(p);
  if (p->client != NULL)
    sim_prober_read(p);
}

static void follow_both_wants(sim_process *p)
{
  follow_want(p);
  if (p->client != NULL)
    sim_prober_update(p);
}

static void run_step(sim_process *p, enum sim_loop_step step)
{
  switch (step) {
  case SIM_LOOP_TICK:
  case SIM_LOOP_TICK_AGAIN: call_tick(p); break;
  case SIM_LOOP_READ: read_connections(p); break;
  case SIM_LOOP_FOLLOW_WANT: follow_both_wants(p); break;
  case SIM_LOOP_WRITE: write_socket(p); break;
  case SIM_LOOP_SET_TIMER: set_timer(p); break;
  case SIM_LOOP_NO_STEP:
  case SIM_LOOP_END: break;
  }
}

/* Whether a pause is due before the next step of the loop; then it starts
 * here. */
static bool start_due_pause(sim_process *p)
{
  int64_t still_busy_us = p->busy_until_us - p->world->agenda.now_us;

  if (p->loop_step == p->pause_at_step) {
    p->pause_at_step = SIM_LOOP_NO_STEP;
    sim_process_pause(p, p->pause_at_step_us);
    return true;
  }
  if (still_busy_us <= 0)
    return false;
  sim_process_pause(p, still_busy_us);
  return true;
}

void sim_driver_run_loop(sim_process *p)
{
  p->in_loop = true;
  while (sim_process_runs(p) && p->loop_step <= SIM_LOOP_END &&
         !start_due_pause(p))
    run_step(p, (enum sim_loop_step)p->loop_step++);
  p->in_loop = false;
  if (!p->paused)
    p->loop_step = SIM_LOOP_TICK;
}

static void on_loop_job(void *arg)
{
  sim_process *p = arg;

  if (sim_process_runs(p))
    sim_driver_run_loop(p);
}

void sim_process_schedule_loop(sim_process *p)
{
  bool will_follow_want = p->in_loop && p->loop_step <= SIM_LOOP_FOLLOW_WANT;

  if (!will_follow_want && !lk__heap_has(&p->loop_job.node))
    sim_schedule_in(&p->world->agenda, &p->loop_job, 0);
}

void sim_driver_init(sim_process *p)
{
  sim_world *w = p->world;

  p->loop_job = (sim_job){.run = on_loop_job, .arg = p};
  p->deadline_job = (sim_job){.run = on_loop_job, .arg = p};
  p->remembered_job = (sim_job){.run = on_remembered, .arg = p};
  for (size_t i = 0; i < sizeof p->names / sizeof *p->names; i++)
    p->names[i] = (sim_name){
        .process = p, .lookup_job = {.run = on_lookup, .arg = &p->names[i]}};
  p->loop_step = SIM_LOOP_TICK;
  if (sim_has_condition(w, SIM_ADDRESSES)) {
    sim_rng r = sim_rng_fork(&p->rng, 'a');

    sim_driver_set_addresses(p, &r, SIM_MOST_DEAD);
  }
  /* One process of three has one name for all servers. Its addresses begin with
   * a random server. */
  if (!sim_one_in(&p->rng, 3))
    return;
  unsigned first = sim_roll(&p->rng, w->config.servers);

  if (p->naddresses > 0) /* sim_driver_set_addresses() has set them */
    return;
  p->naddresses = w->config.servers;
  for (unsigned i = 0; i < w->config.servers; i++)
    p->addresses[i] = (first + i) % w->config.servers;
}

void sim_driver_set_addresses(sim_process *p, sim_rng *r, unsigned dead)
{
  unsigned servers = p->world->config.servers;

  p->naddresses = servers + dead;
  /* puts each address in a random place, whose address moves to the end */
  for (unsigned i = 0; i < p->naddresses; i++) {
    unsigned place = sim_roll(r, i + 1);

    p->addresses[i] = p->addresses[place];
    p->addresses[place] = i < servers ? i : SIM_DEAD;
  }
}

static void forget_names(sim_process *p)
{
  for (size_t i = 0; i < sizeof p->names / sizeof *p->names; i++) {
    sim_name *m = &p->names[i];

    sim_unschedule(&p->world->agenda, &m->lookup_job);
    m->running = false;
    m->known = false;
    m->began_us = 0;
  }
}

void sim_driver_stop(sim_process *p, sim_close_mode mode)
{
  sim_agenda *a = &p->world->agenda;

  close_connection(p, mode);
  sim_prober_stop(p, mode);
  sim_unschedule(a, &p->loop_job);
  sim_unschedule(a, &p->deadline_job);
  forget_names(p);
  p->attempt = 0;
  p->pause_at_step = SIM_LOOP_NO_STEP;
  p->busy_until_us = 0;
  p->jump_after_readings = 0;
  p->loop_step = SIM_LOOP_TICK;
}
