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
 * There is no padding behind the last member, nor before a member that is added
 * later: programs may leave it uninitialised. An older library would refuse
 * such a struct, and a newer one would take the padding of an older program for
 * a member. Where members do not fill the struct, a member `unused` does.
 */

#include <stddef.h>

/** The first option of each of these structs, or the last one that must be set,
    and its last member. A program must give at least what comes before it and
    that option. */
#define LK_ENDS_lk_call                   timeout_ms, handle
#define LK_ENDS_lk_candidate_config       pause_ms, arg
#define LK_ENDS_lk_client_config          hosts, sasl
#define LK_ENDS_lk_endpoint               tls, tls
#define LK_ENDS_lk_hooks                  wake, arg
#define LK_ENDS_lk_lease_config           assurance, arg
#define LK_ENDS_lk_listener               in_list, in_list
#define LK_ENDS_lk_lock_config            data, arg
#define LK_ENDS_lk_membership_config      data, arg
#define LK_ENDS_lk_multilock_config       keep_order, unused
#define LK_ENDS_lk_parents_config         containers, acl
#define LK_ENDS_lk_reconfiguration        joining, version
#define LK_ENDS_lk_roster_config          election, check_ms
#define LK_ENDS_lk_sasl_config            mechanism, host
#define LK_ENDS_lk_sasl_mechanism         end, end
#define LK_ENDS_lk_semaphore_config       permits, limit_path
#define LK_ENDS_lk_single_config          poll_ms, spread_ms
#define LK_ENDS_lk_subscription_config    check_ms, check_ms
#define LK_ENDS_lk_sync_call              timeout_ms, deadline_ms
#define LK_ENDS_lk_sync_candidate_config  pause_ms, arg
#define LK_ENDS_lk_sync_config            client, call
#define LK_ENDS_lk_sync_membership_config data, arg
#define LK_ENDS_lk_tls_config             ca_file, server_name

/** The size of a struct in this library. */
typedef struct lk_sized_struct {
  const char *name;
  size_t size;
  size_t least; /**< the bytes up to the end of the first option */
} lk_sized_struct;

/** What is wrong with a caller's struct. */
typedef enum lk_size_fault {
  LK_SIZE_OK = 0,
  LK_SIZE_UNSET, /**< `size` is not set */
  LK_SIZE_NEWER  /**< a newer program uses an option that this library does not
                      have */
} lk_size_fault;

/** The lk_sized_struct of `type`, for an initialiser. */
#define LK_SIZED_STRUCT(type)      LK_SIZED_STRUCT_SPLIT(type, LK_ENDS_##type)
#define LK_SIZED_STRUCT_SPLIT(...) LK_SIZED_STRUCT_OF(__VA_ARGS__)
#define LK_SIZED_STRUCT_OF(type, first, last)                               \
  {                                                                         \
    .name = #type, .size = sizeof(type) + LK_NO_PADDING_BEHIND(type, last), \
    .least = LK_END_OF(type, first),                                        \
  }
#define LK_END_OF(type, member) \
  (offsetof(type, member) + sizeof(((type *)NULL)->member))
/** 0. It does not compile if there is padding behind the member `last`. */
#define LK_NO_PADDING_BEHIND(type, last)                   \
  (0 * sizeof(struct {                                     \
     _Static_assert(sizeof(type) == LK_END_OF(type, last), \
                    #type " has padding behind " #last);   \
     char one;                                             \
   }))

/** Check the caller's struct at `from`. For a struct that is not copied. */
lk_size_fault lk__sized_struct_check(const lk_sized_struct *what,
                                     const void *from);

/**
 * Copy the caller's struct at `from` to `out`, which has what->size bytes. If
 * `from` is shorter, the missing options are set to 0; if `from` is NULL, all
 * are. The copy's `size` is what->size. No byte behind the size of `from` is
 * read.
 *
 * @return LK_SIZE_OK; else as lk__sized_struct_check(), and nothing was copied.
 */
lk_size_fault lk__sized_struct_copy(const lk_sized_struct *what, void *out,
                                    const void *from);

/** Room for lk__sized_struct_text(). */
enum { LK_SIZE_TEXT_ROOM = 96 };
/** Write why the struct is refused, a line for the log. Returns `text`. */
const char *lk__sized_struct_text(const lk_sized_struct *what,
                                  lk_size_fault fault,
                                  char text[LK_SIZE_TEXT_ROOM]);

#endif
