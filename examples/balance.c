/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Workers share numbered partitions. Each worker is a member of a group and
 * subscribes to the roster of the group. A partition is assigned to the member
 * with the largest hash of both (rendezvous hashing). So if a member joins or
 * leaves, only the partitions that it gets or had are assigned anew.
 *
 * The rosters of two workers may differ for a moment. Therefore a worker owns a
 * partition only while it also holds the lock of the partition. If a worker
 * crashes, its session expires; then its member and its locks do not exist any
 * more, and the other workers acquire the locks.
 *
 *     balance [HOSTS [NAME [PARTITIONS]]]
 *
 * NAME is the name of the member, by default a random one. All workers of the
 * group need the same number of PARTITIONS. Each change of the partitions that
 * the worker owns is printed, after a lock was acquired and before a lock is
 * released:
 *
 *     TIME NAME owns 3 7 9
 *
 * TIME is in ms on lk_client_clock(). INT and TERM end the worker.
 */

#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS    "/balance/members"
#define PARTITIONS "/balance/partitions"

enum { MOST_PARTITIONS = 1000, SESSION_TIMEOUT_MS = 10000 };

/* A partition and its lock. The candidate acquires the lock while the partition
   is assigned to this worker, and again after each loss. */
typedef struct partition {
  lk_lock *lock;
  lk_candidate *candidate;
  bool assigned; /* by the newest roster */
  bool printed;  /* as owned */
} partition;

typedef struct worker {
  struct ev_loop *loop;
  lk_client *client;
  lk_membership *member;
  const char *name; /* the member's */
  lk_roster *roster;
  partition *partitions;
  int count; /* of the partitions */
  unsigned long steps;
  ev_timer timer;
  ev_signal interrupt;
  ev_signal terminate;
  int exit_code;
} worker;

/* ---- output -------------------------------------------------------------- */

static void print_time_and_name(const worker *w)
{
  printf("%lld %s ", (long long)lk_client_clock(w->client), w->name);
}

static void print_event(const worker *w, const char *path, const char *event,
                        int err)
{
  print_time_and_name(w);
  printf("%s %s", path, event);
  if (err != 0)
    printf(": %s", lk_error_text(err));
  printf("\n");
}

/* While the lock is unsure, a partition is not owned: the lease ends soon. */
static bool is_owned(const partition *p)
{
  return p->assigned &&
         lk_candidate_get_state(p->candidate) == LK_CANDIDATE_LEADING;
}

/* Print the partitions that are owned, if they have changed. */
static void print_owned(worker *w)
{
  bool changed = false, none = true;

  for (int i = 0; i < w->count; i++) {
    partition *p = &w->partitions[i];

    changed = changed || is_owned(p) != p->printed;
    p->printed = is_owned(p);
    none = none && !p->printed;
  }
  if (!changed)
    return;
  print_time_and_name(w);
  printf(none ? "owns nothing" : "owns");
  for (int i = 0; i < w->count; i++)
    if (w->partitions[i].printed)
      printf(" %d", i);
  printf("\n");
}

/* ---- the end ------------------------------------------------------------- */

/* Frees all but the client. Locks are released, and the member leaves. */
static void free_objects(worker *w)
{
  for (int i = 0; i < w->count && w->partitions != NULL; i++) {
    lk_candidate_free(w->partitions[i].candidate); /* before its lock */
    lk_lock_free(w->partitions[i].lock);
  }
  free(w->partitions);
  w->partitions = NULL;
  lk_roster_free(w->roster);
  w->roster = NULL;
  lk_membership_free(w->member);
  w->member = NULL;
}

/* ev_run() returns when no watcher is left and the client is closed. A second
   signal has its default action: it ends the process. */
