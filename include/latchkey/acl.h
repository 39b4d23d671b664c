/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_ACL_H
#define LK_ACL_H

/**
 * @file
 * Access lists as text, and the ids of digests. The lists that most programs
 * need, lk_acl_open(), lk_acl_creator() and lk_acl_read(), are in
 * <latchkey/types.h>; those that a server keeps are read and replaced by
 * lk_get_acl() and lk_set_acl(). Servers check LK_PERM_CREATE and
 * LK_PERM_DELETE at the parent: a node's own list does not protect it from
 * deletion.
 */

#include <latchkey/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Parse "scheme:id:perms", several with commas between, into one block of
 * `mem` (NULL: the C library's), to be freed by lk_acl_free(). Perms are
 * letters of "cdrwa" (create, delete, read, write, admin) or a number from 0.
 * An id may be empty. It may contain commas or colons, but not both: otherwise
 * two entries, one of which lacks a part, could be parsed as one.
 *
 *     world:anyone:r,digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF0=:cdrwa,auth::cdrwa
 *
 * `wrong`: NULL, or gets the malformed entry of `text`, or NULL if there is
 * none.
 *
 * @return 0, LK_ERR_BAD_ARGUMENT, LK_ERR_NO_MEMORY. After an error `*out` is
 *         NULL.
 */
LK_API int lk_acl_parse(lk_acls **out, const char *text, const lk_mem *mem,
                        const char **wrong);

/** `mem` as given to lk_acl_parse(). NULL is fine. */
LK_API void lk_acl_free(lk_acls *acl, const lk_mem *mem);

/**
 * Write `acl` as lk_acl_parse() reads it. Ids that lk_acl_parse() refuses are
 * written unchanged. Perms with other bits than the five, or with none, are
 * written as a number. At most `size` bytes are written, with the final NUL;
 * `out` may be NULL if `size` is 0.
 *
 * @return the length of the whole text, without the NUL.
 */
LK_API size_t lk_acl_print(char *out, size_t size, const lk_acls *acl);

/**
 * The id of the scheme "digest" of "user:password", which is
 * user:BASE64(SHA1(user:password)). `out` has room for `size` bytes; the length
 * of the user plus 30 are needed. A server can be configured to use
 * another hash: lk_acl_creator() and lk_add_auth() work with all.
 *
 * @return 0; LK_ERR_BAD_ARGUMENT: no colon, or no user before it;
 *         LK_ERR_TOO_BIG: more than there is room for.
 */
LK_API int lk_acl_digest(char *out, size_t size, const char *credentials);

#ifdef __cplusplus
}
#endif
#endif
