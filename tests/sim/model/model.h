/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_MODEL_H
#define LK_SIM_MODEL_MODEL_H

#include <latchkey/client.h>

#include "base/buf.h"
#include "base/list.h"
#include "sim/model/ensemble.h"
#include "sim/model/txn.h"
#include "sim/model/write_request.h"

/**
 * @file
 * What the ensemble's files share: a server, its parts, and what each of them
 * can be told. One function enters a role; see election.c.
 */

enum { SIM_MOST_SERVERS = 9 };

typedef struct sim_watch sim_watch;
typedef struct sim_waiting_request sim_waiting_request;

/* ---- a connection of a client (conn.c) ---------------------------------- */

struct sim_conn {
  lk_link link; /**< of its server, oldest first */
  sim_server *server;
  sim_conn_hooks hooks;
  lk_buf in;       /**< a frame that is not complete, or must wait */
  int64_t session; /**< 0: not known yet */
  int32_t timeout_ms;
  const sim_ids *ids;
  const char *chroot;  /**< its client's, or "" */
  bool handshake_read; /**< its connect request was read */
  bool read_only_byte; /**< … and had that byte, so has the reply */
  bool awaits_session; /**< for its session: nothing more is read */
  bool closed;
  bool gone;        /**< the client hung up while the server stood still */
  bool reading;     /**< in a loop that will free it when closed */
  int64_t last_traffic_us; /**< last traffic */
  sim_watch *watches;
  uint64_t last_event; /**< which of the server's events it was told last */
};

void sim_conn_send(sim_conn *c, const void *bytes, size_t len);
/** Say goodbye: after what was sent; the client's side is told. */
void sim_conn_hang_up(sim_conn *c);
/** The connect response; `valid` false: the session is not, and hang up. */
void sim_conn_send_connect_reply(sim_conn *c, bool valid);
/** An id that no session has. */
int64_t sim_conn_new_session(sim_server *s);
/** What waited in `in`, if it may be read now. */
void sim_conn_read_buffered(sim_conn *c);
/** Its server goes on: take what has come meanwhile, also that it ended. */
void sim_conn_resume_reading(sim_conn *c);
/** The connection that a session has at a server, or NULL. */
sim_conn *sim_conn_of_session(const sim_server *s, int64_t session);
void sim_conns_close_all(sim_server *s);
/** Hang up on those who said nothing for their timeout. */
void sim_conns_close_idle(sim_server *s);

/* ---- watches (watches.c) ------------------------------------------------ */

enum sim_watch_kind { SIM_WATCH_DATA, SIM_WATCH_CHILD, SIM_WATCH_KINDS };

/** As the protocol numbers them, but for the first. */
enum sim_watch_mode {
  SIM_WATCH_ONCE = -1,
  SIM_WATCH_PERSISTENT = 0,
  SIM_WATCH_RECURSIVE = 1
};

typedef struct sim_watches {
  sim_watch **at[SIM_WATCH_KINDS]; /**< by the numbers of paths */
  size_t cap[SIM_WATCH_KINDS];
  size_t count;
  size_t recursive[SIM_WATCH_KINDS]; /**< how many are */
  uint64_t events; /**< so far; so that nobody is told one twice */
  sim_watch *spare;
} sim_watches;

/** One of a connection, a path and a kind: the mode is that of the last. */
void sim_watch_set(sim_conn *c, const sim_path *p, enum sim_watch_kind kind,
                   enum sim_watch_mode mode);
/** false: there was none. */
bool sim_watch_remove(sim_conn *c, const sim_path *p, enum sim_watch_kind kind);
/** Whether anybody has one on exactly this path. */
bool sim_watch_exists(const sim_server *s, const sim_path *p,
                      enum sim_watch_kind kind);
/** How many of a kind the connection has. */
size_t sim_watches_of_conn(const sim_conn *c, enum sim_watch_kind kind);
void sim_watches_remove_of_conn(sim_conn *c);
void sim_watches_free(sim_watches *w);
/** Say that a node was changed; the watches that this fires are used up. */
void sim_watches_created(sim_server *s, const sim_node *n);
void sim_watches_deleted(sim_server *s, const sim_node *n);
void sim_watches_data_set(sim_server *s, const sim_node *n);

/* ---- what will be, once all that is proposed is applied (head.c) -------- */

/** A node after a proposal that is not applied yet. */
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
  size_t first;
  size_t count;
  size_t cap;
} sim_outstanding;

