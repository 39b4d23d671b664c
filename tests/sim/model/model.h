/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_MODEL_H
#define LK_SIM_MODEL_MODEL_H

#include <latchkey/client.h>

#include "base/buf.h"
#include "base/list.h"
#include "sim/model/ensemble.h"
#include "sim/model/txn.h"
#include "sim/model/write_request.h"
#include "support/server_version.h"

/**
 * @file What the files of the model share: a server, its parts and their
 * functions. Only the sim_enter_ functions of election.c change the role of a
 * server.
 */

enum { SIM_MOST_SERVERS = 9 };

typedef struct sim_watch sim_watch;
typedef struct sim_waiting_request sim_waiting_request;

/* ---- client connection (conn.c) ----------------------------------------- */

struct sim_conn {
  lk_link link; /**< in the server's list, oldest first */
  sim_server *server;
  sim_conn_hooks hooks;
  lk_buf in;       /**< bytes received and not handled: frames that wait, or an
                      incomplete one */
  int64_t session; /**< 0: no connect request was handled yet */
  int32_t timeout_ms;
  const sim_ids *ids;
  const char *chroot;  /**< the client's chroot, or "" */
  bool handshake_read; /**< the connect request was read */
  bool read_only_byte; /**< the connect request had the read-only byte, so the
                          reply has it */
  bool awaits_session; /**< the connect reply is due: no frame is read */
  bool greeted;        /**< the connect reply was sent */
  bool mute;           /**< only replies to pings are sent from now on */
  bool closed;
  bool gone;    /**< the client hung up while the server was stopped */
  bool reading; /**< a loop is reading from it, and frees it at the end if it is
                   closed */
  int64_t last_traffic_us; /**< when the client or the server last sent bytes */
  sim_watch *watches;
  uint64_t last_event; /**< number of the event that was sent last */
};

void sim_conn_send(sim_conn *c, const void *bytes, size_t len);
/** Close the connection after the bytes that were sent; the client's hook
    `closed` is called. */
void sim_conn_hang_up(sim_conn *c);
/** Send the connect reply with the connection's session, and read on. */
void sim_conn_accept_session(sim_conn *c);
/** Send the connect reply that refuses the session, and close the
    connection. */
void sim_conn_refuse_session(sim_conn *c);
/** The server starts to serve: its new session ids are larger than those of an
    earlier start. */
void sim_conns_renew_session_ids(sim_server *s);
/** An unused session id. */
int64_t sim_conn_new_session(sim_server *s);
/** Handle the frames in `in`, unless the connection waits for its session. */
void sim_conn_read_buffered(sim_conn *c);
/** The stopped server continues: read what has arrived meanwhile, and notice
    that the client has closed. */
void sim_conn_resume_reading(sim_conn *c);
/** The connection of a session at this server, or NULL. */
sim_conn *sim_conn_of_session(const sim_server *s, int64_t session);
void sim_conns_close_all(sim_server *s);
/** Close connections without traffic for their session timeout. */
void sim_conns_close_idle(sim_server *s);

/* ---- watches (watches.c) ------------------------------------------------ */

enum sim_watch_kind { SIM_WATCH_DATA, SIM_WATCH_CHILD, SIM_WATCH_KINDS };

/** Modes of addWatch with the protocol's numbers, and SIM_WATCH_ONCE for
    one-shot watches. */
enum sim_watch_mode {
  SIM_WATCH_ANY_MODE = -2,
  SIM_WATCH_ONCE = -1,
  SIM_WATCH_PERSISTENT = 0,
  SIM_WATCH_RECURSIVE = 1
};

typedef struct sim_watches {
  sim_watch **of_path[SIM_WATCH_KINDS]; /**< list of the watches on each path,
                                           indexed by sim_path.number */
  size_t cap[SIM_WATCH_KINDS];
  size_t count;
  /** number of recursive watches */
  size_t recursive[SIM_WATCH_KINDS];
  uint64_t events; /**< number of events so far. An event may fire several
                      watches of a connection, which receives it once */
  sim_watch *spare;
} sim_watches;

/** Set a watch. A connection has one watch for a path and kind; if there is one
    already, its mode changes. If modes are separate, it has one for each. */
void sim_watch_set(sim_conn *c, const sim_path *p, enum sim_watch_kind kind,
                   enum sim_watch_mode mode);
/** Remove a watch, or with SIM_WATCH_ANY_MODE all of the path and kind; false:
    there was none. */
