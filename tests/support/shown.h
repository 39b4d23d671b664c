/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_SHOWN_H
#define LK_SUPPORT_SHOWN_H

#include <latchkey/sync.h>

/** Results of requests of both interfaces, as one line of text. */

/** NULL: show all fields. Otherwise show what a real server returns each time:
    paths without this path in front and the node below it, names in their
    order, three fields of a stat. */
extern const char *shown_directory;

void shown_clear(void);
const char *shown_text(void);

void shown_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
void shown_add_path(const char *path);
void shown_add_data(lk_bytes data);
/** Add the fields of a stat in their order, in braces. NULL adds nothing. */
void shown_add_stat(const lk_stat *s);
/** Add names, or paths. */
void shown_add_names(const lk_bytes *names, size_t count);
void shown_add_acl(const lk_acls *acl);
void shown_add_ids(const lk_identity *ids, size_t count);
void shown_add_results(const lk_op_result *results, size_t count);
void shown_add_reads(const lk_read_result *reads, size_t count);
/** Add all members that differ from an empty result, and free the result. Each
    text must have a NUL behind it. NULL adds nothing. */
void shown_add_result(lk_sync_result *r);

#endif
