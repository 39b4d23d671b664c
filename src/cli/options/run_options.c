/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>

#include "cli/options/number.h"
#include "cli/options/options.h"

/* Defines the function of an option without an argument. The option sets
   `member` to true. */
#define FLAG(member)                                                  \
  static const char *take_##member(cli_options *o, const char *value) \
  {                                                                   \
    (void)value;                                                      \
    o->member = true;                                                 \
    return NULL;                                                      \
  }
FLAG(quiet)
FLAG(foreground)
FLAG(json)

/* Defines the function of an option whose text is checked later. */
#define TEXT(member)                                                  \
  static const char *take_##member(cli_options *o, const char *value) \
  {                                                                   \
    o->member = value;                                                \
    return NULL;                                                      \
  }
TEXT(command)
TEXT(label)
TEXT(acl)

static const char *take_exclusive(cli_options *o, const char *value)
{
  (void)value;
  o->side = CLI_SIDE_WRITE;
  return NULL;
}

static const char *take_shared(cli_options *o, const char *value)
{
  (void)value;
  o->side = CLI_SIDE_READ;
  return NULL;
}

static const char *take_lock(cli_options *o, const char *value)
{
  const char *path = value;

  if (strncmp(path, "x:", 2) == 0 || strncmp(path, "s:", 2) == 0)
    path += strlen("x:");
  if (lk_path_check(path) != 0 || strcmp(path, "/") == 0)
    return "is not a path below \"/\", with or without x: or s: before it";
  if (o->extra_count == CLI_MAX_EXTRA_LOCKS)
    return "is one lock too many (64 at most)";
  o->extra_locks[o->extra_count++] = value;
  return NULL;
}

static const char *take_permits(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 1, 1000000, &n) != NULL)
    return "is not a number of permits from 1 to 1000000";
  o->permits = (int32_t)n;
  return NULL;
}

static const char *take_wanted_permits(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 1, 1000, &n) != NULL)
    return "is not a number of permits from 1 to 1000";
  o->permits_to_take = (int32_t)n;
  return NULL;
}

static const char *take_nonblock(cli_options *o, const char *value)
{
  (void)value;
  o->wait_ms = 0;
  o->nonblock = true;
  return NULL;
}

/* -n overrides -w, whichever comes first, as in flock(1). */
static const char *take_wait(cli_options *o, const char *value)
{
  int64_t ms;
  const char *wrong = cli_number_seconds(value, &ms);

  if (wrong == NULL && !o->nonblock)
    o->wait_ms = ms;
  return wrong;
}

static const char *take_conflict_code(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 0, 255, &n) != NULL)
    return "is not an exit code from 0 to 255";
  o->conflict_code = (int)n;
  return NULL;
}

static const char *take_member_name(cli_options *o, const char *value)
{
  cli_text path = {0};

  o->member_name = value;
  cli_text_printf(&path, "/%s", value);
  const char *text = cli_text_end(&path);
  bool valid = text != NULL && *value != '\0' && strchr(value, '/') == NULL &&
               lk_path_check(text) == 0;

  cli_text_free(&path);
  return valid ? NULL : "is not the name of a node";
}

static const char *take_restarts(cli_options *o, const char *value)
{
  return cli_number_whole(value, 0, INT32_MAX, &o->restarts);
}

static const char *take_kill_after(cli_options *o, const char *value)
{
  const char *wrong = cli_number_seconds(value, &o->kill_after_ms);

  if (wrong == NULL && o->kill_after_ms == 0)
    return "must be more than 0 (--on-lost kill kills at once)";
  return wrong;
}

static const char *take_min_hold(cli_options *o, const char *value)
{
  return cli_number_seconds(value, &o->min_hold_ms);
}

static const char *take_max_hold(cli_options *o, const char *value)
{
  const char *wrong = cli_number_seconds(value, &o->max_hold_ms);

  if (wrong == NULL && o->max_hold_ms == 0)
    return "must be more than 0";
  return wrong;
}

/* Returns the index of `value` in `words`, which ends with NULL, or -1. */
static int find_word(const char *const *words, const char *value)
{
  for (int i = 0; words[i] != NULL; i++)
    if (strcmp(words[i], value) == 0)
      return i;
  return -1;
}

