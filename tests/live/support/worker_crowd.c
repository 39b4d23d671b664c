/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Queues of more waiters than a test can command one by one. The command
 * `crowd` makes `count` locks with the path `path`, its members, and acquires
 * all of them. It prints "crowd queued" when all members are in the queue. A
 * member that holds the lock releases it at once. The command completes when
 * all members have held the lock. `totals` prints the counters of the process.
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
  long long count;                           /* of `members` */
  long long joined, queued, granted, failed; /* numbers of members */
  member members[];
};

/* All crowds of the process queue for the same lock, and share these. */
static uint64_t last_token;
static unsigned backwards; /* number of tokens that did not grow */

static unsigned long long bytes_in; /* received by the process */
static unsigned long long lists;    /* calls of lk_get_children() */

/* ---- bytes and lists, counted by the linker's --wrap --------------------- */

ssize_t __real_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
ssize_t __wrap___recv_chk(int fd, void *buf, size_t len, size_t buf_size,
                          int flags);
int __real_lk_get_children(lk_client *client, const char *path,
                           const lk_call *call, lk_children_cb done, void *arg);
int __wrap_lk_get_children(lk_client *client, const char *path,
                           const lk_call *call, lk_children_cb done, void *arg);

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
  ssize_t got = __real_recv(fd, buf, len, flags);

  if (got > 0)
    bytes_in += (unsigned long long)got;
  return got;
}

ssize_t __wrap___recv_chk(int fd, void *buf, size_t len, size_t buf_size,
                          int flags)
{
  (void)buf_size;
  return __wrap_recv(fd, buf, len, flags);
}

int __wrap_lk_get_children(lk_client *client, const char *path,
                           const lk_call *call, lk_children_cb done, void *arg)
{
  lists++;
  return __real_lk_get_children(client, path, call, done, arg);
}

static void execute_totals(const command *cmd, object *o)
{
  (void)o;
  print_line(cmd->tag,
             "err=0 bytes_in=%llu bytes_out=%llu lists=%llu backwards=%u",
             bytes_in, worker_bytes_sent, lists, backwards);
}

/* ---- members ------------------------------------------------------------- */

static void crowd_join_more(crowd *c);

static void note_queued(member *m)
{
  crowd *c = m->crowd;

  if (m->is_queued)
    return;
  m->is_queued = true;
  if (++c->queued == c->count)
    print_line(c->name, "crowd queued");
  crowd_join_more(c);
}

static void crowd_finish_if_done(crowd *c)
{
  if (c->granted + c->failed < c->count)
    return;
  print_line(c->tag, "err=0 granted=%lld failed=%lld", c->granted, c->failed);
  free(c->tag);
  free(c);
}

static void on_event(lk_lock *l, const lk_lock_event *event, void *arg)
{
  (void)l;
  if (event->type == LK_LOCK_EVENT_WAITING)
    note_queued(arg);
}

static void on_acquired(lk_lock *l, int err, void *arg)
{
  member *m = arg;
  crowd *c = m->crowd;

  if (err == 0) {
    if (lk_lock_token(l) <= last_token)
      backwards++;
    last_token = lk_lock_token(l);
    note_queued(m);
    c->granted++;
  } else {
    c->failed++;
  }
  lk_lock_free(l); /* releases it */
  crowd_finish_if_done(c);
}

static void member_join(member *m, crowd *c)
{
  lk_lock_config config = {
      .size = sizeof config, .on_event = on_event, .arg = m};

  m->crowd = c;
  if (lk_lock_new(&m->lock, c->client, c->path, &config) != 0 ||
      lk_lock_acquire(m->lock, LK_NO_LIMIT, on_acquired, m) != 0)
    abort();
}

/* Let members join until BATCH of them have joined and are not queued. */
static void crowd_join_more(crowd *c)
{
  while (c->joined < c->count && c->joined - c->queued < BATCH)
    member_join(&c->members[c->joined++], c);
}

static void execute_crowd(const command *cmd, object *o)
{
  long long count = option_number(cmd, "count", 1);
  crowd *c = calloc(1, sizeof *c + (size_t)count * sizeof c->members[0]);

  if (c == NULL)
    abort();
  c->tag = copy_tag(cmd);
  c->name = o->name;
  c->client = o->client;
  c->count = count;
  snprintf(c->path, sizeof c->path, "%s", option_path(cmd));
  crowd_join_more(c);
}

const verb crowd_verbs[] = {
    {"crowd", execute_crowd}, {"totals", execute_totals}, {NULL, NULL}};
