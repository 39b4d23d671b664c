/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"
#include "sim/world/allocate.h"

#include "recipes/locks/lock.h"

#include <string.h>

/* Reports facts of a process from its start to its end: session states, frames
 * that it sends, handles and requests. */

/* Each frame that a client sends begins with its length, its xid and its
 * opcode. */
enum { INT_SIZE = 4, XID_OFFSET = INT_SIZE, OP_OFFSET = XID_OFFSET + INT_SIZE };

void sim_life_end(sim_life *l)
{
  l->process = NULL;
  l->handles = NULL;
  while (l->requests != NULL) {
    sim_request *r = l->requests;

    l->requests = r->next;
    free(r->ops);
    free(r->persistent);
    free(r);
  }
  sim_received_end(l);
}

static void begin_session(sim_checker *checker, sim_life *l)
{
  int64_t id = lk_client_session(l->process->client).id;

  if (l->session == NULL || l->session->id != id) {
    l->session = sim_history_session(&checker->history, id);
    l->top_zxid = 0;
    l->xid = 0;
  }
  l->session->known_ms = lk_client_timeout_ms(l->process->client);
  l->session->process = l->process->index;
  l->session->life = l->process->life;
}

/* The client is connected to a read-only server. It has no session there, and
 * the server's data may be old, so a watch that is re-registered on the next
 * connection may report anything. */
static void begin_read_only(sim_life *l)
{
  l->session = NULL;
  l->top_zxid = 0;
  l->xid = 0;
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->watch_registered)
      r->may_report_anything = true;
  }
}

static void on_state(lk_client *c, lk_state state, int err, void *arg)
{
  sim_life *l = arg;
  sim_checker *checker = l->process->world->checker;
  lk_state from = l->state;

  (void)c;
  l->state = state;
  if (state == LK_STATE_CONNECTED)
    begin_session(checker, l);
  l->undisturbed_since_us = sim_now_us(checker);
  l->seen_zxid = 0;
  sim_coverage_state_change(from, state);
  sim_report_fact(checker, &(sim_fact){.type = SIM_STATE,
                                       .life = l,
                                       .from = from,
                                       .state = state,
                                       .err = err});
  if (state == LK_STATE_READ_ONLY)
    begin_read_only(l);
}

static void on_reply(lk_client *c, const lk_reply *reply, void *arg)
{
  sim_life *l = arg;

  (void)c;
  if (reply->zxid > l->seen_zxid)
    l->seen_zxid = reply->zxid;
  sim_report_fact(l->process->world->checker,
                  &(sim_fact){.type = SIM_REPLY, .life = l, .reply = reply});
}

/* The process that created these nodes died, and another resumes its session.
 * The new one does not know the nodes. */
static void excuse_nodes_of(sim_checker *checker, int64_t session)
{
  sim_history_session(&checker->history, session)->resumed = true;
  for (sim_entry *e = checker->history.existing; e != NULL; e = e->next) {
    if (e->session == session)
      e->is_excused = true;
  }
}

void sim_checker_note_process_started(sim_checker *checker, sim_process *p)
{
  sim_life *l = sim_life_of(checker, p);

  /* sim_checker_note_lease_made() may have set the observer before */
  *l = (sim_life){
      .process = p, .observer = l->observer, .state = LK_STATE_CONNECTING};
  l->listener = (lk_listener){.size = sizeof(lk_listener),
                              .state = on_state,
                              .reply = on_reply,
                              .arg = l};
  lk_client_attach(p->client, &l->listener);
  if (p->has_resumed)
    excuse_nodes_of(checker, p->session_to_resume.id);
}

void sim_checker_note_lease_made(sim_checker *checker, sim_process *p)
{
  lk_session_lease *lease = lk__client_lease(p->client);
  sim_life *l = sim_life_of(checker, p);

  l->observer =
      (lk_contender_observer){.on_step = sim_contender_step, .arg = l};
  lease->observer = &l->observer;
}

void sim_checker_note_process_ended(sim_checker *checker, sim_process *p)
{
  sim_life *l = sim_life_of(checker, p);

  sim_report_fact(checker, &(sim_fact){.type = SIM_PROCESS_ENDED,
                                       .life = l,
                                       .was_freed = p->freeing_client});
  sim_contenders_free_of(checker, l);
  for (sim_handle *h = l->handles; h != NULL; h = h->next)
    h->lock = NULL;
  sim_life_end(l);
}

