/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/driver/driver.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

/* The driver asks servers whether they have a quorum, while another connection
   of the client is established. */

static int listener; /* for probes */
static uint16_t port;
static int other_peer; /* the server's end of the other connection */

static lk_client *begin(void)
{
  listener = sockets_listen("127.0.0.1", &port);
  start();
  return new_connected(&other_peer);
}

static void end(void)
{
  stop();
  close(other_peer);
  close(listener);
}

/* Have the client want probe `n`, accept its connection, and read the request.
 */
static int accept_probe(lk_client *c, uint64_t n)
{
  char word[5] = "";

  engine_want_probe(c, n, "127.0.0.1", port);
  while (sockets_quiet(listener))
    turn();

  int peer = sockets_accept(listener);

  while (sockets_quiet(peer))
    turn();
  sockets_read(peer, word, 4);
  ck_assert_str_eq(word, "isro");
  return peer;
}

static void reply_to_probe(lk_client *c, uint64_t n, const char *text,
                           const char *expected)
{
  char line[64];
  int peer = accept_probe(c, n);

  snprintf(line, sizeof line, "probed %u %s\n", (unsigned)n, expected);
  sockets_write(peer, text, strlen(text));
  close(peer);
  expect(c, line);
}

START_TEST(probe_reports_the_reply_when_the_server_closes)
{
  lk_client *c = begin();

  reply_to_probe(c, 1, "rw", "rw");
  reply_to_probe(c, 2, "ro", "ro");
  reply_to_probe(c, 3, "null", "null");
  reply_to_probe(c, 4, "", "");
  reply_to_probe(c, 5, "isro is not executed because", "isro is not exec");
  reply_to_probe(c, 6, "sixteen letters.", "sixteen letters.");
  end();
}
END_TEST

START_TEST(probe_reply_in_pieces_is_joined)
{
  lk_client *c = begin();
  int peer = accept_probe(c, 1);

  sockets_write(peer, "r", 1);
  for (int i = 0; i < 5; i++)
    turn();
  ck_assert(engine_take_log(c, ""));
  sockets_write(peer, "w", 1);
  for (int i = 0; i < 5; i++)
    turn();
  ck_assert(engine_take_log(c, ""));
  close(peer);
  expect(c, "probed 1 rw\n");
  end();
}
END_TEST

START_TEST(failed_probe_connection_is_reported_at_once)
{
  lk_client *c = begin();
  int peer = accept_probe(c, 1);

  sockets_write(peer, "rw", 2);
  sockets_reset(peer);
  expect(c, "probed 1 \n"); /* the reset drops the bytes that had come */
  engine_want_probe(c, 2, "127.0.0.1", sockets_dead_port());
  expect(c, "probed 2 \n");
  engine_want_probe(c, 3, "none.test", port);
  expect(c, "probed 3 \n");
  calls.no_socket = true;
  engine_want_probe(c, 4, "127.0.0.1", port);
  expect(c, "probed 4 \n");
  calls.no_socket = false;
  calls.no_epoll = true;
  engine_want_probe(c, 9, "127.0.0.1", port);
  expect(c, "probed 9 \n");
  calls.no_epoll = false;
  engine_want_probe(c, 5, "127.0.0.1", port);
  calls.send_error = EPIPE;
  expect(c, "probed 5 \n");
  ck_assert(sockets_quiet(other_peer));
  end();
}
END_TEST

/* Probe a name once. Returns whether the probe has connected to the listener,
   which does not reply. */
static bool reaches_listener(lk_client *c, uint64_t n, const char *host)
{
  c->log[0] = '\0';
  engine_want_probe(c, n, host, port);
  while (sockets_quiet(listener) && c->log[0] == '\0')
    turn();
  if (sockets_quiet(listener))
    return false;
  close(sockets_accept(listener));
  RUN_UNTIL(c->log[0] != '\0');
  return true;
}

/* The name has two addresses, and the listener has one of them. */
START_TEST(probe_uses_any_address)
{
  lk_client *c = begin();
  unsigned reached = 0;

  for (uint64_t n = 1; n <= 60; n++)
    if (reaches_listener(c, n, "two.test"))
      reached++;
  ck_assert_uint_le(fake_names_lookups(), 2); /* one a second */
  ck_assert_uint_gt(reached, 0);
  ck_assert_uint_lt(reached, 60);
  end();
}
END_TEST

START_TEST(probe_that_is_not_wanted_any_more_is_closed)
{
  lk_client *c = begin();
  int first = accept_probe(c, 1);
  int second = accept_probe(c, 2);

  ck_assert(sockets_wait_for_end(first));
  engine_want_probe(c, 0, "", 0);
  turn();
  ck_assert(sockets_wait_for_end(second));
  engine_want_probe(c, 3, "silent.test", port);
  turn();
  engine_want_probe(c, 0, "", 0);
  turn();
  ck_assert(engine_take_log(c, ""));
  ck_assert(sockets_quiet(other_peer));
  close(first);
  close(second);
  end();
}
END_TEST

