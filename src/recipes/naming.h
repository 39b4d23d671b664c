/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_NAMING_H
#define LK_RECIPES_NAMING_H

#include <latchkey/types.h>

/** Whose layout a mark belongs to. Members of one family know each other. */
typedef enum lk_family {
  LK_FAMILY_MUTEX, /**< Curator's mutex, go-zookeeper's lock */
  LK_FAMILY_RW,    /**< Curator's read-write lock */
  LK_FAMILY_KAZOO, /**< kazoo's locks */
  LK_FAMILY_LATCH, /**< Curator's leader latch */
  LK_FAMILY_LEASE  /**< leases of Curator's semaphore */
} lk_family;

/** As what a contender stands in a queue. */
typedef enum lk_side {
  LK_SIDE_WRITER, /**< wants the lock alone */
  LK_SIDE_READER, /**< shares it with readers */
  LK_SIDE_OWN     /**< contends with its own family only */
} lk_side;

/** What makes a name a contender's: it stands directly before the suffix. */
typedef struct lk_mark {
  const char *text;
  lk_family family;
  lk_side side;
} lk_mark;

extern const lk_mark lk__mark_lock;  /**< "lock-" */
extern const lk_mark lk__mark_write; /**< "__WRIT__" */
extern const lk_mark lk__mark_read;  /**< "__READ__" */
extern const lk_mark lk__mark_lease; /**< "lease-" */

/** A contender's name, taken apart. */
typedef struct lk_name {
  const lk_mark *mark;
  int64_t suffix; /**< servers make int32; what people make may be larger */
} lk_name;

/**
 * Whether `name`, without its directory, is a contender's: a mark, an optional
 * "-", 1 to 10 digits, and nothing behind them.
 */
bool lk__name_parse(lk_bytes name, lk_name *out);

/** Whether the two marks stand in one queue. */
bool lk__mark_contends(const lk_mark *a, const lk_mark *b);

enum {
  LK_PREFIX_LEN = 40, /**< of "_c_" UUID "-" */
  LK_SUFFIX_MAX = 11  /**< "-" and ten digits */
};

/** Write "_c_" UUID "-" of a version 4 UUID made of `random`. */
void lk__name_prefix(char out[LK_PREFIX_LEN + 1],
                     const unsigned char random[16]);

/** Whether `name` is what a server makes of `prefix` and `mark`. */
bool lk__name_is_ours(lk_bytes name, const char *prefix, const lk_mark *mark);

#endif
