/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_FAILING_MEM_H
#define LK_SUPPORT_FAILING_MEM_H

#include <latchkey/types.h>

/**
 * Memory that counts its blocks and can be made to fail. A block that grows
 * always moves, so that the use of an old pointer is an error that a sanitizer
 * reports. To have each allocation of some code fail once:
 *
 *     failing_mem f;
 *     size_t n = 0;
 *
 *     do {
 *       failing_mem_init(&f);
 *       f.fail_at = ++n;
 *       ... run the code with &f.mem ...
 *       ck_assert_uint_eq(f.live, 0);
 *     } while (failing_mem_failed(&f));
 *     ... in the last round nothing has failed: check its result ...
 */
typedef struct failing_mem {
  lk_mem mem;     /**< the allocator; it points to this struct, which must not
                       be moved */
  size_t fail_at; /**< the number of the allocation that fails, counted from 1;
                       0: none fails */
  bool for_good;  /**< all allocations after `fail_at` fail, too */
  size_t count;   /**< allocations so far, including failed ones */
  size_t bytes;   /**< the sum of their sizes */
  size_t live;    /**< blocks that are not freed yet */
  size_t held;    /**< the sum of the sizes of these blocks */
  size_t peak;    /**< the largest `held` so far; a test may reset it */
} failing_mem;

/** Set all counts to 0, and let nothing fail. */
void failing_mem_init(failing_mem *f);
/** Whether an allocation has failed. */
bool failing_mem_failed(const failing_mem *f);

#endif
