/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_API_CONSTRUCTORS_H
#define LK_UNIT_API_CONSTRUCTORS_H

#include "support/failing_mem.h"
#include "support/suite.h"

/** A function that makes an object. With `bad` 0 it passes valid arguments;
   each number from 1 to `bads` makes one of them invalid. */
typedef struct constructor {
  const char *name;
  int (*make)(void **out, unsigned bad);
  void (*destroy)(void *made);
  unsigned bads;
} constructor;

/** What the tests put where a constructor writes its result. */
static inline void *constructor_junk(void)
{
  static char junk;

  return &junk;
}

static inline void expect_refusals(const constructor *k)
{
  for (unsigned bad = 1; bad <= k->bads; bad++) {
    void *out = constructor_junk();
    int err = k->make(&out, bad);

    ck_assert_msg(err != 0, "%s took wrong arguments (%u)", k->name, bad);
    ck_assert_msg(out == NULL, "%s left a pointer (%u)", k->name, bad);
  }
}

/** Call the constructor again and again; in each call another allocation fails,
    until no allocation is left to fail. */
static inline void expect_no_leaks(const constructor *k, failing_mem *mem)
{
  for (size_t n = 1;; n++) {
    size_t live = mem->live;
    void *out = constructor_junk();

    mem->fail_at = mem->count + n;
    int err = k->make(&out, 0);
    bool failed = failing_mem_failed(mem);

    mem->fail_at = 0;
    ck_assert_msg(err == (failed ? LK_ERR_NO_MEMORY : 0), "%s: error %d",
                  k->name, err);
    ck_assert_msg((out == NULL) == failed, "%s left a pointer", k->name);
    if (!failed) {
      ck_assert_msg(n > 1, "%s needs no memory", k->name);
      k->destroy(out);
      return;
    }
    ck_assert_msg(mem->live == live, "%s kept memory", k->name);
  }
}

#endif
