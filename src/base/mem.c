/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"

#include <stdlib.h>

static void *resize_libc(void *arg, void *p, size_t size)
{
  (void)arg;
  if (size > 0)
    return realloc(p, size);
  free(p);
  return NULL;
}

const lk_mem lk__mem_libc = {resize_libc, NULL};

void *lk__mem_new(const lk_mem *mem, size_t size)
{
  void *p = mem->resize(mem->arg, NULL, size);

  if (p != NULL)
    memset(p, 0, size);
  return p;
}

void *lk__mem_resize(const lk_mem *mem, void *p, size_t size)
{
  return mem->resize(mem->arg, p, size);
}

void lk__mem_free(const lk_mem *mem, void *p)
{
  if (p != NULL)
    mem->resize(mem->arg, p, 0);
}

char *lk__mem_text(const lk_mem *mem, const char *s)
{
  size_t size = strlen(s) + 1;
  char *copy = mem->resize(mem->arg, NULL, size);

  if (copy != NULL)
    memcpy(copy, s, size);
  return copy;
}

void lk__mem_wipe(void *at, size_t len)
{
  volatile unsigned char *byte = at;

  while (len-- > 0)
    *byte++ = 0;
}
