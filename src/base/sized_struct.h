/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_SIZED_STRUCT_H
#define LK_BASE_SIZED_STRUCT_H

/**
 * @file
 * The public structs whose first member is their size. A program passes a
 * struct as the headers declared it when the program was compiled. That struct
 * may be shorter or longer than the library's. The library copies it with
 * lk__sized_struct_copy() and reads only the copy.
 *
 * A new member must begin at or behind the former size of the struct, and not
 * in its padding, which an older program may leave uninitialised.
 */

#include <stddef.h>

/** The first option of each of these structs. A program must give at least the
    size and this option. */
#define LK_FIRST_lk_call                   timeout_ms
#define LK_FIRST_lk_candidate_config       pause_ms
#define LK_FIRST_lk_client_config          hosts
#define LK_FIRST_lk_lease_config           assurance
#define LK_FIRST_lk_lock_config            data
#define LK_FIRST_lk_membership_config      data
#define LK_FIRST_lk_multilock_config       keep_order
#define LK_FIRST_lk_parents_config         containers
#define LK_FIRST_lk_reconfiguration        joining
#define LK_FIRST_lk_roster_config          election
#define LK_FIRST_lk_sasl_config            mechanism
#define LK_FIRST_lk_sasl_mechanism         end
#define LK_FIRST_lk_semaphore_config       permits
#define LK_FIRST_lk_single_config          poll_ms
#define LK_FIRST_lk_subscription_config    check_ms
#define LK_FIRST_lk_sync_call              timeout_ms
#define LK_FIRST_lk_sync_candidate_config  pause_ms
#define LK_FIRST_lk_sync_config            client
#define LK_FIRST_lk_sync_lock_config       data
#define LK_FIRST_lk_sync_membership_config data
#define LK_FIRST_lk_tls_config             ca_file

/** The size of a struct in this library, and the messages for a wrong one. */
typedef struct lk_sized_struct {
  size_t size;
  size_t least;       /**< the bytes up to the end of the first option */
  const char *unset;  /**< the message if `size` is not set */
  const char *beyond; /**< the message if a newer program uses an option that
                           this library does not have */
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
 * Copy the caller's struct at `from` to `out`, which has what->size bytes. If
 * `from` is shorter, the missing options are set to 0; if `from` is NULL, all
 * are. The copy's `size` is what->size. No byte behind the size of `from` is
 * read.
 *
 * @return NULL: success; else why the struct is refused, as a line for the log.
 *         Then nothing was copied.
 */
const char *lk__sized_struct_copy(const lk_sized_struct *what, void *out,
                                  const void *from);

#endif
