/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NAMES_H
#define LK_RECIPES_NAMES_H

/**
 * @file
 * Names and data of contender nodes: which kind of contender a name is of, its
 * sequence number, and the unique part by which a contender recognises its own
 * node; which kinds exclude each other; and what each layout has of these.
 */

#include <stdbool.h>

#include <latchkey/multilock.h>
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

extern const lk_node_kind lk__node_kind_mutex; /**< "lock-" */

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

/* Which contenders exclude each other: the roles of readers, writers and
   permits. */

/** The role of a contender in its queue: which others it excludes, and which
    exclude it. */
typedef struct lk_role {
  const lk_node_kind *kind;     /**< kind of this contender's node */
  const lk_name_format *format; /**< names of all contenders in the queue */
  bool exclusive; /**< no other contender may hold at the same time */
  /** Whether an earlier contender, with a node of kind `earlier`, excludes this
      one. NULL for a permit. */
  bool (*excludes)(const lk_node_kind *earlier);
  bool is_permit; /**< excluded by the number of permit nodes alone */
} lk_role;

/** Whether `name` is the name of a permit of `role`; `number` gets its sequence
    number, or 0 if it has none. */
bool lk__name_is_permit(const lk_role *role, lk_bytes name, int64_t *number);

/** A permit of Curator's semaphore. */
extern const lk_role lk__role_permit;
/** A permit of kazoo's semaphore. */
extern const lk_role lk__role_kazoo_permit;

/* Which names, roles and directories each layout has. */

/** The rules of a layout. */
typedef struct lk_layout_rules {
  lk_node_identity identity; /**< of the nodes of locks */
  /** The role of each lk_multilock_side. NULL: made of the prefix, if the
      layout has one; else the layout has no such locks. */
  const lk_role *roles[LK_MULTILOCK_WRITE + 1];
  bool has_prefix;       /**< the names of mutexes have a prefix, see
                              lk_plain_names */
  const lk_role *permit; /**< NULL: the layout has no semaphore */
  lk_node_identity permit_identity;
  bool containers; /**< the directories of locks are containers */
  bool downgrades; /**< other clients expect the read node of a writer that
                      downgrades, see queue/own_node.c */
} lk_layout_rules;

/** The rules of `layout`; NULL: there is no such layout. */
const lk_layout_rules *lk__layout_rules(lk_layout layout);

/** Whether the layout has locks of this kind. */
bool lk__layout_has_side(const lk_layout_rules *rules, lk_multilock_side side);

/** The role of a mutex with plain names, and what the role points to. The
    struct must not be moved, since it has pointers to itself. */
typedef struct lk_plain_names {
  lk_node_kind kind;
  const lk_node_kind *kinds[1];
  lk_name_format format;
  lk_role role;
} lk_plain_names;

/** Whether `prefix` is valid; NULL, for the default prefix, is. */
bool lk__plain_prefix_is_valid(const char *prefix);
/** `prefix` must exist as long as `p`; NULL: the default, "seq-". */
void lk__plain_names_init(lk_plain_names *p, const char *prefix);

/** Whether `data` are the message of Curator's revocation, by which another
    client asks the owner of the node to release the lock. */
bool lk__is_revocation(lk_bytes data);

#endif
