/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/lock.h>
#include <latchkey/poll.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/failing_mem.h"
#include "support/suite.h"
#include "unit/fake/loopback.h"

/* lk_poll with the model server on loopback. */

enum { MAX_FDS = 16, LONG_MS = 1000 * 1000, MAX_SECONDS = 30 };

static loopback server;
static failing_mem mem;
static lk_poll *p;
static lk_client *client;
static unsigned completed;
static int last_err;
static bool frees_in_callback;

static void open_poll(void)
{
  alarm(MAX_SECONDS); /* ends this test if it hangs */
  loopback_start(&server);
  failing_mem_init(&mem);
  completed = 0;
  frees_in_callback = false;
  ck_assert_int_eq(lk_poll_new(&p, &mem.mem), 0);
}

static void close_poll(void)
{
  lk_poll_free(p);
  ck_assert_uint_eq(mem.live, 0);
  loopback_stop(&server);
  alarm(0);
}

static void make_client(void)
{
  const lk_client_config config = {
      .size = sizeof config, .hosts = server.hosts, .mem = &mem.mem};

  ck_assert_int_eq(lk_poll_client_new(&client, p, &config), 0);
}

static void on_end(lk_client *c, int err, const lk_bytes *data,
                   const lk_stat *stat, void *arg)
{
  int ignored_ms = 0;

  (void)c;
  (void)data;
  (void)stat;
  (void)arg;
  completed++;
  last_err = err;
  /* A callback cannot run the lk_poll. */
  ck_assert(!lk_poll_run_once(p, LONG_MS));
  ck_assert(!lk_poll_dispatch(p, NULL, 0));
  ck_assert_uint_eq(lk_poll_prepare(p, NULL, 0, &ignored_ms), 0);
  if (frees_in_callback)
    lk_poll_free(p);
}

static void get(void)
{
  ck_assert_int_eq(lk_get(client, "/none", NULL, on_end, NULL), 0);
}

static void on_get_then_close(lk_client *c, int err, const lk_bytes *data,
                              const lk_stat *stat, void *arg)
{
  (void)data;
  (void)stat;
  (void)arg;
  completed++;
  last_err = err;
  lk_client_close(c, NULL, NULL);
}

START_TEST(run_ends_when_each_client_is_closed)
{
  open_poll();
  for (unsigned i = 0; i < 2; i++) {
    make_client();
    ck_assert_int_eq(lk_get(client, "/none", NULL, on_get_then_close, NULL), 0);
  }
  lk_poll_run(p);
  ck_assert_uint_eq(completed, 2);
  ck_assert_int_eq(last_err, LK_ERR_NO_NODE);
  close_poll();
}
END_TEST

START_TEST(without_a_client_nothing_is_waited_for)
{
  open_poll();
  ck_assert(!lk_poll_run_once(p, -1));
  lk_poll_run(p);
  close_poll();
}
END_TEST

START_TEST(run_once_waits_no_longer_than_its_timeout)
{
  open_poll();
  loopback_freeze(&server);
  make_client();
  for (int i = 0; i < 10; i++)
    ck_assert(lk_poll_run_once(p, 1));
  loopback_thaw(&server);
  close_poll();
}
END_TEST

static atomic_uint signals;
static atomic_bool wait_has_ended;

static void count_signal(int number)
{
  (void)number;
  signals++;
}

/* Sends SIGUSR1 to the thread that waits, until its wait has ended. One signal
   does not suffice: it may be handled just before the wait begins. */
static void *send_signals(void *waiting)
{
  while (!wait_has_ended) {
    pthread_kill(*(pthread_t *)waiting, SIGUSR1);
    usleep(1000);
  }
  return NULL;
}

START_TEST(signal_ends_the_wait)
{
  struct sigaction action = {.sa_handler = count_signal};
  pthread_t self = pthread_self(), sender;

  open_poll();
  loopback_freeze(&server);
  make_client();
  ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
  for (int i = 0; i < 20; i++) {
    signals = 0;
    wait_has_ended = false;
    ck_assert_int_eq(pthread_create(&sender, NULL, send_signals, &self), 0);
    while (signals == 0)
      ck_assert(lk_poll_run_once(p, LONG_MS));
    wait_has_ended = true;
    ck_assert_int_eq(pthread_join(sender, NULL), 0);
  }
  loopback_thaw(&server);
  close_poll();
}
END_TEST

/* ---- a loop of the program ----------------------------------------------- */

