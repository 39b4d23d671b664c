/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "poll/loop.h"
#include "support/failing_mem.h"
#include "support/suite.h"

/* The loop on poll(2), beyond what unit/loop/loop.c tests of every loop. */

enum { MANY = 20, MOST_DESCRIPTORS = 4 };

static lk_poll_loop loop;
static failing_mem mem;

static void open_loop(void)
{
  failing_mem_init(&mem);
  loop = (lk_poll_loop){.count = 0};
  ck_assert_int_eq(lk__poll_loop_init(&loop, &mem.mem), 0);
}

static void close_loop(void)
{
  ck_assert_uint_eq(loop.count, 0);
  lk__poll_loop_reset(&loop);
  ck_assert_uint_eq(mem.live, 0);
}

typedef struct counted_io {
  lk_loop_io base;
  unsigned calls;
  int events;               /* events of the last call */
  struct counted_io *stops; /* stopped in the callback; NULL: none */
} counted_io;

static void on_counted_io(lk_loop_io *io, int events)
{
  counted_io *c = LK_OWNER(io, counted_io, base);

  c->calls++;
  c->events = events;
  if (c->stops != NULL)
    lk__loop_stop_io(&loop.base, &c->stops->base);
}

static counted_io io_of(int fd)
{
  return (counted_io){.base = {.on_events = on_counted_io, .fd = fd}};
}

static void watch(counted_io *c)
{
  lk__loop_set_io(&loop.base, &c->base, LK_LOOP_READ);
}

static void unwatch(counted_io *c)
{
  lk__loop_stop_io(&loop.base, &c->base);
}

static void turn(void)
{
  lk__poll_loop_prepare(&loop);
  lk__poll_loop_wait(&loop, 0);
}

/* A descriptor that is always readable. */
static int readable_fd(void)
{
  int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

  ck_assert_int_ge(fd, 0);
  return fd;
}

START_TEST(watchers_may_stop_in_any_order)
{
  counted_io io[MANY];
  int fd = readable_fd();

  open_loop();
  for (size_t i = 0; i < MANY; i++) {
    io[i] = io_of(fd);
    watch(&io[i]);
  }
  for (size_t stopped = 0; stopped < MANY; stopped++) {
    turn();
    /* 7 and MANY have no common divisor: each watcher stops once. */
    unwatch(&io[stopped * 7 % MANY]);
  }
  turn();
  for (size_t stopped = 0; stopped < MANY; stopped++)
    ck_assert_uint_eq(io[stopped * 7 % MANY].calls, stopped + 1);
  close(fd);
  close_loop();
}
END_TEST

START_TEST(stopped_watcher_is_not_called_for_an_event_that_has_come)
{
  int fd = readable_fd();
  counted_io first = io_of(fd), second = io_of(fd);

  open_loop();
  first.stops = &second;
  second.stops = &first;
  watch(&first);
  watch(&second);
  turn();
  ck_assert_uint_eq(first.calls + second.calls, 1);
  unwatch(&first);
  unwatch(&second);
  close(fd);
  close_loop();
}
END_TEST

START_TEST(urgent_watcher_is_called_first)
{
  int fd = readable_fd();
  counted_io other = io_of(fd), urgent = io_of(fd);

  open_loop();
  urgent.base.urgent = true;
  urgent.stops = &other;
  watch(&other);
  watch(&urgent);
  turn();
  ck_assert_uint_eq(urgent.calls, 1);
  ck_assert_uint_eq(other.calls, 0);
  unwatch(&urgent);
  close(fd);
  close_loop();
}
END_TEST

