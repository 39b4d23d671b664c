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

#include "live/support/test_driver.h"

/** A client, a lock, a candidate, a member, a roster or a subscription.
    Commands name it by `name`. */
typedef struct object {
  char name[64];
  lk_client *client;             /* the client, or that of the lock */
  lk_lock *lock;                 /* NULL: the object is no lock */
  lk_rwlock *rwlock;             /* NULL: `lock` is no side of such a lock */
  struct object *partner;        /* the other side of `rwlock`, or NULL */
  lk_candidate *candidate;       /* NULL: the object is no candidate */
  lk_membership *member;         /* NULL: the object is no member */
  lk_roster *roster;             /* NULL: the object is no roster */
  lk_subscription *subscription; /* NULL: the object is no subscription */
  lk_listener listener;          /* prints the states of `client` */
  struct object *next;           /* in the list of all objects */
} object;

/** An input line, split into words: `TAG VERB OBJECT KEY=VALUE...`. */
typedef struct command {
  const char *tag;
  const char *verb;
  const char *name;  /* of the object */
  char *options[64]; /* "KEY=VALUE" each */
  size_t option_count;
} command;

typedef struct verb {
  const char *name;
  /* Execute the command. At once or later it prints one line with the tag of
     the command. `o` is NULL if the verb makes an object. */
  void (*execute)(const command *cmd, object *o);
} verb;

extern const verb client_verbs[];
extern const verb lock_verbs[];
extern const verb kind_verbs[];
extern const verb node_verbs[];
extern const verb crowd_verbs[];
extern const verb subscribe_verbs[];
extern const verb candidate_verbs[];
extern const verb member_verbs[];

/** The number of bytes that this process has sent. */
extern unsigned long long worker_bytes_sent;

object *object_new(const char *name);
object *object_find(const char *name);
/** Take the object off the list, and free the memory of the object, but not its
    lock, client or subscription. */
void object_forget(object *o);
/** Free the lock and its object; of a read-write lock, both sides and their
    objects. */
void object_free_lock(object *o);
void object_free_client(object *o);
/** Free an object of any kind. */
void object_free(object *o);
void object_free_subscription(object *o);
void object_free_candidate(object *o);
void object_free_member(object *o);
void object_free_roster(object *o);

/** The value of a key; NULL if it is not given. */
const char *option(const command *cmd, const char *key);
long long option_number(const command *cmd, const char *key,
                        long long if_absent);
/** The value of `version`; -1 (any version) if it is not given. */
int32_t option_version(const command *cmd);
/** Whether the value of a key is given and not 0. */
bool option_flag(const command *cmd, const char *key);
/** The value of `path`; "" if it is not given. */
const char *option_path(const command *cmd);
/** The value of a key, decoded from hex; lk_text(NULL) if it is not given. The
    bytes are valid until the next line is executed. */
lk_bytes option_bytes(const command *cmd, const char *key);
/** `acl=open|creator|read`, or one entry, `acl=PERMS:SCHEME:ID`; NULL if not
    given. */
const lk_acls *option_acl(const command *cmd, const char *key);

/** The config of a lock, from the options. Its events are printed with the name
    of `o`. */
lk_lock_config option_lock(const command *cmd, object *o);
/** The client of the object that the option `client` names. NULL: there is no
    such object, and the refusal of the command has been printed. */
lk_client *option_client(const command *cmd);

/** A copy of the tag, which the callback frees. */
void *copy_tag(const command *cmd);

/** Print a line: the time, `name` (an object or a tag), and the formatted text.
 */
void print_line(const char *name, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** If `err` is not 0, print the refusal of the command and free `tag` (may be
    NULL). */
void report_if_refused(const command *cmd, int err, void *tag);
/** Print the result of a command that makes an object. */
void report_made(const command *cmd, int err);

/* Callbacks that print the result of a request and free its tag. */
void report_done(lk_client *c, int err, void *tag);
void report_created(lk_client *c, int err, const char *path,
                    const lk_stat *stat, void *tag);
void report_stat(lk_client *c, int err, const lk_stat *stat, void *tag);

/** The name of an error, "0", or its number. */
const char *error_word(int err);
/** The first 4096 bytes in hex, or "null". The fourth call after this one
    overwrites the text. */
const char *hex(lk_bytes b);
/** The names separated by commas, cut to 64 KB. The next call overwrites it. */
const char *join_names(const lk_bytes *names, size_t count);

#endif
