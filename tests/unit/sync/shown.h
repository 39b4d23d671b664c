/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_SYNC_SHOWN_H
#define LK_UNIT_SYNC_SHOWN_H

#include <latchkey/sync.h>

/** Results of the blocking interface, as one line of text. */

void shown_clear(void);
const char *shown_text(void);

void shown_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Its fields in their order, in braces. */
void shown_add_stat(const lk_stat *s);
/** All that is not as in an empty result, which is then freed. Each text must
    have a NUL behind it. Nothing of NULL. */
void shown_add_result(lk_sync_result *r);

#endif