void sim_checker_note_closed(sim_checker *checker, sim_process *p, int err)
{
  sim_life *l = sim_life_of(checker, p);

  sim_report_fact(
      checker, &(sim_fact){.type = SIM_CLIENT_CLOSED, .err = err, .life = l});
}

/* The round of attempts that is under way may miss the addresses that answer.
 */
void sim_checker_note_reachable(sim_checker *checker, sim_process *p)
{
  sim_life *l = sim_life_of(checker, p);

  if (l->process != NULL)
    l->reachable_since_us = 0;
}

void sim_checker_note_connected(sim_checker *checker, sim_process *p)
{
  sim_life *l = sim_life_of(checker, p);

  l->frame_sent = 0;
  l->handshake_sent = false;
  l->last_bytes_us = l->previous_bytes_us = sim_now_us(checker);
  l->progress_us = l->last_bytes_us;
  l->deletes_to_send = 0;
  sim_received_begin(l);
  sim_report_fact(checker, &(sim_fact){.type = SIM_CONNECTED, .life = l});
}

/* An int of Jute: the most significant byte comes first. */
static int32_t int_at(const unsigned char *b)
{
  return (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
                   (uint32_t)b[2] << 8 | b[3]);
}

/* Whether the string of Jute at `at` is the path behind the chroot. */
static bool is_path(const unsigned char *at, const sim_life *l,
                    const char *path)
{
  const char *chroot = l->process->chroot;
  size_t len = strlen(chroot);
  const unsigned char *text = at + INT_SIZE;

  return (size_t)int_at(at) == len + strlen(path) &&
         memcmp(text, chroot, len) == 0 &&
         memcmp(text + len, path, strlen(path)) == 0;
}

/* Whether the frame being sent recovers an own node. Such a request is a multi
 * that checks the directory of a lock or, for a member, the root, or a read of
 * the single-node lock. */
static bool is_recovery(const sim_checker *checker, const sim_life *l)
{
  enum {
    PATH_OF_READ = OP_OFFSET + INT_SIZE,
    /* a multi has the type of its first operation, a byte and an error before
     * the operation */
    PATH_OF_CHECK = OP_OFFSET + INT_SIZE + INT_SIZE + 1 + INT_SIZE
  };
  int32_t op = int_at(l->frame_head + OP_OFFSET);

  if (op == LK_OPCODE_GET_DATA)
    return is_path(l->frame_head + PATH_OF_READ, l, SIM_SINGLE_PATH);
  if (op != LK_OPCODE_MULTI || l->frame_len < PATH_OF_CHECK + INT_SIZE)
    return false;
  for (size_t i = 0; i < checker->world->nlocks; i++) {
    if (is_path(l->frame_head + PATH_OF_CHECK, l, checker->world->locks[i]))
      return true;
  }
  const char *root = *l->process->chroot == '\0' ? "/" : "";

  return is_path(l->frame_head + PATH_OF_CHECK, l, SIM_REQUEST_DIR) ||
         is_path(l->frame_head + PATH_OF_CHECK, l, SIM_ELECTION_DIR) ||
         is_path(l->frame_head + PATH_OF_CHECK, l, root);
}

static void end_frame(sim_checker *checker, sim_life *l)
{
  if (l->handshake_sent) /* the frame is not the connect request */
    sim_report_fact(checker,
                    &(sim_fact){.type = SIM_SENT,
                                .life = l,
                                .xid = int_at(l->frame_head + XID_OFFSET),
                                .op = int_at(l->frame_head + OP_OFFSET),
                                .is_recovery = is_recovery(checker, l)});
  l->handshake_sent = true;
  l->frame_sent = 0;
}

/* The number of bytes that the current frame lacks; until its length is known,
 * those that the length field lacks. */
static size_t bytes_missing(const sim_life *l)
{
  size_t known_len = l->frame_sent < INT_SIZE ? INT_SIZE : l->frame_len;

  return known_len - l->frame_sent;
}

/* Keeps the bytes that belong to the head of the current frame. */
static void keep_head(sim_life *l, const unsigned char *bytes, size_t len)
{
  if (l->frame_sent >= sizeof l->frame_head)
    return;
  size_t room = sizeof l->frame_head - l->frame_sent;

  memcpy(l->frame_head + l->frame_sent, bytes, len < room ? len : room);
}

