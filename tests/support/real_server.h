/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_REAL_SERVER_H
#define LK_SUPPORT_REAL_SERVER_H

/**
 * @file
 * Private ZooKeeper servers for tests in C: wraps script/server, which says
 * what the options and commands are. Failures end the test program: with 77
 * (skipped) where ZooKeeper is not installed, else with 99 and a message.
 */

#include <sys/types.h>

typedef struct server {
  pid_t pid; /* of script/server */
  int to;    /* its standard input and output */
  int from;
  char connect[256]; /* connect string, for plain TCP */
  char hosts[256];   /* the same for the clients under test; see below */
  char dir[256];     /* the servers' folder */
  char answer[512];  /* to the last command, after "ok" */
} server;

/**
 * Start servers with `options`, NULL-terminated, such as "-n", "3", and wait
 * until they serve. They end when server_end() is called, or when the thread
 * that called this does. With LATCHKEY_TEST_TLS=1 they serve TLS as well, and
 * `hosts` begins with tls://; their CA is trusted as the system's are.
 */
void server_start(server *s, const char *const *options);

/**
 * Run a command, printf-like ("kill %d"), and wait until it is done. Returns
 * the reply after "ok", valid until the next command.
 */
const char *server_ask(server *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The number of a server in `mode` ("leader"); 0: there is none. */
int server_in_mode(server *s, const char *mode);

/** End the servers and wait until nothing is left of them. */
void server_end(server *s);

#endif
