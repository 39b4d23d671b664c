/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/lock_kind.h"

#include <inttypes.h>
#include <string.h>

#include <latchkey/multilock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>

#include "cli/locks/contenders.h"
#include "cli/options/options.h"
#include "cli/run/runner.h"

/* ---- the options of a lock ----------------------------------------------- */

/* Parses an argument of -l: "x:PATH", "s:PATH" or "PATH". */
static lk_multilock_part parse_member(const char *word)
{
  const char *after_prefix = word + strlen("x:");

  if (strncmp(word, "x:", 2) == 0)
    return (lk_multilock_part){after_prefix, LK_MULTILOCK_WRITE};
  if (strncmp(word, "s:", 2) == 0)
    return (lk_multilock_part){after_prefix, LK_MULTILOCK_READ};
  return (lk_multilock_part){word, LK_MULTILOCK_MUTEX};
}

/* Whether LOCK or a lock of -l is a side of a read-write lock. */
static bool has_side(const cli_options *o)
{
  if (o->side != CLI_SIDE_MUTEX)
    return true;
  for (size_t i = 0; i < o->extra_count; i++)
    if (parse_member(o->extra_locks[i]).side != LK_MULTILOCK_MUTEX)
      return true;
  return false;
}

/* Whether an option is given that only the lock of a queue has. */
static bool needs_queue(const cli_options *o)
{
  return o->side != CLI_SIDE_MUTEX || o->permits > 0 ||
         o->permits_to_take > 0 || o->extra_count > 0;
}

const char *cli_lock_kind_check(const cli_options *o)
{
  if (o->single_node && needs_queue(o))
    return "--layout single excludes -s, -x, -p, --take and -l";
  if (o->permits == 0 && o->permits_to_take > 0)
    return "--take needs -p";
  if (o->permits > 0 && o->permits_to_take > o->permits)
    return "--take asks for more permits than -p has";
  if (o->permits > 0 && (o->side != CLI_SIDE_MUTEX || o->extra_count > 0))
    return "-p excludes -s, -x and -l";
  if (o->permits > 0 && o->layout != LK_LAYOUT_CURATOR &&
      o->layout != LK_LAYOUT_KAZOO)
    return "-p needs --layout curator or kazoo";
  if (o->layout == LK_LAYOUT_LATCH && has_side(o))
    return "--layout latch excludes -s, -x and the sides of -l";
  if (o->prefix != NULL && o->side != CLI_SIDE_MUTEX && o->extra_count == 0)
    return "-s and -x exclude a prefix of --layout: their names are r- and w-";
  return NULL;
}

static lk_multilock_side multilock_side_of(cli_side side)
{
  switch (side) {
  case CLI_SIDE_MUTEX: break;
  case CLI_SIDE_READ: return LK_MULTILOCK_READ;
  case CLI_SIDE_WRITE: return LK_MULTILOCK_WRITE;
  }
  return LK_MULTILOCK_MUTEX;
}

/* LOCK is member 0, and the locks of -l follow. */
static lk_multilock_part member_at(const cli_options *o, const char *path,
                                   size_t i)
{
  if (i == 0)
    return (lk_multilock_part){path, multilock_side_of(o->side)};
  return parse_member(o->extra_locks[i - 1]);
}

const char *cli_lock_kind_check_sides(const cli_options *o, const char *path)
{
  for (size_t i = 0; i <= o->extra_count; i++)
    for (size_t k = 0; k < i; k++) {
      lk_multilock_part a = member_at(o, path, i);
      lk_multilock_part b = member_at(o, path, k);

      if (strcmp(a.path, b.path) == 0 && a.side != b.side)
        return "a path is given with two sides (-s, -x, s:, x: or none); give "
               "it once";
    }
  return NULL;
}

const char *cli_lock_kind_mode(const cli_options *o)
{
  if (o->permits > 0)
    return "permits";
  return o->side == CLI_SIDE_READ ? "shared" : "exclusive";
}

const char *cli_lock_kind_path(const cli_options *o, size_t i)
{
  return parse_member(o->extra_locks[i]).path;
}

