/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_FAILING_MEM_H
#define LK_SUPPORT_FAILING_MEM_H

#include <latchkey/types.h>

/**
 * Memory that counts, and of which there is none when a test says so. Growing
 * a block always moves it, so that old pointers are found out. To see every
 * failure of something once:
 *
 *     failing_mem f;
 *     size_t n = 0;
 *
 *     do {
 *       failing_mem_init(&f);
 *       f.fail_at = ++n;
 *       ... with &f.mem; it must cope ...
 *       ck_assert_uint_eq(f.live, 0);
 *     } while (failing_mem_failed(&f));
 *     ... the last round went through: look at its result ...
 */
typedef struct failing_mem {
  lk_mem mem;     /**< to hand out; points to its failing_mem: do not move */
  size_t fail_at; /**< which allocation fails, counting from 1; 0: none does */
  bool for_good;  /**< and all after it */
  size_t count;   /**< allocations so far, failed ones too */
  size_t bytes;   /**< what they added up to */
  size_t live;    /**< blocks not given back yet */
  size_t held;    /**< bytes of those blocks */
} failing_mem;

/** All counts at 0, nothing fails. */
void failing_mem_init(failing_mem *f);
/** Whether an allocation has failed by now. */
bool failing_mem_failed(const failing_mem *f);

#endif
