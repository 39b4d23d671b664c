/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_NAMES_H
#define LK_UNIT_FAKE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

struct ev_loop;

/**
 * Names that only tests know: getaddrinfo() and c-ares are led here by the
 * linker's --wrap. All other names go their usual way with getaddrinfo(), and
 * are unknown to c-ares unless they stand in the hosts file.
 *
 *     two.test      127.0.0.1 and 127.0.0.2
 *     both.test     127.0.0.1 and ::1
 *     twice.test    127.0.0.1, twice
 *     dead.test     127.0.0.1 and five addresses where nobody listens
 *     silent.test   no answer, until fake_names_stop()
 *     late.test     127.0.0.1; c-ares gets no answer to its first question
 *     long.test     127.0.0.3 and 127.0.0.4; c-ares has to ask over TCP
 *     other .test   no such name
 */
void fake_names_start(struct ev_loop *loop);
/** Let pending lookups fail, and wait until no thread is busy. */
void fake_names_stop(void);
/** Number of lookups of a name since the start. */
unsigned fake_names_asked(void);
/** The timeout of c-ares before it repeats a query; 0: its default, seconds. */
extern int fake_names_patience_ms;
/** Resources that resolvers lack; c-ares has no memory for a channel. */
extern bool fake_names_no_memory, fake_names_no_thread;
/** Whether c-ares has connected to the name server over TCP. */
bool fake_names_tcp_waits(void);
/** Accept that connection and answer the questions in it. */
void fake_names_accept_tcp(void);
/** "127.0.0.1:port" of the name server for c-ares. */
void fake_names_server(char *out, size_t size);

#endif
