/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/properties.h"

#include "sim/actors.h"
#include "sim/need.h"

#include "recipes/lock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATROLS = 16, RESTS_MS = 5000 };

#define PROPERTY(function, name, facts, text) {name, text},
const sim_property sim_properties[] = {SIM_PROPERTIES(PROPERTY)};
const size_t sim_nproperties = sizeof sim_properties / sizeof *sim_properties;

#define FUNCTION(function, name, facts, text) {facts, sim_##function},
static const struct {
  uint32_t facts;
  void (*look)(sim_judge *j, const sim_fact *f);
} looks[] = {SIM_PROPERTIES(FUNCTION)};

void sim_judge_tell(sim_judge *j, const sim_fact *f)
{
  for (size_t i = 0; i < j->ncares[f->type]; i++) {
    j->current = j->cares[f->type][i];
    looks[j->current].look(j, f);
  }
}

/* Who is told of what. */
static void see_who_cares(sim_judge *j)
{
  for (size_t t = 0; t < SIM_NFACTS; t++) {
    j->ncares[t] = 0;
    for (size_t i = 0; i < sim_nproperties; i++) {
      if ((looks[i].facts & SIM_FACT(t)) != 0 && !j->verdicts[i].off)
        j->cares[t][j->ncares[t]++] = (unsigned char)i;
    }
  }
}

void sim_accuse(sim_judge *j, const char *format, ...)
{
  char *what = j->verdicts[j->current].what;
  char text[sizeof j->verdicts->what];
  va_list args;

  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  j->violations++;
  if (j->verdicts[j->current].broken++ == 0)
    memcpy(what, text, sizeof text);
  SIM_SAY(&j->world->trace, "judge", "%s: %s", sim_properties[j->current].name,
          text);
}

/* ---- life --------------------------------------------------------------- */

sim_judge *sim_judge_new(sim_world *w)
{
  sim_judge *j = sim_need(sizeof *j);

  j->world = w;
  j->verdicts = sim_need(sim_nproperties * sizeof *j->verdicts);
  j->ledger.agenda = &w->agenda;
  j->ledger.locks = w->locks;
  j->ledger.nlocks = &w->nlocks;
  j->leader = -1;
  see_who_cares(j);
  return j;
}

static void forget_attempts(sim_judge *j, const sim_life *l)
{
  for (sim_attempt **at = &j->attempts; *at != NULL;) {
    sim_attempt *a = *at;

    if (a->life == l || l == NULL) {
      *at = a->next;
      free(a);
    } else {
      at = &a->next;
    }
  }
}

typedef struct sim_chunk {
  struct sim_chunk *next;
} sim_chunk;

void *sim_judge_take(sim_judge *j, size_t size)
{
  sim_chunk *c = sim_need(sizeof *c + size);

  c->next = j->chunks;
  j->chunks = c;
  return c + 1;
}

static void free_chunks(sim_judge *j)
{
  while (j->chunks != NULL) {
    sim_chunk *c = j->chunks;

    j->chunks = c->next;
    free(c);
  }
}

static void free_requests(sim_life *l)
{
  while (l->requests != NULL) {
    sim_request *r = l->requests;

    l->requests = r->next;
    free(r);
  }
}

static void free_handles(sim_judge *j)
{
  while (j->all != NULL) {
    sim_handle *h = j->all;

    j->all = h->all;
    free(h);
  }
}

void sim_judge_free(sim_judge *j)
{
  forget_attempts(j, NULL);
  free_handles(j);
  free_chunks(j);
  for (size_t i = 0; i < SIM_MOST_PROCESSES; i++)
    free_requests(&j->lives[i]);
  sim_ledger_free(&j->ledger);
  free(j->verdicts);
  free(j);
}

bool sim_judge_without(sim_judge *j, const char *property)
{
  for (size_t i = 0; i < sim_nproperties; i++) {
    if (strcmp(sim_properties[i].name, property) == 0) {
      j->verdicts[i].off = true;
      see_who_cares(j);
      return true;
    }
  }
  return false;
}

