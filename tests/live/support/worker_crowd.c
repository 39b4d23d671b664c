/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Queues of more waiters than a test can command one by one. The command
 * `crowd` makes `count` locks with the path `path`, its members, and acquires
 * all of them. It prints "crowd queued" when all members are in the queue. A
 * member that holds the lock releases it at once, or, with `release_late=1`,
 * when the next member reports position 1. The command completes when all
 * members have held the lock. `totals` prints the counters of the process.
 */

#include "live/support/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The number of members of a crowd that join the queue at the same time. It is
 * small, since a server keeps the replies to their lists in memory. */
enum { BATCH = 8 };

typedef struct crowd crowd;

typedef struct member {
  crowd *crowd;
  lk_lock *lock;
  bool is_queued; /* knows its position, or has been granted */
} member;

struct crowd {
  void *tag;
  const char *name; /* of the client */
  lk_client *client;
  char path[256];
  bool announce;
  long long count;
  long long started, queued, granted, failed;
  member members[];
};

/* All crowds of the process queue for the same lock, and share these. */
static uint64_t last_token;
static member *holder;
static long long left; /* number of members that have not held the lock yet */
static bool release_late;
static unsigned backwards; /* number of tokens not larger than the last one */

static unsigned long long bytes_in; /* received by the process */
static unsigned long long lists;    /* calls of lk_get_children() */

/* ---- bytes and lists, counted by the linker's --wrap --------------------- */

ssize_t __real_recv(int fd, void *room, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *room, size_t size, int flags);
ssize_t __wrap___recv_chk(int fd, void *room, size_t size, size_t all,
                          int flags);
int __real_lk_get_children(lk_client *c, const char *path, const lk_call *call,
                           lk_children_cb done, void *arg);
int __wrap_lk_get_children(lk_client *c, const char *path, const lk_call *call,
                           lk_children_cb done, void *arg);

ssize_t __wrap_recv(int fd, void *room, size_t size, int flags)
{
  ssize_t got = __real_recv(fd, room, size, flags);

  bytes_in += got > 0 ? (unsigned long long)got : 0;
  return got;
}

ssize_t __wrap___recv_chk(int fd, void *room, size_t size, size_t all,
                          int flags)
{
  (void)all;
  return __wrap_recv(fd, room, size, flags);
}

int __wrap_lk_get_children(lk_client *c, const char *path, const lk_call *call,
                           lk_children_cb done, void *arg)
{
  lists++;
  return __real_lk_get_children(c, path, call, done, arg);
}

static void execute_totals(const command *cmd, object *o)
{
  (void)o;
  print_line(cmd->tag,
             "err=0 bytes_in=%llu bytes_out=%llu lists=%llu backwards=%u",
             bytes_in, worker_sent, lists, backwards);
}

/* ---- members ------------------------------------------------------------- */

static void crowd_continue(crowd *y);

static void note_queued(member *m)
{
  crowd *y = m->crowd;

  if (m->is_queued)
    return;
  m->is_queued = true;
  if (++y->queued == y->count)
    print_line(y->name, "crowd queued");
  crowd_continue(y);
}

static void crowd_finish_if_done(crowd *y)
{
  if (y->granted + y->failed < y->count)
    return;
  print_line(y->tag, "err=0 granted=%lld failed=%lld", y->granted, y->failed);
  free(y->tag);
  free(y);
}

static void member_release(member *m)
{
  holder = NULL;
  left--;
  lk_lock_free(m->lock);
  m->crowd->granted++;
  crowd_finish_if_done(m->crowd);
}

static void on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  if (event->type != LK_LOCK_EVENT_WAITING)
    return;
  if (event->position == 1 && holder != NULL)
    member_release(holder);
  note_queued(arg);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  member *m = arg;
  crowd *y = m->crowd;

  if (err != 0) {
    y->failed++;
    left--;
    lk_lock_free(l);
    crowd_finish_if_done(y);
    return;
  }
  backwards += lk_lock_token(l) <= last_token;
  last_token = lk_lock_token(l);
  note_queued(m);
  holder = m;
  if (!release_late || left == 1) /* the last member has none behind it */
    member_release(m);
}

static void member_join(crowd *y, member *m)
{
  lk_lock_config config = {.size = sizeof config,
                           .announce = y->announce,
                           .on_event = on_event,
                           .arg = m};

  m->crowd = y;
  if (lk_lock_new(&m->lock, y->client, y->path, &config) != 0 ||
      lk_lock_acquire(m->lock, -1, on_acquired, m) != 0)
    abort();
}

static void crowd_continue(crowd *y)
{
  while (y->started < y->count && y->started - y->queued < BATCH)
    member_join(y, &y->members[y->started++]);
}

static void execute_crowd(const command *cmd, object *o)
{
  long long count = option_number(cmd, "count", 1);
  crowd *y = calloc(1, sizeof *y + (size_t)count * sizeof y->members[0]);

  if (y == NULL)
    abort();
  y->tag = copy_tag(cmd);
  y->name = o->name;
  y->client = o->client;
  y->count = count;
  left += count;
  y->announce = option_number(cmd, "announce", 0) != 0;
  release_late = option_number(cmd, "release_late", 0) != 0;
  snprintf(y->path, sizeof y->path, "%s", option_path(cmd));
  crowd_continue(y);
}

const verb crowd_verbs[] = {
    {"crowd", execute_crowd}, {"totals", execute_totals}, {NULL, NULL}};
