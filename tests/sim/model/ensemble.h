/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_ENSEMBLE_H
#define LK_SIM_MODEL_ENSEMBLE_H

#include "sim/model/agenda.h"
#include "sim/model/rng.h"
#include "sim/model/trace.h"
#include "sim/model/tree.h"

/**
 * A ZooKeeper ensemble on virtual time: a leader that orders transactions, and
 * servers that apply them later, each with a tree, sessions, watches and
 * connections of its own, on the real wire format. What it takes over from the
 * truth (ZooKeeper 3.8) is said where it is done; the differential test holds
 * it to that. It leaves out observers, local sessions and read-only servers,
 * TLS and SASL, quotas, snapshots, disks that fail, and the time that a server
 * takes to think: what it can do, it has done in the same moment, a request
 * after the other. Reconfiguration is switched off, as in servers as they come.
 *
 * Where to look: conn.c (frames, handshake), pipeline.c (order of requests),
 * reads.c, watching.c, serve.c (answers), decide.c and head.c (what the leader
 * makes of a write), txn.c and tree.c (what comes of it), watches.c, tracker.c
 * (sessions), leader.c, follower.c, log.c, links.c, election.c, server.c (its
 * clock and its end).
 */
typedef struct sim_ensemble sim_ensemble;
typedef struct sim_server sim_server;
typedef struct sim_conn sim_conn;

/** Whatever is 0 is as usual. */
typedef struct sim_ensemble_config {
  unsigned servers;         /**< 3 */
  int32_t tick_ms;          /**< 2,000 */
  int32_t sync_limit;       /**< ticks; 5 */
  int32_t min_timeout_ms;   /**< 2 ticks */
  int32_t max_timeout_ms;   /**< 20 ticks */
  int32_t sweep_ms;         /**< of containers and TTL nodes; 60,000 */
  bool ttls;                /**< extended types are on: nodes can have a TTL */
  const char *members;      /**< what /zookeeper/config says; NULL: nothing, as
                                 of a server alone; lasts as long */
  int64_t peer_delay_us[2]; /**< least and most between servers; 100, 1,000 */
  int64_t disk_delay_us[2]; /**< until a proposal is logged; 50, 500 */
  int64_t election_us[2];   /**< 20,000, 200,000 */
  int64_t epoch_ms;         /**< the leader's wall clock at the start */
  int32_t first_epoch;      /**< 0 */
  int64_t read_only_after_us; /**< a server that has looked for a leader for so
                         long serves reads; 0: it never does */
} sim_ensemble_config;

/** What a committed transaction was: told once, in order of zxid, when it is
    certain that no leader will ever be without it. */
typedef struct sim_commit {
  int64_t zxid;
  int64_t session; /**< who asked; 0: the ensemble itself */
  int32_t xid;     /**< 0: none */
  int32_t op;      /**< opcode: 1 create, ... -10, -11 sessions */
  int err;         /**< a failed write is a transaction, too */
} sim_commit;

typedef struct sim_ensemble_hooks {
  /** `committed_tree` is the tree after it; `changes` of it are in
   * sim_tree_change's. */
  void (*committed)(const sim_commit *commit, const sim_tree *committed_tree,
                    void *arg);
  /** A node came or went, with its transaction; called before `committed`. */
  void (*created)(const sim_node *node, void *arg);
  void (*deleted)(const sim_node *node, int64_t zxid, void *arg);
  /** Its data were, its access list was, replaced; the same. */
  void (*data_set)(const sim_node *node, void *arg);
  void (*access_set)(const sim_node *node, int64_t zxid, void *arg);
  /** A session's end was committed. */
  void (*session_ended)(int64_t session, bool expired, void *arg);
  /** The leader granted this timeout to a client that resumes the session; the
      reply may never reach it. */
  void (*session_resumed)(int64_t session, int32_t timeout_ms, void *arg);
  void *arg;
} sim_ensemble_hooks;

sim_ensemble *sim_ensemble_new(const sim_ensemble_config *config,
                               sim_agenda *agenda, sim_rng rng,
                               sim_trace *trace,
                               const sim_ensemble_hooks *hooks);
void sim_ensemble_free(sim_ensemble *e);

unsigned sim_ensemble_size(const sim_ensemble *e);
sim_server *sim_ensemble_server(sim_ensemble *e, unsigned i);
/** Which server leads, with a quorum that follows it; -1: none. */
int sim_ensemble_leader(const sim_ensemble *e);
/** All that is certainly committed. */
const sim_tree *sim_ensemble_committed_tree(const sim_ensemble *e);

/* ---- clients' connections ----------------------------------------------- */