bool sim_watch_remove(sim_conn *c, const sim_path *p, enum sim_watch_kind kind,
                      enum sim_watch_mode mode);
/** Whether the connection has such a watch; in servers from 3.6 to 3.8, any
    connection. */
bool sim_watch_exists(sim_conn *c, const sim_path *p, enum sim_watch_kind kind,
                      enum sim_watch_mode mode);
/** The number of watches of this kind that the connection has. */
size_t sim_watches_of_conn(const sim_conn *c, enum sim_watch_kind kind);
void sim_watches_remove_of_conn(sim_conn *c);
void sim_watches_free(sim_watches *w);
/** Send the events of a change, and remove the one-shot watches that fired. */
void sim_watches_created(sim_server *s, const sim_node *n);
void sim_watches_deleted(sim_server *s, const sim_node *n);
void sim_watches_data_set(sim_server *s, const sim_node *n);

/* ---- outstanding proposals (outstanding.c) ------------------------------ */

/** A node as it is after a proposal that is not applied yet. */
typedef struct sim_change_record {
  int64_t zxid;
  const sim_path *path;
  bool exists;
  bool container;
  const sim_access *access;
  int32_t version;
  int32_t aversion;
  int32_t counter;
  int32_t children;
  int64_t owner;
} sim_change_record;

typedef struct sim_outstanding {
  sim_change_record *records; /**< oldest first */
  size_t first; /**< index of the oldest; those before it were forgotten */
  size_t count; /**< index after the newest */
  size_t cap;
} sim_outstanding;

/** The node at `p` after all proposals; false: there will be none. */
bool sim_outstanding_node(const sim_server *leader, const sim_path *p,
                          sim_change_record *out);
void sim_outstanding_add(sim_outstanding *o, const sim_change_record *record,
                         int64_t zxid);
/** Validate a write and make its transaction, which may be an error
    (prepare.c). */
const sim_txn *sim_prepare_txn(sim_server *leader,
                               const sim_write_request *request, int64_t zxid,
                               int owner);
/** Drop the records of transactions up to `zxid`: they are applied to the
    tree. */
void sim_outstanding_forget(sim_outstanding *o, int64_t zxid);
/** See sim_operator_set_counter(). */
void sim_outstanding_set_counter(sim_outstanding *o, const sim_path *p,
                                 int32_t counter);

/* ---- the leader's sessions (tracker.c) ---------------------------------- */

enum { SIM_NO_OWNER = -1 };

typedef struct sim_tracked {
  int64_t id;
  int64_t expires_ms; /**< when it expires, on the server's own clock; a
                         multiple of the tick */
  bool closing;
  int owner; /**< server to which the client is connected, or SIM_NO_OWNER */
} sim_tracked;

typedef struct sim_tracker {
  sim_tracked *sessions;
  size_t count;
  size_t cap;
} sim_tracker;

/** A new leader tracks the sessions of its tree, each with its whole
    timeout. */
void sim_tracker_start(sim_server *s);
void sim_tracker_add(sim_server *s, int64_t id, int32_t timeout_ms, int owner);
void sim_tracker_remove(sim_server *s, int64_t id);
sim_tracked *sim_tracker_find(const sim_server *s, int64_t id);
/** The client was heard from. false: the session is unknown or ending. */
bool sim_tracker_touch(sim_server *s, int64_t id, int32_t timeout_ms);
/** The client resumes the session at server `owner`. false: the session is
    unknown or ending. */
bool sim_tracker_resume(sim_server *s, int64_t id, int32_t timeout_ms,
                        unsigned owner);
/** Check a request that arrived through server `owner`: 0, SESSION_EXPIRED or
    SESSION_MOVED. If the session has no owner, `owner` becomes its owner. */
int sim_tracker_check(sim_server *s, int64_t id, int owner);
/** Close the sessions that have expired. */
void sim_tracker_expire(sim_server *s);

/* ---- requests that wait at a server (pipeline.c) ------------------------ */

/** A write that waits for its commit, or a request of the same session that
    waits behind it. */
struct sim_waiting_request {
  sim_waiting_request *next; /**< next request of the session */
  /** next write of the server, in the order of arrival */
  sim_waiting_request *next_write;
  /** NULL: the connection is closed, or another server received the request */
  sim_conn *conn;
  int64_t session;
  int32_t xid;
  int32_t op;
  bool awaits_commit; /**< it waits for a commit, or for the leader's answer to
                         a sync; else it waits behind such a request */
  int32_t refusal;    /**< the error with which it will be answered; 0: it will
                           be served */
  size_t len; /**< length of `body`; 0 for a write, which was decoded when it
                 arrived */
  size_t cap;
  unsigned char *body;
};

