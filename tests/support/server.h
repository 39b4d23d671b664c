/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_SERVER_H
#define LK_SUPPORT_SERVER_H

#include <latchkey/client.h>

#include "base/buf.h"
#include "support/failing_mem.h"
#include "support/tree.h"

/**
 * One ZooKeeper server in memory, its clients, and their clock: what recipes
 * need of it, on the real wire format. Time stands still unless a test moves
 * it; nothing is done unless a test calls fake_turn() or fake_run(). A test can
 * break things at the n-th request of a client. All aborts where a client does
 * what a server does not take.
 */
typedef struct fake_server fake_server;

typedef struct fake_watch {
  struct fake_watch *next;
  bool children;
  char *path;
} fake_watch;

/** A client and its connection. */
typedef struct fake_link {
  struct fake_link *next;
  fake_server *server;
  lk_client *client; /**< NULL: freed */
  uint64_t attempt;
  bool up;
  bool greeted;         /**< the connect request was answered */
  bool hung_up;         /**< the server closed; told after what is in `out` */
  int64_t session;      /**< of the connection */
  int64_t last_session; /**< of the last one */
  int32_t timeout_ms;
  lk_buf in;  /**< to the server */
  lk_buf out; /**< to the client */
  fake_watch *watches;
  char log[16384]; /**< requests by name, writes set apart by " | "; no pings */
  bool logged_hello;

  /* What goes wrong. Requests are counted from 1 once the test sets them. */
  unsigned requests;    /**< executed or cut so far, without pings */
  unsigned cut_at;      /**< break the connection at this request */
  bool cut_after;       /**< once it has been executed */
  bool cut_softly;      /**< what was answered before it arrives */
  unsigned throttle_at; /**< answer this one with THROTTLED */
  unsigned answer_at;   /**< answer this one with `answer_err`, unexecuted */
  int answer_err;
  bool frozen;  /**< the server looks at nothing */
  size_t allow; /**< bytes that still arrive at the client */
  size_t step;  /**< most bytes delivered at once; 0: all */
} fake_link;

struct fake_server {
  tree nodes;
  int64_t now;   /**< ms */
  int64_t hurry; /**< how much of it passes with each look at the clock */
  uint64_t seed;
  fake_link *links;
  int64_t sessions[64]; /**< those that live; 0: none */
  int64_t touched[64];  /**< when each was heard of */
  bool expires;         /**< sessions end when T has passed since */
  int64_t next_session;
  bool down;          /**< nobody can connect */
  bool no_quorum;     /**< reads alone are served, where that will do */
  int64_t throwaway;  /**< the last session that it gave then */
  bool no_containers; /**< a server before 3.5.1 */
  bool no_ephemerals; /**< a server before 3.6 */
  int32_t max_timeout_ms;
  int32_t timeout_ms; /**< of the last session */
  /** Called before each request is executed. May be NULL. */
  void (*before)(fake_server *s, fake_link *l, int32_t op, const char *path);
  /** Executes a request in the place of fake_serve(), which it may call. May be
      NULL. */
  bool (*serve)(fake_link *l, lk_bytes frame);
  /** Told of each write of a client: the names of its requests. Or NULL. */
  void (*wrote)(fake_server *s, fake_link *l, const char *names);
};

void fake_init(fake_server *s);
/** Frees clients that are left. */
void fake_done(fake_server *s);
/** A client of the server; `config` without hosts. NULL: no memory. */
fake_link *fake_client(fake_server *s, lk_client_config *config);
/** Let everything that can happen now happen. */
void fake_turn(fake_server *s);
/** Let only this client read what has come, if anything has. */
bool fake_deliver(fake_link *l);
/** Let `ms` pass. */
void fake_run(fake_server *s, int64_t ms);

/* For clients at the other end of a socket; see unit/fake/loopback.h. */
/** A connection that is up. What goes to its client is in `out`. */
fake_link *fake_accept(fake_server *s);
/** Serve a whole frame, with its length, that has come from there. */
void fake_take(fake_link *l, lk_bytes frame);

/** Break the connection; it comes back in the next turn or soon after. */
void fake_drop(fake_link *l);
/** End a session; its client learns it when it connects. */
void fake_expire(fake_server *s, int64_t session);

/* What an operator does. */
void fake_create(fake_server *s, const char *path);
void fake_delete(fake_server *s, const char *path);
void fake_set(fake_server *s, const char *path, const char *data);
void fake_deny(fake_server *s, const char *path, int32_t perms);
/** The containers' sweep. */
void fake_sweep(fake_server *s);
/** How many children `path` has; 0 also if there is no such node. */
size_t fake_children(const fake_server *s, const char *path);
/** The full path of the child with the i-th lowest number, or NULL. */
const char *fake_child(const fake_server *s, const char *path, size_t i);

/* Between server.c and link.c. */
bool fake_lives(const fake_server *s, int64_t session);
int64_t fake_new_session(fake_server *s);
/** Its timer begins anew. */
void fake_touch(fake_server *s, int64_t session);
/** End the sessions that are due; the time of the next, INT64_MAX if none. */
int64_t fake_expire_due(fake_server *s);
void fake_drop_watches(fake_link *l);
/** A request came, in a frame without its length. false: the connection ends
    here. */
bool fake_serve(fake_link *l, lk_bytes frame);

/** Whether the log is exactly that; empties it in any case. */
bool fake_said(fake_link *l, const char *text);
/** How often a request of that name stands in the log. */
unsigned fake_count(const fake_link *l, const char *name);

#endif
