/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Some workloads of latchkey-bench with the single-threaded libzookeeper, for
 * script/compare. The requests and the format of the output are the same.
 *
 *     libzookeeper-bench WORKLOAD HOST:PORT N
 *
 * WORKLOAD is get-pipelined, get-seq, create-delete or children.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

enum { WINDOW = 1000, SIZE = 100, NAMES = 10000, NAME_LEN = 60, TEXT = 256 };

typedef struct workload {
  const char *name;
  void (*prepare)(void);
  void (*send_request)(void);
  size_t window;
} workload;

static zhandle_t *zk;
static const workload *work;
static size_t n, sent, answered;
static size_t created; /* nodes created by the preparation */
static bool up;        /* the session is connected */
static char root[TEXT / 2], node[TEXT];
static char data[SIZE + 1];

static _Noreturn void fail(const char *what, int rc)
{
  fprintf(stderr, "libzookeeper-bench: %s: %s\n", what, zerror(rc));
  exit(1);
}

/* ---- the loop ------------------------------------------------------------ */

/*
 * zookeeper_interest() resolves the names of the servers in each call, which
 * takes ten system calls. So it is called only while the session is not
 * connected, and when nothing has arrived for a while.
 */
static void poll_once(void)
{
  static struct pollfd p = {.fd = -1};
  struct timeval wait = {0, 0};
  int interest = 0;

  if (!up || poll(&p, 1, 100) == 0) {
    int rc = zookeeper_interest(zk, &p.fd, &interest, &wait);

    if (rc != ZOK && up)
      fail("the session", rc);
    p.events = (short)(POLLIN | (interest & ZOOKEEPER_WRITE ? POLLOUT : 0));
    poll(&p, 1, up ? 0 : (int)(wait.tv_sec * 1000 + wait.tv_usec / 1000));
    p.events = POLLIN;
  }
  zookeeper_process(zk, (p.revents & (POLLIN | POLLHUP) ? ZOOKEEPER_READ : 0) |
                            (p.revents & POLLOUT ? ZOOKEEPER_WRITE : 0));
}

static void on_session(zhandle_t *z, int type, int state, const char *path,
                       void *arg)
{
  (void)z;
  (void)path;
  (void)arg;
  if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE)
    up = true;
}

static void next(void)
{
  answered++;
  if (sent < n) {
    sent++;
    work->send_request();
  }
}

/* ---- preparation --------------------------------------------------------- */

static void on_prepared(int rc, const char *path, const void *arg)
{
  (void)path;
  (void)arg;
  if (rc != ZOK)
    fail("a create", rc);
  created++;
}

static void make(const char *path, int size, int mode)
{
  int rc = zoo_acreate(zk, path, data, size, &ZOO_OPEN_ACL_UNSAFE, mode,
                       on_prepared, NULL);

  if (rc != ZOK)
    fail("a create", rc);
}

static void make_node(void)
{
  snprintf(node, sizeof node, "%s/0", root);
  make(node, SIZE, ZOO_EPHEMERAL);
  while (created < 1)
    poll_once();
}

static void make_names(void)
{
  for (size_t i = 0; i < NAMES; i++) {
    snprintf(node, sizeof node, "%s/%0*zu", root, NAME_LEN, i);
    make(node, 0, ZOO_EPHEMERAL);
    while (i + 1 - created >= WINDOW)
      poll_once();
  }
  while (created < NAMES)
    poll_once();
}

static void name_prefix(void)
{
  snprintf(node, sizeof node, "%s/n-", root);
}

/* ---- requests ------------------------------------------------------------ */

static void on_data(int rc, const char *value, int len, const struct Stat *stat,
                    const void *arg)
{
  (void)value;
  (void)stat;
  (void)arg;
  if (rc != ZOK || len != SIZE)
    fail("a read", rc);
  next();
}

static void get(void)
{
  int rc = zoo_aget(zk, node, 0, on_data, NULL);

  if (rc != ZOK)
    fail("a read", rc);
}