size_t sim_judge_broken(const sim_judge *j, size_t property, const char **what)
{
  if (what != NULL)
    *what = j->verdicts[property].what;
  return j->verdicts[property].broken;
}

size_t sim_judge_violations(const sim_judge *j)
{
  return j->violations;
}

/* ---- what is committed -------------------------------------------------- */

static void see_made(sim_judge *j, sim_entry *e)
{
  const sim_attempt *a = sim_attempt_for(j, e);

  if (a == NULL || a->handle == NULL)
    return;
  e->of = a->handle;
  e->acquire = a->acquire;
  if (e->of->acquire == a->acquire && e->of->first_us == 0)
    e->of->first_us = e->made_us;
}

static void see_removed(const sim_entry *e)
{
  sim_handle *h = e->of;

  if (h == NULL || e->how == SIM_BY_OWNER || e->acquire != h->acquire)
    return;
  h->displaced = true;
  h->taken++;
}

static void on_made(const sim_node *node, void *arg)
{
  sim_judge *j = arg;
  sim_entry *e = sim_ledger_made(&j->ledger, node);

  if (e == NULL)
    return;
  see_made(j, e);
  sim_judge_tell(j, &(sim_fact){.type = SIM_MADE, .entry = e});
}

static void on_removed(const sim_node *node, int64_t zxid, void *arg)
{
  sim_judge *j = arg;

  sim_ledger_removed(&j->ledger, node, zxid);
}

static void on_committed(const sim_commit *commit, const sim_tree *truth,
                         void *arg)
{
  sim_judge *j = arg;

  sim_ledger_committed(&j->ledger, commit, truth);
  while (j->ledger.going != NULL) {
    sim_entry *e = j->ledger.going;

    j->ledger.going = e->next;
    e->next = NULL;
    see_removed(e);
    sim_judge_tell(j, &(sim_fact){.type = SIM_REMOVED, .entry = e});
  }
  sim_judge_tell(j, &(sim_fact){.type = SIM_COMMITTED, .commit = commit});
}

static void on_session_ended(int64_t session, bool expired, void *arg)
{
  sim_judge *j = arg;

  sim_ledger_ended(&j->ledger, session, expired);
  sim_judge_tell(
      j, &(sim_fact){.type = SIM_OVER,
                     .session = sim_ledger_session(&j->ledger, session)});
}

sim_ensemble_hooks sim_judge_hooks(sim_judge *j)
{
  return (sim_ensemble_hooks){.committed = on_committed,
                              .created = on_made,
                              .deleted = on_removed,
                              .session_ended = on_session_ended,
                              .arg = j};
}

void sim_judge_doomed(sim_judge *j, int64_t session)
{
  sim_ledger_session(&j->ledger, session)->doomed = true;
}

/* ---- processes ---------------------------------------------------------- */

static void begin_session(sim_judge *j, sim_life *l)
{
  int64_t id = lk_client_session(l->process->client).id;

  if (l->session != NULL && l->session->id == id)
    return;
  l->session = sim_ledger_session(&j->ledger, id);
  l->session->process = l->process->index;
  l->session->life = l->process->life;
  l->top_zxid = 0;
  l->xid = 0;
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  sim_life *l = arg;
  sim_judge *j = l->process->world->judge;
  lk_state from = l->state;

  (void)c;
  l->state = state;
  if (state == LK_STATE_CONNECTED)
    begin_session(j, l);
  l->smooth_us = sim_now_us(j);
  l->seen_zxid = 0;
  sim_coverage_session(from, state);
  sim_judge_tell(j, &(sim_fact){.type = SIM_STATE,
                                .life = l,
                                .from = from,
                                .state = state,
                                .err = err});
}

static void on_answer(lk_client *c, const lk_answer *answer, void *arg)
{
  sim_life *l = arg;

  (void)c;
  if (answer->zxid > l->seen_zxid)
    l->seen_zxid = answer->zxid;
  sim_judge_tell(l->process->world->judge,
                 &(sim_fact){.type = SIM_ANSWER, .life = l, .answer = answer});
}