static const char *take_on_lost(cli_options *o, const char *value)
{
  /* in the order of cli_on_lost */
  static const char *const words[] = {"term", "kill", "stop", "ignore", NULL};
  int i = find_word(words, value);

  if (i < 0)
    return "is none of term, kill, stop, ignore";
  o->on_lost = (cli_on_lost)i;
  return NULL;
}

static const char *take_assurance(cli_options *o, const char *value)
{
  /* in the order of lk_assurance */
  static const char *const words[] = {"quorum", "sync", "ping", NULL};
  int i = find_word(words, value);

  if (i < 0)
    return "is none of quorum, sync, ping";
  o->assurance = (lk_assurance)i;
  return NULL;
}

static const char *take_events_fd(cli_options *o, const char *value)
{
  int64_t n;

  if (cli_number_whole(value, 0, INT32_MAX, &n) != NULL)
    return "is not the number of a descriptor";
  int flags = fcntl((int)n, F_GETFL);

  if (flags < 0)
    return "is not an open descriptor (in a shell: 3>FILE opens number 3)";
  if ((flags & O_ACCMODE) == O_RDONLY)
    return "is a descriptor that cannot be written to";
  o->events_fd = (int)n;
  return NULL;
}

/* Options without a help text are synonyms, for users of flock(1). */
/* clang-format off */
const cli_option cli_options_run[] = {
  {'s', "shared", NULL, "acquire the read side of a read-write lock", take_shared},
  {'x', "exclusive", NULL, "acquire the write side of a read-write lock", take_exclusive},
  {'e', NULL, NULL, NULL, take_exclusive},
  {'l', "lock", "[x:|s:]PATH", "acquire this lock, too: all, or none; repeatable", take_lock},
  {'p', "permits", "N", "LOCK is a semaphore of N permits", take_permits},
  {0, "take", "K", "acquire K permits (1)", take_wanted_permits},
  {'n', "nonblock", NULL, "fail if the lock is held", take_nonblock},
  {0, "nb", NULL, NULL, take_nonblock},
  {'w', "wait", "SECS", "give up after SECS, connecting included", take_wait},
  {0, "timeout", "SECS", NULL, take_wait},
  {'E', "conflict-exit-code", "N", "exit code if the lock is not acquired (124)", take_conflict_code},
  {0}};

const cli_option cli_options_elect[] = {
  {0, "restarts", "N", "take part again at most N times after COMMAND has failed (any number)", take_restarts},
  {0}};

const cli_option cli_options_join[] = {
  {0, "name", "NAME", "name of the own node in the group (random)", take_member_name},
  {'d', "data", "TEXT", "data of the own node (host, pid, start time)", take_label},
  {0}};

const cli_option cli_options_job[] = {
  {'i', "id", "TEXT", "label that other clients see (host, pid, start time)", take_label},
  {0, "on-lost", "ACT", "when the lease runs out or the lock is lost: term, kill, stop, ignore COMMAND (term)", take_on_lost},
  {0, "kill-after", "SECS", "send TERM so long before the lease deadline (a sixth of the session timeout)", take_kill_after},
  {0, "min-hold", "SECS", "hold the lock at least SECS, even if COMMAND ends earlier", take_min_hold},
  {0, "max-hold", "SECS", "after SECS, end COMMAND as --on-lost says", take_max_hold},
  {0, "assurance", "HOW", "request that renews the lease: quorum, sync, ping (quorum)", take_assurance},
  {0}};

const cli_option cli_options_command[] = {
  {'c', "command", "STRING", "run STRING with $SHELL -c; also directly after the path", take_command},
  {0, "acl", "SPEC", "access list: open, creator, or scheme:id:cdrwa,... (open)", take_acl},
  {0, "foreground", NULL, "leave COMMAND in the terminal's process group", take_foreground},
  {'q', "quiet", NULL, "no progress and no notices", take_quiet},
  {0, "json", NULL, "one JSON object a line for each event, on standard error", take_json},
  {0, "events-fd", "N", "one JSON object a line for each event, on descriptor N", take_events_fd},
  {0}};

const cli_option cli_options_wait[] = {
  {'w', "wait", "SECS", "give up after SECS, connecting included", take_wait},
  {0, "timeout", "SECS", NULL, take_wait},
  {0}};
/* clang-format on */