static void on_deleted(int rc, const void *arg)
{
  (void)arg;
  if (rc != ZOK)
    fail("a delete", rc);
  next();
}

static void on_created(int rc, const char *path, const void *arg)
{
  (void)arg;
  if (rc == ZOK)
    rc = zoo_adelete(zk, path, -1, on_deleted, NULL);
  if (rc != ZOK)
    fail("a create", rc);
}

static void create(void)
{
  int rc = zoo_acreate(zk, node, "", 0, &ZOO_OPEN_ACL_UNSAFE,
                       ZOO_EPHEMERAL | ZOO_SEQUENCE, on_created, NULL);

  if (rc != ZOK)
    fail("a create", rc);
}

static void on_names(int rc, const struct String_vector *names,
                     const struct Stat *stat, const void *arg)
{
  (void)stat;
  (void)arg;
  if (rc != ZOK || names->count != NAMES)
    fail("a listing", rc);
  next();
}

static void list(void)
{
  int rc = zoo_aget_children2(zk, root, 0, on_names, NULL);

  if (rc != ZOK)
    fail("a listing", rc);
}

static const workload workloads[] = {
    {"get-pipelined", make_node, get, WINDOW},
    {"get-seq", make_node, get, 1},
    {"create-delete", name_prefix, create, WINDOW},
    {"children", make_names, list, 1},
};

/* ---- a run --------------------------------------------------------------- */

/* The measured region. Profilers select it by its name, which is the same as in
 * latchkey-bench. */
__attribute__((noinline)) void bench_measured(void);
void bench_measured(void)
{
  while (sent < work->window && sent < n) {
    sent++;
    work->send_request();
  }
  while (answered < n)
    poll_once();
}

static double in_seconds(struct timeval t)
{
  return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void mark(const char *text)
{
  if (getenv("BENCH_MARK") == NULL)
    return;
  puts(text);
  fflush(stdout);
}

static void measure(void)
{
  struct rusage before, after;
  struct timespec began, ended;

  mark("@begin");
  getrusage(RUSAGE_SELF, &before);
  clock_gettime(CLOCK_MONOTONIC, &began);
  bench_measured();
  clock_gettime(CLOCK_MONOTONIC, &ended);
  getrusage(RUSAGE_SELF, &after);
  mark("@end");
  printf("%s %zu %.6f %.6f %.6f %ld\n", work->name, n,
         (double)(ended.tv_sec - began.tv_sec) +
             (double)(ended.tv_nsec - began.tv_nsec) / 1e9,
         in_seconds(after.ru_utime) - in_seconds(before.ru_utime),
         in_seconds(after.ru_stime) - in_seconds(before.ru_stime),
         after.ru_maxrss);
}

static void connect_to(const char *hosts)
{
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  zk = zookeeper_init(hosts, on_session, 30000, NULL, NULL, 0);
  if (zk == NULL)
    fail("cannot begin", ZSYSTEMERROR);
  for (time_t end = time(NULL) + 30; !up;) {
    if (time(NULL) > end)
      fail("cannot connect", ZOPERATIONTIMEOUT);
    poll_once();
  }
  snprintf(root, sizeof root, "/latchkey-bench-%016llx",
           (unsigned long long)zoo_client_id(zk)->client_id);
  make(root, 0, ZOO_CONTAINER);
  while (created < 1)
    poll_once();
  created = 0;
}

int main(int argc, char **argv)
{
  for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
    if (argc == 4 && strcmp(argv[1], workloads[i].name) == 0)
      work = &workloads[i];
  }
  if (work == NULL || strtoul(argv[3], NULL, 10) == 0) {
    fprintf(stderr, "usage: libzookeeper-bench WORKLOAD HOST:PORT N\n");
    return 2;
  }
  n = strtoul(argv[3], NULL, 10);
  memset(data, 'x', SIZE);
  connect_to(argv[2]);
  work->prepare();
  measure();
  zookeeper_close(zk);
  return 0;
}
