/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * lk__invariants_broken(), which builds with --enable-debug call. Functions
 * break_x() break an invariant, and the check must name it.
 */

#include "proto/engine/client.h"
#include "proto/engine/invariants.h"
#include "proto/wire/opcode.h"

#include "support/harness.h"
#include "support/suite.h"
#include "support/wire.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static harness *h;

static void receive(lk_buf *b)
{
  harness_receive(h, lk__buf_bytes(b), lk__buf_len(b));
  lk__buf_free(b);
}

/* Make a client with two outstanding requests, a one-shot watch that is set,
   and one whose request has no reply yet. */
static void begin(void)
{
  const lk_client_config config = {.size = sizeof config};
  lk_buf b = wire_buf();

  h = calloc(1, sizeof *h);
  failing_mem_init(&h->mem);
  h->mute = true;
  ck_assert_int_eq(harness_init(h, &config), 0);
  harness_settle(h);
  harness_connected(h);
  wire_welcome(&b, 7, 30000);
  receive(&b);
  harness_exists(h, &(harness_call){.name = "e", .watch = "we"}, "/a");
  harness_settle(h);
  b = wire_buf();
  wire_reply(&b, h->client->session.last_xid, 1, LK_ERR_NO_NODE);
  receive(&b);
  harness_get(h, &(harness_call){.name = "g1", .watch = "w1"}, "/a");
  harness_get(h, &(harness_call){.name = "g2", .timeout_ms = 500}, "/b");
  harness_settle(h);
}

/* Make a client that has lost its connection. It has two waiting requests, the
   first with a watch. */
static void begin_waiting(void)
{
  begin();
  harness_failed(h, 0, NULL);
  harness_get(h, &(harness_call){.name = "g3", .watch = "w3"}, "/a");
  harness_get(h, &(harness_call){.name = "g4", .timeout_ms = 500}, "/b");
}

static void end(void)
{
  harness_done(h);
  free(h);
}

/* The i-th request of a list, one of two. */
static lk_request *request_in(const lk_link *list, size_t i)
{
  return LK_OWNER(i == 0 ? list->next : list->prev, lk_request, link);
}

static lk_request *sent(lk_client *c, size_t i)
{
  return request_in(&c->requests.sent, i);
}

static lk_request *waiting(lk_client *c, size_t i)
{
  return request_in(&c->requests.waiting, i);
}

static void break_state(lk_client *c)
{
  c->session.state = LK_STATE_SUSPENDED;
}

static void break_handshake_attempt(lk_client *c)
{
  c->connection.attempt++;
}

static void break_connection_number(lk_client *c)
{
  c->connection.number = 0;
}

static void break_session_id(lk_client *c)
{
  c->session.identity.id = 0;
}

static void break_wanted_move(lk_client *c)
{
  c->move.wanted = true;
}

static void break_output(lk_client *c)
{
  c->output.bytes.end = c->output.bytes.start + 1;
}

static void break_output_limit(lk_client *c)
{
  c->output.limit = 5;
}

static void break_probe_number(lk_client *c)
{
  c->probe.number = 1;
}

static void break_final_err(lk_client *c)
{
  c->session.final_err = LK_ERR_CLOSED;
}

static void break_listeners(lk_client *c)
{
  c->listeners[LK_LISTENERS_ALL].members.prev =
      &c->listeners[LK_LISTENERS_OF_REPLIES].members;
}

static void break_notifying(lk_client *c)
{
  static lk_safe_iterator iterator;

  c->listeners[LK_LISTENERS_ALL].innermost = &iterator;
}

static void break_phase_of_sent(lk_client *c)
{
  c->connection.phase = LK_PHASE_HANDSHAKE;
  c->session.state = LK_STATE_SUSPENDED;
  c->connection.number = 0;
}

static void break_xid(lk_client *c)
{
  sent(c, 1)->xid = sent(c, 0)->xid;
}

static void break_order_of_sent(lk_client *c)
{
  sent(c, 1)->end = sent(c, 0)->end;
}

static void break_end_of_last_sent(lk_client *c)
{
  sent(c, 1)->end += 1;
}

static void break_close_sent(lk_client *c)
{
  c->close.sent = true;
}

static void break_waiting_xid(lk_client *c)
{
  waiting(c, 0)->xid = 5;
}

static void break_waiting_more(lk_client *c)
{
  c->requests.waiting_frames.end++;
}

static void break_waiting_less(lk_client *c)
{
  c->requests.waiting_frames.end--;
}

static void break_waiting_frame(lk_client *c)
{
  waiting(c, 0)->op = LK_OPCODE_SYNC;
}

