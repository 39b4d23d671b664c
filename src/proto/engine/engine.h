/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_ENGINE_H
#define LK_PROTO_ENGINE_ENGINE_H

/**
 * @file
 * A client from inside. client.c has its life and its inputs, session.c the
 * states of its connection, sasl.c what proves who it is, request.c what is on
 * its way, reply.c what arrives, body.c what is in it, watch.c who watches,
 * timing.c what is due, probe.c the search for a server with a quorum,
 * invariants.c what must be true of it. The calls are in ask.h.
 */

#include <latchkey/client.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/ring.h"
#include "jute/arena.h"
#include "jute/record.h"
#include "proto/engine/hosts.h"
#include "proto/engine/lease_slot.h"
#include "proto/engine/sasl.h"
#include "proto/engine/watch_table.h"
#include "proto/wire/frame.h"
#include "proto/wire/handshake.h"
#include "proto/wire/opcode.h"

#define LK_NEVER INT64_MAX

/** How far the present attempt to have a connection has come. */
typedef enum lk_phase {
  LK_PHASE_PAUSE,      /**< no transport wanted before retry_ms */
  LK_PHASE_CONNECTING, /**< a transport is wanted */
  LK_PHASE_HANDSHAKE,  /**< connected; the connect request is out */
  LK_PHASE_SASL,       /**< it was answered; nothing but SASL is sent */
  LK_PHASE_LIVE,       /**< requests are served */
  LK_PHASE_ENDED       /**< closed, or failed for good */
} lk_phase;

/** The deadline of a request under way or waiting. */
typedef struct lk_deadline {
  lk_heap_node node; /**< of the client's deadlines */
  uint64_t end;      /**< of the request, by which it is found in its ring */
  bool waits;        /**< that ring: `waiting` or `sent` */
  struct lk_deadline *spare; /**< next in the list of those to be used again */
} lk_deadline;

/** A request that was accepted and has not ended. */
typedef struct lk_request {
  int32_t op;
  int32_t xid; /**< 0 until it has a connection */
  int64_t sent_ms;
  lk_deadline *deadline; /**< or NULL */
  uint64_t end; /**< where its last byte is in the connection's output; while it
                     waits, in all that was ever held */
  size_t len;   /**< of its frame; kept to find it in `held` */
  size_t parts; /**< of a multi */
  void (*done)(void); /**< its type follows from `op` */
  void *arg;
  lk_watch *watch;     /**< or NULL */
  unsigned char *copy; /**< its frame, where it may be repeated; or NULL */
  bool ended;          /**< told already; only its place is kept */
  int fate;            /**< how it ends without an answer, where that is known;
                            or 0 */
} lk_request;

/** An identity. Sent first on each connection. */
typedef struct lk_auth {
  struct lk_auth *next;
  lk_done_cb done; /**< NULL once told */
  void *arg;
  size_t len; /**< of the frame that follows */
  unsigned char frame[];
} lk_auth;

struct lk_client {
  lk_mem mem;
  lk_hooks hooks;
  void (*log)(void *arg, int level, int err, const char *text);
  void *log_arg;
  int32_t wanted_timeout_ms;
  int32_t give_up_ms;
  bool one_session;
  bool read_only; /* a server without a quorum will do */
  size_t send_limit;
  size_t outstanding_limit;

  /* life */
  int depth; /* calls of ours on the stack */
  bool free_wanted;
  bool wake_wanted; /* the hook is due when the outermost call ends */
  bool waking;      /* the hook is running */
  int64_t now;      /* clock, as last read */
  bool now_stale;   /* output was sent since */
  lk_listener *listeners;
  lk_listener *listeners_last;
  struct lk_notification *telling; /* the innermost under way; NULL: none */
  lk_heap timers;

  /* session */
  lk_state state;
  int final_err; /* why requests are refused now; 0: they are not */
  lk_session session;
  int32_t timeout_ms; /* negotiated, or wanted */
  int64_t last_zxid;
  int32_t xid;            /* last one used */
  int64_t proven_ms;      /* when the newest answered request was sent */
  int64_t lives_until_ms; /* a session that was given up, at the servers */
  lk_evidence_record evidence;
  lk_session_lease *lease; /* or NULL; see lease_slot.h */
  void (*free_lease)(lk_session_lease *lease);