static void on_step(void *arg, const lk_contend *ct, lk_contend_event ev,
                    lk_contend_state from);

void sim_judge_started(sim_judge *j, sim_process *p)
{
  sim_life *l = sim_life_of(j, p);

  *l = (sim_life){.process = p, .state = LK_STATE_CONNECTING};
  l->listener = (lk_listener){.state = on_state, .answer = on_answer, .arg = l};
  lk_client_attach(p->client, &l->listener);
  p->keeper->on_step = on_step;
  p->keeper->on_step_arg = l;
}

void sim_judge_gone(sim_judge *j, sim_process *p)
{
  sim_life *l = sim_life_of(j, p);

  sim_judge_tell(j,
                 &(sim_fact){.type = SIM_GONE, .life = l, .left = p->leaving});
  forget_attempts(j, l);
  for (sim_handle *h = l->handles; h != NULL; h = h->next)
    h->lock = NULL;
  l->process = NULL;
  l->handles = NULL;
  free_requests(l);
}

void sim_judge_connected(sim_judge *j, sim_process *p)
{
  sim_life *l = sim_life_of(j, p);

  l->sent = 0;
  l->greeted = false;
  l->deletes_due = 0;
}

static int32_t int_at(const unsigned char *b)
{
  return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
                   (uint32_t)b[2] << 8 | b[3]);
}

/* A multi that checks the directory of a lock looks for a node there. */
static bool is_look(const sim_judge *j, const sim_life *l)
{
  enum { OP = 8, PATH = 21, MULTI = 14 };
  const unsigned char *path = l->head + PATH + 4;

  if (int_at(l->head + OP) != MULTI || l->frame < PATH + 4)
    return false;
  for (size_t i = 0; i < j->world->nlocks; i++) {
    size_t len = strlen(j->world->locks[i]);

    if ((size_t)int_at(l->head + PATH) == len &&
        memcmp(path, j->world->locks[i], len) == 0)
      return true;
  }
  return false;
}

static void end_frame(sim_judge *j, sim_life *l)
{
  if (l->greeted)
    sim_judge_tell(j, &(sim_fact){.type = SIM_SENT,
                                  .life = l,
                                  .xid = int_at(l->head + 4),
                                  .op = int_at(l->head + 8),
                                  .looks = is_look(j, l)});
  l->greeted = true;
  l->sent = 0;
}

/* How many bytes the frame at hand still needs, as far as is known. */
static size_t missing(const sim_life *l)
{
  return (l->sent < 4 ? 4 : l->frame) - l->sent;
}

void sim_judge_sent(sim_judge *j, sim_process *p, const void *bytes, size_t len)
{
  sim_life *l = sim_life_of(j, p);
  const unsigned char *b = bytes;

  while (len > 0) {
    size_t n = missing(l) < len ? missing(l) : len;
    size_t room = l->sent < sizeof l->head ? sizeof l->head - l->sent : 0;

    if (room > 0)
      memcpy(l->head + l->sent, b, n < room ? n : room);
    l->sent += n;
    b += n;
    len -= n;
    if (l->sent == 4)
      l->frame = (size_t)int_at(l->head) + 4;
    else if (l->sent > 4 && missing(l) == 0)
      end_frame(j, l);
  }
}

void sim_judge_received(sim_judge *j, sim_process *p, const void *bytes,
                        size_t len)
{
  (void)j;
  (void)p;
  (void)bytes;
  (void)len;
}

sim_handle *sim_judge_handle(sim_judge *j, sim_process *p)
{
  sim_handle *h = sim_need(sizeof *h);

  h->all = j->all;
  j->all = h;
  h->process = p;
  h->next = sim_life_of(j, p)->handles;
  sim_life_of(j, p)->handles = h;
  return h;
}

void sim_judge_asks(sim_judge *j, sim_handle *h)
{
  if (h->again)
    return;
  h->first_us = 0;
  h->displaced = false;
  h->taken = 0;
  h->places_lost = 0;
  h->vanished = j->ledger.vanished[h->lock_at];
}

