/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_SUPPORT_WORKER_H
#define LK_LIVE_SUPPORT_WORKER_H

/**
 * @file
 * Clients and locks that execute a script: see worker.c for the lines it reads
 * and writes, and worker.py for the other end.
 */

#include <latchkey/latchkey.h>
#include <stdbool.h>

/** A client, a lock or a subscription; found by name. */
typedef struct object {
  char name[64];
  lk_client *client;             /* its own, or that of the lock */
  lk_lock *lock;                 /* NULL: it is a client */
  lk_rwlock *rwlock;             /* whose side `lock` is; or NULL */
  struct object *partner;        /* the other side */
  lk_subscription *subscription; /* NULL: it is none */
  lk_listener listener;
  struct object *next;
} object;

/** A line that was read: `tag verb object key=value...`. */
typedef struct command {
  const char *tag;
  const char *verb;
  const char *name;
  char *words[64];
  size_t count;
} command;

typedef struct verb {
  const char *name;
  /* Does it; ends in one line that begins with the tag, at once or later. */
  void (*execute)(const command *cmd, object *o);
} verb;

extern const verb client_verbs[];
extern const verb lock_verbs[];
extern const verb kind_verbs[];
extern const verb node_verbs[];
extern const verb crowd_verbs[];
extern const verb subscribe_verbs[];

extern lk_ev *worker_ev;
/** Bytes that this process has sent. */
extern unsigned long long worker_sent;

object *object_new(const char *name);
object *object_find(const char *name);
/** Take it off the list and free its memory. */
void object_forget(object *o);
/** Both sides, where it is one of a read-write lock. */
void object_free_lock(object *o);
void object_free_client(object *o);
void object_free_subscription(object *o);

/** The value of a key; NULL: it is not given. */
const char *option(const command *cmd, const char *key);
long long option_number(const command *cmd, const char *key, long long usual);
/** A path; "" if it is not given. */
const char *option_path(const command *cmd);
/** Decoded from hex into memory that lives until the next line; null if not
    given. */
lk_bytes option_bytes(const command *cmd, const char *key);
/** `acl=open|creator|read`, or one entry, `acl=PERMS:SCHEME:ID`; NULL if not
    given. */
const lk_acls *option_acl(const command *cmd, const char *key);

/** What a lock is to be like; it tells of itself as `o`. */
lk_lock_config option_lock(const command *cmd, object *o);
/** The client that is to have a lock; NULL: said that there is none. */
object *option_owner(const command *cmd);

/** The tag, copied for a callback, which frees it by settle(). */
void *copy_tag(const command *cmd);

/** Write a line: the time, `name`, and the rest. */
void print_line(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Say how a command was received: a refusal, unless `err` is 0, which also
    frees `tag` (may be NULL). */
void report_refusal(const command *cmd, int err, void *tag);

/* Callbacks that say how a request ended, and free its tag. */
void report_done(lk_client *c, int err, void *tag);
void report_created(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *tag);
void report_stat(lk_client *c, int err, const lk_stat *stat, void *tag);

/** The name of an error, "0", or its number. */
const char *error_word(int err);
/** Hex in one of a few buffers that are used in turn; "null". */
const char *hex(lk_bytes b);

#endif