/** What will be at `p`; false: nothing. */
bool sim_outstanding_node(const sim_server *leader, const sim_path *p,
                          sim_change_record *out);
void sim_outstanding_add(sim_outstanding *h, const sim_change_record *f,
                         int64_t zxid);
/** Decide what comes of a request; it may be an error, and has a zxid
    (decide.c). */
const sim_txn *sim_prepare_txn(sim_server *leader,
                               const sim_write_request *request, int64_t zxid,
                               int owner);
/** Applied up to `zxid`. */
void sim_outstanding_forget(sim_outstanding *h, int64_t zxid);
/** As sim_operator_set_counter() says. */
void sim_outstanding_set_counter(sim_outstanding *h, const sim_path *p,
                                 int32_t counter);

/* ---- the leader's sessions (tracker.c) ---------------------------------- */

enum { SIM_NO_OWNER = -1 };

typedef struct sim_tracked {
  int64_t id;
  int64_t expires_ms; /**< by the server's own clock, on a tick */
  bool closing;
  int owner; /**< the server it is connected to, as far as is known */
} sim_tracked;

typedef struct sim_tracker {
  sim_tracked *sessions;
  size_t count;
  size_t cap;
} sim_tracker;

/** Begin anew with what is committed. */
void sim_tracker_start(sim_server *s);
void sim_tracker_add(sim_server *s, int64_t id, int32_t timeout_ms, int owner);
void sim_tracker_remove(sim_server *s, int64_t id);
sim_tracked *sim_tracker_find(const sim_server *s, int64_t id);
/** false: it is not known, or ends. */
bool sim_tracker_touch(sim_server *s, int64_t id, int32_t timeout_ms);
/** A client resumes it at server `owner`. false: the same. */
bool sim_tracker_resume(sim_server *s, int64_t id, int32_t timeout_ms,
                        unsigned owner);
/** What the leader thinks of a request that came through server `owner`: 0,
    SESSIONEXPIRED, SESSIONMOVED. Who asks first owns it. */
int sim_tracker_check(sim_server *s, int64_t id, int owner);
/** End those whose time is over. */
void sim_tracker_expire(sim_server *s);

/* ---- requests that wait at a server (pipeline.c) ------------------------ */

/** A request behind a write of its session, or that write. */
struct sim_waiting_request {
  sim_waiting_request *next;       /**< of its session */
  sim_waiting_request *next_write; /**< of the server: waits for its commit */
  sim_conn *conn;        /**< NULL: gone, or never here */
  int64_t session;
  int32_t xid;
  int32_t op;
  bool commits; /**< waits for a commit, or the answer to a sync */
  bool throttled;
  size_t len; /**< of its body, for those that wait to be read */
  size_t cap;
  unsigned char *body;
};

typedef struct sim_queue {
  int64_t session;
  sim_waiting_request *first;
  sim_waiting_request *last;
} sim_queue;

typedef struct sim_pipeline {
  sim_queue *queues; /**< of the sessions that wait for something */
  size_t count;
  size_t cap;
  sim_waiting_request *first_write;
  sim_waiting_request *last_write;
  sim_waiting_request *spare;
  unsigned throttle; /**< so many requests may get -127 */
  unsigned throttle_watches; /**< so many setWatches do */
} sim_pipeline;

/** A request of a client that has a session. */
void sim_pipeline_receive(sim_conn *c, int32_t xid, int32_t op,
                          lk_reader *body);
/** A write of our own, or a createSession for `c`; at the leader or on the way
    to it. */
void sim_pipeline_submit(sim_server *s, sim_conn *c,
                         const sim_write_request *request);
/** The same that came to the leader from server `from`. */
void sim_pipeline_receive_forwarded(sim_server *s,
                                    const sim_write_request *request, int from);
/** Apply what was committed up to place `end` of the log. */
void sim_pipeline_commit(sim_server *s, size_t end);
/** A sync came back. */
void sim_pipeline_complete_sync(sim_server *s, int64_t session, int32_t xid);
void sim_pipeline_forget_conn(sim_pipeline *p, const sim_conn *c);
void sim_pipeline_drop(sim_pipeline *p);
void sim_pipeline_free(sim_pipeline *p);

/* ---- answers (serve.c) -------------------------------------------------- */

/** Adds the body of an answer; may be called twice for one. */
typedef void sim_body(lk_writer *w, const void *arg);

/** `body` NULL: there is none. */
void sim_serve(sim_conn *c, int32_t xid, int err, sim_body *body,
               const void *arg);
