/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_H
#define BENCH_H

/**
 * @file
 * What workloads share. A workload is a function that prepares, measures one
 * region or two, and tells a line of each; main.c has the table of them.
 *
 * Whatever goes wrong ends the program: a figure of half a run is none. All
 * nodes are ephemeral children of one container, so nothing stays behind for
 * long even then.
 */

#include <ev.h>
#include <latchkey/latchkey.h>

typedef struct bench bench;

/** A session of a bench. */
typedef struct bench_session {
  bench *b;
  lk_client *client;
  lk_listener listener;
} bench_session;

struct bench {
  const char *hosts;
  size_t n;             /**< how many of what the workload does */
  const char **options; /**< "key=value" of this workload, NULL-terminated */
  struct ev_loop *loop;
  lk_ev *ev;
  bench_session first; /**< connected before the workload begins */
  size_t awaited;      /**< sessions that do not stand, or are not closed yet */
  size_t awaited_then; /**< the same when `patience` last ran out */
  ev_timer patience;
  bool closing;
  char root[40]; /**< the container; "" until it was asked for */
};

/* ---- main.c: what the command line says ---------------------------------- */

size_t bench_number(const bench *b, const char *key);
/** Whether the choice `key` was given this value, or has it by default. */
bool bench_is(const bench *b, const char *key, const char *value);

/* ---- world.c ------------------------------------------------------------- */

_Noreturn void bench_fail(const char *what, int err);
/** Run the loop until bench_done(). */
void bench_wait(bench *b);
void bench_done(bench *b);
/** malloc() of `count` objects of `size` bytes, zeroed, or the end. */
void *bench_new(size_t count, size_t size);
/** Connect `count` sessions, and return when all stand. */
void bench_connect(bench *b, bench_session *sessions, size_t count);
/** The first half of it, to be followed by bench_wait(). */
void bench_dial(bench *b, bench_session *sessions, size_t count);
/** Close and free them. */
void bench_close(bench *b, bench_session *sessions, size_t count);

/* ---- nodes.c: below a container that the first session makes ------------- */

enum { BENCH_PATH_SIZE = 128 };

/** The container's path. */
const char *bench_root(bench *b);
/** The path of node `i`, whose name has `width` digits, at most 64. */
void bench_path(bench *b, char out[BENCH_PATH_SIZE], size_t i, size_t width);
/** Make nodes 0 to `count` - 1, ephemeral, with `data`. */
void bench_make(bench *b, size_t count, size_t width, lk_bytes data);
/** Delete the container with all that is in it. */
void bench_tidy(bench *b);

/* ---- measure.c ----------------------------------------------------------- */

/** What a region cost. */
typedef struct bench_cost {
  double seconds, user, system;
  long maxrss_kb; /**< of the process, at its end */
  size_t allocs;  /**< how often memory was allocated, by us or libev */
  size_t heap;    /**< bytes allocated and not freed, more than before */
} bench_cost;

/** The allocator of all clients, which counts. */
extern const lk_mem bench_mem;
/** Count what libev allocates, too. */
void bench_count_loop(void);

/** Call `start` and run the loop until bench_done(); with BENCH_MARK in the
    environment, between two marks on standard output. */
void bench_region(bench *b, void (*start)(void *arg), void *arg,
                  bench_cost *out);
/** What bench_region() measures; a name for profilers to begin and end at. */
__attribute__((noinline)) void
bench_measured(bench *b, void (*start)(void *arg), void *arg);
/** Print the line of a region; `format`: more " key=value". */
void bench_tell(const char *name, size_t ops, const bench_cost *cost,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/** Seconds, for differences. */
double bench_clock(void);
/** Sort `count` samples, and give the one that `share` of them are below. */
double bench_quantile(double *samples, size_t count, double share);

#endif
