/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_LINK_H
#define LK_CLI_LINK_H

#include <ev.h>
#include <latchkey/ev.h>

#include "cli/attempts.h"
#include "cli/identity.h"
#include "cli/options.h"

typedef struct cli_link cli_link;

/** The loop, a client on it, and the patience until its first session. Zero it
    and fill in the first members. */
struct cli_link {
  /** The first session stands. May be NULL. */
  void (*up)(cli_link *l, void *arg);
  /** It never will: see cli_link_complain(). Told once, never after `up`, and
      never before cli_link_open() returned. May be NULL. */
  void (*down)(cli_link *l, int err, void *arg);
  /** One line of the library's log; only with -v. */
  void (*log)(cli_link *l, const char *text, void *arg);
  /** A second or more has passed without a session, and `text` says how
     attempts to connect have failed; not with -v. Told once. May be NULL. */
  void (*slow)(cli_link *l, const char *text, void *arg);
  void *arg;
  /* for all to use */
  struct ev_loop *loop;
  lk_client *client;
  /* its own */
  const cli_options *options;
  lk_ev *ev;
  lk_listener listener;
  cli_identities identities; /**< what --auth-file says */
  ev_timer patience;
  ev_timer slowness; /**< until `slow` */
  double patience_s;
  double waited_s; /**< whole seconds without a session */
  int64_t limit;  /**< -w: when it is over; else LK_NO_LIMIT */
  ev_timer leave; /**< the end of the patience with the end of the session */
  bool closed;
  cli_attempts attempts; /**< to get the first session */
  bool decided; /**< `up` or `down` was told */
  int trouble;
};

/** Read --auth-file, which can be a FIFO or a terminal and take its time: for a
    program that blocks signals before cli_link_open(), which reads it
    otherwise. False, with one line in `complaint`: it cannot be read. */
bool cli_link_read_auth(cli_link *l, const cli_options *o, cli_text *complaint);

/** Begin to connect, for --connect-timeout and -w at most. False, with one line
    in `complaint`: it cannot even begin; cli_link_free() all the same. */
bool cli_link_open(cli_link *l, const cli_options *o, cli_text *complaint);

/** -w counts from cli_link_open(): when it is over, on lk_client_clock();
    LK_NO_LIMIT: without -w, or with 0. */
int64_t cli_link_limit(const cli_link *l);
bool cli_link_is_late(const cli_link *l);

/** How long the end of a session is waited for when -w is over. */
#define CLI_LINK_CLOSE_S .2

/** Why a client or its list of servers could not be made, as one line. */
void cli_link_refuse(const cli_options *o, int err, cli_text *out);

/** The error to tell of: a server that refuses credentials where there are none
    insists on some. */
int cli_link_error(const cli_link *l, int err);

/** Why no session stands, the likely cause, and what to do, as one line without
    an end. */
void cli_link_complain(const cli_link *l, cli_text *out);
/** Its first part, and its second. */
void cli_link_tell(const cli_link *l, cli_text *out);
const char *cli_link_advice(const cli_link *l);

/** That the chroot does not exist, and how it is made. */
void cli_link_no_chroot(const cli_link *l, cli_text *out);
/** The latter alone. */
void cli_link_make_chroot(const cli_link *l, cli_text *out);

/** "connection to HOST:PORT lost", and why where that is known. */
void cli_link_lost(const cli_link *l, cli_text *out);

/** Run the loop until `*done`, or until nothing can happen any more. */
void cli_link_run(cli_link *l, const bool *done);

/** Run the loop until a session stands; false once it has said why none will
    (to be used without `up` and `down`). With --read-only also until a server
    without a quorum serves, and for a second none with one was found. */
bool cli_link_wait(cli_link *l);

/** End the session, waiting for the server's word, 1.5 s at most;
    CLI_LINK_CLOSE_S when -w is over. */
void cli_link_close(cli_link *l);

void cli_link_free(cli_link *l);

#endif
