/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_ENSEMBLE_H
#define LK_SIM_MODEL_ENSEMBLE_H

#include "sim/model/agenda.h"
#include "sim/model/rng.h"
#include "sim/model/trace.h"
#include "sim/model/tree.h"
#include "support/server_version.h"

/**
 * A ZooKeeper ensemble on virtual time, with the real wire format. A leader
 * orders transactions. Each server applies them later to its own tree, and has
 * its own sessions, watches and connections. Behaviour taken from ZooKeeper 3.8
 * is described where it is implemented. The differential test compares it with
 * real servers.
 *
 * Not modelled: observers, local sessions, TLS, SASL, quotas, snapshots,
 * failing disks and processing time. A server handles one request after the
 * other, each in no time. Reconfiguration is disabled, as by default.
 *
 * Files: conn.c (frames, handshake), pipeline.c (order of requests), reads.c,
 * watch_requests.c, serve.c (replies), prepare.c and outstanding.c (the
 * leader's validation of writes), txn.c and tree.c (application of
 * transactions), watches.c, tracker.c (session expiry), read_only.c, leader.c,
 * follower.c, client.c, links.c, election.c, server.c (timers, crash, stop).
 */
typedef struct sim_ensemble sim_ensemble;
typedef struct sim_server sim_server;
typedef struct sim_conn sim_conn;

/** The configuration of an ensemble. 0 selects the default, which is the number
    at the end of a comment. */
typedef struct sim_ensemble_config {
  unsigned servers; /**< number of servers; 3 */
  int32_t tick_ms;  /**< length of a tick; 2,000 */
  /** ticks after which a silent server counts as lost; 5 */
  int32_t sync_limit;
  int32_t min_timeout_ms; /**< 2 ticks */
  int32_t max_timeout_ms; /**< 20 ticks */
  int32_t sweep_ms; /**< interval of deleting empty containers and expired TTL
                       nodes; 60,000 */
  bool ttls;        /**< extended types are enabled: nodes can have a TTL */
  const char *members; /**< content of /zookeeper/config, kept by the caller;
                          NULL: empty, as on a standalone server */
  int64_t peer_delay_us[2]; /**< message delay between servers, minimum and
                               maximum; 100, 1,000 */
  int64_t disk_delay_us[2]; /**< time of a log write, minimum and maximum; 50,
                               500 */
  int64_t election_us[2];   /**< interval of polling during an election; 20,000,
                               200,000 */
  int64_t wall_clock_start_ms; /**< the leader's wall clock at simulated time 0;
                                  1,800,000,000,000 */
  int32_t first_epoch; /**< epoch of zxids before the first election; 0 */
  int64_t read_only_after_us; /**< time without a leader after which a server
                                 becomes read-only; 0: never */
  const char *version;    /**< of ZooKeeper, as for server_changes_of(); NULL:
                             Debian's 3.8.0. With two versions, as in
                             "3.5.10+3.9.6", the servers have them in turn */
  bool no_local_sessions; /**< a read-only server of 3.7.0 or newer refuses new
                             sessions */
} sim_ensemble_config;

/** A committed transaction. Each is reported once, in the order of zxids, when
    a quorum has logged it. */
typedef struct sim_commit {
  int64_t zxid;
  int64_t session; /**< session of the request; 0: the ensemble itself */
  int32_t xid;     /**< 0: none */
  int32_t op;      /**< opcode; -10 createSession, -11 closeSession */
  /** 0, or why the write failed: a failed write is a transaction, too */
  int err;
} sim_commit;

typedef struct sim_ensemble_hooks {
  /** A transaction was committed; `committed_tree` is the tree after it. */
  void (*committed)(const sim_commit *commit, const sim_tree *committed_tree,
                    void *arg);
  /** A node was created or deleted by a transaction; called before
      `committed`. */
  void (*created)(const sim_node *node, void *arg);
  void (*deleted)(const sim_node *node, int64_t zxid, void *arg);
  /** The data, or the access list, of a node was replaced; called before
      `committed`. */
  void (*data_set)(const sim_node *node, void *arg);
  void (*access_set)(const sim_node *node, int64_t zxid, void *arg);
  /** The end of a session was committed. */
  void (*session_ended)(int64_t session, bool expired, void *arg);
  /** The leader granted this timeout to a client that resumed the session. The
      reply may be lost. */
  void (*session_resumed)(int64_t session, int32_t timeout_ms, void *arg);
  void *arg;
} sim_ensemble_hooks;

sim_ensemble *sim_ensemble_new(const sim_ensemble_config *config,
                               sim_agenda *agenda, sim_rng rng,
                               sim_trace *trace,
                               const sim_ensemble_hooks *hooks);
void sim_ensemble_free(sim_ensemble *e);

/** Whether all servers of such an ensemble have the change; `version` as in
    sim_ensemble_config. */
bool sim_versions_all_have(const char *version, enum server_difference d);
/** Whether at least one of two versions has it. */
bool sim_versions_any_has(const char *version, enum server_difference d);

unsigned sim_ensemble_size(const sim_ensemble *e);
sim_server *sim_ensemble_server(sim_ensemble *e, unsigned i);
/** The index of the leader that a quorum follows; -1: none. */
int sim_ensemble_leader(const sim_ensemble *e);
/** The tree after all committed transactions. */
const sim_tree *sim_ensemble_committed_tree(const sim_ensemble *e);

/* ---- clients' connections ----------------------------------------------- */

typedef struct sim_conn_hooks {
  /** Bytes for the client, in order. */
  void (*output)(const void *bytes, size_t len, void *arg);
  /** The server closed the connection, and the caller must not use it any more.
      May be called within sim_conn_input(), never within sim_conn_close(). */
  void (*closed)(void *arg);
  void *arg;
} sim_conn_hooks;

