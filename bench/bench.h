/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_H
#define BENCH_H

/**
 * @file Shared by the workloads. A workload is a function that prepares nodes
 * and sessions, measures one or two regions of its run, and prints a line for
 * each region; main.c has the table of workloads.
 *
 * Any error ends the program, since figures of part of a run are worthless. All
 * nodes are ephemeral children of one container, so an aborted run leaves
 * nothing for long.
 */

#include <ev.h>
#include <latchkey/ev.h>
#include <latchkey/latchkey.h>

typedef struct bench bench;

/** A session of a benchmark. */
typedef struct bench_session {
  bench *b;
  lk_client *client;
  lk_listener listener;
} bench_session;

struct bench {
  const char *hosts;
  size_t n;             /**< N of the command line */
  const char **options; /**< "key=value" of this workload, NULL-terminated */
  struct ev_loop *loop;
  lk_ev *ev;
  bench_session first; /**< connected before the workload starts */
  size_t awaited; /**< sessions that are not connected yet, or not closed yet */
  size_t awaited_before; /**< `awaited` at the last check for progress */
  ev_timer progress_timer;
  bool closing;
  char root[40]; /**< the container's path; "" before bench_root_path() */
  bool has_root; /**< the container was created */
};

/* ---- main.c: options ----------------------------------------------------- */

/** The number of option `key`, from the command line or by default. */
size_t bench_number(const bench *b, const char *key);
/** Whether option `key` has this value, from the command line or by default. */
bool bench_is(const bench *b, const char *key, const char *value);

/* ---- world.c ------------------------------------------------------------- */

_Noreturn void bench_fail(const char *what, int err);
/** Run the loop until a callback calls bench_done(). */
void bench_wait(bench *b);
void bench_done(bench *b);
/** Zeroed memory for `count` objects of `size` bytes; ends the program if there
    is none. */
void *bench_new(size_t count, size_t size);
/** Connect `count` sessions, and return when all are connected. */
void bench_connect(bench *b, bench_session *sessions, size_t count);
/** Start to connect `count` sessions; bench_wait() returns when all are
    connected. */
void bench_start_connecting(bench *b, bench_session *sessions, size_t count);
/** Close the sessions and free their memory. */
void bench_close(bench *b, bench_session *sessions, size_t count);

/* ---- nodes.c: nodes in a container that the first session creates -------- */

enum { BENCH_PATH_SIZE = 128 };

/** The container's path. */
const char *bench_root_path(bench *b);
/** Create the container, unless that was done. Returns its path. */
const char *bench_root(bench *b);
/** The path of node `i`, whose name has `width` digits, at most 64. */
void bench_path(bench *b, char out[BENCH_PATH_SIZE], size_t i, size_t width);
/** Create nodes 0 to `count` - 1, ephemeral, with `data`. */
void bench_create_nodes(bench *b, size_t count, size_t width, lk_bytes data);
/** Whether node 0 can be read and has `size` bytes, or the container can be
    listed and has `count` names. A server of canned replies has both. */
bool bench_can_read(bench *b, size_t width, size_t size);
bool bench_can_list(bench *b, size_t count);
/** Delete the container and all nodes in it, if it was created. */
void bench_delete_all(bench *b);

/* ---- measure.c ----------------------------------------------------------- */

/** The cost of a region. */
typedef struct bench_cost {
  double seconds, user, system;
  long maxrss_kb; /**< of the process, at the end of the region */
  size_t allocs;  /**< number of allocations by the library and libev */
  size_t heap;    /**< growth of allocated memory in bytes */
} bench_cost;

/** The allocator of all clients; it counts allocations and bytes. */
extern const lk_mem bench_mem;
/** Count the allocations of libev as well. */
void bench_count_loop(void);

/** Call `start` and run the loop until bench_done(). With BENCH_MARK in the
    environment, print a mark on standard output before and after. */
void bench_region(bench *b, void (*start)(void *arg), void *arg,
                  bench_cost *out);
/** Do what bench_region() measures. It is a function of its own, so that
    profilers can select it by name. */
__attribute__((noinline)) void
bench_measured(bench *b, void (*start)(void *arg), void *arg);
/** Print the line of a region. `format` and its arguments give further words,
    each " key=value". */
void bench_print(const char *name, size_t ops, const bench_cost *cost,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));

/** Seconds of the monotonic clock. */
double bench_clock(void);
/** Sort `count` samples, and return the quantile `share`. */
double bench_quantile(double *samples, size_t count, double share);

#endif