typedef struct sim_conn_hooks {
  /** Bytes for the client, after those before. */
  void (*output)(const void *bytes, size_t len, void *arg);
  /** The server closed it, after the bytes before; it is void. Perhaps from
      within sim_conn_input(), never for sim_conn_close(). */
  void (*closed)(void *arg);
  void *arg;
} sim_conn_hooks;

/** A client's connection reached a server. NULL: refused; the process is not
    there. A server that does not serve takes it and closes it. */
sim_conn *sim_server_accept(sim_server *s, const sim_conn_hooks *hooks);
/** Its client has a chroot (kept by the caller): what it calls by paths below
    that is the tree's without it. */
void sim_conn_chroot(sim_conn *c, const char *chroot);
void sim_conn_input(sim_conn *c, const void *bytes, size_t len);
/** The client's side is gone, and the server learnt it; `c` is void. A server
    that is never told keeps it until it notices silence, as the real one. */
void sim_conn_close(sim_conn *c);

/* ---- what can go wrong -------------------------------------------------- */

/** The process dies and loses what was not logged; or comes back. */
void sim_server_crash(sim_server *s);
void sim_server_start(sim_server *s);
bool sim_server_runs(const sim_server *s);
/** Whether it serves clients now: it leads or follows, and does not stand
    still. */
bool sim_server_serves(const sim_server *s);
/** All servers die and lose all that they had; the next leader's epoch comes
    after `epoch`, which is smaller than all before. The hooks are told that all
    sessions have ended and all nodes are gone, with INT64_MAX for a zxid. */
void sim_ensemble_wipe(sim_ensemble *e, int32_t epoch);
/** How many transactions there have been since it last began anew. */
size_t sim_ensemble_committed(const sim_ensemble *e);
/** Right after a wipe: the first `count` transactions from before it come back,
    with epochs that are smaller by `epochs`, as from a snapshot. The hooks are
    told of all of them once more. Sessions of that time live until they run
    out. */
void sim_ensemble_restore(sim_ensemble *e, size_t count, int32_t epochs);
/** It grants session timeouts within these bounds from now on; 0: the
    ensemble's. */
void sim_server_limit_timeouts(sim_server *s, int32_t min_ms, int32_t max_ms);
/** It closes connections right after the handshake; `more` 1 and -1, which add
    up. */
void sim_server_close_early(sim_server *s, int more);
bool sim_server_closes_early(const sim_server *s);
/** Answer the next `count` setWatches with -127. */
void sim_server_throttle_watches(sim_server *s, unsigned count);
/** Whether it is of a version that does not know the rarer reads, nor
    removeWatches: it answers those with UNIMPLEMENTED ahead of what came
    before, and closes. */
void sim_server_set_older(sim_server *s, bool older);
/** It stands still (SIGSTOP, a long collection) until it is let go on. */
void sim_server_stop(sim_server *s);
void sim_server_continue(sim_server *s);
bool sim_server_is_stopped(const sim_server *s);
/** Messages between two servers are held back until the link is whole again;
    after sync_limit ticks both have given it up. */
void sim_link_cut(sim_ensemble *e, unsigned a, unsigned b, bool cut);
/** More delay between two servers, so that a follower lags. */
void sim_link_slow(sim_ensemble *e, unsigned a, unsigned b, int64_t extra_us);
/** Whether none is cut. */
bool sim_links_whole(const sim_ensemble *e);
/** What the slowest of them takes more. */
int64_t sim_links_slowest_us(const sim_ensemble *e);
/** Answer the next `count` requests with -127, each with a chance of one in
    two; but pings and closeSession. */
void sim_server_throttle(sim_server *s, unsigned count);

/* ---- an operator; each goes through the leader, like anybody's write ---- */

/** Each returns false if nobody leads. They fail silently where a client's
    request would. */
bool sim_operator_create(sim_ensemble *e, const char *path, const char *data,
                         int32_t flags, bool container);
bool sim_operator_delete(sim_ensemble *e, const char *path);
bool sim_operator_set(sim_ensemble *e, const char *path, const char *data);
/** Deny permissions (1 read, 4 create, 8 delete, …) of a node to all. */
bool sim_operator_deny(sim_ensemble *e, const char *path, int32_t perms);
/** The counter of sequence numbers of a node; as a restored snapshot has. */
void sim_operator_set_counter(sim_ensemble *e, const char *path,
                              int32_t counter);
/** The leader ends a session now. */
bool sim_operator_expire(sim_ensemble *e, int64_t session);

/* ---- for the judge ------------------------------------------------------ */

/** Watches on all servers of all sessions. */
size_t sim_ensemble_watches(const sim_ensemble *e);
/** Whether a session lives by what is committed. */
bool sim_ensemble_session_is_alive(const sim_ensemble *e, int64_t session);

#endif
