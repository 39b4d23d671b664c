/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_SYNC_SHOWN_H
#define LK_UNIT_SYNC_SHOWN_H

#include <latchkey/sync.h>

/** Results of the blocking interface, as one line of text. */

void shown_clear(void);
const char *shown_text(void);

void shown_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Add the fields of a stat in their order, in braces. */
void shown_add_stat(const lk_stat *s);
/** Add all members that differ from an empty result, and free the result. Each
    text must have a NUL behind it. NULL adds nothing. */
void shown_add_result(lk_sync_result *r);

#endif