/* The loop has to grow for the last watcher, and cannot. */
START_TEST(without_memory_the_watcher_gets_an_error)
{
  int fd = readable_fd();

  for (size_t failing = 1; failing <= 2; failing++) {
    counted_io io[MANY], *last;
    size_t count = 0;

    open_loop();
    while (count < loop.capacity) {
      io[count] = io_of(fd);
      watch(&io[count++]);
    }
    last = &io[count++];
    *last = io_of(fd);
    mem.fail_at = mem.count + failing;
    watch(last);
    mem.fail_at = 0;
    turn();
    turn();
    ck_assert_uint_eq(last->calls, 1);
    ck_assert_int_ne(last->events & LK_LOOP_ERROR, 0);
    /* Another event is watched now, for which there is memory. */
    lk__loop_set_io(&loop.base, &last->base, LK_LOOP_READ | LK_LOOP_WRITE);
    turn();
    ck_assert_int_eq(last->events, LK_LOOP_READ | LK_LOOP_WRITE);
    while (count > 0)
      unwatch(&io[--count]);
    close_loop();
  }
  close(fd);
}
END_TEST

static void on_feeding_io(lk_loop_io *io, int events)
{
  on_counted_io(io, events);
  loop.base.type->feed_io(&loop.base, io, LK_LOOP_READ);
}

START_TEST(watcher_that_feeds_itself_does_not_hold_up_the_turn)
{
  int fd = readable_fd();
  counted_io feeding = io_of(fd), other = io_of(fd);

  open_loop();
  feeding.base.on_events = on_feeding_io;
  watch(&other);
  loop.base.type->feed_io(&loop.base, &feeding.base, LK_LOOP_READ);
  ck_assert_int_eq(lk__poll_loop_prepare(&loop), 0); /* no wait */
  unsigned calls = feeding.calls;

  lk__poll_loop_wait(&loop, 0);
  ck_assert_uint_eq(feeding.calls, calls + 1);
  ck_assert_uint_eq(other.calls, 1);
  unwatch(&feeding);
  unwatch(&other);
  close(fd);
  close_loop();
}
END_TEST

START_TEST(fed_watcher_is_called_although_its_events_change)
{
  int fd = readable_fd();
  counted_io io = io_of(fd);

  open_loop();
  watch(&io);
  loop.base.type->feed_io(&loop.base, &io.base, LK_LOOP_READ);
  lk__loop_set_io(&loop.base, &io.base, LK_LOOP_READ | LK_LOOP_WRITE);
  lk__poll_loop_prepare(&loop);
  ck_assert_uint_eq(io.calls, 1);
  ck_assert_int_eq(io.events, LK_LOOP_READ);
  unwatch(&io);
  close(fd);
  close_loop();
}
END_TEST

