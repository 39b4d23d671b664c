/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_MODEL_SERVER_H
#define LK_SUPPORT_MODEL_SERVER_H

#include "sim/model/model.h"
#include "support/failing_mem.h"

/**
 * One ZooKeeper server in memory, its clients, and their clock, for unit tests:
 * an adapter of the model in tests/sim/model, which the differential test
 * compares with real servers. It drives the clients as an event loop does,
 * without threads or sockets, and injects faults: at the n-th request of a
 * client, or for as long as a flag is set.
 *
 * Time stands still unless a test moves it; nothing happens unless a test calls
 * model_turn() or model_run(). For the server no time passes at all, so that no
 * session expires and no container is deleted, unless `expires` is set. Each
 * request is executed before the next one is read. The test aborts when a
 * client breaks the protocol.
 */
typedef struct model_server model_server;

/** A client and its connection. */
typedef struct model_link {
  struct model_link *next;
  model_server *server;
  lk_client *client; /**< NULL: freed */
  sim_conn *conn;    /**< the server's side; NULL: none, or closed by it */
  uint64_t attempt;
  bool up;
  bool greeted;         /**< the connect request was read */
  bool closed_by_server; /**< the server closed; the client gets the end after
                     `out` */
  int64_t session;      /**< of the connection */
  int64_t last_session; /**< of the last one */
  int32_t timeout_ms;
  lk_buf in;       /**< to the server */
  lk_buf out;      /**< to the client */
  char log[16384]; /**< requests by name, writes set apart by " | "; no
                        pings, no identities */
  bool logged_connect;

  /* Faults. Requests are counted from 1 once the test sets them. */
  unsigned requests;    /**< executed or cut so far, but pings and auth */
  unsigned cut_at;      /**< break the connection at this request */
  bool cut_after;       /**< once it has been executed */
  bool cut_softly;      /**< earlier replies still arrive */
  unsigned throttle_at; /**< answer this one with THROTTLED */
  unsigned answer_at;   /**< answer this one with `answer_err`, unexecuted */
  int answer_err;
  bool frozen;  /**< the server reads nothing */
  size_t allow; /**< bytes that still arrive at the client */
  size_t step;  /**< most bytes delivered at once; 0: all */
} model_link;

struct model_server {
  sim_agenda agenda; /**< the server's time */
  sim_trace trace;
  sim_ensemble *ensemble; /**< of one server */
  int64_t now;            /**< ms */
  int64_t clock_step_ms;  /**< added to `now` at each reading of the clock */
  int64_t then;  /**< `now` when the server's time was last moved */
  uint64_t seed;
  model_link *links;
  bool expires;      /**< time passes for the server, too */
  int64_t read_only_session; /**< the last session of a read-only server */
  bool strict;       /**< exists needs READ, as in patched servers */

  /* Faults. */
  bool down;          /**< connections are refused */
  bool no_containers; /**< a server before 3.5.1 */
  bool no_ephemerals; /**< a server before 3.6 */
  int32_t max_timeout_ms;
  /** Called before each request is executed. May be NULL. */
  void (*before)(model_server *s, model_link *l, int32_t op, const char *path);
  /** Executes a request in the place of model_serve(), which it may call. May
     be NULL. */
  bool (*serve)(model_link *l, lk_bytes frame);
  /** Called after each write of a client, with the names of its requests. May
      be NULL. */
  void (*wrote)(model_server *s, model_link *l, const char *names);
};

void model_init(model_server *s);
/** Frees clients that are left. */
void model_done(model_server *s);
/** A client of the server; `config` without hosts. NULL: no memory. */
model_link *model_client(model_server *s, lk_client_config *config);
/** Run server and clients until nothing more happens at this time. */
void model_turn(model_server *s);
/** Let only this client read its received bytes. false: there are none. */
bool model_deliver(model_link *l);
/** Let `ms` pass. */
void model_run(model_server *s, int64_t ms);

/* For clients at the other end of a socket; see unit/fake/loopback.h. */
/** An established connection. Bytes for its client are in `out`. */
model_link *model_accept(model_server *s);
/** Serve a whole frame, with its length, that has come from there. */
void model_take(model_link *l, lk_bytes frame);
/** The client closed that connection. */
void model_hang_up(model_link *l);

/** Break the connection; the client reconnects in the next turn or soon after.
 */
void model_drop(model_link *l);
/** End a session; its client learns it when it connects. */
void model_expire(model_server *s, int64_t session);
/** The server loses its quorum, closes all connections and serves reads to
    clients that accept that; or it has its quorum again. */
void model_lose_quorum(model_server *s);
void model_regain_quorum(model_server *s);

/* Acts of an operator; each must succeed. */
void model_create(model_server *s, const char *path);
/** An ephemeral of a session, which begins with it if it does not live. */
void model_create_ephemeral(model_server *s, const char *path, const char *data,
                            int64_t session);
void model_delete(model_server *s, const char *path);
void model_set(model_server *s, const char *path, const char *data);
/** No client has these permissions of the node, and all have the others. */
void model_deny(model_server *s, const char *path, int32_t perms);
/** The same for each ephemeral of a session. */
void model_deny_owned(model_server *s, int64_t session, int32_t perms);
/** Show the node as if it was made before all others. */
void model_backdate(model_server *s, const char *path);
/** The counter of sequence numbers of a node. */
void model_counter(model_server *s, const char *path, int32_t counter);
/** Delete empty containers, as servers do from time to time. */
void model_sweep(model_server *s);
/** Watches of the connection are forgotten; or how many there are. */
void model_drop_watches(model_link *l);
size_t model_watches(const model_link *l);

/** NULL: there is none. */
const sim_node *model_node(const model_server *s, const char *path);
/** Its access list: "31 world anyone, ...". Until the next call. */
const char *model_acl(const model_server *s, const char *path);
/** How many children `path` has; 0 also if there is no such node. */
size_t model_children(const model_server *s, const char *path);
/** The full path of the child with the i-th lowest number, or NULL. */
const char *model_child(const model_server *s, const char *path, size_t i);
/** The path of any ephemeral, or NULL. */
const char *model_ephemeral(const model_server *s);

/* Between model_server.c and model_client.c. */
/** Read the connect request, in a frame without its length. */
void model_read_connect(model_link *l, lk_bytes frame);
/** A request came, in a frame without its length. false: the connection ends
    here. */
bool model_serve(model_link *l, lk_bytes frame);
/** Let time pass for the server if `expires` says so. */
void model_keep_time(model_server *s);
/** When the server does something by itself, INT64_MAX: never. */
int64_t model_next_event(const model_server *s);

/** Whether the log is exactly `text`; empties it in any case. */
bool model_check_log(model_link *l, const char *text);
/** How often a request of that name stands in the log. */
unsigned model_count(const model_link *l, const char *name);

#endif