typedef struct sim_queue {
  int64_t session;
  sim_waiting_request *first;
  sim_waiting_request *last;
} sim_queue;

typedef struct sim_pipeline {
  sim_queue *queues; /**< of the sessions that have waiting requests */
  size_t count;
  size_t cap;
  sim_waiting_request *first_write;
  sim_waiting_request *last_write;
  sim_waiting_request *spare;
  /** number of requests that may still be answered THROTTLED */
  unsigned throttle;
  unsigned errors; /**< number of requests that may be answered with `error` */
  int32_t error;
  unsigned throttle_watches; /**< number of setWatches that will be answered
                                THROTTLED */
} sim_pipeline;

/** A client that has a session sends a request. */
void sim_pipeline_receive(sim_conn *c, int32_t xid, int32_t op,
                          lk_reader *body);
/** A write of the ensemble itself, or a createSession for `c`: propose it, or
    forward it to the leader. */
void sim_pipeline_submit(sim_server *s, sim_conn *c,
                         const sim_write_request *request);
/** A write that server `from` forwarded to this leader. */
void sim_pipeline_receive_forwarded(sim_server *s,
                                    const sim_write_request *request, int from);
/** Apply the log up to position `end`, which is committed. */
void sim_pipeline_commit(sim_server *s, size_t end);
/** The leader has answered a sync of this server. */
void sim_pipeline_complete_sync(sim_server *s, int64_t session, int32_t xid);
void sim_pipeline_forget_conn(sim_pipeline *p, const sim_conn *c);
void sim_pipeline_drop(sim_pipeline *p);
void sim_pipeline_free(sim_pipeline *p);

/* ---- replies (serve.c) -------------------------------------------------- */

/** Writes the body of a reply. It may be called twice for one reply: again with
    a larger buffer. */
typedef void sim_body(lk_writer *w, const void *arg);

/** Send a reply with the zxid of the server's tree. `body` NULL: the reply has
    no body. */
void sim_serve(sim_conn *c, int32_t xid, int err, sim_body *body,
               const void *arg);
/** Answer a request from the tree of this server (reads.c). */
void sim_serve_read(sim_conn *c, int32_t xid, int32_t op, lk_reader *body);
/** Answer a write of opcode `op` with the result of its transaction. */
void sim_serve_write(sim_conn *c, int32_t xid, int32_t op, const sim_txn *x,
                     const lk_stat *stats);
void sim_serve_sync(sim_conn *c, int32_t xid, lk_reader *body);
/** Send a reply without a body, with this zxid. */
void sim_serve_without_body(sim_conn *c, int32_t xid, int64_t zxid, int err);
/** The zxid of events of servers that do not tell it. */
enum { SIM_NO_ZXID = -1 };
void sim_serve_event(sim_conn *c, int32_t type, const sim_path *p,
                     int64_t zxid);

/* ---- between servers (links.c) ------------------------------------------ */

enum sim_message_type {
  /* to the leader */
  SIM_MSG_JOIN,       /**< the sender follows this leader */
  SIM_MSG_ACK,        /**< logged up to `log_pos` */
  SIM_MSG_ACCEPT,     /**< logged up to `log_pos`: all that was sent before
                         NEW_LEADER */
  SIM_MSG_REQUEST,    /**< request */
  SIM_MSG_SYNC,       /**< session, xid */
  SIM_MSG_REVALIDATE, /**< session, timeout_ms */
  SIM_MSG_TOUCH,      /**< session, timeout_ms; sent before PONG */
  SIM_MSG_PONG,
  /* to a follower */
  SIM_MSG_TRUNCATE,   /**< cut the log at `log_pos` */
  SIM_MSG_PROPOSE,    /**< txn, at index `log_pos` */
  SIM_MSG_NEW_LEADER, /**< epoch */
  SIM_MSG_SERVE,      /**< serve clients; committed up to `log_pos` */
  SIM_MSG_COMMIT,     /**< up to `log_pos` */
  SIM_MSG_PING,
  SIM_MSG_VALID,  /**< session, valid */
  SIM_MSG_SYNCED, /**< session, xid */
  /* in both directions */
  SIM_MSG_BYE
};