void sim_judge_grants(sim_judge *j, sim_handle *h)
{
  j->world->grants++;
  h->granted_us = sim_now_us(j);
  h->granted_ms = sim_process_clock(h->process);
  h->watched = false;
  h->held = sim_entry_of(j, h->lock->attempt->parts[0]);
}

sim_request *sim_judge_request(sim_judge *j, sim_process *p)
{
  sim_life *l = sim_life_of(j, p);
  sim_request *r = sim_need(sizeof *r);

  r->process = p;
  r->number = ++l->asked;
  r->next = l->requests;
  l->requests = r;
  return r;
}

size_t sim_judge_watches(const sim_judge *j, const sim_process *p)
{
  size_t n = 0;

  for (const sim_request *r = j->lives[p->index].requests; r != NULL;
       r = r->next)
    n += r->watches && (r->stands || r->ends == 0);
  return n;
}

sim_request *sim_judge_watch(const sim_judge *j, const sim_process *p,
                             size_t number)
{
  for (sim_request *r = j->lives[p->index].requests; r != NULL; r = r->next) {
    if (r->stands && number-- == 0)
      return r;
  }
  return NULL;
}

void sim_judge_forget(sim_judge *j, sim_handle *h)
{
  sim_handle **at = &sim_life_of(j, h->process)->handles;

  while (*at != NULL && *at != h)
    at = &(*at)->next;
  if (*at != NULL)
    *at = h->next;
}

/* ---- attempts ----------------------------------------------------------- */

static sim_attempt *find_attempt(const sim_judge *j, const lk_contend *ct)
{
  sim_attempt *a = j->attempts;

  while (a != NULL && a->ct != ct)
    a = a->next;
  return a;
}

sim_attempt *sim_attempt_for(const sim_judge *j, const sim_entry *e)
{
  sim_attempt *a = j->attempts;

  while (a != NULL && strncmp(a->ct->prefix, e->name, LK_PREFIX_LEN) != 0)
    a = a->next;
  return a;
}

sim_attempt *sim_attempt_of(const sim_judge *j, const sim_handle *h)
{
  const lk_attempt *a = h->lock == NULL ? NULL : h->lock->attempt;

  return a == NULL ? NULL : find_attempt(j, a->parts[0]);
}

sim_entry *sim_entry_of(const sim_judge *j, const lk_contend *ct)
{
  for (sim_entry *e = j->ledger.newest; e != NULL; e = e->older) {
    if (strncmp(e->name, ct->prefix, LK_PREFIX_LEN) == 0)
      return e;
  }
  return NULL;
}

static sim_attempt *new_attempt(sim_judge *j, sim_life *l, const lk_contend *ct)
{
  sim_attempt *a = sim_need(sizeof *a);

  a->ct = ct;
  a->life = l;
  for (sim_handle *h = l->handles; h != NULL; h = h->next) {
    if ((void *)h->lock == ct->owner_arg)
      a->handle = h;
  }
  a->acquire = a->handle == NULL ? 0 : a->handle->acquire;
  a->next = j->attempts;
  j->attempts = a;
  return a;
}

static void forget_before(sim_attempt *a, const lk_contend *ct)
{
  size_t left = 0;

  for (size_t i = 0; i < a->nbefore; i++) {
    if (a->before[i] != ct)
      a->before[left++] = a->before[i];
  }
  a->nbefore = left;
}

static void drop_attempt(sim_judge *j, const lk_contend *ct)
{
  for (sim_attempt *a = j->attempts; a != NULL; a = a->next)
    forget_before(a, ct);
  for (sim_attempt **at = &j->attempts; *at != NULL; at = &(*at)->next) {
    sim_attempt *a = *at;

    if (a->ct == ct) {
      *at = a->next;
      free(a);
      return;
    }
  }
}

/* One more request after a reconnect, or after all the rests that a throttled
 * one takes. */
static int64_t patience_us(const sim_judge *j)
{
  bool throttled = j->world->scenario->faults[SIM_FAULT_THROTTLE] > 0;

  return 2 * sim_T_us(j) + (throttled ? RESTS_MS * SIM_MS : 0);
}