/* poll() refuses more descriptors than the process may have open. */
START_TEST(after_a_failed_poll_each_watcher_is_called)
{
  struct rlimit before, none;
  int fd = readable_fd();
  counted_io io = io_of(fd);

  open_loop();
  watch(&io);
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = (struct rlimit){0, before.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
  turn();
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
  ck_assert_uint_eq(io.calls, 1);
  unwatch(&io);
  close(fd);
  close_loop();
}
END_TEST

START_TEST(event_that_is_not_watched_any_more_is_not_passed_on)
{
  struct pollfd fds[MOST_DESCRIPTORS];
  int fd = readable_fd();
  counted_io io = io_of(fd);

  open_loop();
  watch(&io);
  lk__poll_loop_prepare(&loop);
  fds[0] = loop.fds[0];
  fds[0].revents = POLLIN;
  lk__loop_set_io(&loop.base, &io.base, LK_LOOP_WRITE);
  lk__poll_loop_dispatch(&loop, fds, 1);
  ck_assert_uint_eq(io.calls, 0);
  unwatch(&io);
  close(fd);
  close_loop();
}
END_TEST

START_TEST(descriptor_that_is_not_open_gets_one_error)
{
  int fd = readable_fd();
  counted_io io = io_of(fd);

  open_loop();
  close(fd);
  watch(&io);
  turn();
  turn();
  ck_assert_uint_eq(io.calls, 1);
  ck_assert_int_ne(io.events & LK_LOOP_ERROR, 0);
  unwatch(&io);
  close_loop();
}
END_TEST

/* Poll the descriptors of the loop as a program does that has a copy. */
static size_t poll_copy(struct pollfd *fds)
{
  size_t count = loop.count;

  ck_assert_uint_le(count, MOST_DESCRIPTORS);
  for (size_t i = 0; i < count; i++)
    fds[i] = loop.fds[i];
  ck_assert_int_ge(poll(fds, (nfds_t)count, 0), 0);
  return count;
}

START_TEST(event_of_a_descriptor_that_was_replaced_is_not_passed_on)
{
  struct pollfd fds[MOST_DESCRIPTORS];
  int fd = readable_fd();
  counted_io before = io_of(fd), after = io_of(fd), other = io_of(fd);

  open_loop();
  watch(&before);
  watch(&other);
  lk__poll_loop_prepare(&loop);
  size_t count = poll_copy(fds);

  /* As if `before` had been closed and `after` had got its descriptor. */
  unwatch(&before);
  watch(&after);
  lk__poll_loop_dispatch(&loop, fds, count);
  ck_assert_uint_eq(before.calls + after.calls, 0);
  ck_assert_uint_eq(other.calls, 1);
  lk__poll_loop_prepare(&loop);
  count = poll_copy(fds);
  lk__poll_loop_dispatch(&loop, fds, count);
  ck_assert_uint_eq(after.calls, 1);
  ck_assert_uint_eq(other.calls, 2);
  unwatch(&after);
  unwatch(&other);
  close(fd);
  close_loop();
}
END_TEST

/* ---- timers -------------------------------------------------------------- */

static unsigned timer_calls;

static void on_timer(lk_loop_timer *t)
{
  (void)t;
  timer_calls++;
}

static int64_t now_us(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

START_TEST(timer_is_not_called_early_and_the_loop_waits_for_it)
{
  lk_loop_timer timer = {.on_timer = on_timer};
  unsigned turns = 0;

  open_loop();
  for (int i = 0; i < 20; i++) {
    int64_t before = now_us();

    timer_calls = 0;
    lk__loop_set_timer(&loop.base, &timer, 3);
    for (; timer_calls == 0; turns++)
      lk__poll_loop_wait(&loop, lk__poll_loop_prepare(&loop));
    ck_assert_int_ge(now_us() - before, 3000);
  }
  ck_assert_uint_eq(turns, 20);
  close_loop();
}
END_TEST

/* ---- the epoll ----------------------------------------------------------- */

static bool epoll_becomes_readable(int timeout_ms)
{
  struct pollfd it = {.fd = loop.epoll.fd, .events = POLLIN};

  return poll(&it, 1, timeout_ms) == 1;
}

static void turn_of_epoll(void)
{
  lk__poll_loop_begin_turn(&loop);
  lk__poll_loop_wait(&loop, 0);
  lk__poll_loop_prepare(&loop);
  lk__poll_loop_end_turn(&loop);
}

START_TEST(epoll_is_readable_when_a_timer_is_due_and_not_before)
{
  lk_loop_timer timer = {.on_timer = on_timer};

  open_loop();
  ck_assert_int_eq(lk__poll_loop_open_epoll(&loop), 0);
  turn_of_epoll();
  for (int i = 0; i < 3; i++) {
    int64_t before = now_us();

    timer_calls = 0;
    lk__loop_set_timer(&loop.base, &timer, 30);
    ck_assert(epoll_becomes_readable(10000));
    ck_assert_int_ge(now_us() - before, 30000);
    turn_of_epoll();
    ck_assert_uint_eq(timer_calls, 1);
    ck_assert(!epoll_becomes_readable(0));
  }
  close_loop();
}
END_TEST

/* The child calls the timer that is due in its copy of the loop. */
START_TEST(forked_child_does_not_stop_the_timer_of_its_parent)
{
  lk_loop_timer timer = {.on_timer = on_timer};
  int status;

  open_loop();
  ck_assert_int_eq(lk__poll_loop_open_epoll(&loop), 0);
  timer_calls = 0;
  lk__loop_set_timer(&loop.base, &timer, 10);
  ck_assert(epoll_becomes_readable(10000));
  pid_t child = fork();

  if (child == 0) {
    turn_of_epoll();
    _exit(timer_calls == 1 ? 0 : 1);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert(epoll_becomes_readable(0));
  turn_of_epoll();
  ck_assert_uint_eq(timer_calls, 1);
  close_loop();
}
END_TEST

START_TEST(epoll_is_readable_for_a_descriptor_that_cannot_be_watched)
{
  open_loop();
  ck_assert_int_eq(lk__poll_loop_open_epoll(&loop), 0);
  counted_io io = io_of(readable_fd());

  close(io.base.fd);
  turn_of_epoll();
  watch(&io);
  ck_assert(epoll_becomes_readable(0));
  turn_of_epoll();
  ck_assert_uint_eq(io.calls, 1);
  ck_assert(!epoll_becomes_readable(0));
  unwatch(&io);
  close_loop();
}
END_TEST

START_TEST(longest_timer_is_a_wait_that_poll_accepts)
{
  lk_loop_timer timer = {.on_timer = on_timer};

  open_loop();
  ck_assert_int_eq(lk__poll_loop_prepare(&loop), -1);
  lk__loop_set_timer(&loop.base, &timer, INT64_MAX);
  ck_assert_int_gt(lk__poll_loop_prepare(&loop), 1000000000);
  lk__loop_set_timer(&loop.base, &timer, 0);
  ck_assert_int_eq(lk__poll_loop_prepare(&loop), 0);
  lk__loop_stop_timer(&loop.base, &timer);
  close_loop();
}
END_TEST

/* ---- runs that end ------------------------------------------------------- */

static lk_loop *own_loop; /* of lk__poll_loop_new() */
static bool done;         /* ends lk__poll_loop_run() */

/* Run a loop with this hook, whose call is to end it. */
static void run_with_hook(void (*before_wait)(lk_loop_hook *h))
{
  lk_loop_hook hook = {.before_wait = before_wait};

  alarm(20); /* ends this test if it hangs */
  done = false;
  ck_assert_int_eq(lk__poll_loop_new(&own_loop, &lk__mem_libc), 0);
  lk__loop_ref(own_loop);
  lk__loop_start_hook(own_loop, &hook);
  lk__poll_loop_run(own_loop, &done);
  lk__loop_stop_hook(own_loop, &hook);
}

static void free_own_loop(void)
{
  lk__poll_loop_free(own_loop);
  alarm(0);
}

static void end_run_in_hook(lk_loop_hook *h)
{
  (void)h;
  done = true;
}

START_TEST(run_that_a_hook_ends_does_not_wait)
{
  run_with_hook(end_run_in_hook);
  free_own_loop();
}
END_TEST

static void end_run_in_watcher(lk_loop_io *io, int events)
{
  (void)io;
  (void)events;
  done = true;
}

static lk_loop_io fed = {.on_events = end_run_in_watcher, .fd = -1};

static void feed_in_hook(lk_loop_hook *h)
{
  (void)h;
  own_loop->type->feed_io(own_loop, &fed, LK_LOOP_READ);
}

START_TEST(run_that_a_fed_watcher_ends_does_not_wait)
{
  run_with_hook(feed_in_hook);
  lk__loop_stop_io(own_loop, &fed);
  free_own_loop();
}
END_TEST

SUITE("poll_loop", run_that_a_hook_ends_does_not_wait,
      run_that_a_fed_watcher_ends_does_not_wait, watchers_may_stop_in_any_order,
      epoll_is_readable_when_a_timer_is_due_and_not_before,
      forked_child_does_not_stop_the_timer_of_its_parent,
      epoll_is_readable_for_a_descriptor_that_cannot_be_watched,
      stopped_watcher_is_not_called_for_an_event_that_has_come,
      urgent_watcher_is_called_first, without_memory_the_watcher_gets_an_error,
      watcher_that_feeds_itself_does_not_hold_up_the_turn,
      fed_watcher_is_called_although_its_events_change,
      after_a_failed_poll_each_watcher_is_called,
      event_that_is_not_watched_any_more_is_not_passed_on,
      descriptor_that_is_not_open_gets_one_error,
      event_of_a_descriptor_that_was_replaced_is_not_passed_on,
      timer_is_not_called_early_and_the_loop_waits_for_it,
      longest_timer_is_a_wait_that_poll_accepts)
