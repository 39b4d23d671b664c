/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A service with standby processes, with blocking calls: each process is a
 * member of a group and a candidate of an election. The leader counts in a
 * node, and the next leader goes on where the last one has ended. A write is
 * executed only in the term of its leader, and only if it is the next one.
 *
 *     standby [HOSTS [COUNT]]
 *
 * It ends after INT or TERM, and after COUNT numbers of its own.
 */

#include <latchkey/sync.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GROUP    "/standby/members"
#define ELECTION "/standby/leader"
#define NUMBER   "/standby/number"

enum { SESSION_TIMEOUT_MS = 10000, CALL_TIMEOUT_MS = 5000 };

typedef struct standby {
  lk_sync_client *client;
  lk_sync_membership *member;
  lk_sync_candidate *candidate;
  long left; /* numbers until the end; negative: no limit */
} standby;

static lk_sync_cancel *stop; /* is set by INT and TERM */

static void on_signal(int number)
{
  (void)number;
  lk_sync_cancel_set(stop);
}

/* ---- the work of the leader ---------------------------------------------- */

static int print_members(const standby *s, const lk_sync_call *call)
{
  lk_sync_result *r = NULL;
  int err = lk_sync_roster_get(s->client, &r, GROUP, NULL, call);

  for (size_t i = 0; err == 0 && i < r->count; i++)
    printf("member %s\n", (const char *)r->entries[i].name.at);
  lk_sync_result_free(r);
  return err == LK_ERR_NO_NODE ? 0 : err; /* no member has joined again yet */
}

/* The version of the node is the number: each write sets the next one. */
static int read_number(const standby *s, int32_t *number,
                       const lk_sync_call *call)
{
  lk_stat stat;
  int err = lk_sync_exists(s->client, &stat, NUMBER, call);

  if (err == 0)
    *number = stat.version;
  return err;
}

/* A write that was in doubt, and is executed after the next read, does not
   have the version that it expects any more; or this one does not. */
static int write_next(const standby *s, uint64_t term, int32_t number,
                      const lk_sync_call *call)
{
  char text[32];

  snprintf(text, sizeof text, "%ld", number + 1L);
  lk_op op = lk_op_set(NUMBER, lk_text(text), number);

  return lk_sync_candidate_guarded_multi(s->candidate, NULL, term, &op, 1,
                                         call);
}

/* Count until the term is over. Returns 0, also if the term has ended, or an
   error. */
static int lead(standby *s, const lk_sync_call *call)
{
  /* The pause between two numbers: it ends with the term, and by a signal. */
  const lk_sync_call pause = {
      .size = sizeof pause, .timeout_ms = 100, .cancel = stop};
  uint64_t term = lk_sync_candidate_term(s->candidate);
  int32_t number = 0;
  int err = print_members(s, call);

  if (err == 0)
    err = read_number(s, &number, call);
  while (err == 0 && s->left != 0 && lk_sync_candidate_ok(s->candidate)) {
    err = write_next(s, term, number, call);
    if (err != 0)
      break;
    number++;
    s->left--;
    printf("%ld, term %llu\n", (long)number, (unsigned long long)term);
    err = lk_sync_candidate_wait_unsure(s->candidate, &pause);
    if (err == LK_ERR_DEADLINE)
      err = 0;
  }
  return err == LK_ERR_LOST || err == LK_ERR_NOT_HELD ? 0 : err;
}

/* ---- the program --------------------------------------------------------- */

/* Whether the next term may succeed. */
static bool is_temporary(int err)
{
  return err == LK_ERR_DEADLINE || err == LK_ERR_IN_DOUBT ||
         err == LK_ERR_NOT_SENT || err == LK_ERR_SESSION_EXPIRED ||
         err == LK_ERR_CONNECTION_LOSS || err == LK_ERR_BAD_VERSION;
}

static int make_number(const standby *s, const lk_sync_call *call)
{
  int err = lk_sync_create_with_parents(s->client, NULL, NUMBER, lk_text("0"),
                                        NULL, LK_PERSISTENT, NULL, call);

  return err == LK_ERR_NODE_EXISTS ? 0 : err;
}

static int serve(standby *s)
{
  const lk_sync_call until_stop = {.size = sizeof until_stop, .cancel = stop};
  const lk_sync_call call = {
      .size = sizeof call, .timeout_ms = CALL_TIMEOUT_MS, .cancel = stop};
  int err = make_number(s, &call);

  if (err == 0)
    err = lk_sync_membership_join(s->member, &until_stop);
  while (err == 0 && s->left != 0) {
    err = lk_sync_candidate_wait_elected(s->candidate, &until_stop);
    if (err == 0)
      err = lead(s, &call);
    if (is_temporary(err))
      err = 0;
  }
  return err == LK_ERR_CANCELLED ? 0 : err;
}

static int open_standby(standby *s, const char *hosts)
{
  char host[200] = "", name[256];
  lk_client_config client = {.size = sizeof client,
                             .hosts = hosts,
                             .session_timeout_ms = SESSION_TIMEOUT_MS};
  lk_sync_config config = {.size = sizeof config, .client = &client};

  gethostname(host, sizeof host - 1);
  snprintf(name, sizeof name, "%s-%ld", host, (long)getpid());
  lk_lock_config lock = {.size = sizeof lock, .data = lk_text(name)};
  int err = lk_sync_client_new(&s->client, &config);

  if (err == 0)
    err = lk_sync_cancel_new(&stop, s->client);
  if (err == 0)
    err = lk_sync_membership_new(&s->member, s->client, GROUP, name, NULL);
  if (err == 0)
    err = lk_sync_election_new(&s->candidate, s->client, ELECTION,
                               LK_LAYOUT_LATCH, &lock, NULL);
  return err;
}

int main(int argc, char **argv)
{
  const char *hosts = argc > 1 ? argv[1] : "127.0.0.1:2181";
  standby s = {.left = argc > 2 ? atol(argv[2]) : -1};
  int err = open_standby(&s, hosts);

  setvbuf(stdout, NULL, _IOLBF, 0); /* each line at once, also into a pipe */
  if (err == 0) {
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    err = serve(&s);
  }
  if (err != 0)
    fprintf(stderr, "%s: %s\n", hosts, lk_error_text(err));
  signal(SIGINT, SIG_IGN); /* `stop` is freed */
  signal(SIGTERM, SIG_IGN);
  /* The candidate resigns, and the member leaves: no other has to wait for the
     end of the session. */
  lk_sync_candidate_free(s.candidate);
  lk_sync_membership_free(s.member);
  if (s.client != NULL)
    lk_sync_client_close(s.client);
  lk_sync_cancel_free(stop);
  lk_sync_client_free(s.client);
  return err == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
