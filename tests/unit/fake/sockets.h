/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_SOCKETS_H
#define LK_UNIT_FAKE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The peer's end of a connection, on loopback. All functions abort the test if
    they fail. */

/** Listen at an address and a free port. Returns -1 if this machine does not
    have the address. */
int sockets_listen(const char *address, uint16_t *port);
/** The same at this port. */
int sockets_listen_at(const char *address, uint16_t port);
/** A port of 127.0.0.1 on which nothing can listen; always the same. */
uint16_t sockets_dead_port(void);
/** A port of 127.0.0.1 that nothing is bound to now. */
uint16_t sockets_free_port(void);
/** Wait for the next connection. */
int sockets_accept(int listener);
/** Listen at a port where connection attempts get no answer. */
int sockets_listen_deaf(uint16_t *port);
/** The same at an IPv4 address and `*port`; 0: a free one. */
int sockets_listen_deaf_at(const char *address, uint16_t *port);
void sockets_write(int fd, const void *bytes, size_t len);
/** Wait for `len` bytes. */
void sockets_read(int fd, void *room, size_t len);
/** Whether neither bytes nor the end of the connection have come. */
bool sockets_quiet(int fd);
/** Wait until the connection ends. Returns false if bytes come. */
bool sockets_wait_for_end(int fd);
/** Close with a reset. */
void sockets_reset(int fd);
/** Raise the limit to 4096 descriptors if this process may. */
void sockets_raise_descriptor_limit(void);

#endif
