/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "poll/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <time.h>

#include "base/mem.h"

enum { NS_PER_MS = 1000000 };

/* After poll() itself has failed: how long the loop waits instead. */
enum { PAUSE_MS = 10 };

/* More than the watchers of a driver without connections, so that these do not
   get an error because memory is short. */
enum { FIRST_CAPACITY = 8 };

/* What a watcher is called with if its descriptor cannot be watched. As with
   libev, its owner tries to read and to write, and gets the error. */
enum { CANNOT_WATCH = LK_LOOP_ERROR | LK_LOOP_READ | LK_LOOP_WRITE };

/* The content of lk_loop_io.room. */
typedef struct io_room {
  lk_link ready;  /* in lk_poll_loop.ready; NULLs: never used */
  uint64_t since; /* lk_poll_loop.turn when the watching began */
  size_t slot;    /* its index in lk_poll_loop.fds, plus 1; 0: not in there */
  int events;     /* what to call the watcher with while it is ready */
} io_room;

/* The content of lk_loop_hook.room. */
typedef struct hook_room {
  lk_link link; /* in due_hooks or called_hooks; NULLs: never used */
} hook_room;

/* The content of lk_loop_timer.room. */
typedef struct timer_room {
  lk_heap_node node;
} timer_room;

_Static_assert(sizeof(io_room) <= sizeof(lk_loop_room), "room for a watcher");
_Static_assert(sizeof(hook_room) <= sizeof(lk_loop_room), "room for a hook");
_Static_assert(sizeof(timer_room) <= sizeof(lk_loop_room), "room for a timer");

static lk_poll_loop *loop_of(lk_loop *l)
{
  return LK_OWNER(l, lk_poll_loop, base);
}

/* Remove the link from its list, if it has ever been in one. */
static void unlink_if_used(lk_link *l)
{
  if (l->next != NULL)
    lk__list_remove(l);
}

