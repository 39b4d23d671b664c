/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * More waiters than a script can lead: `crowd` on a client puts `count` locks
 * into the queue at `path` and tells when all stand there. Who is granted lets
 * go: at once, or with `polite=1` as soon as the next one knows that it is the
 * next. The command ends when all have held; `totals` prints what the whole
 * process has cost.
 */

#include "live/support/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* How many of a crowd are on their way to a place: their lists are what a
 * server has to keep in memory. */
enum { BATCH = 8 };

typedef struct crowd crowd;

typedef struct member {
  crowd *crowd;
  lk_lock *lock;
  bool stands; /* has been told its place, or more */
} member;

struct crowd {
  void *tag;
  const char *name; /* of the client */
  lk_client *client;
  char path[256];
  bool announce;
  long long count;
  long long begun, standing, granted, failed;
  member members[];
};

/* All crowds of the process queue for one lock. */
static uint64_t last_token;
static member *holder;
static long long left; /* members that have not held yet */
static bool polite;
static unsigned backwards;

static unsigned long long arrived, lists;

/* ---- what it costs, counted by the linker's --wrap ----------------------- */

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

  arrived += got > 0 ? (unsigned long long)got : 0;
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
             arrived, worker_sent, lists, backwards);
}

/* ---- one of the crowd ---------------------------------------------------- */

static void go_on(crowd *y);

static void stand(member *m)
{
  crowd *y = m->crowd;

  if (m->stands)
    return;
  m->stands = true;
  if (++y->standing == y->count)
    print_line(y->name, "crowd queued");
  go_on(y);
}

static void end_if_done(crowd *y)
{
  if (y->granted + y->failed < y->count)
    return;
  print_line(y->tag, "err=0 granted=%lld failed=%lld", y->granted, y->failed);
  free(y->tag);
  free(y);
}

static void let_go(member *m)
{
  holder = NULL;
  left--;
  lk_lock_free(m->lock);
  m->crowd->granted++;
  end_if_done(m->crowd);
}

static void on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  if (event->type != LK_LOCK_EVENT_WAITING)
    return;
  if (event->position == 1 && holder != NULL)
    let_go(holder);
  stand(arg);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  member *m = arg;
  crowd *y = m->crowd;

  if (err != 0) {
    y->failed++;
    left--;
    lk_lock_free(l);
    end_if_done(y);
    return;
  }
  backwards += lk_lock_token(l) <= last_token;
  last_token = lk_lock_token(l);
  stand(m);
  holder = m;
  if (!polite || left == 1) /* behind the last one there is nobody */
    let_go(m);
}

static void join(crowd *y, member *m)
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

static void go_on(crowd *y)
{
  while (y->begun < y->count && y->begun - y->standing < BATCH)
    join(y, &y->members[y->begun++]);
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
  polite = option_number(cmd, "polite", 0) != 0;
  snprintf(y->path, sizeof y->path, "%s", option_path(cmd));
  go_on(y);
}

const verb crowd_verbs[] = {
    {"crowd", execute_crowd}, {"totals", execute_totals}, {NULL, NULL}};
