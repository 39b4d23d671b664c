/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * Makes locks of all kinds except the mutex. They take the same commands as a
 * mutex. A read-write lock NAME has two objects, NAME.read and NAME.write.
 */

#include "live/support/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 32 };

/* Complete a command that has made the lock of `o`, or has failed to. */
static void finish_lock(const command *cmd, object *o, lk_client *client,
                        int err)
{
  o->client = client;
  if (err != 0)
    object_forget(o);
  report_made(cmd, err);
}

/* ---- read-write locks ---------------------------------------------------- */

static object *side_new(const char *lock_name, const char *side,
                        lk_client *client)
{
  char name[64];

  snprintf(name, sizeof name, "%.50s.%s", lock_name, side);
  object *o = object_new(name);

  o->client = client;
  return o;
}

static void execute_rwlock(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);

  (void)none;
  if (client == NULL)
    return;
  object *read = side_new(cmd->name, "read", client);
  object *write = side_new(cmd->name, "write", client);
  lk_lock_config config = option_lock(cmd, read);
  int err = lk_rwlock_new(&read->rwlock, client, option_path(cmd), &config);

  if (err != 0) {
    object_forget(write);
    object_forget(read);
    print_line(cmd->tag, "refused=%s", error_word(err));
    return;
  }
  write->rwlock = read->rwlock;
  read->partner = write;
  write->partner = read;
  read->lock = lk_rwlock_read_side(read->rwlock);
  write->lock = lk_rwlock_write_side(read->rwlock);
  print_line(cmd->tag, "err=0");
}

/* ---- semaphores ---------------------------------------------------------- */

static void execute_semaphore(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);
  object *o;
  lk_semaphore_config options = {
      .size = sizeof options,
      .permits = (int32_t)option_number(cmd, "permits", 1),
      .take = (int32_t)option_number(cmd, "take", 0),
      .limit_path = option(cmd, "limit"),
  };

  (void)none;
  if (client == NULL)
    return;
  o = object_new(cmd->name);
  lk_lock_config config = option_lock(cmd, o);

  finish_lock(
      cmd, o, client,
      lk_semaphore_new(&o->lock, client, option_path(cmd), &config, &options));
}

/* ---- single-node locks --------------------------------------------------- */

static void execute_single(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);
  object *o;
  lk_single_config options = {
      .size = sizeof options,
      .poll_ms = (int32_t)option_number(cmd, "poll", 0),
      .spread_ms = (int32_t)option_number(cmd, "spread", 0),
  };

  (void)none;
  if (client == NULL)
    return;
  o = object_new(cmd->name);
  lk_lock_config config = option_lock(cmd, o);

  finish_lock(
      cmd, o, client,
      lk_single_new(&o->lock, client, option_path(cmd), &config, &options));
}

/* ---- multi-locks --------------------------------------------------------- */

/* The member for "x:PATH" (a mutex), "r:PATH" or "w:PATH" (the sides of a
 * read-write lock). */
static lk_multilock_part member_of(const char *text)
{
  lk_multilock_part m = {.path = text + strlen("x:"),
                         .side = LK_MULTILOCK_MUTEX};

  if (text[0] == 'r')
    m.side = LK_MULTILOCK_READ;
  else if (text[0] == 'w')
    m.side = LK_MULTILOCK_WRITE;
  return m;
}

static void execute_multilock(const command *cmd, object *none)
{
  lk_client *client = option_client(cmd);
  object *o;
  const char *list = option(cmd, "members");
  char *copy = strdup(list == NULL ? "" : list), *rest = copy, *text;
  lk_multilock_part members[MAX_MEMBERS];
  lk_multilock_config options = {
      .size = sizeof options,
      .keep_order = option_flag(cmd, "keep_order"),
  };
  size_t count = 0;

  (void)none;
  if (copy == NULL)
    abort();
  while (count < MAX_MEMBERS && (text = strtok_r(rest, ",", &rest)) != NULL)
    members[count++] = member_of(text);
  if (client != NULL) {
    o = object_new(cmd->name);
    lk_lock_config config = option_lock(cmd, o);

    finish_lock(
        cmd, o, client,
        lk_multilock_new(&o->lock, client, members, count, &config, &options));
  }
  free(copy);
}

const verb kind_verbs[] = {
    {"rwlock", execute_rwlock},
    {"semaphore", execute_semaphore},
    {"multilock", execute_multilock},
    {"single", execute_single},
    {NULL, NULL},
};
