/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_SESSION_H
#define LK_CLI_SESSION_SESSION_H

#include <ev.h>
#include <latchkey/ev.h>

#include "cli/options/options.h"
#include "cli/session/auth_file.h"
#include "cli/session/connection_attempts.h"

typedef struct cli_session cli_session;

/** The loop, a client on it, and the patience until its first session. Zero it
    and fill in the first members. */
struct cli_session {
  /** The first session stands. May be NULL. */
  void (*up)(cli_session *s, void *arg);
  /** It never will: see cli_session_say_no_session(). Told once, never after
     `up`, and never before cli_session_open() returned. May be NULL. */
  void (*down)(cli_session *s, int err, void *arg);
  /** One line of the library's log; only with -v. */
  void (*log)(cli_session *s, const char *text, void *arg);
  /** A second or more has passed without a session, and `text` says how
     attempts to connect have failed; not with -v. Told once. May be NULL. */
  void (*slow)(cli_session *s, const char *text, void *arg);
  void *arg;
  /* for all to use */
  struct ev_loop *loop;
  lk_client *client;
  /* its own */
  const cli_options *options;
  lk_ev *ev;
  lk_listener listener;
  cli_auth_file auth_file; /**< what --auth-file says */
  ev_timer connect_timer;
  ev_timer slow_timer; /**< until `slow` */
  double connect_timeout_s;
  double waited_s; /**< whole seconds without a session */
  int64_t limit;   /**< -w: when it is over; else LK_NO_LIMIT */
  ev_timer
      close_timer; /**< the end of the patience with the end of the session */
  bool closed;
  cli_connection_attempts attempts; /**< to get the first session */
  bool decided;                     /**< `up` or `down` was told */
  int err;
};

/** Read --auth-file, which can be a FIFO or a terminal and take its time: for a
    program that blocks signals before cli_session_open(), which reads it
    otherwise. False, with one line in `complaint`: it cannot be read. */
bool cli_session_read_auth_file(cli_session *s, const cli_options *o,
                                cli_text *complaint);

/** Begin to connect, for --connect-timeout and -w at most. False, with one line
    in `complaint`: it cannot even begin; cli_session_free() all the same. */
bool cli_session_open(cli_session *s, const cli_options *o,
                      cli_text *complaint);

/** -w counts from cli_session_open(): when it is over, on lk_client_clock();
    LK_NO_LIMIT: without -w, or with 0. */
int64_t cli_session_deadline(const cli_session *s);
bool cli_session_is_past_deadline(const cli_session *s);

/** How long the end of a session is waited for when -w is over. */
#define CLI_SESSION_CLOSE_S .2

/** Why a client or its list of servers could not be made, as one line. */
void cli_session_say_client_error(const cli_options *o, int err, cli_text *out);

/** The error to tell of: a server that refuses credentials where there are none
    insists on some. */
int cli_session_error(const cli_session *s, int err);

/** Why no session stands, the likely cause, and what to do, as one line without
    an end. */
void cli_session_say_no_session(const cli_session *s, cli_text *out);
/** Its first part, and its second. */
void cli_session_say_cause(const cli_session *s, cli_text *out);
const char *cli_session_advice(const cli_session *s);

/** That the chroot does not exist, and how it is made. */
void cli_session_say_no_chroot(const cli_session *s, cli_text *out);
/** The latter alone. */
void cli_session_say_chroot_command(const cli_session *s, cli_text *out);

/** "connection to HOST:PORT lost", and why where that is known. */
void cli_session_say_connection_lost(const cli_session *s, cli_text *out);

/** Run the loop until `*done`, or until nothing can happen any more. */
void cli_session_run(cli_session *s, const bool *done);

/** Run the loop until a session stands; false once it has said why none will
    (to be used without `up` and `down`). With --read-only also until a server
    without a quorum serves, and for a second none with one was found. */
bool cli_session_wait(cli_session *s);

/** End the session, waiting for the server's word, 1.5 s at most;
    CLI_SESSION_CLOSE_S when -w is over. */
void cli_session_close(cli_session *s);

void cli_session_free(cli_session *s);

#endif
