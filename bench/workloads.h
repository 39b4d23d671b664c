/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_WORKLOADS_H
#define BENCH_WORKLOADS_H

#include "bench.h"

/* gets.c */
void bench_get_pipelined(bench *b);
void bench_get_seq(bench *b);

/* creates.c */
void bench_create_delete(bench *b);

/* listings.c */
void bench_children(bench *b);

/* watches.c */
void bench_watch_storm(bench *b);

/* locks.c */
void bench_lock_uncontended(bench *b);
void bench_lock_contended(bench *b);

/* holders.c */
void bench_holders(bench *b);

/* connects.c */
void bench_connects(bench *b);

/* sessions.c */
void bench_sessions(bench *b);
void bench_idle(bench *b);

#endif