void sim_checker_note_sent(sim_checker *checker, sim_process *p,
                           const void *bytes, size_t len)
{
  sim_life *l = sim_life_of(checker, p);
  const unsigned char *b = bytes;

  while (len > 0) {
    size_t n = bytes_missing(l) < len ? bytes_missing(l) : len;

    keep_head(l, b, n);
    l->frame_sent += n;
    b += n;
    len -= n;
    if (l->frame_sent == INT_SIZE)
      l->frame_len = INT_SIZE + (size_t)int_at(l->frame_head);
    else if (l->frame_sent > INT_SIZE && bytes_missing(l) == 0)
      end_frame(checker, l);
  }
}

sim_handle *sim_checker_new_handle(sim_checker *checker, sim_process *p)
{
  sim_handle *h = sim_allocate(sizeof *h);

  h->next_of_all = checker->all_handles;
  checker->all_handles = h;
  h->process = p;
  h->next = sim_life_of(checker, p)->handles;
  sim_life_of(checker, p)->handles = h;
  return h;
}

unsigned sim_dirs_vanished(const sim_checker *checker, const sim_handle *h)
{
  unsigned sum = 0;

  for (size_t i = 0; i < h->nplaces; i++)
    sum += checker->history.dirs_vanished[h->places[i].lock_index];
  return sum;
}

bool sim_nodes_contain(const sim_nodes *n, const sim_entry *e)
{
  for (size_t i = 0; i < n->count; i++) {
    if (n->at[i] == e)
      return true;
  }
  return false;
}

static void add_node(sim_nodes *n, sim_entry *e)
{
  if (e != NULL && n->count < SIM_MOST_PARTS)
    n->at[n->count++] = e;
}

void sim_checker_note_acquire_called(sim_checker *checker, sim_handle *h)
{
  if (h->is_reentry)
    return;
  h->first_node_us = 0;
  h->displaced = false;
  h->nodes_taken = 0;
  h->places_lost = 0;
  h->dirs_vanished = sim_dirs_vanished(checker, h);
  h->other_side_node =
      h->other != NULL && sim_holds(h->other) ? h->other->held.at[0] : NULL;
}

void sim_checker_note_granted(sim_checker *checker, sim_handle *h)
{
  checker->world->grants++;
  h->granted_us = sim_now_us(checker);
  h->granted_ms = sim_process_clock(h->process);
  h->granted_lease_ms = lk_lock_deadline(h->lock) - h->granted_ms;
  h->node_is_watched = false;
  h->revoked = 0;
  h->held.count = 0;
  for (size_t i = 0; i < h->lock->acquisition->count; i++)
    add_node(&h->held, sim_entry_of(checker, h->lock->acquisition->parts[i]));
}

sim_request *sim_checker_new_request(sim_checker *checker, sim_process *p)
{
  sim_life *l = sim_life_of(checker, p);
  sim_request *r = sim_allocate(sizeof *r);

  r->process = p;
  r->number = ++l->nrequests;
  r->next = l->requests;
  l->requests = r;
  return r;
}

sim_write *sim_checker_new_write(sim_checker *checker)
{
  sim_write *x = sim_checker_allocate(checker, sizeof *x);

  *x = (sim_write){.next = checker->writes};
  checker->writes = x;
  return x;
}

size_t sim_checker_count_watches(const sim_checker *checker,
                                 const sim_process *p)
{
  size_t n = 0;

  for (const sim_request *r = checker->lives[p->index].requests; r != NULL;
       r = r->next) {
    if (r->sets_watch && (r->watch_registered || r->completions == 0))
      n++;
  }
  return n;
}

sim_request *sim_checker_registered_watch(const sim_checker *checker,
                                          const sim_process *p, size_t number)
{
  for (sim_request *r = checker->lives[p->index].requests; r != NULL;
       r = r->next) {
    if (!r->watch_registered)
      continue;
    if (number == 0)
      return r;
    number--;
  }
  return NULL;
}

void sim_checker_note_handle_freed(sim_checker *checker, sim_handle *h)
{
  sim_handle **at = &sim_life_of(checker, h->process)->handles;

  while (*at != NULL && *at != h)
    at = &(*at)->next;
  if (*at != NULL)
    *at = h->next;
}