typedef struct sim_message {
  enum sim_message_type type;
  uint32_t channel; /**< set by sim_send() */
  int64_t due_us;   /**< set by sim_send() */
  int64_t session;
  int32_t xid;
  int32_t timeout_ms;
  int32_t epoch;
  bool valid;
  size_t log_pos;
  const sim_txn *txn;
  const sim_write_request *request;
} sim_message;

/** The link from one server to another. Its messages arrive in order, or not at
    all. */
typedef struct sim_link {
  sim_server *from;
  sim_server *to;
  bool cut;
  int64_t extra_us; /**< see sim_link_slow() */
  int64_t last_us;  /**< when the last message sent on it arrives */
  sim_job job;
  /** a message is due, and waits since the receiver is stopped */
  bool delayed;
  sim_message *ring;
  size_t first; /**< number of messages delivered so far */
  size_t count; /**< messages in `ring` */
  size_t cap;   /**< a power of two */
} sim_link;

void sim_link_init(sim_link *l, sim_server *from, sim_server *to);
void sim_link_free(sim_link *l);
void sim_link_resume(sim_link *l);
/** Send a message if the sender has a channel to the receiver. */
void sim_send(sim_server *from, unsigned to, const sim_message *m);
/** Close the channel; the receiver is sent BYE. */
void sim_close_channel(sim_server *from, unsigned to);

/* ---- server ------------------------------------------------------------- */

typedef enum sim_role { SIM_LOOKING, SIM_FOLLOWING, SIM_LEADING } sim_role;

/** What a server does when a timer of it is due. */
enum sim_task {
  SIM_TASK_DISK,
  SIM_TASK_ELECT,
  SIM_TASK_TICK,   /**< leader: each half tick, ping followers and count them */
  SIM_TASK_EXPIRE, /**< leader: expire sessions */
  SIM_TASK_DELETE_UNUSED, /**< leader: delete empty containers and expired TTL
                             nodes */
  SIM_TASK_SILENCE,       /**< follower: check when the leader was heard last */
  SIM_TASK_IDLE,          /**< close connections without traffic */
  SIM_TASK_READ_ONLY,     /**< become read-only: there was no leader for
                             read_only_after_us */
  SIM_TASKS
};

typedef struct sim_timer {
  sim_job job;
  sim_server *server;
  enum sim_task task;
  bool missed; /**< it was due while the server was stopped */
} sim_timer;

/** What a leader knows of a follower. */
typedef struct sim_follower {
  bool joined;        /**< receives proposals */
  bool accepted;      /**< has logged all before NEW_LEADER */
  size_t acked;       /**< length of its log, as last acknowledged */
  int64_t until_tick; /**< the tick after which it counts as lost */
} sim_follower;

typedef struct sim_pending_sync {
  unsigned server;
  int64_t session;
  int32_t xid;
  /** the sync is answered when the log is committed up to this position */
  size_t log_pos;
} sim_pending_sync;

typedef struct sim_touch {
  int64_t session;
  int32_t timeout_ms;
} sim_touch;

struct sim_server {
  sim_ensemble *ensemble;
  bool has[SERVER_DIFFERENCES]; /**< changes of its version */
  unsigned index;
  char name[20];
  sim_rng rng;
  bool runs;    /**< its process exists */
  bool stopped; /**< its process is stopped (SIGSTOP) */
  sim_role role;
  bool serves; /**< it leads or follows, and accepts requests */
  sim_timer timers[SIM_TASKS];
  /** works off what arrived while the server was stopped */
  sim_job continue_job;
  int64_t clock_offset_ms; /**< how far its clock is ahead of virtual time */
  int64_t last_session;    /**< id of the session created last */
  int close_early; /**< above 0: close connections right after the handshake */
  int mutes;       /**< above 0: see sim_server_mute() */
  bool read_only;  /**< serves as a read-only server */
  bool older;      /**< see sim_server_set_older() */
  int32_t min_timeout_ms; /**< bounds of the session timeouts it grants */
  int32_t max_timeout_ms;

  /* data */
  sim_tree tree;
  const sim_txn **log;
  size_t log_count; /**< entries of the log */
  size_t log_cap;
  size_t logged;  /**< number of entries that are on disk */
  size_t logging; /**< number of entries that are on disk after the pending
                     write */
  size_t applied; /**< number of entries that are applied to `tree` */
  int32_t epoch;  /**< epoch of its last leader */
  /** the highest epoch that it has promised to follow */
  int32_t promised_epoch;

  /* clients */
  lk_link conns;
  sim_watches watches;
  sim_pipeline pipeline;