/** A client connects to a server. NULL: the connection is refused, since the
    server's process does not run. A server that runs but does not serve accepts
    the connection and closes it. */
sim_conn *sim_server_accept(sim_server *s, const sim_conn_hooks *hooks);
/** The chroot of the client, kept by the caller. The model's tree does not
    contain it: CHROOT/a of the client is /a of the tree. */
void sim_conn_chroot(sim_conn *c, const char *chroot);
void sim_conn_input(sim_conn *c, const void *bytes, size_t len);
/** The client has closed the connection, and the server notices. If the server
    is not to notice, the caller does not call this; the server then closes the
    connection when it has been idle for long. */
void sim_conn_close(sim_conn *c);
/** Whether the connection gets no more replies; see sim_server_mute(). */
bool sim_conn_is_mute(const sim_conn *c);

/* ---- faults ------------------------------------------------------------- */

/** The server's process dies and loses all that is not on its disk;
    sim_server_start() restarts it. */
void sim_server_crash(sim_server *s);
void sim_server_start(sim_server *s);
bool sim_server_runs(const sim_server *s);
/** Whether the server accepts requests: it leads or follows, and is not
    stopped. */
bool sim_server_serves(const sim_server *s);
/** All servers crash and lose their data. The next leader's epoch follows
    `epoch`, which must be smaller than all earlier epochs. The hooks report the
    end of all sessions and the deletion of all nodes, with zxid INT64_MAX. */
void sim_ensemble_wipe(sim_ensemble *e, int32_t epoch);
/** The number of transactions since the start or the last wipe. */
size_t sim_ensemble_committed(const sim_ensemble *e);
/** Right after a wipe: restore the first `count` transactions from before it,
    as from a snapshot. Their epochs are reduced by `epochs`. The hooks report
    all of them again. Restored sessions expire unless their clients resume
    them. */
void sim_ensemble_restore(sim_ensemble *e, size_t count, int32_t epochs);
/** Grant session timeouts within these bounds; 0: the bounds of the
    ensemble. */
void sim_server_limit_timeouts(sim_server *s, int32_t min_ms, int32_t max_ms);
/** Close connections right after the handshake. Calls with 1 and -1 are
    counted; connections are closed while the sum is above 0. */
void sim_server_close_early(sim_server *s, int more);
bool sim_server_closes_early(const sim_server *s);
/** Send handshakes and replies to pings alone. Calls with 1 and -1 are counted,
    and the sum counts. A connection on which a reply was withheld gets no other
    reply but those to pings. */
void sim_server_mute(sim_server *s, int more);
bool sim_server_is_mute(const sim_server *s);
/** Answer the next `count` setWatches with THROTTLED (-127). */
void sim_server_throttle_watches(sim_server *s, unsigned count);
/** Make the server one of an older version, without removeWatches and some rare
    reads. It answers these with UNIMPLEMENTED, ahead of earlier requests, and
    closes the connection. */
void sim_server_set_older(sim_server *s, bool older);
/** Stop the process (SIGSTOP, a long garbage collection) until
    sim_server_continue(). */
void sim_server_stop(sim_server *s);
void sim_server_continue(sim_server *s);
bool sim_server_is_stopped(const sim_server *s);
/** Hold back messages between two servers until the link is restored. After
    sync_limit ticks both consider the other one lost. */
void sim_link_cut(sim_ensemble *e, unsigned a, unsigned b);
void sim_link_restore(sim_ensemble *e, unsigned a, unsigned b);
/** Additional delay between two servers, which makes a follower lag. */
void sim_link_slow(sim_ensemble *e, unsigned a, unsigned b, int64_t extra_us);
/** Whether pings of the clients of server `i` reach the leader soon: the server
    is the leader, or a follower whose link to the leader is not cut. Without a
    leader: whether the server serves. `leader`: what sim_ensemble_leader()
    returns. */
bool sim_server_is_heard(const sim_ensemble *e, unsigned i, int leader);
/** Whether no link is cut. */
bool sim_links_whole(const sim_ensemble *e);
/** The additional delay of the slowest link. */
int64_t sim_links_slowest_us(const sim_ensemble *e);
/** Answer the next `count` requests with THROTTLED (-127), each with
    probability 1/2. Pings and closeSession are not throttled. */
void sim_server_throttle(sim_server *s, unsigned count);
/** The same with another error. */
void sim_server_refuse(sim_server *s, unsigned count, int32_t err);

/* ---- operator: changes that go through the leader ----------------------- */

/** The operator's functions return false if there is no leader. If the
    operation itself fails, for example on a missing node, nothing reports
    it. */
/** Create a persistent node. */
bool sim_operator_create(sim_ensemble *e, const char *path, const char *data);
bool sim_operator_delete(sim_ensemble *e, const char *path);
bool sim_operator_set(sim_ensemble *e, const char *path, const char *data);
/** Take permissions of a node from all clients (1 read, 4 create, 8 delete,
    …). */
bool sim_operator_deny(sim_ensemble *e, const char *path, int32_t perms);
/** Set the counter of sequence numbers of a node on all servers. */
void sim_operator_set_counter(sim_ensemble *e, const char *path,
                              int32_t counter);
/** The leader ends a session now. */
bool sim_operator_expire(sim_ensemble *e, int64_t session);

/* ---- for the checker ---------------------------------------------------- */

/** The number of watches on all servers. */
size_t sim_ensemble_watches(const sim_ensemble *e);
/** Whether the session was created and has not ended, by the committed
    transactions. */
bool sim_ensemble_session_is_alive(const sim_ensemble *e, int64_t session);

#endif
