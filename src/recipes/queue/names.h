/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_NAMES_H
#define LK_RECIPES_QUEUE_NAMES_H

/**
 * @file
 * Names of contender nodes: which kind of contender a name is of, its sequence
 * number, and the unique part by which a contender recognises its own node.
 */

#include <latchkey/types.h>

/** The family of locks that a kind of node belongs to. Locks of one family
    recognise each other's nodes. */
typedef enum lk_family {
  LK_FAMILY_MUTEX,  /**< Curator's mutex, go-zookeeper's lock */
  LK_FAMILY_RW,     /**< Curator's read-write lock */
  LK_FAMILY_KAZOO,  /**< kazoo's locks */
  LK_FAMILY_LATCH,  /**< Curator's leader latch */
  LK_FAMILY_PERMIT, /**< leases of Curator's semaphore */
  LK_FAMILY_PLAIN   /**< plain names, see lk__name_format_plain */
} lk_family;

/** How a contender shares the lock. */
typedef enum lk_side {
  LK_SIDE_WRITER,     /**< excludes readers and writers */
  LK_SIDE_READER,     /**< shares the lock with readers */
  LK_SIDE_FAMILY_ONLY /**< excludes, and is excluded by, its own family only */
} lk_side;

/** A kind of contender node. Its text stands directly before the number in a
    name. */
typedef struct lk_node_kind {
  const char *text; /**< "": the name of the node has no such text */
  lk_family family;
  lk_side side;
} lk_node_kind;

extern const lk_node_kind lk__node_kind_mutex;       /**< "lock-" */
extern const lk_node_kind lk__node_kind_write;       /**< "__WRIT__" */
extern const lk_node_kind lk__node_kind_read;        /**< "__READ__" */
extern const lk_node_kind lk__node_kind_latch;       /**< "latch-" */
extern const lk_node_kind lk__node_kind_permit;      /**< "lease-" */
extern const lk_node_kind lk__node_kind_kazoo_write; /**< "__lock__" */
extern const lk_node_kind lk__node_kind_kazoo_read;  /**< "__rlock__" */
extern const lk_node_kind
    lk__node_kind_kazoo_permit; /**< "", a permit of kazoo's semaphore */
extern const lk_node_kind lk__node_kind_plain_write; /**< "w-" */
extern const lk_node_kind lk__node_kind_plain_read;  /**< "r-" */

/** The names of contenders in a queue. */
typedef struct lk_name_format {
  const lk_node_kind *const *kinds;
  size_t count;
  /** true: a name is an optional UUID and "-", the text of a kind, and a number
      as servers write it. false: a name is any prefix, the text of a kind, an
      optional "-" and 1 to 10 digits. */
  bool exact;
} lk_name_format;

/** Names of Curator and kazoo, which can queue together on one path. */
extern const lk_name_format lk__name_format_known;
/** Names of the kinds "r-" and "w-" alone. */
extern const lk_name_format lk__name_format_plain;

/** A parsed name of a contender. */
typedef struct lk_name {
  const lk_node_kind *kind;
  int64_t number; /**< sequence number; a server gives an int32, but a node that
                     was created with a whole name may have a larger one */
} lk_name;

/** Whether `name`, without its directory, is the name of a contender; `out`
    gets its parts. */
bool lk__name_parse(const lk_name_format *format, lk_bytes name, lk_name *out);

bool lk__names_are_equal(lk_bytes a, lk_bytes b);

/** Whether contenders of these kinds take part in one queue. */
bool lk__node_kinds_contend(const lk_node_kind *a, const lk_node_kind *b);

/** How a contender recognises its own node: by a unique part, which it draws
    before the create. */
typedef enum lk_node_identity {
  LK_IDENTITY_CURATOR,  /**< "_c_" UUID "-" in front of the kind's text */
  LK_IDENTITY_HEX,      /**< 32 hex digits in front of the kind's text */
  LK_IDENTITY_HEX_ONLY, /**< 32 hex digits are the whole name */
  LK_IDENTITY_UUID,     /**< UUID "-" in front of the kind's text */
  LK_IDENTITY_DATA,     /**< a UUID at the end of the data, none in the name */
  LK_IDENTITY_NONE      /**< no unique part: all contenders use one name */
} lk_node_identity;

/** Whether another contender can create a node of the same name. */
static inline bool lk__identity_shares_names(lk_node_identity identity)
{
  return identity == LK_IDENTITY_DATA || identity == LK_IDENTITY_NONE;
}

/** Whether the server appends no number to the name. */
static inline bool lk__identity_is_unnumbered(lk_node_identity identity)
{
  return identity == LK_IDENTITY_HEX_ONLY || identity == LK_IDENTITY_NONE;
}

enum {
  LK_UUID_LEN = 36,
  LK_UNIQUE_PART_MAX_LEN = 40, /**< the longest unique part: "_c_" UUID "-" */
  LK_NUMBER_MAX_LEN = 11       /**< "-" and ten digits */
};

/** Write the unique part of a name, or of the data: a version 4 UUID made of
    `random`, in the form that `identity` asks for. */
void lk__name_write_unique_part(lk_node_identity identity,
                                char out[LK_UNIQUE_PART_MAX_LEN + 1],
                                const unsigned char random[16]);

/** The length of the unique part in a name. */
size_t lk__name_unique_part_len(lk_node_identity identity);

/** Whether `name` has the form of LK_IDENTITY_HEX_ONLY. */
bool lk__name_is_hex(lk_bytes name);

/** Whether `name` is `base` and a sequence number, as a server appends it;
    `number` gets the number. */
bool lk__name_has_base(lk_bytes name, lk_bytes base, int64_t *number);

/** Write the path of the child `name` of `dir` and a NUL to `at`. Returns the
    end of what was written. */
char *lk__write_child_path(char *at, const char *dir, lk_bytes name);

/** Find the name with the lowest number among those that consist of `base` and
    a sequence number. `at` of the result is NULL if there is none. */
lk_bytes lk__names_find_own(const lk_bytes *names, size_t count, lk_bytes base);

#endif