static int64_t now_ns(void)
{
  struct timespec t = {0, 0};

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

/* ---- descriptors --------------------------------------------------------- */

static io_room *io_room_of(lk_loop_io *io)
{
  return (io_room *)(void *)io->room.bytes;
}

static short events_for_poll(int events)
{
  return (short)(((events & LK_LOOP_READ) != 0 ? POLLIN : 0) |
                 ((events & LK_LOOP_WRITE) != 0 ? POLLOUT : 0));
}

/* POLLERR and POLLHUP count as the watched events: the next read or write of
   the watcher's owner gets the error. Since poll() was called, the watched
   events may have changed. */
static int events_of_poll(const lk_loop_io *io, short revents)
{
  if ((revents & POLLNVAL) != 0)
    return CANNOT_WATCH;
  if ((revents & (POLLERR | POLLHUP)) != 0)
    return io->events;
  return (((revents & POLLIN) != 0 ? LK_LOOP_READ : 0) |
          ((revents & POLLOUT) != 0 ? LK_LOOP_WRITE : 0)) &
         io->events;
}

/* When the loop next has something to do, apart from its descriptors. */
static int64_t next_work_ns(const lk_poll_loop *l)
{
  if (!lk__list_empty(&l->ready) || !lk__list_empty(&l->due_hooks))
    return LK_EPOLL_NOW;
  return l->timers.root == NULL ? LK_EPOLL_NEVER : l->timers.root->at;
}

static void set_epoll_timer(lk_poll_loop *l)
{
  lk__epoll_arm(&l->epoll, next_work_ns(l), now_ns());
}

static void update_epoll_timer(lk_poll_loop *l)
{
  if (l->set_epoll_timer != NULL && !l->in_callbacks)
    l->set_epoll_timer(l);
}

static void io_make_ready(lk_poll_loop *l, lk_loop_io *io, int events)
{
  io_room *room = io_room_of(io);

  unlink_if_used(&room->ready);
  room->events |= events;
  lk__list_add(io->urgent ? l->ready.next : &l->ready, &room->ready);
  update_epoll_timer(l);
}

static bool slots_grow(lk_poll_loop *l)
{
  size_t capacity = l->capacity == 0 ? FIRST_CAPACITY : 2 * l->capacity;
  struct pollfd *fds = lk__mem_resize(&l->mem, l->fds, capacity * sizeof *fds);

  if (fds == NULL)
    return false;
  l->fds = fds;

  lk_loop_io **watchers =
      lk__mem_resize(&l->mem, l->watchers, capacity * sizeof *watchers);

  if (watchers == NULL)
    return false;
  l->watchers = watchers;
  l->capacity = capacity;
  return true;
}

/* Add `io` to `fds`. If there is no memory for it, the watcher gets
   LK_LOOP_ERROR, as for a descriptor that cannot be watched. */
static void slot_add(lk_poll_loop *l, lk_loop_io *io)
{
  io_room *room = io_room_of(io);

  if (l->count == l->capacity && !slots_grow(l)) {
    io_make_ready(l, io, CANNOT_WATCH);
    return;
  }
  l->fds[l->count] = (struct pollfd){.fd = io->fd};
  l->watchers[l->count] = io;
  room->slot = ++l->count;
  room->since = l->turn;
}

/* The last slot takes the place of the one that is removed. */
static void slot_remove(lk_poll_loop *l, lk_loop_io *io)
{
  io_room *room = io_room_of(io);
  size_t at = room->slot - 1;

  if (room->slot == 0)
    return;
  lk__epoll_forget(&l->epoll, io->fd);
  room->slot = 0;
  l->count--;
  if (at == l->count)
    return;
  l->fds[at] = l->fds[l->count];
  l->watchers[at] = l->watchers[l->count];
  io_room_of(l->watchers[at])->slot = at + 1;
}

static void poll_set_io(lk_loop *base, lk_loop_io *io, int events)
{
  lk_poll_loop *l = loop_of(base);
  io_room *room = io_room_of(io);

  room->events &= events; /* what is not watched is not due any more */
  if (room->events == LK_LOOP_NONE)
    unlink_if_used(&room->ready);
  if (events == LK_LOOP_NONE)
    slot_remove(l, io);
  else if (room->slot == 0)
    slot_add(l, io);
  io->events = events;
  if (room->slot == 0)
    return;
  l->fds[room->slot - 1].events = events_for_poll(events);
  if (!lk__epoll_watch(&l->epoll, io->fd, events)) {
    slot_remove(l, io);
    io_make_ready(l, io, CANNOT_WATCH);
  }
}

static void poll_feed_io(lk_loop *l, lk_loop_io *io, int events)
{
  io_make_ready(loop_of(l), io, events);
}

/* Watchers that are fed meanwhile stay ready. So a watcher that feeds itself
   does not keep others from their turn. */
static void call_ready_watchers(lk_poll_loop *l)
{
  lk_link now, *first;

  lk__list_init(&now);
  lk__list_move(&now, &l->ready);
  while ((first = lk__list_pop(&now)) != NULL) {
    io_room *room = LK_OWNER(first, io_room, ready);
    lk_loop_io *io = LK_OWNER(room, lk_loop_io, room);
    int events = room->events;

    room->events = 0;
    io->on_events(io, events);
  }
}

/* Make the watchers ready whose events have come. A descriptor that is not open
   is not watched any more. From the last slot to the first, because
   slot_remove() moves the last one. */
static void take_events(lk_poll_loop *l)
{
  for (size_t i = l->count; i-- > 0;) {
    lk_loop_io *io = l->watchers[i];
    int events = events_of_poll(io, l->fds[i].revents);

    if (events == CANNOT_WATCH)
      slot_remove(l, io);
    if (events != LK_LOOP_NONE)
      io_make_ready(l, io, events);
  }
}

/* ---- timers -------------------------------------------------------------- */

static void poll_set_timer(lk_loop *base, lk_loop_timer *t, int64_t after_ms)
{
  const int64_t longest_ms = INT64_MAX / NS_PER_MS / 2;
  lk_heap_node *node = &((timer_room *)(void *)t->room.bytes)->node;

  lk__heap_remove(&loop_of(base)->timers, node);
  if (after_ms < 0)
    return; /* the epoll may be readable without need then */
  if (after_ms > longest_ms)
    after_ms = longest_ms;
  lk__heap_add(&loop_of(base)->timers, node, now_ns() + after_ms * NS_PER_MS);
  update_epoll_timer(loop_of(base));
}

/* Timers that are set meanwhile wait for the next turn, or later. */
static void call_due_timers(lk_poll_loop *l)
{
  if (l->timers.root == NULL)
    return;

  int64_t now = now_ns();

  while (l->timers.root != NULL && l->timers.root->at <= now) {
    timer_room *room = LK_OWNER(l->timers.root, timer_room, node);
    lk_loop_timer *t = LK_OWNER(room, lk_loop_timer, room);

    lk__heap_remove(&l->timers, &room->node);
    t->on_timer(t);
  }
}

/* Rounded up, so that the loop does not wake before the timer is due. */
static int wait_for_first_timer_ms(const lk_poll_loop *l)
{
  if (l->timers.root == NULL)
    return -1;

  int64_t wait_ns = l->timers.root->at - now_ns();
  int64_t wait_ms = (wait_ns + NS_PER_MS - 1) / NS_PER_MS;

  if (wait_ns <= 0)
    return 0;
  return wait_ms > INT_MAX ? INT_MAX : (int)wait_ms;
}

/* ---- hooks --------------------------------------------------------------- */

static lk_link *hook_link(lk_loop_hook *h)
{
  return &((hook_room *)(void *)h->room.bytes)->link;
}

static void poll_set_hook(lk_loop *l, lk_loop_hook *h, bool on)
{
  unlink_if_used(hook_link(h));
  if (on)
    lk__list_add(&loop_of(l)->due_hooks, hook_link(h));
  update_epoll_timer(loop_of(l));
}

/* Does nothing if the hook is off. */
static void poll_request_hook(lk_loop *l, lk_loop_hook *h)
{
  lk_link *link = hook_link(h);

  if (link->next != NULL && !lk__list_empty(link))
    poll_set_hook(l, h, true);
}

/* Hooks that are requested meanwhile are called in the next turn, for which the
   loop does not wait. */
static void call_due_hooks(lk_poll_loop *l)
{
  lk_link now, *first;

  lk__list_init(&now);
  lk__list_move(&now, &l->due_hooks);
  while ((first = lk__list_pop(&now)) != NULL) {
    hook_room *room = LK_OWNER(first, hook_room, link);
    lk_loop_hook *h = LK_OWNER(room, lk_loop_hook, room);

    lk__list_add(&l->called_hooks, first);
    h->before_wait(h);
  }
}

/* ---- turns --------------------------------------------------------------- */

int lk__poll_loop_prepare(lk_poll_loop *l)
{
  lk__list_move(&l->due_hooks, &l->called_hooks);
  call_ready_watchers(l); /* those that were fed since the last turn */
  call_due_hooks(l);
  call_ready_watchers(l); /* those that the hooks have fed */
  l->turn++;
  if (lk__list_empty(&l->ready) && lk__list_empty(&l->due_hooks))
    return wait_for_first_timer_ms(l);
  return 0;
}

void lk__poll_loop_dispatch(lk_poll_loop *l, const struct pollfd *fds,
                            size_t count)
{
  for (size_t i = 0; i < l->count; i++) {
    bool same = i < count && fds[i].fd == l->fds[i].fd &&
                io_room_of(l->watchers[i])->since < l->turn;

    l->fds[i].revents = same ? fds[i].revents : 0;
  }
  take_events(l);
  call_ready_watchers(l);
  call_due_timers(l);
}

int lk__poll_loop_open_epoll(lk_poll_loop *l)
{
  if (lk__epoll_is_open(&l->epoll))
    return 0;
  int err = lk__epoll_open(&l->epoll);

  for (size_t i = 0; err == 0 && i < l->count; i++)
    if (!lk__epoll_watch(&l->epoll, l->fds[i].fd, l->watchers[i]->events))
      err = LK_ERR_SYSTEM;
  if (err != 0) {
    lk__epoll_close(&l->epoll);
    return err;
  }
  l->set_epoll_timer = set_epoll_timer;
  update_epoll_timer(l);
  return 0;
}

void lk__poll_loop_begin_turn(lk_poll_loop *l)
{
  l->in_callbacks = true;
}

void lk__poll_loop_end_turn(lk_poll_loop *l)
{
  l->in_callbacks = false;
  update_epoll_timer(l);
}

/* After poll() itself has failed, as if all events had come: each owner finds
   out for its descriptor. The pause keeps the loop from spinning. */
static void suppose_all_events(lk_poll_loop *l)
{
  (void)poll(NULL, 0, PAUSE_MS);
  for (size_t i = 0; i < l->count; i++)
    l->fds[i].revents = l->fds[i].events;
  take_events(l);
}

/* poll() fails if a signal arrives, and without memory in the kernel, or if the
   limit of descriptors was lowered below their number. */
void lk__poll_loop_wait(lk_poll_loop *l, int timeout_ms)
{
  int found = poll(l->fds, (nfds_t)l->count, timeout_ms);

  if (found > 0)
    take_events(l);
  else if (found < 0 && errno != EINTR)
    suppose_all_events(l);
  call_ready_watchers(l);
  call_due_timers(l);
}

static void poll_keep_running(lk_loop *l, bool on)
{
  if (on)
    loop_of(l)->refs++;
  else
    loop_of(l)->refs--;
}

/* Returns whether something keeps the loop running. */
static bool run_once(lk_poll_loop *l, const bool *done)
{
  int timeout_ms = lk__poll_loop_prepare(l);

  if (*done)
    return true;
  lk__poll_loop_wait(l, l->refs == 0 ? 0 : timeout_ms);
  return l->refs > 0;
}

void lk__poll_loop_run(lk_loop *l, const bool *done)
{
  while (!*done && run_once(loop_of(l), done))
    ;
}

/* ---- creation and end ---------------------------------------------------- */

static const lk_loop_type poll_loop_type = {
    .set_io = poll_set_io,
    .feed_io = poll_feed_io,
    .set_timer = poll_set_timer,
    .set_hook = poll_set_hook,
    .request_hook = poll_request_hook,
    .keep_running = poll_keep_running,
};

int lk__poll_loop_init(lk_poll_loop *l, const lk_mem *mem)
{
  l->base.type = &poll_loop_type;
  l->mem = *mem;
  lk__list_init(&l->ready);
  lk__list_init(&l->due_hooks);
  lk__list_init(&l->called_hooks);
  return slots_grow(l) ? 0 : LK_ERR_NO_MEMORY;
}

void lk__poll_loop_reset(lk_poll_loop *l)
{
  lk__epoll_close(&l->epoll);
  lk__mem_free(&l->mem, l->fds);
  lk__mem_free(&l->mem, l->watchers);
}

int lk__poll_loop_new(lk_loop **out, const lk_mem *mem)
{
  lk_poll_loop *l = lk__mem_new(mem, sizeof *l);

  *out = NULL;
  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  if (lk__poll_loop_init(l, mem) != 0) {
    lk__poll_loop_free(&l->base);
    return LK_ERR_NO_MEMORY;
  }
  *out = &l->base;
  return 0;
}

void lk__poll_loop_free(lk_loop *l)
{
  if (l == NULL)
    return;

  lk_mem mem = loop_of(l)->mem;

  lk__poll_loop_reset(loop_of(l));
  lk__mem_free(&mem, loop_of(l));
}
