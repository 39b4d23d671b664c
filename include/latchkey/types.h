/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_TYPES_H
#define LK_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <latchkey/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A ZooKeeper client: <latchkey/client.h>. */
typedef struct lk_client lk_client;

/** A timeout or deadline of this value means that there is no limit. See
    "Timeouts" in <latchkey/client.h>. */
#define LK_NO_LIMIT (-1)

/**
 * A view of bytes; their owner is documented where it is used. `at` NULL is
 * ZooKeeper's null, which is another value than an empty string (`at` set,
 * `len` 0): a node keeps the difference. Text of a server is mostly UTF-8, and
 * not NUL-terminated unless the function that gives it says so.
 */
typedef struct lk_bytes {
  const void *at;
  size_t len; /**< in bytes */
} lk_bytes;

/** A view of `len` bytes at `at`. */
static inline lk_bytes lk_bytes_of(const void *at, size_t len)
{
  lk_bytes b = {at, len};

  return b;
}

/** A view of a C string; NULL gives ZooKeeper's null. */
static inline lk_bytes lk_text(const char *s)
{
  return lk_bytes_of(s, s == NULL ? 0 : strlen(s));
}

/** For printf(), of a lk_bytes with at most INT_MAX bytes:
    printf("child " LK_FMT "\n", LK_ARG(names[i])). It evaluates `b` more than
    once. */
#define LK_FMT    "%.*s"
#define LK_ARG(b) (int)(b).len, (b).at == NULL ? "" : (const char *)(b).at

/** A node's Stat. Times in ms since 1970. */
typedef struct lk_stat {
  int64_t czxid;           /**< transaction that created the node */
  int64_t mzxid;           /**< last change of its data (or its creation) */
  int64_t ctime;           /**< creation, by the leader's wall clock */
  int64_t mtime;           /**< last change of its data */
  int32_t version;         /**< changes of its data; wraps around */
  int32_t cversion;        /**< creations and deletions of children */
  int32_t aversion;        /**< changes of its access list */
  int64_t ephemeral_owner; /**< owning session, 0 if not ephemeral */
  int32_t data_length;     /**< in bytes; 0 for null too */
  int32_t num_children;
  int64_t pzxid; /**< last creation or deletion of a child */
} lk_stat;

/** Bits of lk_acl.perms. A program keeps a bit that it does not know. */
enum lk_perm {
  LK_PERM_READ = 1,
  LK_PERM_WRITE = 2,
  LK_PERM_CREATE = 4, /**< create children of the node */
  LK_PERM_DELETE = 8, /**< delete children of the node, not the node itself */
  LK_PERM_ADMIN = 16,
  LK_PERM_ALL = 31
};

/** An entry of an access list: permissions of the identity `scheme`:`id`. */
typedef struct lk_acl {
  int32_t perms;
  lk_bytes scheme;
  lk_bytes id;
} lk_acl;

/** An access list; the entries belong to the caller and are copied. */
typedef struct lk_acls {
  const lk_acl *entries;
  size_t count;
} lk_acls;

/* Constant lists. */

/** All permissions to all clients: the default of nodes that are created. */
LK_API const lk_acls *lk_acl_open(void);
/** All permissions to the identities of this connection (scheme "auth"). DELETE
    is checked on the parent. */
LK_API const lk_acls *lk_acl_creator(void);
/** READ to all clients. */
LK_API const lk_acls *lk_acl_read(void);

/** An identity of a connection, as the server knows it. */
typedef struct lk_identity {
  lk_bytes scheme; /**< "ip", "digest", "x509", "sasl", … */
  lk_bytes user;   /**< without a password or its digest */
} lk_identity;

/**
 * An allocator. `resize(arg, NULL, n)` allocates; `resize(arg, p, 0)` frees and
 * returns NULL; any other call does what realloc() does. If it cannot allocate,
 * it returns NULL and keeps the old block: the library then reports
 * LK_ERR_NO_MEMORY, and no object loses its content. `resize` must not call the
 * library.
 */
typedef struct lk_mem {
  void *(*resize)(void *arg, void *p, size_t size);
  void *arg;
} lk_mem;

/** A member of a heap ordered by time, embedded in its owner (lk_timer).
    Set it to 0 first; then only the library changes it. */
typedef struct lk_heap_node {
  int64_t at;                 /**< when it is due */
  struct lk_heap_node *child; /**< its first child */
  struct lk_heap_node *next;  /**< right neighbour */
  struct lk_heap_node *prev;  /**< parent or left neighbour; itself: the root;
                                   NULL: in no heap */
} lk_heap_node;

/** A member of a list, embedded in its owner (lk_listener). Set it to 0 first;
    then only the library changes it. */
typedef struct lk_link {
  struct lk_link *next;
  struct lk_link *prev;
} lk_link;

#ifdef __cplusplus
}
#endif
#endif
