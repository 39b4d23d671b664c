/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_UNIT_FAKE_SOCKETS_H
#define LK_UNIT_FAKE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The peer's end of a connection, on loopback. All of it aborts the test
    where something fails. */

/** Listen at a literal and a free port; -1: there is no such address here. */
int sockets_listen(const char *literal, uint16_t *port);
/** A port without a listener. */
uint16_t sockets_dead_port(void);
/** Wait for the next connection. */
int sockets_accept(int listener);
/** Listen, but answer no further connection. */
int sockets_listen_deaf(uint16_t *port);
void sockets_write(int fd, const void *bytes, size_t len);
/** Wait for `len` bytes. */
void sockets_read(int fd, void *room, size_t len);
/** Whether nothing has come, not even the end. */
bool sockets_quiet(int fd);
/** Wait for the end; false: bytes come. */
bool sockets_ended(int fd);
/** Close with a reset. */
void sockets_reset(int fd);
/** Let this process have thousands of descriptors. */
void sockets_many(void);

#endif