bool sim_overdue(sim_judge *j, const sim_life *l, sim_stuck *s,
                 const sim_entry *e)
{
  if (e == NULL || s->on != e)
    *s = (sim_stuck){.on = e, .zxid = j->ledger.zxid};
  if (e == NULL || l->state != LK_STATE_CONNECTED ||
      !sim_process_runs(l->process) || l->seen_zxid < s->zxid)
    return false;
  if (s->since_us == 0 || s->since_us < l->smooth_us)
    s->since_us = sim_now_us(j);
  if (sim_now_us(j) - s->since_us <= patience_us(j))
    return false;
  s->on = NULL; /* once more after the same time */
  return true;
}

/* Whether servers may be cut off from each other. */
static bool servers_fail(const sim_scenario *s)
{
  static const enum sim_fault faults[] = {
      SIM_FAULT_SERVER_CRASH, SIM_FAULT_SERVER_STOP, SIM_FAULT_RESTARTS,
      SIM_FAULT_FOLLOWER_CUT, SIM_FAULT_LEADER_CUT,  SIM_FAULT_DEPOSED,
      SIM_FAULT_LAG,          SIM_FAULT_PARTITION,   SIM_FAULT_LATE_WRITE};
  bool some = false;

  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    some = some || s->faults[faults[i]] > 0;
  return some;
}

/* Whether another may have begun to lead while the last one did not know. One
 * that stands still, for 3 T at most, begins to notice when it goes on. */
static bool is_deposed(const sim_judge *j)
{
  const sim_ensemble_config *c = &j->world->config;
  const unsigned *faults = j->world->scenario->faults;
  bool stops = faults[SIM_FAULT_SERVER_STOP] + faults[SIM_FAULT_DEPOSED] > 0;
  int64_t limit = (c->sync_limit + 1) * (int64_t)c->tick_ms * SIM_MS +
                  (stops ? 4 : 1) * sim_T_us(j);

  return j->led_us > 0 && sim_now_us(j) - j->led_us < limit;
}

sim_life *sim_owner_of(sim_judge *j, const sim_entry *e)
{
  for (size_t i = 0; i < j->world->nprocesses; i++) {
    sim_life *l = &j->lives[i];

    if (l->process != NULL && sim_process_runs(l->process) &&
        e->session == lk_client_session(l->process->client).id)
      return l;
  }
  return NULL;
}

bool sim_is_written(const sim_judge *j, const char *data)
{
  for (const sim_entry *e = j->ledger.newest; e != NULL; e = e->older) {
    for (const sim_version *v = e->newest; v != NULL; v = v->older) {
      if (strcmp(v->data, data) == 0)
        return true;
    }
  }
  return false;
}

bool sim_beyond_promise(const sim_judge *j, const sim_entry *e)
{
  const sim_session *s = e->by;

  if (e->how == SIM_BY_OTHERS || e->how == SIM_BY_OPERATOR)
    return true;
  if (e->how != SIM_BY_EXPIRY)
    return false;
  if (j->stood_us > 0 && sim_now_us(j) - j->stood_us < 2 * sim_T_us(j))
    return true;
  switch (j->world->processes[s->process].assurance) {
  case LK_ASSURE_QUORUM: return false;
  case LK_ASSURE_SYNC: return is_deposed(j);
  case LK_ASSURE_PING: return servers_fail(j->world->scenario);
  }
  return false;
}

static sim_leave why(const sim_judge *j, const sim_handle *h)
{
  if (h == NULL)
    return SIM_FAILED;
  if (h->freeing)
    return SIM_FREES;
  if (h->cancelling)
    return SIM_CANCELS;
  if (h->letting)
    return SIM_RELEASES;
  if (h->timeout_ms == 0 ||
      (h->timeout_ms > 0 &&
       sim_process_clock(h->process) >= h->asked_ms + h->timeout_ms))
    return SIM_TIMED_OUT;
  (void)j;
  return SIM_FAILED;
}