static void break_phase_of_waiting(lk_client *c)
{
  c->connection.phase = LK_PHASE_LIVE;
  c->session.state = LK_STATE_CONNECTED;
  c->connection.number = 1;
  c->connection.handshake_attempt = c->connection.attempt;
}

static void break_completed(lk_client *c)
{
  sent(c, 0)->completed = true;
}

static void break_open_count(lk_client *c)
{
  c->requests.open++;
}

static void break_deadline(lk_client *c)
{
  c->requests.deadlines.root = NULL;
}

static void break_links(lk_client *c)
{
  sent(c, 1)->link.prev = &c->requests.sent;
}

static void break_unused_count(lk_client *c)
{
  c->requests.unused_count++;
}

static void break_used_count(lk_client *c)
{
  sent(c, 0)->chunk->used_count--;
}

static void undo_used_count(lk_client *c)
{
  sent(c, 0)->chunk->used_count++;
}

static void break_completed_len(lk_client *c)
{
  c->requests.completed_len++;
}

static void break_watch_of_sent(lk_client *c)
{
  sent(c, 0)->watch = NULL;
}

static void break_standing_more(lk_client *c)
{
  c->watches.standing++;
}

static void break_standing_less(lk_client *c)
{
  c->watches.standing--;
}

static void break_pending_count(lk_client *c)
{
  sent(c, 0)->watch->on->pending_count[LK_WATCH_KIND_DATA]++;
}

static void undo_pending_count(lk_client *c)
{
  sent(c, 0)->watch->on->pending_count[LK_WATCH_KIND_DATA]--;
}

static void break_pending_stands(lk_client *c)
{
  sent(c, 0)->watch->standing = true;
}

static void undo_pending_stands(lk_client *c)
{
  sent(c, 0)->watch->standing = false;
}

static void break_phase(lk_client *c)
{
  c->connection.phase = (lk_phase)(LK_PHASE_ENDED + 100);
}

static void break_expired_state(lk_client *c)
{
  c->connection.phase = LK_PHASE_ENDED;
  c->session.state = LK_STATE_EXPIRED;
}

static void break_auth_failed_state(lk_client *c)
{
  c->connection.phase = LK_PHASE_ENDED;
  c->session.state = LK_STATE_AUTH_FAILED;
}

static void break_first_xid(lk_client *c)
{
  sent(c, 0)->xid = 0;
}

static void break_completed_with_deadline(lk_client *c)
{
  sent(c, 1)->completed = true;
}

static void break_set_aside(lk_client *c)
{
  lk_link *l = &sent(c, 0)->link;

  lk__list_remove(l);
  lk__list_add(&c->requests.ending, l);
}

static void break_deadline_set_aside(lk_client *c)
{
  lk_link *l = &sent(c, 1)->link;

  lk__list_remove(l);
  lk__list_add(&c->requests.ending, l);
}

static lk_link *saved_unused;

static void break_unused(lk_client *c)
{
  saved_unused = sent(c, 0)->chunk->unused;
  sent(c, 0)->chunk->unused = NULL;
}

static void undo_unused(lk_client *c)
{
  sent(c, 0)->chunk->unused = saved_unused;
}

static lk_request *unused(lk_client *c)
{
  return LK_OWNER(sent(c, 0)->chunk->unused, lk_request, link);
}

static void break_chunk_of_unused(lk_client *c)
{
  unused(c)->chunk = NULL;
}

static void undo_chunk_of_unused(lk_client *c)
{
  unused(c)->chunk = sent(c, 0)->chunk;
}

static lk_watched *path_a(lk_client *c)
{
  return sent(c, 0)->watch->on;
}

static void break_unsent_count(lk_client *c)
{
  path_a(c)->unsent_count[LK_WATCH_KIND_DATA]++;
}

static void undo_unsent_count(lk_client *c)
{
  path_a(c)->unsent_count[LK_WATCH_KIND_DATA]--;
}

static lk_watched *saved_on;

static void break_path_of_pending(lk_client *c)
{
  saved_on = path_a(c);
  sent(c, 0)->watch->on = NULL;
}

static void undo_path_of_pending(lk_client *c)
{
  sent(c, 0)->watch->on = saved_on;
}

static size_t saved_refs;

static void break_refs(lk_client *c)
{
  saved_refs = path_a(c)->refs;
  path_a(c)->refs = 0;
}

static void undo_refs(lk_client *c)
{
  path_a(c)->refs = saved_refs;
}

