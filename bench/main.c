/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Measures what latchkey costs: runs one workload against a server, and prints
 * a line of figures. doc/performance.md explains the figures and their use.
 *
 *     latchkey-bench WORKLOAD HOST:PORT N [key=value ...]
 *
 * With tls:// in front of HOST:PORT the connections use TLS.
 * LATCHKEY_TLS_CACERT then names a file of CAs, and LATCHKEY_TLS_CERT and
 * LATCHKEY_TLS_KEY name the files of a client certificate and its key.
 *
 * Exit codes: 0: success; 1: an error; 2: a usage error; 3: there is no such
 * workload.
 */

#include "bench.h"

#include "workloads.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_OPTIONS = 4, MOST = 100000000 };

/* The options of a workload are "key=value" with their defaults. The value of
 * an option is a word or a number. If it is a word, the table lists all words
 * that are allowed, and the first is the default. A number may be 0 only if its
 * default is 0. */
typedef struct workload {
  const char *name;
  void (*run)(bench *b);
  const char *what; /* what N counts */
  const char *options[MOST_OPTIONS];
} workload;

static const workload workloads[] = {
    {"get-pipelined",
     bench_get_pipelined,
     "reads of a node of 100 bytes",
     {"window=1000", "size=100"}},
    {"get-seq", bench_get_seq, "the same, one after the other", {"size=100"}},
    {"create-delete",
     bench_create_delete,
     "creates of an ephemeral sequential node, each with its delete",
     {"window=1000"}},
    {"children", bench_children, "listings of a node", {"names=10000"}},
    {"watch-storm",
     bench_watch_storm,
     "watches, set and fired; BENCH_GO=FILE: fired by the reader of FILE",
     {"window=1000"}},
    {"lock-uncontended",
     bench_lock_uncontended,
     "acquires of a free lock, each with its release",
     {NULL}},
    {"lock-contended",
     bench_lock_contended,
     "contenders for one lock",
     {"each=20", "mode=sessions|shared", "hold=0"}},
    {"holders",
     bench_holders,
     "sessions that each hold a lock while another session writes",
     {"assurance=quorum|sync|ping|none", "writes=1000", "every=10000"}},
    {"connect",
     bench_connects,
     "connections, each with a question of four letters",
     {"session=new|resumed"}},
    {"sessions", bench_sessions, "sessions on one loop", {NULL}},
    {"idle",
     bench_idle,
     "sessions that stand until standard input ends",
     {NULL}},
};

enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

/* ---- usage --------------------------------------------------------------- */

static void list_workloads(void)
{
  fprintf(stderr,
          "usage: latchkey-bench WORKLOAD HOST:PORT N [key=value ...]\n");
  for (size_t i = 0; i < WORKLOADS; i++) {
    fprintf(stderr, "  %-17s N: %s\n", workloads[i].name, workloads[i].what);
    for (size_t k = 0; k < MOST_OPTIONS; k++) {
      if (workloads[i].options[k] != NULL)
        fprintf(stderr, "%22s%s\n", "", workloads[i].options[k]);
    }
  }
}

static _Noreturn void refuse(int code, const char *what, const char *word)
{
  fprintf(stderr, "latchkey-bench: %s%s\n", what, word);
  exit(code);
}

/* ---- options ------------------------------------------------------------- */

/* The value of `key` in "key=value", or NULL. */
static const char *value_of(const char *option, const char *key)
{
  size_t len = strlen(key);

  return strncmp(option, key, len) == 0 && option[len] == '=' ? option + len + 1
                                                              : NULL;
}

static const char *find(const bench *b, const char *key)
{
  for (const char **o = b->options; *o != NULL; o++) {
    const char *value = value_of(*o, key);

    if (value != NULL)
      return value;
  }
  return ""; /* there is no such option */
}

/* Whether `text` is `value`, alone or as the first of several. */
static bool is_default(const char *text, const char *value)
{
  size_t len = strcspn(value, "|");

  return strncmp(text, value, len) == 0 &&
         (text[len] == '\0' || text[len] == '|');
}

