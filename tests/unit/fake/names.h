/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_NAMES_H
#define LK_UNIT_FAKE_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * Names that only tests know. The linker's --wrap replaces getaddrinfo(), and
 * passes all other names to the real one.
 *
 *     two.test      127.0.0.1 and 127.0.0.2
 *     both.test     127.0.0.1 and ::1
 *     twice.test    127.0.0.1, twice
 *     any*          127.0.0.1
 *     dead.test     127.0.0.1 and five addresses where nobody listens
 *     *.test        all others: no such name
 *     *localhost    no such name; localhost itself is not replaced
 *
 * Some have 127.0.0.1 and ::1, and do not answer all queries:
 *
 *     half.test     only that for IPv4; half*, too, without addresses
 *     six.test      only that for IPv6
 *     soon.test     those for one family, IPv6 after FAKE_NAMES_SOON_MS
 *     late.test     IPv4 at once, the others after FAKE_NAMES_LATE_MS
 *     broken.test   the query for both families and that for IPv6 fail
 *     silent*       none
 *
 *     moved.test    127.0.0.2; if `fake_names_moved`, after FAKE_NAMES_LATE_MS
 *                   127.0.0.1
 *
 * The others hang until fake_names_stop().
 */
void fake_names_start(void);
/** Let the queries that hang fail, and wait until their threads return. */
void fake_names_stop(void);

enum { FAKE_NAMES_SOON_MS = 10, FAKE_NAMES_LATE_MS = 500 };

/** The number of queries for both families since fake_names_start(). */
unsigned fake_names_lookups(void);
/** The number of queries that hang. */
unsigned fake_names_waiting(void);
/** Queries of test names fail, or hang until fake_names_stop(). */
extern atomic_bool fake_names_fail, fake_names_hang;
extern atomic_bool fake_names_moved;
/** calloc() and pthread_create() fail, and /etc/hosts does not exist. */
extern bool fake_names_no_memory, fake_names_no_thread,
    fake_names_no_hosts_file;

#endif