/* The watch that stands on /a. */
static lk_watch *standing(lk_client *c)
{
  for (int i = 0; i < LK_WATCH_KINDS; i++) {
    lk_link *list = &path_a(c)->kinds[i];

    if (!lk__list_empty(list))
      return LK_OWNER(list->next, lk_watch, link);
  }
  ck_abort_msg("no watch stands");
}

static lk_watch saved_watch;

static void undo_standing(lk_client *c)
{
  *standing(c) = saved_watch;
}

static void break_path_of_standing(lk_client *c)
{
  saved_watch = *standing(c);
  standing(c)->on = NULL;
}

static void break_kind_of_standing(lk_client *c)
{
  saved_watch = *standing(c);
  standing(c)->kind = LK_WATCH_KIND_RECURSIVE;
}

static void break_standing_pends(lk_client *c)
{
  saved_watch = *standing(c);
  standing(c)->standing = false;
}

static void break_callback_of_standing(lk_client *c)
{
  saved_watch = *standing(c);
  standing(c)->cb = NULL;
}

static void break_added_count(lk_client *c)
{
  c->watches.added++;
}

static void break_recursive_count(lk_client *c)
{
  c->watches.recursive++;
}

static void break_running_reply(lk_client *c)
{
  static lk_reply reply;

  c->input.reply = &reply;
}

static void break_pings(lk_client *c)
{
  c->pings.sent_ms.count = 1;
}

static void break_unanswered_set_watches(lk_client *c)
{
  c->set_watches.unanswered = 1;
}

static void break_read_only(lk_client *c)
{
  c->connection.read_only = true;
}

static void break_rejected(lk_client *c)
{
  c->rejected.op = LK_OPCODE_GET_DATA;
}

static void break_retry_of_set_watches(lk_client *c)
{
  c->set_watches.retry_ms = 5;
}

static void break_set_watches_under_way(lk_client *c)
{
  c->watches.set_watches_under_way = true;
}

static void break_ended_watch(lk_client *c)
{
  static lk_link l;

  lk__list_add(&c->watches.ended, &l);
}

/* Changes a bit of the length in front of the first frame. */
static void flip_bit_of_length(lk_client *c, size_t byte, unsigned char bit)
{
  unsigned char *length = lk__buf_bytes(&c->requests.waiting_frames);

  ck_assert_ptr_nonnull(length);
  length[byte] ^= bit;
}

static void break_sign_of_length(lk_client *c)
{
  flip_bit_of_length(c, 0, 0x80);
}

static void break_length(lk_client *c)
{
  flip_bit_of_length(c, 3, 1);
}

typedef struct breakage {
  void (*break_it)(lk_client *c);
  const char *message_part; /* a part of the message that names the invariant */
  void (*undo)(lk_client *c); /* restores memory other than the client and its
                                 requests; NULL: only these were changed */
} breakage;

/* For the client of begin(). */
static const breakage with_connection[] = {
    {break_state, "state", NULL},
    {break_handshake_attempt, "without a handshake", NULL},
    {break_connection_number, "number of the connection", NULL},
    {break_session_id, "without a session", NULL},
    {break_output_limit, "fence", NULL},
    {break_probe_number, "probe", NULL},
    {break_final_err, "an end", NULL},
    {break_listeners, "attached twice", NULL},
    {break_notifying, "being notified", NULL},
    {break_phase_of_sent, "under way without a connection", NULL},
    {break_xid, "xid of its own", NULL},
    {break_order_of_sent, "do not ascend", NULL},
    {break_end_of_last_sent, "behind the output", NULL},
    {break_close_sent, "closeSession", NULL},
    {break_completed, "keeps what it had", NULL},
    {break_open_count, "in no list", NULL},
    {break_deadline, "deadline is not", NULL},
    {break_links, "in two lists", NULL},
    {break_unused_count, "unused requests", NULL},
    {break_used_count, "requests of a chunk", undo_used_count},
    {break_watch_of_sent, "pending without its request", NULL},
    {break_standing_more, "fewer watches", NULL},
    {break_standing_less, "more watches", NULL},
    {break_pending_count, "counted wrong", undo_pending_count},
    {break_pending_stands, "pending in a wrong list", undo_pending_stands},
    {break_phase, "state", NULL},
    {break_expired_state, "state", NULL},
    {break_auth_failed_state, "state", NULL},
    {break_first_xid, "xid of its own", NULL},
    {break_completed_with_deadline, "deadline is not", NULL},
    {break_set_aside, "set aside", NULL},
    {break_deadline_set_aside, "deadline is not", NULL},
    {break_unused, "requests of a chunk", undo_unused},
    {break_chunk_of_unused, "in its chunk alone", undo_chunk_of_unused},
    {break_unsent_count, "counted wrong", undo_unsent_count},
    {break_path_of_pending, "pending in a wrong list", undo_path_of_pending},
    {break_refs, "than references", undo_refs},
    {break_path_of_standing, "stands in a wrong list", undo_standing},
    {break_kind_of_standing, "stands in a wrong list", undo_standing},
    {break_standing_pends, "stands in a wrong list", undo_standing},
    {break_callback_of_standing, "stands in a wrong list", undo_standing},
    {break_added_count, "fewer watches", NULL},
    {break_recursive_count, "fewer watches", NULL},
    {break_running_reply, "being notified", NULL},
};