/* A turn of a program's own loop. */
static bool own_turn(void)
{
  struct pollfd fds[MAX_FDS];
  int timeout_ms = LONG_MS;
  size_t count = lk_poll_prepare(p, fds, MAX_FDS, &timeout_ms);

  if (count == 0)
    return false; /* `p` is freed */
  ck_assert_int_le(timeout_ms, LONG_MS);
  ck_assert_int_ge(timeout_ms, 0);
  ck_assert_uint_le(count, MAX_FDS);
  if (poll(fds, (nfds_t)count, timeout_ms) < 0) {
    ck_assert_int_eq(errno, EINTR);
    count = 0;
  }
  return lk_poll_dispatch(p, fds, count);
}

/* The driver notices in the next turn that its client is closed. That turn must
   not wait, and the program learns of it. */
static void expect_end_without_waiting(void)
{
  struct pollfd fds[MAX_FDS];
  int timeout_ms;
  size_t count;

  do {
    timeout_ms = -1;
    count = lk_poll_prepare(p, fds, MAX_FDS, &timeout_ms);
    if (lk_client_state(client) == LK_STATE_CLOSED)
      ck_assert_int_eq(timeout_ms, 0);
    ck_assert_int_ge(poll(fds, (nfds_t)count, timeout_ms), 0);
  } while (lk_poll_dispatch(p, fds, count));
  timeout_ms = -1;
  lk_poll_prepare(p, fds, MAX_FDS, &timeout_ms);
  ck_assert_int_eq(timeout_ms, -1); /* the program may go on for itself */
}

START_TEST(loop_of_the_program_ends_if_the_client_ends_before_its_first_turn)
{
  open_poll();
  make_client();
  lk_client_close(client, NULL, NULL);
  expect_end_without_waiting();
  make_client();
  lk_client_free(client);
  make_client();
  lk_client_close(client, NULL, NULL);
  expect_end_without_waiting();
  close_poll();
}
END_TEST

START_TEST(loop_of_the_program_ends_as_soon_as_the_client_is_closed)
{
  open_poll();
  make_client();
  get();
  while (completed < 1)
    ck_assert(own_turn());
  lk_client_close(client, NULL, NULL);
  expect_end_without_waiting();
  close_poll();
}
END_TEST

START_TEST(
    loop_of_the_program_ends_as_soon_as_a_client_without_session_is_closed)
{
  struct pollfd fds[MAX_FDS];
  int timeout_ms = -1;

  open_poll();
  loopback_freeze(&server);
  make_client();
  ck_assert(own_turn());
  size_t count = lk_poll_prepare(p, fds, MAX_FDS, &timeout_ms);

  lk_client_close(client, NULL, NULL);
  if (lk_poll_dispatch(p, fds, count))
    expect_end_without_waiting();
  loopback_thaw(&server);
  close_poll();
}
END_TEST

START_TEST(client_runs_in_a_loop_of_the_program)
{
  open_poll();
  make_client();
  for (unsigned i = 1; i <= 3; i++) {
    get();
    while (completed < i)
      ck_assert(own_turn());
  }
  ck_assert_int_eq(last_err, LK_ERR_NO_NODE);
  lk_client_close(client, NULL, NULL);
  while (own_turn())
    ;
  close_poll();
}
END_TEST

START_TEST(without_room_the_number_of_descriptors_is_returned)
{
  struct pollfd fds[MAX_FDS] = {{.fd = -7}, {.fd = -7}, {.fd = -7}};
  int timeout_ms = 12;

  open_poll();
  make_client();
  size_t count = lk_poll_prepare(p, fds, 0, &timeout_ms);

  ck_assert_uint_ge(count, 2);
  ck_assert_int_eq(fds[0].fd, -7);
  ck_assert_uint_eq(lk_poll_prepare(p, fds, 1, &timeout_ms), count);
  ck_assert_int_ne(fds[0].fd, -7);
  ck_assert_int_eq(fds[1].fd, -7);
  ck_assert_int_le(timeout_ms, 12);
  close_poll();
}
END_TEST

/* ---- one descriptor ------------------------------------------------------ */

static bool becomes_readable(int fd, int timeout_ms)
{
  struct pollfd it = {.fd = fd, .events = POLLIN};

  return poll(&it, 1, timeout_ms) == 1;
}

/* A turn of a program that watches lk_poll_fd() alone. */
static bool fd_turn(void)
{
  int fd = lk_poll_fd(p);

  ck_assert_int_ge(fd, 0);
  ck_assert(becomes_readable(fd, LONG_MS));
  return lk_poll_dispatch(p, NULL, 0);
}