/* ---- creation ------------------------------------------------------------ */

static int create_multilock(cli_lock_kind *kind, const cli_options *o,
                            lk_client *client, const char *path,
                            const lk_lock_config *config)
{
  lk_multilock_part members[1 + CLI_MAX_EXTRA_LOCKS]; /* LOCK comes first */
  const lk_multilock_config *defaults = NULL;

  for (size_t i = 0; i <= o->extra_count; i++)
    members[i] = member_at(o, path, i);
  kind->is_multilock = true;
  return lk_multilock_new(&kind->lock, client, members, 1 + o->extra_count,
                          config, defaults);
}

static int create_semaphore(cli_lock_kind *kind, const cli_options *o,
                            lk_client *client, const char *path,
                            const lk_lock_config *config)
{
  lk_semaphore_config permits = {.size = sizeof permits,
                                 .permits = o->permits,
                                 .take = o->permits_to_take};

  return lk_semaphore_new(&kind->lock, client, path, config, &permits);
}

static int create_rwlock(cli_lock_kind *kind, const cli_options *o,
                         lk_client *client, const char *path,
                         const lk_lock_config *config)
{
  int err = lk_rwlock_new(&kind->rw, client, path, config);

  if (err == 0)
    kind->lock = o->side == CLI_SIDE_READ ? lk_rwlock_read_side(kind->rw)
                                          : lk_rwlock_write_side(kind->rw);
  return err;
}

static int create_single_node(cli_lock_kind *kind, lk_client *client,
                              const char *path, const lk_lock_config *config)
{
  const lk_single_config *defaults = NULL;

  return lk_single_new(&kind->lock, client, path, config, defaults);
}

int cli_lock_kind_open(cli_lock_kind *kind, const cli_options *o,
                       lk_client *client, const char *path,
                       const lk_lock_config *config)
{
  if (o->single_node)
    return create_single_node(kind, client, path, config);
  if (o->permits > 0)
    return create_semaphore(kind, o, client, path, config);
  if (o->extra_count > 0)
    return create_multilock(kind, o, client, path, config);
  if (o->side != CLI_SIDE_MUTEX)
    return create_rwlock(kind, o, client, path, config);
  return lk_lock_new(&kind->lock, client, path, config);
}

/* ---- queries ------------------------------------------------------------- */

uint64_t cli_lock_kind_token(const cli_lock_kind *kind, const char *path)
{
  return kind->is_multilock ? lk_multilock_token(kind->lock, path)
                            : lk_lock_token(kind->lock);
}

const char *cli_lock_kind_node(const cli_lock_kind *kind, const char *path)
{
  return kind->is_multilock ? lk_multilock_node(kind->lock, path)
                            : lk_lock_node(kind->lock);
}

/* Whether the lock of -l number `at` has the path of LOCK (`path`) or of an
   earlier -l. */
static bool is_repeated(const cli_options *o, const char *path, size_t at)
{
  const char *wanted = cli_lock_kind_path(o, at);

  if (strcmp(path, wanted) == 0)
    return true;
  for (size_t i = 0; i < at; i++)
    if (strcmp(cli_lock_kind_path(o, i), wanted) == 0)
      return true;
  return false;
}

void cli_lock_kind_tokens(const cli_lock_kind *kind, const cli_options *o,
                          const char *path, cli_text *out)
{
  cli_text_printf(out, "%" PRIu64 " %s", cli_lock_kind_token(kind, path), path);
  for (size_t i = 0; i < o->extra_count; i++) {
    const char *extra = cli_lock_kind_path(o, i);

    if (!is_repeated(o, path, i))
      cli_text_printf(out, "\n%" PRIu64 " %s", cli_lock_kind_token(kind, extra),
                      extra);
  }
}

/* ---- end ----------------------------------------------------------------- */

void cli_lock_kind_free(cli_lock_kind *kind)
{
  if (kind->rw != NULL)
    lk_rwlock_free(kind->rw);
  else
    lk_lock_free(kind->lock);
  *kind = (cli_lock_kind){.lock = NULL};
}

/* ---- a warning of another kind of lock ----------------------------------- */