/* A list that shows who is ahead was answered: by which state of a server? */
static bool has_listed(lk_contend_event ev, lk_contend_state from)
{
  bool lists = from == LK_CONTEND_CREATING || from == LK_CONTEND_PARENTS ||
               from == LK_CONTEND_LISTING || from == LK_CONTEND_LOOKING;

  return lists && (ev == LK_EV_BEHIND || ev == LK_EV_FIRST ||
                   ev == LK_EV_STALE || ev == LK_EV_UNREAD);
}

static void see_list(sim_attempt *a, const lk_client *c)
{
  const lk_answer *answer = lk_client_answer(c);

  a->list_zxid = answer == NULL ? 0 : answer->zxid;
  a->list_connection = lk_client_connection(c);
}

static void on_step(void *arg, const lk_contend *ct, lk_contend_event ev,
                    lk_contend_state from)
{
  sim_life *l = arg;
  sim_judge *j = l->process->world->judge;
  sim_attempt *a = find_attempt(j, ct);

  sim_coverage_step(ev, from);
  if (a == NULL)
    a = new_attempt(j, l, ct);
  if (has_listed(ev, from))
    see_list(a, ct->keeper->client);
  if (ev == LK_EV_STOP)
    a->leave = why(j, a->handle);
  sim_judge_tell(j, &(sim_fact){.type = SIM_STEP,
                                .life = l,
                                .attempt = a,
                                .event = ev,
                                .before = from});
  if (ct->state == LK_CONTEND_OVER)
    drop_attempt(j, ct);
}

/* ---- the run ------------------------------------------------------------ */

static void see_pauses(sim_judge *j)
{
  for (size_t i = 0; i < j->world->nprocesses; i++) {
    sim_life *l = &j->lives[i];

    if (l->process == NULL)
      continue;
    if (l->was_paused && !l->process->paused) {
      l->resumed_us = sim_now_us(j);
      l->smooth_us = sim_now_us(j);
    }
    l->was_paused = l->process->paused;
  }
}

static void see_leader(sim_judge *j)
{
  int leader = sim_ensemble_leader(j->world->ensemble);

  if (leader == j->leader)
    return;
  j->leader = leader;
  j->led_us = sim_now_us(j);
}

/* A lease counts on the leader's pings. One that stands still counts as a
 * leader until another is. */
static void see_stand(sim_judge *j)
{
  if (j->leader >= 0)
    j->last_leader = (unsigned)j->leader;
  if (sim_server_stands(
          sim_ensemble_server(j->world->ensemble, j->last_leader)))
    j->stood_us = sim_now_us(j);
}

void sim_judge_look(sim_judge *j)
{
  see_pauses(j);
  see_leader(j);
  see_stand(j);
  sim_judge_tell(j, &(sim_fact){.type = SIM_LOOK});
  if (sim_now_us(j) < j->patrol_us)
    return;
  j->patrol_us = sim_now_us(j) + sim_T_us(j) / PATROLS;
  if (j->world->calming && j->calming_us == 0)
    j->calming_us = sim_now_us(j);
  sim_judge_tell(j, &(sim_fact){.type = SIM_PATROL});
}

static bool is_idle(const sim_handle *h)
{
  return h->lock == NULL || (!h->wants && h->count == 0 && !h->releases &&
                             !h->verifies && h->guards == 0);
}

static bool is_asking(const sim_life *l)
{
  for (const sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->ends == 0)
      return true;
  }
  return false;
}

bool sim_judge_is_calm(const sim_judge *j)
{
  SIM_EACH_HANDLE(j, h)
  {
    if (!is_idle(h))
      return false;
  }
  for (size_t i = 0; i < j->world->nprocesses; i++) {
    const sim_life *l = &j->lives[i];

    if (l->process != NULL && !l->process->leaving &&
        (is_asking(l) || !sim_actors_idle(l->process) ||
         lk_keeper_unfinished(l->process->keeper) > 0))
      return false;
  }
  return true;
}

void sim_judge_calm(sim_judge *j)
{
  sim_judge_tell(j, &(sim_fact){.type = SIM_CALM});
}

void sim_judge_end(sim_judge *j)
{
  (void)j; /* each was judged when it was gone */
}
