/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_MODEL_SERVER_H
#define LK_SUPPORT_MODEL_SERVER_H

#include "sim/model/model.h"
#include "support/failing_mem.h"

/**
 * One ZooKeeper server in memory, with its clients and their clock, for unit
 * tests. The server is the model in tests/sim/model, which the differential
 * test compares with real servers. The functions here drive the clients as an
 * event loop does, without threads or sockets. They inject faults at the n-th
 * request of a client, or for as long as a flag is set.
 *
 * Nothing happens and no time passes unless a test calls model_turn() or
 * model_run(). The server's own clock stands still even then, so that no
 * session expires and no container is deleted, unless `expires` is set. The
 * server executes each request before it reads the next one. The test aborts if
 * a client breaks the protocol.
 */
typedef struct model_server model_server;

/** A client and its connection. */
typedef struct model_link {
  struct model_link *next;
  model_server *server;
  lk_client *client; /**< NULL: freed */
  sim_conn *conn;    /**< the server's side; NULL: not connected, or closed by
                          the server */
  uint64_t attempt;  /**< the lk_want.attempt of the connection */
  char host[16];     /**< the server's name in this attempt */
  bool up;           /**< the client is connected */
  bool greeted;      /**< the server has read the connect request */
  bool closed_by_server; /**< the client still gets the bytes in `out`, and then
                              the end */
  int64_t session;       /**< the session of the connection */
  int64_t last_session;  /**< the last session with a quorum */
  int32_t timeout_ms;
  lk_buf in;           /**< bytes for the server */
  lk_buf out;          /**< bytes for the client */
  char log[16384];     /**< the names of the requests, with " | " between two
                            writes; without pings and identities */
  bool logged_connect; /**< the connect request is in the log */

  /* Faults. A test sets `requests` to 0 to count from then on. */
  unsigned requests;    /**< requests executed or cut, without ping and auth */
  unsigned cut_at;      /**< the number of the request at which the connection
                             breaks; 0: none */
  bool cut_after;       /**< it breaks after the request was executed */
  bool cut_softly;      /**< replies to earlier requests still arrive */
  unsigned throttle_at; /**< the number of the request that is answered with
                             THROTTLED; 0: none */
  unsigned answer_at;   /**< the number of the request that is answered with
                             `answer_err`, and not executed; 0: none */
  int answer_err;
  int multi_err; /**< each multi is answered with this error in each of its
                      results, and not executed; 0: none */
  bool frozen;   /**< the server reads nothing */
  bool freed;    /**< the client was freed */
  size_t allow;  /**< how many bytes still arrive at the client */
  size_t step;   /**< the most bytes delivered at once; 0: no limit */
} model_link;

struct model_server {
  sim_agenda agenda; /**< the server's time */
  sim_trace trace;
  sim_ensemble *ensemble; /**< has one server */
  int64_t now;            /**< the clients' clock, in ms */
  int64_t clock_step_ms;  /**< added to `now` at each reading of the clock */
  int64_t then;           /**< `now` when the server's time was last moved */
  uint64_t seed;          /**< of the clients' random bytes */
  model_link *links;
  bool expires;              /**< time passes for the server, too */
  int64_t read_only_session; /**< the last session of a read-only server */
  bool strict; /**< exists needs the permission READ, as in patched servers */

  /* Faults. */
  bool down;          /**< connections are refused */
  bool no_containers; /**< as a server before 3.5.1 */
  bool no_ephemerals; /**< as a server before 3.6: no getEphemerals */
  int32_t max_timeout_ms;
  const char *hosts;  /**< the connect string of clients that are made from now
                           on; NULL: one server. All its names, of less than 16
                           characters, lead to this server. */
  const char *silent; /**< connections to this name are accepted, and nothing is
                           read from them; "*": to any name; NULL: to none */
  const char *unreachable; /**< connection attempts to this name stay without a
                                result; NULL: those to none */
  /** Called before each request is executed. May be NULL. */
  void (*before)(model_server *s, model_link *l, int32_t op, const char *path);
  /** Called instead of model_serve(), which it may call. May be NULL. */
  bool (*serve)(model_link *l, lk_bytes frame);
  /** Called after each write of a client, with the names of its requests. May
      be NULL. */
  void (*wrote)(model_server *s, model_link *l, const char *names);
};