static bool number(const char *text, size_t *out)
{
  char *end;
  unsigned long v = strtoul(text, &end, 10);

  *out = v;
  return text[0] >= '0' && text[0] <= '9' && *end == '\0' && v <= MOST;
}

size_t bench_number(const bench *b, const char *key)
{
  size_t v = 0;

  (void)number(find(b, key), &v);
  return v;
}

bool bench_is(const bench *b, const char *key, const char *value)
{
  return is_default(find(b, key), value);
}

/* Whether an option may have the value; `usual` is its entry in the table. */
static bool is_allowed(const char *usual, const char *value)
{
  size_t v;

  if (strchr(usual, '|') == NULL)
    return number(value, &v) && (v > 0 || is_default(usual, "0"));
  for (const char *choice = usual; choice != NULL;) {
    if (value[0] != '\0' && strchr(value, '|') == NULL &&
        is_default(choice, value))
      return true;
    choice = strchr(choice, '|');
    choice = choice == NULL ? NULL : choice + 1;
  }
  return false;
}

/* The option that `given` sets, or NULL. */
static const char **find_option(const char **options, const char *given)
{
  for (; *options != NULL; options++) {
    size_t len = strcspn(*options, "=") + 1;

    if (strncmp(given, *options, len) == 0)
      return options;
  }
  return NULL;
}

static bool is_of_another_workload(const char *given)
{
  for (size_t i = 0; i < WORKLOADS; i++) {
    const char *options[MOST_OPTIONS + 1] = {NULL};

    memcpy(options, workloads[i].options, sizeof workloads[i].options);
    if (find_option(options, given) != NULL)
      return true;
  }
  return false;
}

/* Replace the default of a given option. Options of other workloads are
 * ignored, so that a script can pass the same to all. */
static void override_default(const char **options, const char *given)
{
  const char **option = find_option(options, given);

  if (option == NULL) {
    if (!is_of_another_workload(given))
      refuse(2, "no such option: ", given);
    return;
  }
  size_t value = strcspn(given, "=") + 1;

  if (!is_allowed(*option + value, given + value))
    refuse(2, "out of range: ", given);
  *option = given;
}

/* ---- main ---------------------------------------------------------------- */

static const workload *find_workload(const char *name)
{
  for (size_t i = 0; i < WORKLOADS; i++) {
    if (strcmp(workloads[i].name, name) == 0)
      return &workloads[i];
  }
  refuse(3, "no such workload: ", name);
}

static void run(bench *b, const workload *w)
{
  int err = lk_ev_new(&b->ev, b->loop, &bench_mem);

  if (err != 0)
    bench_fail("cannot begin", err);
  bench_connect(b, &b->first, 1);
  w->run(b);
  bench_delete_all(b);
  bench_close(b, &b->first, 1);
  lk_ev_free(b->ev);
}

int main(int argc, char **argv)
{
  const char *options[MOST_OPTIONS + 1] = {NULL};
  bench b = {.options = options};

  if (argc < 2) {
    list_workloads();
    return 2;
  }
  const workload *w = find_workload(argv[1]);

  if (argc < 4)
    refuse(2, "what is missing: ", argc == 2 ? "HOST:PORT N" : "N");
  b.hosts = argv[2];
  if (!number(argv[3], &b.n) || b.n == 0)
    refuse(2, "not a number from 1 to 100000000: ", argv[3]);
  memcpy(options, w->options, sizeof w->options);
  for (int i = 4; i < argc; i++)
    override_default(options, argv[i]);

  char why[128];

  if (lk_hosts_check(b.hosts, why, sizeof why) != 0)
    refuse(2, "HOST:PORT: ", why);
  bench_count_loop();
  b.loop = ev_default_loop(0);
  if (b.loop == NULL)
    refuse(1, "no event loop", "");
  run(&b, w);
  ev_loop_destroy(b.loop);
  return 0;
}