static void leave(worker *w, int exit_code)
{
  w->exit_code = exit_code;
  ev_timer_stop(w->loop, &w->timer);
  ev_signal_stop(w->loop, &w->interrupt);
  ev_signal_stop(w->loop, &w->terminate);
  for (int i = 0; i < w->count; i++)
    w->partitions[i].assigned = false;
  print_owned(w); /* before the locks are released */
  print_time_and_name(w);
  printf("leaves after %lu steps\n", w->steps);
  free_objects(w);
  lk_client_close(w->client, NULL, NULL); /* sends all deletes first */
}

static void fail(worker *w, const char *object, int err)
{
  fprintf(stderr, "%s: %s\n", object, lk_error_text(err));
  leave(w, EXIT_FAILURE);
}

/* ---- partitions ---------------------------------------------------------- */

/* A hash of the name and the number, the same in all workers: FNV-1a of the
   name, then two rounds that spread each bit of it and of the number. */
static uint64_t weight_of(lk_bytes name, int number)
{
  const uint64_t basis = 14695981039346656037u, prime = 1099511628211u;
  const unsigned char *bytes = name.at;
  uint64_t hash = basis;

  for (size_t i = 0; i < name.len; i++)
    hash = (hash ^ bytes[i]) * prime;
  for (int round = 0; round < 2; round++) {
    hash = (hash ^ (uint64_t)number) * basis;
    hash ^= hash >> 32;
  }
  return hash;
}

/* The member to which a partition is assigned; NULL if there are no members. Of
   two with the same weight the first, since each roster is ordered by name. */
static const lk_roster_entry *choose_owner(const lk_roster_entry *members,
                                           size_t count, int number)
{
  const lk_roster_entry *owner = NULL;
  uint64_t most = 0;

  for (size_t i = 0; i < count; i++) {
    uint64_t weight = weight_of(members[i].name, number);

    if (owner == NULL || weight > most) {
      owner = &members[i];
      most = weight;
    }
  }
  return owner;
}

static bool is_called(const lk_roster_entry *member, const char *name)
{
  return member != NULL && member->name.len == strlen(name) &&
         memcmp(member->name.at, name, member->name.len) == 0;
}

/* Assign the partitions by a roster: queue for the locks of those that are
   this worker's, and release or stop waiting for those that are not. */
static void assign(worker *w, const lk_roster_entry *members, size_t count)
{
  int err = 0;

  for (int i = 0; i < w->count; i++)
    w->partitions[i].assigned =
        is_called(choose_owner(members, count, i), w->name);
  print_owned(w); /* before the locks are released */
  for (int i = 0; i < w->count && err == 0; i++) {
    if (w->partitions[i].assigned)
      err = lk_candidate_start(w->partitions[i].candidate);
    else
      lk_candidate_resign(w->partitions[i].candidate);
  }
  if (err != 0)
    fail(w, PARTITIONS, err);
}

/* A step of the work on one partition: short, since the loop waits for it. A
   resource that can compare tokens gets lk_lock_token(p->lock). */
static void work_on(worker *w, const partition *p)
{
  (void)p;
  w->steps++;
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
  worker *w = timer->data;

  (void)loop;
  (void)events;
  for (int i = 0; i < w->count; i++) {
    const partition *p = &w->partitions[i];

    /* The lease deadline may have passed before the event UNSURE, if the
       process was paused. */
    if (is_owned(p) && lk_candidate_ok(p->candidate))
      work_on(w, p);
  }
}

/* ---- events -------------------------------------------------------------- */

static void on_candidate(lk_candidate *c, const lk_candidate_event *event,
                         void *arg)
{
  worker *w = arg;

  if (event->type == LK_CANDIDATE_EVENT_RETRYING ||
      (event->type == LK_CANDIDATE_EVENT_DEPOSED && event->err != 0))
    print_event(w, lk_lock_path(lk_candidate_lock(c)),
                lk_candidate_event_text(event->type), event->err);
  print_owned(w);
}

static void on_member(lk_membership *m, const lk_membership_event *event,
                      void *arg)
{
  print_event(arg, lk_membership_path(m), lk_membership_event_text(event->type),
              event->err);
}

