/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* ---- memory -------------------------------------------------------------- */

/* The header in front of each allocated block; `size` is that of the block. */
typedef union head {
  size_t size;
  max_align_t align;
} head;

static struct {
  size_t allocs;
  size_t heap;
} tally;

static void *resize(void *arg, void *p, size_t size)
{
  head *h = p == NULL ? NULL : (head *)p - 1;
  size_t before = h == NULL ? 0 : h->size;

  (void)arg;
  if (size == 0) {
    tally.heap -= before;
    free(h);
    return NULL;
  }
  if (size > SIZE_MAX - sizeof *h)
    return NULL;
  h = realloc(h, sizeof *h + size);
  if (h == NULL)
    return NULL;
  h->size = size;
  tally.heap += size - before;
  tally.allocs++;
  return h + 1;
}

const lk_mem bench_mem = {.resize = resize};

static void *resize_for_loop(void *p, long size)
{
  return resize(NULL, p, (size_t)size);
}

void bench_count_loop(void)
{
  ev_set_allocator(resize_for_loop);
}

/* ---- a region ------------------------------------------------------------ */

double bench_clock(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double in_seconds(struct timeval t)
{
  return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void read_all(bench_cost *out)
{
  struct rusage usage;

  getrusage(RUSAGE_SELF, &usage);
  *out = (bench_cost){.seconds = bench_clock(),
                      .user = in_seconds(usage.ru_utime),
                      .system = in_seconds(usage.ru_stime),
                      .maxrss_kb = usage.ru_maxrss,
                      .allocs = tally.allocs,
                      .heap = tally.heap};
}

/* Print a mark for a program that measures this process from outside. The pause
 * gives that program time to read it. */
static void mark(const char *text)
{
  const struct timespec pause = {.tv_nsec = 5000000};

  if (getenv("BENCH_MARK") == NULL)
    return;
  puts(text);
  fflush(stdout);
  nanosleep(&pause, NULL);
}

void bench_measured(bench *b, void (*start)(void *arg), void *arg)
{
  start(arg);
  bench_wait(b);
}

void bench_region(bench *b, void (*start)(void *arg), void *arg,
                  bench_cost *out)
{
  bench_cost before;

  mark("@begin");
  read_all(&before);
  bench_measured(b, start, arg);
  read_all(out);
  mark("@end");
  out->seconds -= before.seconds;
  out->user -= before.user;
  out->system -= before.system;
  out->allocs -= before.allocs;
  out->heap -= before.heap;
}

void bench_print(const char *name, size_t ops, const bench_cost *cost,
                 const char *format, ...)
{
  va_list args;

  printf("%s %zu %.6f %.6f %.6f %ld allocs=%zu", name, ops, cost->seconds,
         cost->user, cost->system, cost->maxrss_kb, cost->allocs);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
  fflush(stdout);
}

/* ---- samples ------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
  const double *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

double bench_quantile(double *samples, size_t count, double share)
{
  size_t i = (size_t)((double)count * share);

  if (count == 0)
    return 0;
  qsort(samples, count, sizeof *samples, by_value);
  return samples[i < count ? i : count - 1];
}
