/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_QUEUE_NAMES_H
#define LK_RECIPES_QUEUE_NAMES_H

#include <latchkey/types.h>

/** Whose layout a mark belongs to. Members of one family know each other. */
typedef enum lk_family {
  LK_FAMILY_MUTEX,  /**< Curator's mutex, go-zookeeper's lock */
  LK_FAMILY_RW,     /**< Curator's read-write lock */
  LK_FAMILY_KAZOO,  /**< kazoo's locks */
  LK_FAMILY_LATCH,  /**< Curator's leader latch */
  LK_FAMILY_PERMIT, /**< leases of Curator's semaphore */
  LK_FAMILY_PLAIN   /**< plain names, see lk__name_format_plain */
} lk_family;

/** As what a contender stands in a queue. */
typedef enum lk_side {
  LK_SIDE_WRITER,     /**< wants the lock alone */
  LK_SIDE_READER,     /**< shares it with readers */
  LK_SIDE_FAMILY_ONLY /**< contends with its own family only */
} lk_side;

/** What makes a name a contender's: it stands directly before the suffix. */
typedef struct lk_node_kind {
  const char *text;
  lk_family family;
  lk_side side;
} lk_node_kind;

extern const lk_node_kind lk__node_kind_mutex;       /**< "lock-" */
extern const lk_node_kind lk__node_kind_write;       /**< "__WRIT__" */
extern const lk_node_kind lk__node_kind_read;        /**< "__READ__" */
extern const lk_node_kind lk__node_kind_permit;      /**< "lease-" */
extern const lk_node_kind lk__node_kind_kazoo_write; /**< "__lock__" */
extern const lk_node_kind lk__node_kind_kazoo_read;  /**< "__rlock__" */
extern const lk_node_kind
    lk__node_kind_kazoo_permit; /**< "", of kazoo's leases */
extern const lk_node_kind lk__node_kind_plain_write; /**< "w-" */
extern const lk_node_kind lk__node_kind_plain_read;  /**< "r-" */

/** By which names one is a contender in a queue. */
typedef struct lk_name_format {
  const lk_node_kind *const *marks;
  size_t count;
  /** A name is a mark and a number as servers write it, with nothing in front
      but perhaps a UUID and "-". Otherwise: anything, a mark, an optional "-"
      and 1 to 10 digits. */
  bool exact;
} lk_name_format;

/** Curator's and kazoo's: they stand in one queue where a path has both. */
extern const lk_name_format lk__name_format_known;
/** "r-" and "w-", and nothing else. */
extern const lk_name_format lk__name_format_plain;

/** A contender's name, taken apart. */
typedef struct lk_name {
  const lk_node_kind *mark;
  int64_t suffix; /**< servers make int32; what people make may be larger */
} lk_name;

/** Whether `name`, without its directory, is a contender's. */
bool lk__name_parse(const lk_name_format *naming, lk_bytes name, lk_name *out);

/** Whether a lock or semaphore of any kind that is known makes such a node, or
    any program that queues by sequential nodes. */
bool lk__name_is_queued(lk_bytes name);

/** Whether the two marks stand in one queue. */
bool lk__node_kinds_contend(const lk_node_kind *a, const lk_node_kind *b);

/** What makes the nodes of an attempt its own. */
typedef enum lk_node_identity {
  LK_IDENTITY_CURATOR,  /**< "_c_" UUID "-" in front of the mark */
  LK_IDENTITY_HEX,      /**< 32 digits in front of it */
  LK_IDENTITY_HEX_ONLY, /**< 32 digits, and nothing else: no mark, no number */
  LK_IDENTITY_UUID,     /**< UUID "-" in front of it */
  LK_IDENTITY_DATA,     /**< a UUID that ends the data; nothing in the name */
  LK_IDENTITY_NONE      /**< nothing: the name is fixed, and everybody's */
} lk_node_identity;

/** Whether a node of the same name can be another's. */
static inline bool lk__name_is_shared(lk_node_identity identity)
{
  return identity == LK_IDENTITY_DATA || identity == LK_IDENTITY_NONE;
}

/** Whether the server appends no number to it. */
static inline bool lk__name_is_whole(lk_node_identity identity)
{
  return identity == LK_IDENTITY_HEX_ONLY || identity == LK_IDENTITY_NONE;
}

enum {
  LK_UUID_LEN = 36,
  LK_PREFIX_LEN = 40, /**< of "_c_" UUID "-", the longest */
  LK_SUFFIX_MAX = 11  /**< "-" and ten digits */
};

/** Write that part of a name, or of the data, of a version 4 UUID made of
    `random`. */
void lk__name_prefix(lk_node_identity identity, char out[LK_PREFIX_LEN + 1],
                     const unsigned char random[16]);

/** That length. */
size_t lk__name_prefix_len(lk_node_identity identity);

/** Whether `name` is nothing else, as those of LK_IDENTITY_HEX_ONLY. */
bool lk__name_is_hex(lk_bytes name);

/** Whether `name` is what a server makes of `base`; `suffix` gets the number.
 */
bool lk__name_is_ours(lk_bytes name, lk_bytes base, int64_t *suffix);

/** Of the names that a server made of `base`, that with the lowest number;
    `at` NULL: there is none. */
lk_bytes lk__names_find_own(const lk_bytes *names, size_t count, lk_bytes base);

#endif
