/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/failing_mem.h"

#include <stdlib.h>

/* More than any test needs. Such a size is refused here, since malloc() of a
   sanitizer would end the program. */
#define TOO_MUCH ((size_t)1 << 30)

/* Stands in front of the memory that the caller gets. */
typedef union head {
  size_t size;
  max_align_t align;
} head;

static head *head_of(void *p)
{
  return (head *)p - 1;
}

static bool allocation_must_fail(const failing_mem *f)
{
  if (f->fail_at == 0)
    return false;
  return f->for_good ? f->count >= f->fail_at : f->count == f->fail_at;
}

static void give_back(failing_mem *f, void *p)
{
  if (p == NULL)
    return;
  f->live--;
  f->held -= head_of(p)->size;
  free(head_of(p));
}

static void *resize(void *arg, void *p, size_t size)
{
  failing_mem *f = arg;
  head *block;

  if (size == 0) {
    give_back(f, p);
    return NULL;
  }
  f->count++;
  f->bytes += size;
  if (allocation_must_fail(f) || size > TOO_MUCH)
    return NULL;
  block = malloc(sizeof *block + size);
  if (block == NULL)
    abort();
  block->size = size;
  f->live++;
  f->held += size;
  if (f->held > f->peak)
    f->peak = f->held;
  if (p != NULL) {
    size_t old_size = head_of(p)->size;

    memcpy(block + 1, p, old_size < size ? old_size : size);
    give_back(f, p);
  }
  return block + 1;
}

void failing_mem_init(failing_mem *f)
{
  memset(f, 0, sizeof *f);
  f->mem.resize = resize;
  f->mem.arg = f;
}

bool failing_mem_failed(const failing_mem *f)
{
  return f->fail_at != 0 && f->count >= f->fail_at;
}
