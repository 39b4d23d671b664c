/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_RESULT_H
#define LK_SYNC_RESULT_H

#include <latchkey/sync.h>

#include "base/mem.h"

/** An empty result with room for `size` bytes; NULL: no memory. */
lk_sync_result *lk__result_new(const lk_mem *mem, size_t size);

/* For each kind of result: the number of bytes that it needs, and a function
   that copies it into a result with that much room. */

size_t lk__result_path_size(const char *path);
void lk__result_set_path(lk_sync_result *r, const char *path,
                         const lk_stat *stat);

size_t lk__result_data_size(const lk_bytes *data);
void lk__result_set_data(lk_sync_result *r, const lk_bytes *data,
                         const lk_stat *stat);

size_t lk__result_names_size(const lk_bytes *names, size_t count);
void lk__result_set_names(lk_sync_result *r, const lk_bytes *names,
                          size_t count, const lk_stat *stat);

size_t lk__result_acl_size(const lk_acls *acl);
void lk__result_set_acl(lk_sync_result *r, const lk_acls *acl,
                        const lk_stat *stat);

size_t lk__result_ids_size(const lk_identity *ids, size_t count);
void lk__result_set_ids(lk_sync_result *r, const lk_identity *ids,
                        size_t count);

size_t lk__result_reads_size(const lk_read_result *reads, size_t count);
void lk__result_set_reads(lk_sync_result *r, const lk_read_result *reads,
                          size_t count);

size_t lk__result_ops_size(const lk_op_result *results, size_t count);
void lk__result_set_ops(lk_sync_result *r, const lk_op_result *results,
                        size_t count);

size_t lk__result_entries_size(const lk_roster_entry *entries, size_t count);
void lk__result_set_entries(lk_sync_result *r, const lk_roster_entry *entries,
                            size_t count);

/* The largest result that a write can have, with the numbers of sequential
   nodes. */

size_t lk__result_create_room(const char *path);
/** SIZE_MAX: there is no memory for so many operations. */
size_t lk__result_multi_room(const lk_op *ops, size_t count);
/** Whether `size` bytes fit into the result's room. */
bool lk__result_fits(const lk_sync_result *r, size_t size);

#endif
