/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_LOOP_TEST_LOOP_H
#define LK_UNIT_LOOP_TEST_LOOP_H

#include "net/loop.h"

/** The implementation of net/loop.h that this program tests. */
lk_loop *test_loop_new(void);
/** Run until `*done`, or until nothing keeps the loop running. */
void test_loop_run(lk_loop *l, const bool *done);
void test_loop_free(lk_loop *l);

#endif
