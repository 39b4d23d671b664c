/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SESSION_SESSION_H
#define LK_CLI_SESSION_SESSION_H

/**
 * @file
 * The session of a verb: an event loop with one client, the time limits for its
 * first session and for its end, and what latchkey reports of a session that
 * failed.
 */

#include "cli/options/options.h"
#include "cli/session/auth_file.h"
#include "cli/session/connection_failures.h"
#include "net/driver.h"

typedef struct cli_session cli_session;

/** An event loop with one client, and the time limits for its first session.
    The caller zeroes it and sets the members up to `arg`. */
struct cli_session {
  /** Invoked when the first session is established. May be NULL. */
  void (*on_session)(cli_session *s, void *arg);
  /** Invoked when no session can be established; see
      cli_session_say_no_session(). At most once, never after `on_session`, and
      never before cli_session_open() has returned. May be NULL. */
  void (*on_no_session)(cli_session *s, int err, void *arg);
  /** Invoked with each line of the library's log; only with -v. May be NULL. */
  void (*on_log)(cli_session *s, const char *text, void *arg);
  /** Invoked at most once, when a second or more has passed without a session;
      `text` says how the connection attempts have failed, or that the first
      server has not replied. Not with -v. May be NULL. */
  void (*on_no_session_yet)(cli_session *s, const char *text, void *arg);
  void *arg;
  /* The verbs use these two. */
  lk_loop *loop;
  lk_client *client;
  /* Only session.c changes the members below. */
  const cli_options *options;
  size_t max_request; /**< bytes; 0: the library's default */
  size_t max_reply;   /**< the same */
  lk_driver driver;
  lk_listener listener;
  cli_auth_file auth_file;     /**< contents of --auth-file */
  lk_loop_timer connect_timer; /**< time limit for the first session */
  lk_loop_timer report_timer; /**< runs until `on_no_session_yet` was invoked */
  int64_t patience_ms; /**< --connect-timeout, or -w if that is shorter */
  int64_t waited_ms;   /**< time without a session, in steps of a second */
  int64_t deadline_ms; /**< end of -w, on lk_client_clock(); LK_NO_LIMIT: no -w,
                          or -w 0 */
  lk_loop_timer close_timer; /**< time limit for closing the session */
  bool closed; /**< the session is closed, or the wait for that ended */
  cli_connection_failures failures; /**< recorded until `decided` */
  bool decided; /**< the first session is established or has failed */
  int err;      /**< why there is no session; 0: it is established */
};

/** Reads --auth-file, unless it was read before; cli_session_open() does the
    same. The file may be a FIFO or a terminal, and reading it may block. So
    `run` calls this before it blocks signals. On false, `complaint` gets one
    line. */
bool cli_session_read_auth_file(cli_session *s, const cli_options *o,
                                cli_text *complaint);

/** Starts to connect, for at most --connect-timeout and -w. On false,
    `complaint` gets one line; cli_session_free() is needed in any case. */
bool cli_session_open(cli_session *s, const cli_options *o,
                      cli_text *complaint);

/** Returns the end of -w, on lk_client_clock(); -w begins with
    cli_session_open(). Returns LK_NO_LIMIT without -w or with -w 0. */
int64_t cli_session_deadline(const cli_session *s);
bool cli_session_is_past_deadline(const cli_session *s);

/** Time to wait for the session to close after the end of -w. */
enum { CLI_SESSION_CLOSE_MS = 200 };

/** Appends why a client or its list of servers could not be created, as one
    line. */
void cli_session_say_client_error(const cli_options *o, int err, cli_text *out);

/** Runs the loop until `*done` is set, or until nothing keeps it running: the
    client is closed, and no lk__loop_ref() is left. */
void cli_session_run(cli_session *s, const bool *done);

/** Closes the session, and waits for the reply: at most 1.5 s, or
    CLI_SESSION_CLOSE_MS if the time of -w is over. */
void cli_session_close(cli_session *s);

void cli_session_free(cli_session *s);

/** Returns the error to report: LK_ERR_AUTH_FAILED without --auth-file becomes
    LK_ERR_AUTH_REQUIRED. */
int cli_session_error(const cli_session *s, int err);

/** Appends why there is no session, the likely cause and advice, as one line
    without a newline. */
void cli_session_say_no_session(const cli_session *s, cli_text *out);
/** Appends only why there is no session. */
void cli_session_say_failure(const cli_session *s, cli_text *out);
/** Returns the likely cause and advice. */
const char *cli_session_advice(const cli_session *s);

/** Appends that the chroot does not exist, and the command that creates it. */
void cli_session_say_no_chroot(const cli_session *s, cli_text *out);
/** Appends only "latchkey create ... creates it". */
void cli_session_say_chroot_command(const cli_session *s, cli_text *out);

/** Appends "connection to HOST:PORT lost", and why if that is known. */
void cli_session_say_connection_lost(const cli_session *s, cli_text *out);

#endif