/* For the client of begin_waiting(). */
static const breakage without_connection[] = {
    {break_wanted_move, "outlives it", NULL},
    {break_output, "output without", NULL},
    {break_waiting_xid, "waits has an xid", NULL},
    {break_completed_len, "waits is counted wrong", NULL},
    {break_waiting_more, "more frames", NULL},
    {break_waiting_less, "less than its frame", NULL},
    {break_waiting_frame, "another frame", NULL},
    {break_phase_of_waiting, "waits though", NULL},
    {break_pings, "outlives it", NULL},
    {break_unanswered_set_watches, "outlives it", NULL},
    {break_read_only, "outlives it", NULL},
    {break_rejected, "outlives it", NULL},
    {break_retry_of_set_watches, "outlives it", NULL},
    {break_set_watches_under_way, "outlives it", NULL},
    {break_ended_watch, "outlives the connection", NULL},
    {break_sign_of_length, "another frame", break_sign_of_length},
    {break_length, "another frame", break_length},
};

/* Break the invariant, check the message, and restore the client. */
static void expect_message(const breakage *b)
{
  lk_client *c = h->client, saved_client = *c;
  lk_link *list = lk__list_empty(&c->requests.sent) ? &c->requests.waiting
                                                    : &c->requests.sent;
  lk_request *requests[] = {request_in(list, 0), request_in(list, 1)};
  lk_request saved_requests[] = {*requests[0], *requests[1]};

  ck_assert_ptr_null(lk__invariants_broken(c, LK_MOMENT_REST));
  b->break_it(c);
  const char *message = lk__invariants_broken(c, LK_MOMENT_REST);

  ck_assert_msg(message != NULL && strstr(message, b->message_part) != NULL,
                "not \"%s\" but \"%s\"", b->message_part,
                message == NULL ? "nothing" : message);
  memcpy(c, &saved_client, sizeof saved_client);
  for (size_t i = 0; i < 2; i++)
    *requests[i] = saved_requests[i];
  if (b->undo != NULL)
    b->undo(c);
}

START_TEST(each_broken_invariant_is_named)
{
  begin();
  for (size_t i = 0; i < sizeof with_connection / sizeof with_connection[0];
       i++)
    expect_message(&with_connection[i]);
  end();
  begin_waiting();
  for (size_t i = 0;
       i < sizeof without_connection / sizeof without_connection[0]; i++)
    expect_message(&without_connection[i]);
  end();
}
END_TEST

/* Between two connections a client has one of these states. It has EXPIRED only
   during a call, until the new session begins. */
START_TEST(without_a_connection_only_three_states_are_allowed)
{
  begin_waiting();
  for (lk_moment m = LK_MOMENT_CALLBACK; m <= LK_MOMENT_REST; m++) {
    for (lk_state s = LK_STATE_CONNECTING; s <= LK_STATE_CLOSED; s++) {
      bool allowed = s == LK_STATE_CONNECTING || s == LK_STATE_SUSPENDED ||
                     (s == LK_STATE_EXPIRED && m != LK_MOMENT_REST);

      h->client->session.state = s;
      ck_assert((lk__invariants_broken(h->client, m) == NULL) == allowed);
    }
  }
  h->client->session.state = LK_STATE_SUSPENDED; /* as before */
  end();
}
END_TEST

/* Returns the wait status of a child process in which the client counts one
   request too many. */
static int status_after_miscount(void)
{
  pid_t child;
  int status;

  begin();
  child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    h->client->requests.open++;
    lk_client_tick(h->client);
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  end();
  return status;
}

START_TEST(broken_invariant_aborts_a_debug_build_only)
{
#ifdef LK_DEBUG
  ck_assert(WIFSIGNALED(status_after_miscount()));
#else
  ck_assert_int_eq(status_after_miscount(), 0);
#endif
}
END_TEST

SUITE("invariants", each_broken_invariant_is_named,
      without_a_connection_only_three_states_are_allowed,
      broken_invariant_aborts_a_debug_build_only)
