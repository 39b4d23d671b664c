/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_REAL_SERVER_H
#define LK_SUPPORT_REAL_SERVER_H

/**
 * @file
 * Private ZooKeeper servers for tests in C, started by script/server, which
 * documents the options and commands. A failure ends the test program: with 77
 * (skipped) if ZooKeeper is not installed, otherwise with 99 and a message.
 */

#include <sys/types.h>

typedef struct server {
  pid_t pid;         /* the process of script/server */
  int to;            /* the standard input of script/server */
  int from;          /* the standard output of script/server */
  char connect[256]; /* the connect string for plain TCP */
  char hosts[256];   /* the connect string for clients under test, which may
                        begin with tls:// */
  char dir[256];     /* the servers' folder */
  char answer[512];  /* the reply to the last command, after "ok" */
} server;

/**
 * Start servers with `options` ("-n", "3", NULL), and wait until they serve.
 * They end when server_end() is called, or when the calling thread ends. With
 * LATCHKEY_TEST_TLS=1 in the environment they serve TLS as well, `hosts` begins
 * with tls://, and OpenSSL trusts their CA.
 */
void server_start(server *s, const char *const *options);

/**
 * Run a command, printf-like ("kill %d"), and wait until it is done. Returns
 * the reply after "ok", valid until the next command.
 */
const char *server_ask(server *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** The number of the first server in `mode` ("leader"), counted from 1; 0:
    there is none. */
int server_in_mode(server *s, const char *mode);

/** End the servers, and wait until their processes have ended. */
void server_end(server *s);

#endif