  /* connection */
  lk_phase phase;
  lk_hosts hosts;
  lk_tls_config *tls; /* for the transport; NULL: plain TCP */
  bool moving; /* the server in turn is where to go, not the one in use */
  int64_t moving_since_ms;
  bool insists;   /* for a round only a server with a quorum will do */
  uint64_t fence; /* bytes of this connection from here on are not sent */
  uint64_t attempt;
  uint64_t greeted; /* the attempt on which the connect request was written */
  uint64_t connection; /* number of the live connection, or 0 */
  uint64_t connections;
  int64_t retry_ms;
  int64_t attempt_began_ms;
  int64_t attempt_end_ms;
  int64_t handshake_sent_ms;
  int64_t live_ms;    /* when the handshake was answered */
  int64_t heard_ms;   /* when bytes last arrived, of whole frames or not */
  int64_t written_ms; /* output was last empty */
  int64_t left_ms;    /* when bytes last left, or a little later */
  bool has_left;      /* some have since; that moment is not read yet */
  lk_ring pings;      /* int64_t: when those without a reply were sent */
  uint64_t ping_end;  /* where the newest one ends in the output */
  int64_t touched_ms; /* when the newest one was sent that followed another: it
                         may have kept the session, though nothing says so */
  unsigned rounds;    /* without success */
  bool refused_round; /* every server so far in this round hung up */
  int32_t unknown_op; /* the server does not know it and will close; or 0 */
  uint64_t unknown_end;  /* where that request ends in the output */
  int64_t unknown_until; /* then the connection is given up */
  size_t rearms;         /* setWatches that were sent together last */
  size_t rearms_out;     /* of these: without a reply */
  bool rearm_again;      /* one of them was throttled */
  unsigned rearm_tries; /* so often, in a row, something was left to register */
  int64_t rearm_ms;     /* when that is tried again; or LK_NEVER */
  bool watch_lost;      /* one could not be set again: try a new connection */
  bool input_lost;      /* one came inside a callback: likewise */
  lk_sasl *sasl;        /* or NULL */
  lk_auth *auths;
  lk_auth *auth_next; /* whose reply comes next */
  char trouble[512];
  int trouble_err;
  lk_tls_cause tls_cause; /* of `trouble`, where that is LK_ERR_TLS */
  char server[272];

  /* looking for a server with a quorum */
  bool no_quorum;         /* the one in use has none */
  uint64_t probe;         /* the question under way, or 0 */
  uint64_t probes;        /* number of the last one */
  size_t probed;          /* servers that were asked in this round */
  int64_t probe_ms;       /* when that is over, or the next one begins */
  int64_t probe_pause_ms; /* after this round */

  /* requests */
  lk_buf out;           /* bytes for the connection */
  uint64_t out_sent;    /* bytes of this connection handed to the system */
  lk_ring sent;         /* lk_request: have an xid, in order */
  lk_ring waiting;      /* lk_request: for the next connection */
  lk_ring late;         /* lk_request: made too late, and not sent */
  size_t waiting_ended; /* of them: completed, and still there */
  lk_buf held;          /* frames of `waiting` */
  uint64_t held_end;    /* bytes that were ever held */
  lk_ring ending[2];    /* `sent` and `waiting` of before, being told */
  size_t open;          /* accepted and not completed */
  size_t unchecked;     /* calls since the last check, see invariants.h */
  lk_heap deadlines;    /* lk_deadline */
  lk_deadline *spare_deadlines;
  size_t nspare_deadlines;
  lk_buf scratch; /* paths with chroot */
  lk_frames frames;
  lk_arena arena;
  const lk_reply *answer;
  lk_watches watches;

  /* closing */
  bool closing;
  bool close_sent; /* it is the last of `sent` */
  bool close_lost; /* it left on a connection that broke */
  int64_t close_end_ms;
  lk_close_cb close_done;
  void *close_arg;
};

/* client.c */
/** Begin and end an input, which reads the clock if it is the outermost. */
void lk__client_enter(lk_client *c);
void lk__client_leave(lk_client *c);
/** Begin and end a call that reads no clock. Both ends can free the client. */
void lk__client_hold(lk_client *c);
void lk__client_release(lk_client *c);
/** Have the driver woken when the outermost call ends: until then the state
    need not be whole. Outside of enter and hold that is now, and can free the
    client. */
