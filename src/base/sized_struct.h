/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_SIZED_STRUCT_H
#define LK_BASE_SIZED_STRUCT_H

/**
 * @file
 * The public structs whose first member is their size. A program hands in the
 * struct of the headers that it was compiled with, which may be shorter or
 * longer than the library's. It is copied once, here, and only the copy is
 * read.
 *
 * A new member goes to the end, behind what was the size of the struct before:
 * an older program may leave its padding uninitialised.
 */

#include <stddef.h>

/** The first option of each of these structs. */
#define LK_FIRST_lk_call                timeout_ms
#define LK_FIRST_lk_client_config       hosts
#define LK_FIRST_lk_lease_config        assurance
#define LK_FIRST_lk_lock_config         data
#define LK_FIRST_lk_multilock_config    keep_order
#define LK_FIRST_lk_parents_config      containers
#define LK_FIRST_lk_reconfiguration     joining
#define LK_FIRST_lk_sasl_config         mechanism
#define LK_FIRST_lk_sasl_mechanism      end
#define LK_FIRST_lk_semaphore_config    permits
#define LK_FIRST_lk_single_config       poll_ms
#define LK_FIRST_lk_subscription_config check_ms
#define LK_FIRST_lk_sync_call           timeout_ms
#define LK_FIRST_lk_sync_config         client
#define LK_FIRST_lk_sync_lock_config    data
#define LK_FIRST_lk_tls_config          ca_file

/** How long a struct of this library is, and what is said of a wrong one. */
typedef struct lk_sized_struct {
  size_t size;
  size_t least;       /**< up to the end of the first option */
  const char *unset;  /**< for the log: `size` is not set */
  const char *beyond; /**< for the log: a newer program uses a newer option */
} lk_sized_struct;

/** The lk_sized_struct of `type`, for an initialiser. */
#define LK_SIZED_STRUCT(type)                                  \
  {                                                            \
    sizeof(type),                                              \
        offsetof(type, LK_FIRST_##type) +                      \
            sizeof(((type *)NULL)->LK_FIRST_##type),           \
        #type ".size is not set",                              \
        #type " has an option that is newer than this library" \
  }

/**
 * Copy the caller's struct at `from` to `out`, which has what->size bytes.
 * Options that `from` is too short for are 0; `from` NULL: all are. The copy's
 * `size` is what->size. No byte behind the size of `from` is read.
 *
 * @return NULL; or why the struct is refused, a line for the log: then nothing
 *         was copied.
 */
const char *lk__sized_struct_copy(const lk_sized_struct *what, void *out,
                                  const void *from);

#endif