/* Handle what is due until the descriptor is not readable. */
static void rest(int fd)
{
  const int no_wait_ms = 0;

  for (int turns = 0; becomes_readable(fd, no_wait_ms); turns++) {
    ck_assert(lk_poll_dispatch(p, NULL, 0));
    ck_assert_int_lt(turns, 100);
  }
}

/* Have a client connect and rest. Returns the descriptor. */
static int open_idle_poll(void)
{
  open_poll();
  make_client();
  get();
  while (completed < 1)
    ck_assert(fd_turn());
  int fd = lk_poll_fd(p);

  rest(fd);
  return fd;
}

START_TEST(client_runs_behind_one_descriptor)
{
  open_poll();
  int fd = lk_poll_fd(p);

  make_client();
  for (unsigned i = 1; i <= 3; i++) {
    get();
    while (completed < i)
      ck_assert(fd_turn());
  }
  ck_assert_int_eq(last_err, LK_ERR_NO_NODE);
  ck_assert_int_eq(lk_poll_fd(p), fd);
  lk_client_close(client, NULL, NULL);
  while (fd_turn())
    ;
  close_poll();
}
END_TEST

START_TEST(descriptor_can_be_made_while_clients_run)
{
  open_poll();
  make_client();
  get();
  while (completed < 1)
    ck_assert(lk_poll_run_once(p, -1));
  get();
  while (completed < 2)
    ck_assert(fd_turn());
  get();
  while (completed < 3)
    ck_assert(lk_poll_run_once(p, -1)); /* still possible */
  close_poll();
}
END_TEST

START_TEST(descriptor_is_readable_only_when_there_is_work)
{
  int fd = open_idle_poll();

  ck_assert(!becomes_readable(fd, 50));
  get();
  ck_assert(becomes_readable(fd, 0));
  while (completed < 2)
    ck_assert(fd_turn());
  rest(fd);
  lk_poll_wake(p);
  ck_assert(becomes_readable(fd, LONG_MS));
  rest(fd);
  close_poll();
}
END_TEST

static void note_fired(lk_client *c, void *arg)
{
  *(int64_t *)arg = lk_client_clock(c);
}

START_TEST(descriptor_is_readable_when_a_timer_is_due)
{
  int64_t fired_ms = 0;
  lk_timer timer = {.fire = note_fired, .arg = &fired_ms};

  open_idle_poll();
  int64_t due_ms = lk_client_clock(client) + 30;

  lk_timer_start(client, &timer, due_ms);
  while (fired_ms == 0)
    ck_assert(fd_turn());
  ck_assert_int_ge(fired_ms, due_ms);
  ck_assert_int_lt(fired_ms, due_ms + 5000);
  close_poll();
}
END_TEST

/* Each way to run an lk_poll, until a callback frees it. */
static void free_inside(bool (*turn)(void))
{
  open_poll();
  make_client();
  frees_in_callback = true;
  get();
  while (turn())
    ;
  ck_assert_uint_eq(completed, 1);
  p = NULL;
  close_poll();
}

static bool library_turn(void)
{
  return lk_poll_run_once(p, -1);
}

START_TEST(callback_may_free_it)
{
  free_inside(library_turn);
  free_inside(own_turn);
  free_inside(fd_turn);
}
END_TEST

/* Freeing the client invokes the callback of its request inside of
   lk_poll_free(). */
START_TEST(request_completes_at_the_latest_when_it_is_freed)
{
  open_poll();
  make_client();
  get();
  lk_poll_free(p);
  p = NULL;
  ck_assert_uint_eq(completed, 1);
  ck_assert_int_eq(last_err, LK_ERR_CLOSED);
  close_poll();
}
END_TEST

/* ---- threads and forks --------------------------------------------------- */

static atomic_uint woken;

static void on_wake(lk_poll *q, void *arg)
{
  ck_assert_ptr_eq(q, p);
  ck_assert_ptr_eq(arg, &woken);
  woken++;
}

static void *wake_from_thread(void *arg)
{
  (void)arg;
  lk_poll_wake(p);
  return NULL;
}

START_TEST(other_thread_ends_the_wait)
{
  pthread_t thread;

  open_poll();
  loopback_freeze(&server);
  make_client();
  lk_poll_on_wake(p, on_wake, &woken);
  ck_assert_int_eq(pthread_create(&thread, NULL, wake_from_thread, NULL), 0);
  while (woken == 0)
    ck_assert(lk_poll_run_once(p, -1));
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  lk_poll_on_wake(p, NULL, NULL);
  lk_poll_wake(p);
  ck_assert(lk_poll_run_once(p, -1));
  ck_assert_uint_eq(woken, 1);
  loopback_thaw(&server);
  close_poll();
}
END_TEST