void model_init(model_server *s);
/** Free the server and the clients that are left. */
void model_done(model_server *s);
/** Make a client of the server; `config` has no hosts. NULL: no memory. */
model_link *model_client(model_server *s, lk_client_config *config);
/** Run server and clients until nothing more happens at this time. */
void model_turn(model_server *s);
/** Deliver the bytes for this client, and nothing else. false: there are none.
 */
bool model_deliver(model_link *l);
/** Let `ms` pass. */
void model_run(model_server *s, int64_t ms);

/* For clients at the other end of a socket; see unit/fake/loopback.h. */
/** Accept a connection. The bytes for its client are in model_link.out. */
model_link *model_accept(model_server *s);
/** Serve a frame with its length, which has come from the client. */
void model_take(model_link *l, lk_bytes frame);
/** The client has closed the connection. */
void model_hang_up(model_link *l);

/** Break the connection; the client reconnects in the next turn or soon after.
 */
void model_drop(model_link *l);
/** End a session; its client learns of the end when it connects again. */
void model_expire(model_server *s, int64_t session);
/** The server loses its quorum and closes all connections. From then on it
    serves reads to clients that accept a read-only server. */
void model_lose_quorum(model_server *s);
/** The server has a quorum again. */
void model_regain_quorum(model_server *s);

/* Acts of an operator; each must succeed. */
void model_create(model_server *s, const char *path);
/** Create an ephemeral of a session, which is created if it does not exist. */
void model_create_ephemeral(model_server *s, const char *path, const char *data,
                            int64_t session);
void model_delete(model_server *s, const char *path);
void model_set(model_server *s, const char *path, const char *data);
/** Take these permissions of the node from all clients, and give them all
    others. */
void model_deny(model_server *s, const char *path, int32_t perms);
/** model_deny() for each ephemeral of a session. */
void model_deny_owned(model_server *s, int64_t session, int32_t perms);
/** Give the node a czxid as if it was created before all others. */
void model_backdate(model_server *s, const char *path);
/** Set the counter for the sequence numbers of the node's children. */
void model_counter(model_server *s, const char *path, int32_t counter);
/** Delete empty containers, as servers do from time to time. */
void model_sweep(model_server *s);
/** Have the server forget the watches of the connection. */
void model_drop_watches(model_link *l);
/** The number of watches of the connection. */
size_t model_watches(const model_link *l);

/** The node at `path`; NULL: it does not exist. */
const sim_node *model_node(const model_server *s, const char *path);
/** The access list of a node as "31 world anyone, ...", valid until the next
    call. */
const char *model_acl(const model_server *s, const char *path);
/** How many children `path` has; 0 also if there is no such node. */
size_t model_children(const model_server *s, const char *path);
/** The path of the child with the i-th lowest sequence number, or NULL. */
const char *model_child(const model_server *s, const char *path, size_t i);
/** The path of any ephemeral, or NULL. */
const char *model_ephemeral(const model_server *s);

/* Shared by model_server.c and model_client.c. Frames have no length. */
/** Serve the connect request. */
void model_read_connect(model_link *l, lk_bytes frame);
/** Serve a request. false: the connection breaks at this request. */
bool model_serve(model_link *l, lk_bytes frame);
/** Move the server's time to `now`, if `expires` is set. */
void model_keep_time(model_server *s);
/** The time at which the server next does something by itself; INT64_MAX:
    never. */
int64_t model_next_event(const model_server *s);

/** Whether the log is exactly `text`; empties it in any case. */
bool model_check_log(model_link *l, const char *text);
/** How many requests with that name are in the log. */
unsigned model_count(const model_link *l, const char *name);

#endif