/* In Curator's layout a semaphore has its nodes below LOCK/locks and
   LOCK/leases, and the number of permits is in none of them. */
static bool is_curator_semaphore(const cli_runner *r)
{
  return r->options->permits > 0 && r->options->layout == LK_LAYOUT_CURATOR;
}

void cli_run_warn_mixed_queue(cli_runner *r, const char *node)
{
  cli_events_notice(&r->events,
                    "warning: %s belongs to another kind of lock or another "
                    "--layout, and perhaps does not wait for this lock; use "
                    "the same options everywhere, or another path",
                    node);
}

static void on_children_of_lock(lk_client *c, int err, const lk_bytes *names,
                                size_t count, const lk_stat *stat, void *arg)
{
  cli_runner *r = arg;

  (void)c;
  (void)stat;
  if (err != 0)
    return;
  for (size_t i = 0; i < count; i++) {
    if (!cli_is_sequential_name(names[i]))
      continue;
    cli_text node = {0};

    cli_text_printf(&node, "%s/", r->path);
    cli_text_add_printable(&node, names[i]);
    const char *path = cli_text_end(&node);

    cli_run_warn_mixed_queue(r, path == NULL ? r->path : path);
    cli_text_free(&node);
    return;
  }
}

/* The contender of a semaphore does not see the nodes of a mutex or a
   read-write lock, which are children of LOCK. In other layouts the library
   finds such nodes. */
void cli_run_check_other_kind(cli_runner *r)
{
  lk_call call = {.size = sizeof call, .repeat = true};

  if (is_curator_semaphore(r))
    (void)lk_get_children(r->session.client, r->path, &call,
                          on_children_of_lock, r);
}

/* ---- a warning of another number of permits ------------------------------ */

/* The first contender has created its own permits while it waits. So there
   should be at most these and the -p permits of others. More exist for a moment
   when a contender arrives: it creates its contender node and its permits at
   once, and deletes the permits if it is not the first. So the warning is only
   printed if the list is the same a second later. */

enum { CHECK_INTERVAL_MS = 1000, MAX_CHECKS = 10 };

static void on_permit_names(lk_client *c, int err, const lk_bytes *names,
                            size_t count, const lk_stat *stat, void *arg)
{
  cli_runner *r = arg;
  int32_t take =
      r->options->permits_to_take > 0 ? r->options->permits_to_take : 1;
  int64_t max_expected = (int64_t)r->options->permits + take;

  (void)c;
  (void)names;
  if (err != 0 || r->phase != CLI_PHASE_ACQUIRING)
    return;
  bool unchanged = stat->pzxid == r->permits_pzxid;

  r->permits_pzxid = stat->pzxid;
  if ((int64_t)count <= max_expected)
    return;
  if (!unchanged) {
    cli_run_check_permits_later(r);
    return;
  }
  r->permit_checks = MAX_CHECKS; /* warns once */
  cli_events_notice(&r->events,
                    "warning: %s: other clients hold %zu permits, but -p says "
                    "%d; all clients must use the same number",
                    r->path, count - (size_t)take, (int)r->options->permits);
}

static void on_permit_check_timer(lk_loop_timer *t)
{
  cli_runner *r = LK_OWNER(t, cli_runner, timer);
  lk_call call = {.size = sizeof call, .repeat = true};
  cli_text text = {0};

  cli_text_printf(&text, "%s/leases", r->path);
  const char *path = cli_text_end(&text);

  if (path != NULL && r->phase == CLI_PHASE_ACQUIRING)
    (void)lk_get_children(r->session.client, path, &call, on_permit_names, r);
  cli_text_free(&text);
}

void cli_run_check_permits_later(cli_runner *r)
{
  /* With -n the timer limits the wait for a reply. */
  if (!is_curator_semaphore(r) || r->options->wait_ms == 0 ||
      r->permit_checks >= MAX_CHECKS)
    return;
  r->permit_checks++;
  r->timer.on_timer = on_permit_check_timer;
  lk__loop_set_timer(r->session.loop, &r->timer, CHECK_INTERVAL_MS);
}