/** Answer a request that only looks at this server's tree (reads.c). */
void sim_serve_read(sim_conn *c, int32_t xid, int32_t op, lk_reader *body);
/** Answer a write that asked for `op` with what became of it. */
void sim_serve_write(sim_conn *c, int32_t xid, int32_t op, const sim_txn *x,
                     const lk_stat *stats);
void sim_serve_sync(sim_conn *c, int32_t xid, lk_reader *body);
void sim_serve_error(sim_conn *c, int32_t xid, int64_t zxid, int err);
void sim_serve_event(sim_conn *c, int32_t type, const sim_path *p);

/* ---- between servers (links.c) ------------------------------------------ */

enum sim_message_type {
  /* to the leader */
  SIM_MSG_JOIN,       /**< I follow you */
  SIM_MSG_ACK,        /**< logged up to `log_pos` */
  SIM_MSG_ACCEPT,     /**< the same, of all that NEW_LEADER came after */
  SIM_MSG_REQUEST,    /**< ask */
  SIM_MSG_SYNC,       /**< session, xid */
  SIM_MSG_REVALIDATE, /**< session, timeout_ms */
  SIM_MSG_TOUCH,      /**< session, timeout_ms; before PONG */
  SIM_MSG_PONG,
  /* to a follower */
  SIM_MSG_TRUNCATE,   /**< the log to `log_pos` */
  SIM_MSG_PROPOSE,    /**< txn at `log_pos` */
  SIM_MSG_NEW_LEADER, /**< epoch */
  SIM_MSG_SERVE,      /**< go on; committed up to `log_pos` */
  SIM_MSG_COMMIT,     /**< up to `log_pos` */
  SIM_MSG_PING,
  SIM_MSG_VALID,  /**< session, valid */
  SIM_MSG_SYNCED, /**< session, xid */
  /* both */
  SIM_MSG_BYE
};

typedef struct sim_message {
  enum sim_message_type type;
  uint32_t channel; /**< filled in by sim_link_send() */
  int64_t due_us;   /**< the same */
  int64_t session;
  int32_t xid;
  int32_t timeout_ms;
  int32_t epoch;
  bool valid;
  size_t log_pos;
  const sim_txn *txn;
  const sim_write_request *request;
} sim_message;

/** From one server to another: messages arrive in order, or not at all. */
typedef struct sim_link {
  sim_server *from;
  sim_server *to;
  bool cut;
  int64_t extra_us;
  int64_t last_us; /**< when the last one arrives */
  sim_job job;
  bool delayed; /**< due, but the receiver stands still */
  sim_message *ring;
  size_t first;
  size_t count;
  size_t cap;
} sim_link;

void sim_link_init(sim_link *l, sim_server *from, sim_server *to);
void sim_link_free(sim_link *l);
void sim_link_resume(sim_link *l);
/** On the channel that the sender has to it, unless that is none. */
void sim_send(sim_server *from, unsigned to, const sim_message *m);
/** Hang up; the other side learns it in turn. */
void sim_close_channel(sim_server *from, unsigned to);

/* ---- a server ----------------------------------------------------------- */

typedef enum sim_role { SIM_LOOKING, SIM_FOLLOWING, SIM_LEADING } sim_role;

/** What a server does by the clock. */
enum sim_task {
  SIM_TASK_DISK,
  SIM_TASK_ELECT,
  SIM_TASK_TICK,          /**< leader: ping, count followers, each half tick */
  SIM_TASK_EXPIRE,        /**< leader */
  SIM_TASK_DELETE_UNUSED, /**< leader: containers */
  SIM_TASK_SILENCE,       /**< follower: nothing heard from its leader */
  SIM_TASK_IDLE,          /**< connections without traffic */
  SIM_TASK_READ_ONLY,     /**< it has had no leader for a while */
  SIM_TASKS
};

typedef struct sim_timer {
  sim_job job;
  sim_server *server;
  enum sim_task task;
  bool missed; /**< due, but the server stands still */
} sim_timer;

/** What a leader knows of another server. */
typedef struct sim_follower {
  bool joined;        /**< gets proposals */
  bool accepted;      /**< has all that came before */
  size_t acked;       /**< its log, as far as it told */
  int64_t until_tick; /**< then it is late */
} sim_follower;

typedef struct sim_pending_sync {
  unsigned server;
  int64_t session;
  int32_t xid;
  size_t log_pos; /**< when the log is committed up to here */
} sim_pending_sync;

