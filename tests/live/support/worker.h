/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LIVE_SUPPORT_WORKER_H
#define LK_LIVE_SUPPORT_WORKER_H

/**
 * @file
 * Clients and locks that a test commands by lines: see worker.c for the format
 * of the lines, and worker.py for the side of the test.
 */

#include <latchkey/latchkey.h>
#include <stdbool.h>

/** A client, a lock or a subscription; found by name. */
typedef struct object {
  char name[64];
  lk_client *client;             /* of a client, or the client of the lock */
  lk_lock *lock;                 /* NULL: a client or a subscription */
  lk_rwlock *rwlock;             /* whose side `lock` is; or NULL */
  struct object *partner;        /* the other side */
  lk_subscription *subscription; /* NULL: a client or a lock */
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
  /* Executes the command; prints one line with its tag, at once or later. */
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

/** The value of a key; NULL if it is not given. */
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

/** The config of a lock, from the options; its events are printed as of `o`. */
lk_lock_config option_lock(const command *cmd, object *o);
/** The client that the command names; NULL: none, and a refusal is printed. */
object *option_owner(const command *cmd);

/** A copy of the tag, which the callback frees. */
void *copy_tag(const command *cmd);

/** Print a line: the time, `name`, and the rest. */
void print_line(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** If `err` is not 0, print the refusal of the command and free `tag` (may be
    NULL). */
void report_refusal(const command *cmd, int err, void *tag);

/* Callbacks that print the result of a request and free its tag. */
void report_done(lk_client *c, int err, void *tag);
void report_created(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *tag);
void report_stat(lk_client *c, int err, const lk_stat *stat, void *tag);

/** The name of an error, "0", or its number. */
const char *error_word(int err);
/** Hex in one of a few buffers that are used in turn; "null". */
const char *hex(lk_bytes b);

#endif