static void on_roster(lk_roster *r, int err, const lk_roster_entry *members,
                      size_t count, void *arg)
{
  worker *w = arg;

  (void)r;
  if (err == 0 || err == LK_ERR_NO_NODE)
    assign(w, members, err == 0 ? count : 0);
  else if (err == LK_ERR_AUTH_FAILED)
    fail(w, MEMBERS, err); /* the client has ended */
  else
    print_event(w, MEMBERS, "cannot be read", err); /* the client retries */
}

static void on_signal(struct ev_loop *loop, ev_signal *signal, int events)
{
  (void)loop;
  (void)events;
  leave(signal->data, EXIT_SUCCESS);
}

/* ---- the beginning ------------------------------------------------------- */

static void start_watchers(worker *w)
{
  ev_timer_init(&w->timer, on_timer, 0, 0.1);
  ev_signal_init(&w->interrupt, on_signal, SIGINT);
  ev_signal_init(&w->terminate, on_signal, SIGTERM);
  w->timer.data = w->interrupt.data = w->terminate.data = w;
  ev_timer_start(w->loop, &w->timer);
  ev_signal_start(w->loop, &w->interrupt);
  ev_signal_start(w->loop, &w->terminate);
}

static int make_member(worker *w, const char *name)
{
  lk_membership_config config = {
      .size = sizeof config, .on_event = on_member, .arg = w};
  int err = lk_membership_new(&w->member, w->client, MEMBERS, name, &config);

  if (err == 0)
    w->name = lk_membership_path(w->member) + strlen(MEMBERS "/");
  return err;
}

static int make_partition(worker *w, partition *p, int number)
{
  char path[sizeof PARTITIONS + 16];
  lk_lock_config config = {.size = sizeof config, .data = lk_text(w->name)};
  lk_candidate_config options = {
      .size = sizeof options, .on_event = on_candidate, .arg = w};

  snprintf(path, sizeof path, PARTITIONS "/%d", number);
  int err = lk_lock_new(&p->lock, w->client, path, &config);

  return err != 0 ? err : lk_candidate_new(&p->candidate, p->lock, &options);
}

static int make_partitions(worker *w)
{
  int err = 0;

  w->partitions = calloc((size_t)w->count, sizeof *w->partitions);
  if (w->partitions == NULL)
    return LK_ERR_NO_MEMORY;
  for (int i = 0; i < w->count && err == 0; i++)
    err = make_partition(w, &w->partitions[i], i);
  return err;
}

int main(int argc, char **argv)
{
  worker w = {.loop = ev_default_loop(0),
              .count = argc > 3 ? atoi(argv[3]) : 12};
  lk_client_config config = {.size = sizeof config,
                             .hosts = argc > 1 ? argv[1] : "127.0.0.1:2181",
                             .session_timeout_ms = SESSION_TIMEOUT_MS};
  lk_ev *ev = NULL;
  int err;

  if (w.count < 1 || w.count > MOST_PARTITIONS) {
    fprintf(stderr, "1 to %d partitions\n", MOST_PARTITIONS);
    return EXIT_FAILURE;
  }
  setvbuf(stdout, NULL, _IOLBF, 0); /* each line at once, also into a pipe */
  start_watchers(&w);
  if ((err = lk_ev_new(&ev, w.loop, NULL)) == 0 &&
      (err = lk_ev_client_new(&w.client, ev, &config)) == 0 &&
      (err = make_member(&w, argc > 2 ? argv[2] : NULL)) == 0 &&
      (err = make_partitions(&w)) == 0 &&
      (err = lk_roster_subscribe(&w.roster, w.client, MEMBERS, NULL, on_roster,
                                 &w)) == 0 &&
      (err = lk_membership_join(w.member)) == 0)
    ev_run(w.loop, 0); /* until the client is closed */
  else
    fprintf(stderr, "cannot begin: %s\n", lk_error_text(err));
  free_objects(&w); /* before their client */
  lk_client_free(w.client);
  lk_ev_free(ev); /* before the loop */
  return err == 0 ? w.exit_code : EXIT_FAILURE;
}