typedef struct sim_touch {
  int64_t session;
  int32_t timeout_ms;
} sim_touch;

struct sim_server {
  sim_ensemble *ensemble;
  unsigned index;
  char name[20];
  sim_rng rng;
  bool runs;
  bool stopped;
  sim_role role;
  bool serves;
  sim_timer timers[SIM_TASKS];
  sim_job continue_job;    /**< go on after having stood still */
  int64_t clock_offset_ms; /**< its clock is that much off */
  int64_t last_session; /**< id given */
  int close_early;      /**< by how many it is so */
  bool read_only;       /**< it has no quorum, and serves reads */
  bool older;           /**< it does not know all requests */
  int32_t bounds_ms[2]; /**< of session timeouts that it grants */

  /* what it knows */
  sim_tree tree;
  const sim_txn **log;
  size_t count; /**< of its log */
  size_t cap;
  size_t logged;  /**< on disk */
  size_t logging; /**< on disk when the disk is done */
  size_t applied;
  int32_t epoch;          /**< of the leader it had last */
  int32_t promised_epoch; /**< the highest it has heard of */

  /* whom it serves */
  lk_link conns;
  sim_watches watches;
  sim_pipeline pipeline;

  /* others: channel 0 is none */
  uint32_t channels[SIM_MOST_SERVERS];

  /* following */
  unsigned leader;
  int64_t leader_heard_us;
  sim_touch *touches;
  size_t ntouches;
  size_t touches_cap;

  /* leading */
  bool established; /**< a quorum has accepted */
  bool half_tick;   /**< the next ping is half a tick after a whole one */
  int64_t tick;
  int64_t next_zxid;
  size_t committed;
  sim_follower followers[SIM_MOST_SERVERS];
  sim_outstanding outstanding;
  sim_tracker tracker;
  sim_pending_sync *syncs; /**< oldest first */
  size_t nsyncs;
  size_t syncs_cap;
};

void sim_server_init(sim_server *s);
/** In the server's own milliseconds. */
int64_t sim_server_now_ms(const sim_server *s);
void sim_server_schedule(sim_server *s, enum sim_task task, int64_t in_us);
void sim_server_cancel(sim_server *s, enum sim_task task);
void sim_follower_add_touch(sim_server *s, int64_t session, int32_t timeout_ms);

/* log.c */
void sim_log_add(sim_server *s, const sim_txn *x);
void sim_log_truncate(sim_server *s, size_t count);
void sim_log_flushed(sim_server *s);       /**< the disk is done */
int64_t sim_log_zxid(const sim_server *s); /**< of the last one, or 0 */

/* election.c */
/** Serve nobody, follow nobody, look for a leader. */
void sim_enter_looking(sim_server *s, const char *why);
void sim_enter_following(sim_server *s, unsigned leader);
void sim_enter_leading(sim_server *s, int32_t epoch);
void sim_elect(sim_server *s);

/* leader.c */
void sim_leader_start(sim_server *s); /**< become one: see to what it needs */
void sim_leader_receive(sim_server *s, unsigned from, const sim_message *m);
void sim_leader_tick(sim_server *s);
void sim_leader_delete_unused(sim_server *s);
/** `from`: the server that passed it on. */
void sim_leader_propose(sim_server *s, const sim_write_request *request,
                        int from);
void sim_leader_on_logged(sim_server *s);
void sim_leader_drop_follower(sim_server *s, unsigned follower);
void sim_leader_receive_sync(sim_server *s, unsigned from, int64_t session,
                             int32_t xid);

/* follower.c */
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
  sim_link *links;  /**< from * count + to */
  lk_arena arena;   /**< lasts as long as the ensemble */
  lk_arena scratch; /**< for decoding one request */
  sim_paths paths;
  uint32_t channels; /**< given so far */
  sim_tree committed_tree;
  const sim_txn **history; /**< of the truth */
  size_t committed;
  size_t history_cap;
  unsigned char *frame; /**< where a reply is put together */
  size_t frame_cap;
  lk_stat *stats; /**< of the parts of the transaction at hand */
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

/** The log of `s` up to `end` can never be undone. */
void sim_ensemble_commit(sim_ensemble *e, const sim_server *s, size_t end);
/** "1:5": epoch and number. Good until four more were asked for. */
const char *sim_zxid_text(int64_t zxid);
/** What a transaction did, in words, for the trace. */
const char *sim_txn_text(const sim_txn *x);

#endif