static void free_when_woken(lk_poll *q, void *arg)
{
  const lk_client_config config = {.size = sizeof config};
  lk_client *refused;

  (void)arg;
  lk_poll_free(q);
  /* It exists until the function that runs it returns. */
  lk_poll_wake(q);
  ck_assert(!lk_poll_forked(q));
  ck_assert_int_eq(lk_poll_client_new(&refused, q, &config), LK_ERR_CLOSED);
}

START_TEST(wakeup_may_free_it)
{
  open_poll();
  loopback_freeze(&server);
  make_client();
  lk_poll_on_wake(p, free_when_woken, NULL);
  lk_poll_wake(p);
  lk_poll_run(p);
  p = NULL;
  loopback_thaw(&server);
  close_poll();
}
END_TEST

/* Exit code of the child: 0 if all is as the header says. */
static int act_as_child(void)
{
  lk_client *refused;
  const lk_client_config config = {.size = sizeof config};
  bool right = lk_poll_forked(p) &&
               lk_get(client, "/none", NULL, on_end, NULL) == LK_ERR_FORKED &&
               lk_poll_client_new(&refused, p, &config) == LK_ERR_FORKED;

  lk_poll_wake(p);
  lk_poll_run(p); /* ends: in a child no client keeps it running */
  lk_poll_free(p);
  return right && mem.live == 0 ? 0 : 1;
}

START_TEST(forked_child_cannot_use_it_and_the_parent_goes_on)
{
  int status;

  open_poll();
  make_client();
  get();
  while (completed < 1)
    ck_assert(lk_poll_run_once(p, -1));
  pid_t child = fork();

  if (child == 0)
    _exit(act_as_child());
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(!lk_poll_forked(p));
  get();
  while (completed < 2)
    ck_assert(lk_poll_run_once(p, -1));
  ck_assert_int_eq(last_err, LK_ERR_NO_NODE);
  ck_assert_int_ge(lk_poll_clock(p), lk_client_clock(client) - 1000);
  close_poll();
}
END_TEST

/* A child shares the epoll and its timer, and must not change them. */
START_TEST(forked_child_leaves_the_descriptor_of_its_parent_alone)
{
  int status;
  int fd = open_idle_poll();
  pid_t child = fork();

  if (child == 0)
    _exit(lk_poll_fd(p) == LK_ERR_FORKED ? act_as_child() : 2);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(!becomes_readable(fd, 0));
  for (unsigned i = 2; i <= 4; i++) {
    get();
    while (completed < i)
      ck_assert(fd_turn());
  }
  close_poll();
}
END_TEST

START_TEST(constructor_without_memory_leaves_nothing)
{
  size_t n = 0;

  do {
    lk_poll *out = (lk_poll *)(void *)&mem; /* not NULL */

    failing_mem_init(&mem);
    mem.fail_at = ++n;
    int err = lk_poll_new(&out, &mem.mem);

    ck_assert_int_eq(err, failing_mem_failed(&mem) ? LK_ERR_NO_MEMORY : 0);
    ck_assert_int_eq(out == NULL, err != 0);
    lk_poll_free(out);
    ck_assert_uint_eq(mem.live, 0);
  } while (failing_mem_failed(&mem));
  ck_assert_uint_gt(n, 4);
  lk_poll_free(NULL);
}
END_TEST

SUITE("poll", run_ends_when_each_client_is_closed,
      without_a_client_nothing_is_waited_for,
      run_once_waits_no_longer_than_its_timeout, signal_ends_the_wait,
      client_runs_in_a_loop_of_the_program,
      loop_of_the_program_ends_if_the_client_ends_before_its_first_turn,
      loop_of_the_program_ends_as_soon_as_the_client_is_closed,
      loop_of_the_program_ends_as_soon_as_a_client_without_session_is_closed,
      without_room_the_number_of_descriptors_is_returned,
      client_runs_behind_one_descriptor,
      descriptor_can_be_made_while_clients_run,
      descriptor_is_readable_only_when_there_is_work,
      descriptor_is_readable_when_a_timer_is_due, callback_may_free_it,
      request_completes_at_the_latest_when_it_is_freed,
      other_thread_ends_the_wait, wakeup_may_free_it,
      forked_child_cannot_use_it_and_the_parent_goes_on,
      forked_child_leaves_the_descriptor_of_its_parent_alone,
      constructor_without_memory_leaves_nothing)
