/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_API_CONSTRUCTORS_H
#define LK_UNIT_API_CONSTRUCTORS_H

#include "support/failing_mem.h"
#include "support/suite.h"

enum { NO_MISTAKE = 0 };

/** A function that makes an object. `mistake`: NO_MISTAKE for valid arguments,
    or a number from 1 to `mistakes`, each of which makes one of them wrong. */
typedef struct constructor {
  const char *name;
  int (*make)(void **out, unsigned mistake);
  void (*destroy)(void *made);
  unsigned mistakes;
} constructor;

/** The result before the call, which a failing constructor must overwrite. */
static inline void *pointer_before_call(void)
{
  static char byte;

  return &byte;
}

static inline void expect_refusals(const constructor *k)
{
  for (unsigned mistake = 1; mistake <= k->mistakes; mistake++) {
    void *out = pointer_before_call();
    int err = k->make(&out, mistake);

    ck_assert_msg(err != 0, "%s took wrong arguments (%u)", k->name, mistake);
    ck_assert_msg(out == NULL, "%s left a pointer (%u)", k->name, mistake);
  }
}

/** Call the constructor again and again; in each call another allocation fails,
    until no allocation is left to fail. */
static inline void expect_no_leaks(const constructor *k, failing_mem *mem)
{
  for (size_t n = 1;; n++) {
    size_t live = mem->live;
    void *out = pointer_before_call();

    mem->fail_at = mem->count + n;
    int err = k->make(&out, NO_MISTAKE);
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
