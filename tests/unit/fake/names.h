/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_NAMES_H
#define LK_UNIT_FAKE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct ev_loop;

/**
 * Names that only tests know. The linker's --wrap replaces getaddrinfo() and
 * the name server of c-ares. The replaced getaddrinfo() passes all other names
 * to the real one. c-ares finds other names in the hosts file only.
 *
 *     two.test      127.0.0.1 and 127.0.0.2
 *     both.test     127.0.0.1 and ::1
 *     twice.test    127.0.0.1, twice
 *     dead.test     127.0.0.1 and five addresses where nobody listens
 *     silent.test   no answer, until fake_names_stop()
 *     late.test     127.0.0.1; c-ares gets no answer to its first query
 *     long.test     127.0.0.3 and 127.0.0.4; c-ares has to ask over TCP
 *     *.test        all others: no such name
 *     *localhost    no such name; localhost itself is not replaced
 */
void fake_names_start(struct ev_loop *loop);
/** Let lookups of silent.test fail, and wait until their threads return. */
void fake_names_stop(void);
/** Number of lookups of all names since the start. */
unsigned fake_names_lookups(void);
/** The time after which c-ares repeats a query; 0: its default. */
extern int fake_names_query_timeout_ms;
/** calloc() fails, and c-ares makes no channel. */
extern bool fake_names_no_memory;
/** access() does not find /etc/hosts. The resolver reads it nevertheless. */
extern bool fake_names_no_hosts_file;
/** pthread_create() fails. */
extern bool fake_names_no_thread;
/** Whether c-ares has connected to the name server over TCP. */
bool fake_names_tcp_waits(void);
/** Accept that connection and answer the queries in it. */
void fake_names_accept_tcp(void);
/** "127.0.0.1:port" of the name server for c-ares. */
void fake_names_server(char *out, size_t size);

#endif