  /* channels to other servers; 0: none */
  uint32_t channels[SIM_MOST_SERVERS];

  /* as a follower */
  unsigned leader;
  int64_t leader_heard_us;
  sim_touch *touches;
  size_t ntouches;
  size_t touches_cap;

  /* as a leader */
  bool established; /**< a quorum has accepted its log */
  bool half_tick;   /**< the next SIM_TASK_TICK is in the middle of a tick */
  int64_t tick;     /**< number of ticks since the election */
  int64_t next_zxid;
  size_t committed; /**< number of entries of the log */
  sim_follower followers[SIM_MOST_SERVERS];
  sim_outstanding outstanding;
  sim_tracker tracker;
  sim_pending_sync *syncs; /**< oldest first */
  size_t nsyncs;
  size_t syncs_cap;
};

void sim_server_init(sim_server *s);
/** The server's own clock in ms. */
int64_t sim_server_now_ms(const sim_server *s);
void sim_server_schedule(sim_server *s, enum sim_task task, int64_t in_us);
void sim_server_cancel(sim_server *s, enum sim_task task);
/** Schedule SIM_TASK_EXPIRE at the next tick of the server's clock. */
void sim_server_schedule_expiry(sim_server *s);

/* client.c */
void sim_log_add(sim_server *s, const sim_txn *x);
void sim_log_truncate(sim_server *s, size_t count);
/** The disk write has ended. */
void sim_log_flushed(sim_server *s);
/** Complete the disk writes now, without a call of sim_log_flushed(). */
void sim_log_flush_at_once(sim_server *s);
/** The zxid of the last entry; 0: the log is empty. */
int64_t sim_log_zxid(const sim_server *s);

/* election.c */
/** Stop serving, leave the leader, and start an election. */
void sim_enter_looking(sim_server *s, const char *why);
void sim_enter_following(sim_server *s, unsigned leader);
void sim_enter_leading(sim_server *s, int32_t epoch);
void sim_elect(sim_server *s);

/* leader.c */
void sim_leader_start(sim_server *s); /**< after the election */
void sim_leader_receive(sim_server *s, unsigned from, const sim_message *m);
void sim_leader_tick(sim_server *s);
void sim_leader_delete_unused(sim_server *s);
/** `from`: the server that received the request. */
void sim_leader_propose(sim_server *s, const sim_write_request *request,
                        int from);
void sim_leader_on_logged(sim_server *s);
void sim_leader_drop_follower(sim_server *s, unsigned follower);
void sim_leader_receive_sync(sim_server *s, unsigned from, int64_t session,
                             int32_t xid);

/* follower.c */
/** A client of the follower was heard from. */
void sim_follower_add_touch(sim_server *s, int64_t session, int32_t timeout_ms);
void sim_follower_receive(sim_server *s, const sim_message *m);
void sim_follower_check_silence(sim_server *s);
void sim_follower_on_logged(sim_server *s);

/* ---- all of them (ensemble.c) ------------------------------------------- */

struct sim_ensemble {
  sim_ensemble_config config;
  sim_agenda *agenda;
  sim_trace *trace;
  sim_ensemble_hooks hooks;
  unsigned count;
  sim_server *servers;
  sim_link *links;  /**< at index from * count + to */
  lk_arena arena;   /**< freed with the ensemble */
  lk_arena scratch; /**< for decoding one request */
  sim_paths paths;
  uint32_t last_channel; /**< number of the channel opened last */
  sim_tree committed_tree;
  const sim_txn **history; /**< the committed transactions */
  size_t committed;
  size_t history_cap;
  unsigned char *frame; /**< buffer for one reply */
  size_t frame_cap;
  lk_stat *stats; /**< of the operations of one transaction */
  size_t stats_cap;
};

static inline unsigned sim_quorum(const sim_ensemble *e)
{
  return e->count / 2 + 1;
}

static inline sim_link *sim_link_of(const sim_ensemble *e, unsigned from,
                                    unsigned to)
{
  return &e->links[from * e->count + to];
}

static inline int64_t sim_tick_us(const sim_ensemble *e)
{
  return e->config.tick_ms * SIM_MS;
}

/** The leader `s` has committed its log up to `end`. */
void sim_ensemble_commit(sim_ensemble *e, const sim_server *s, size_t end);
/** "EPOCH:NUMBER". The result is valid until the fourth later call. */
const char *sim_zxid_text(int64_t zxid);
/** A transaction as text for the trace. */
const char *sim_txn_text(const sim_txn *x);

#endif
