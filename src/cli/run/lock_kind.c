/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include <latchkey/multilock.h>
#include <latchkey/semaphore.h>
#include <latchkey/single.h>

#include "cli/run/lock_kind.h"

/* Parses an argument of -l: "x:PATH", "s:PATH" or "PATH". */
static lk_multilock_member parse_member(const char *word)
{
  const char *after_prefix = word + strlen("x:");

  if (strncmp(word, "x:", 2) == 0)
    return (lk_multilock_member){after_prefix, LK_MULTILOCK_WRITE};
  if (strncmp(word, "s:", 2) == 0)
    return (lk_multilock_member){after_prefix, LK_MULTILOCK_READ};
  return (lk_multilock_member){word, LK_MULTILOCK_MUTEX};
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
static lk_multilock_member member_at(const cli_options *o, const char *path,
                                     size_t i)
{
  if (i == 0)
    return (lk_multilock_member){path, multilock_side_of(o->side)};
  return parse_member(o->extra_locks[i - 1]);
}

const char *cli_lock_kind_check_sides(const cli_options *o, const char *path)
{
  for (size_t i = 0; i <= o->extra_count; i++)
    for (size_t k = 0; k < i; k++) {
      lk_multilock_member a = member_at(o, path, i);
      lk_multilock_member b = member_at(o, path, k);

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

static int create_multilock(cli_lock_kind *kind, const cli_options *o,
                            lk_client *client, const char *path,
                            const lk_lock_config *config)
{
  lk_multilock_member members[1 + CLI_MAX_EXTRA_LOCKS]; /* LOCK comes first */
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

void cli_lock_kind_free(cli_lock_kind *kind)
{
  if (kind->rw != NULL)
    lk_rwlock_free(kind->rw);
  else
    lk_lock_free(kind->lock);
  *kind = (cli_lock_kind){.lock = NULL};
}

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
