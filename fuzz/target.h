/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_FUZZ_TARGET_H
#define LK_FUZZ_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** The entry point of every target; libFuzzer, AFL++ and standalone.c call
    it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** The oracle's assertion: abort() is what a fuzzer reports as a crash. */
static inline void must(bool is_so)
{
  if (!is_so)
    abort();
}

/** The input as a string, in a block of exactly its size, so that a sanitizer
    reports a read of one byte too many. The caller frees it. */
static inline char *copy_as_text(const uint8_t *data, size_t len)
{
  char *text = malloc(len + 1);

  must(text != NULL);
  if (len > 0)
    memcpy(text, data, len);
  text[len] = '\0';
  return text;
}

#endif