START_TEST(client_is_served_during_a_probe)
{
  lk_client *c = begin();
  int peer = accept_probe(c, 1);

  engine_write(c, "x", 1);
  sockets_write(other_peer, "y", 1);
  expect(c, "received 1\n");
  close(peer);
  expect(c, "probed 1 \n");
  end();
}
END_TEST

static void on_enough(struct ev_loop *l, ev_timer *w, int revents)
{
  (void)w;
  (void)revents;
  ev_break(l, EVBREAK_ALL);
}

START_TEST(loop_sleeps_until_the_probe_has_a_reply)
{
  lk_client *c = begin();
  int peer = accept_probe(c, 1);
  unsigned before = ev_iteration(loop);
  ev_timer enough;

  ev_timer_init(&enough, on_enough, 0.1, 0);
  ev_timer_start(loop, &enough);
  ev_run(loop, 0);
  ck_assert_uint_lt(ev_iteration(loop) - before, 10);
  close(peer);
  expect(c, "probed 1 \n");
  end();
}
END_TEST

static void want_next_probe(lk_client *c, const char *line)
{
  (void)line;
  if (c->probe.attempt == 0 && c->want_calls < 1000)
    engine_want_probe(c, c->want_calls + 100, "127.0.0.1", port);
}

START_TEST(next_probe_may_be_wanted_in_the_callback)
{
  lk_client *c = begin();
  int peer = accept_probe(c, 1);

  c->on_line = want_next_probe;
  close(peer);
  while (sockets_quiet(listener))
    turn();
  end();
}
END_TEST

static void free_when_probed(lk_client *c, const char *line)
{
  if (strncmp(line, "probed", 6) == 0)
    lk_client_free(c);
}

/* Free another client when its probe of this server completes. */
static void probe_and_free(const char *host, uint16_t probed_port)
{
  size_t live = mem.live;
  int peer;
  lk_client *c = new_connected(&peer);

  c->on_line = free_when_probed;
  engine_want_probe(c, 1, host, probed_port);
  while (mem.live != live) {
    if (!sockets_quiet(listener))
      close(sockets_accept(listener));
    turn();
  }
  ck_assert(sockets_wait_for_end(peer));
  close(peer);
}

START_TEST(client_may_be_freed_when_a_probe_completes)
{
  lk_client *c = begin();

  engine_want_probe(c, 1, "none.test",
                    port); /* the driver remembers the name */
  RUN_UNTIL(c->log[0] != '\0');
  probe_and_free("127.0.0.1", sockets_dead_port());
  probe_and_free("none.test", port);
  probe_and_free("127.0.0.1", port);
  end();
}
END_TEST

START_TEST(client_may_be_freed_during_a_probe)
{
  lk_client *c = begin();
  int peer = accept_probe(c, 1);

  lk_client_free(c);
  ck_assert(sockets_wait_for_end(peer));
  close(peer);
  end();
}
END_TEST

START_TEST(probe_without_memory_fails)
{
  lk_client *c = begin();
  bool all_succeeded = false;
  unsigned failed = 0;

  for (size_t n = 1; !all_succeeded; n++) {
    char host[24]; /* each name is looked up once a second */

    snprintf(host, sizeof host, "any%zu.test", n);
    mem.count = 0;
    mem.fail_at = n;
    bool reached = reaches_listener(c, n, host);

    all_succeeded = !failing_mem_failed(&mem);
    ck_assert(reached || !all_succeeded);
    if (!reached)
      failed++;
  }
  ck_assert_uint_ge(failed, 3); /* a probe needs a few allocations */
  mem.fail_at = 0;
  end();
}
END_TEST

START_TEST(forked_child_does_not_probe)
{
  lk_client *c = begin();
  int peer = accept_probe(c, 1);
  int status;
  pid_t child = fork();

  if (child == 0) {
    ev_loop_fork(loop);
    turn();
    lk_client_free(c);
    lk_ev_free(ev);
    _exit(ev_run(loop, EVRUN_NOWAIT) ? 1 : 0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(sockets_quiet(peer));
  sockets_write(peer, "rw", 2);
  close(peer);
  expect(c, "probed 1 rw\n");
  end();
}
END_TEST

SUITE("probe_connection", probe_reports_the_reply_when_the_server_closes,
      probe_reply_in_pieces_is_joined,
      failed_probe_connection_is_reported_at_once, probe_uses_any_address,
      probe_that_is_not_wanted_any_more_is_closed,
      client_is_served_during_a_probe, loop_sleeps_until_the_probe_has_a_reply,
      next_probe_may_be_wanted_in_the_callback,
      client_may_be_freed_when_a_probe_completes,
      client_may_be_freed_during_a_probe, probe_without_memory_fails,
      forked_child_does_not_probe)