void lk__client_wake(lk_client *c);
/** Whether a close has nothing to wait for: no session, and no request. */
bool lk__client_can_close(const lk_client *c);
/** Why it takes nothing new: 0, LK_ERR_FORKED, CLOSED, AUTH_FAILED. */
int lk__client_refusal(const lk_client *c);
/** Enter a state, and tell the listeners: all else is as it shall be. */
void lk__client_enter_state(lk_client *c, lk_state state, int err);
/** Its session is to be closed. */
void lk__client_notify_closing(lk_client *c);
void lk__client_notify_reply(lk_client *c, const lk_reply *answer);
/** Log, printf-like; `level` as in lk_log_level. */
void lk__client_logf(const lk_client *c, int level, int err, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

/* session.c */
/** Ask for a transport to the endpoint in turn. */
void lk__session_connect(lk_client *c);
/** The transport stands: send the connect request. */
void lk__session_send_handshake(lk_client *c);
/** The first frame of a connection. */
void lk__session_take_handshake(lk_client *c, lk_bytes frame);
/** All that goes before requests is done: serve them. */
void lk__session_establish(lk_client *c, const lk_handshake *h);
/** The connection or the attempt at one is over; go on elsewhere. */
void lk__session_break(lk_client *c, int err, const char *why);
/** Send the setWatches that are due. false: no memory. */
bool lk__session_reregister(lk_client *c);
/** None of them is without a reply. `missing`: something is to be tried again.
 */
void lk__session_reregistered(lk_client *c, bool missing);
/** Use these servers from now on; `fresh` is used up. */
void lk__session_set_hosts(lk_client *c, lk_hosts *fresh);
/** A request or ping was answered: if the connection has lasted, the next pause
    is a short one, and a new round of servers begins with the next one. */
void lk__session_answered(lk_client *c);
/** Go to the server in turn, at a moment when nothing is under way. */
void lk__session_move(lk_client *c);
/** The session is gone: start anew, unless that is not wanted. */
void lk__session_expire(lk_client *c, const char *why);
/** The server refuses the credentials, or insists on some: end for good.
    `why`: a line for the log, or NULL. */
void lk__session_refused(lk_client *c, int err, const char *why);
/** closeSession was answered, or will not be: end for good, with `err` for its
    caller. */
void lk__session_closed(lk_client *c, int err);

/* timing.c */
/** See to all that is due at c->now. */
void lk__timing_run(lk_client *c);
int64_t lk__timing_deadline(const lk_client *c);
/** How long to wait before the next attempt, with jitter. */
int64_t lk__timing_pause(lk_client *c);
/** Repeat setWatches later, with jitter: the server was too busy. */
void lk__timing_reregister_later(lk_client *c);
/** How long one attempt may take, from resolving to the handshake's answer,
    where no session is about to end. */
int64_t lk__timing_attempt(const lk_client *c);
/** A connection attempt begins: set when it ends. */
void lk__timing_begin_attempt(lk_client *c);
/** The number of addresses is known now: the attempt at the first one ends
    when its share of the time has passed, but no later than it would have. */
void lk__timing_resolved(lk_client *c);

/* probe.c */
/** Look for a server that has a quorum, anew. */
void lk__probe_begin(lk_client *c);
void lk__probe_stop(lk_client *c);
/** See to what is due at c->now, or at c->probe_ms, which is LK_NEVER where
    nothing is. */
void lk__probe_run(lk_client *c);

/* request.c */
/** What a request is made of. */
typedef struct lk_call_spec {
  int32_t op;
  const lk_record *rec; /**< of its body; NULL: it has none, or parts */
  const void *value;    /**< the body; where there is a path it begins with it,
                             and that is not looked at */
  const char *chroot;   /**< what goes before the path */
  const char *path; /**< and what follows it; see lk__path_rest(). Or NULL */
  const lk_op *ops; /**< of a multi; or NULL */
  const lk_read *reads; /**< of a multiRead; or NULL */
  size_t parts;         /**< how many */
  const lk_call *call;  /**< the options, a copy; NULL: none were given */
  lk_watch_kind kind;   /**< of the watch that `call` may want */
  bool covered;         /**< one that stays serves it; see watching.c */
  void (*done)(void);
  void *arg;
} lk_call_spec;

/** Whether a new request would be taken now: 0, or why not. */
int lk__request_refusal(lk_client *c);
/** The xid after the last one that was used. */
int32_t lk__request_next_xid(const lk_client *c);
/** The server at hand has answered `op` as one that it does not know, and will
    close: it is not asked again for an hour. */
void lk__request_note_unsupported(lk_client *c, int32_t op);
/** Likewise for `r`; nothing more is sent on this connection. It is given up
    when the requests ahead of `r` have been answered, or by timing.c. */
void lk__request_rejected(lk_client *c, const lk_request *r);
bool lk__request_is_unsupported(const lk_client *c, int32_t op);
/** Why the server at hand is not asked `op`: LK_ERR_UNIMPLEMENTED, or
    LK_ERR_NOT_READ_ONLY; or 0. */
int lk__request_unsupported(const lk_client *c, int32_t op);
/** The watches on the path of `ask`; NULL: there are none. LK_ERR_NO_MEMORY. */
int lk__request_find_watched(lk_client *c, const lk_call_spec *ask,
                             lk_watched **out);
/** Accept a request: it waits, or goes into the output. */
int lk__request_queue(lk_client *c, const lk_call_spec *ask);
/** Whether all whose last byte comes before `until` have been answered. */
bool lk__requests_answered(const lk_client *c, uint64_t until);
/** closeSession, behind everything else. false: no memory. */
bool lk__request_close(lk_client *c);
/** Without an answer to it: `unanswered` if closeSession left on this
    connection, or what else is known of it. */
int lk__request_close_verdict(const lk_client *c, int unanswered);
/** What waited goes into the output; what this server is not asked is set
    aside, to be ended. false: no memory. */
bool lk__requests_release(lk_client *c);
/** The answer to the oldest request is not one that we can take: do not ask
    again, it would be the same. */
void lk__request_forbid_retry(lk_client *c, bool too_big);
/** Set aside what is on its way and not to be repeated, or with `all` also
    that and what waits; then end it: what is requested in between is not meant.
 */
void lk__requests_detach(lk_client *c, bool all);
/** End what was set aside with `err`; 0: with what is known after a broken
    connection. */
void lk__requests_finish(lk_client *c, int err);
/** End those whose own deadline has passed. One that had passed when the
    request was made waits in `late` until then. */
void lk__requests_time_out(lk_client *c);

/* deadline.c */
/** Give a request a deadline; false: no memory. */
bool lk__deadline_add(lk_client *c, lk_request *r, int64_t at_ms);
/** It is in its ring now, `waiting` or `sent`, and has its `end`. */
static inline void lk__deadline_place(const lk_request *r, bool waits)
{
  if (r->deadline == NULL)
    return;
  r->deadline->end = r->end;
  r->deadline->waits = waits;
}
/** It leaves its ring, or completes. */
void lk__deadline_drop(lk_client *c, lk_request *r);
/** A request whose deadline has passed at c->now; NULL: there is none. */
lk_request *lk__deadline_due(const lk_client *c);
/** When the next one passes, or LK_NEVER. */
static inline int64_t lk__deadline_next(const lk_client *c)
{
  return c->deadlines.root == NULL ? LK_NEVER : c->deadlines.root->at;
}
/** Free what is kept to be used again. */
void lk__deadlines_free(lk_client *c);

/* identity.c */
/** Wipe and free an identity, which is in no list. */
void lk__auth_free(lk_client *c, lk_auth *a);

/* reply.c */
/** A frame after the handshake. */
void lk__reply_take(lk_client *c, lk_bytes frame);

/* notify.c */
/** Tell the watches in `list` of an event of `path`; NULL: of their own. Those
    that do not stay, and all of LK_EVENT_ENDED, are dropped. */
void lk__watches_notify(lk_client *c, lk_link *list, lk_event_type type,
                        lk_bytes path, int err);
/** Tell them that they are void. */
void lk__watches_notify_ended(lk_client *c, lk_link *list, int err);
/** Tell persistent watches that the connection was away. `late`: those which
    were told so before they were registered. */
void lk__watches_notify_resumed(lk_client *c, bool late);

/* watching.c */
/** The request of `w` ended with `err`: it stands, or is dropped. */
void lk__watch_request_completed(lk_client *c, lk_watch *w, int32_t op,
                                 int err);
/** A setWatches that is no part of a reconnect ended with `err`; `mend` is its
    `arg`, and freed. */
void lk__watch_repair_completed(lk_client *c, void *mend, int err);

#endif
