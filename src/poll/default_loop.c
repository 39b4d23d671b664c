/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The loop of src/sync and of the command in builds without libev. */

#include "base/mem.h"
#include "poll/loop.h"

int lk__loop_new(lk_loop **out, const lk_mem *mem)
{
  lk_poll_loop *l = lk__mem_new(mem, sizeof *l);

  *out = NULL;
  if (l == NULL)
    return LK_ERR_NO_MEMORY;
  if (lk__poll_loop_init(l, mem) != 0) {
    lk__loop_free(&l->base);
    return LK_ERR_NO_MEMORY;
  }
  *out = &l->base;
  return 0;
}
