/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_PEER_H
#define LK_SUPPORT_PEER_H

#include <latchkey/client.h>

#include "base/buf.h"
#include "support/failing_mem.h"
#include "support/mechanism.h"

/**
 * One client without a network. The test sets the clock, the bytes that the
 * transport accepts, and the bytes that the server sends. The peer logs the
 * client's outputs as text, a line each, and aborts when the client breaks the
 * contract of <latchkey/client.h>: an accepted request completes once and not
 * before it was accepted; which events a watch may report, and when; which
 * state follows which; a driver is woken; no callback follows the free.
 */
typedef struct peer peer;

/** A request, watch, timer or listener of the client under a name. It lives as
    long as the peer. */
typedef struct peer_thing {
  struct peer_thing *next;
  peer *p;
  char name[24];
  bool accepted; /**< a request or a watch that was accepted */
  int ended;     /**< how often it completed */
  bool exists;   /**< an exists, which can leave a watch on a missing node */
  bool standing; /**< a watch whose request succeeded */
  bool telling;  /**< a watch in its last callback */
  bool stays;    /**< a persistent or recursive watch */
  bool tree;     /**< a recursive watch */
  bool attached; /**< a listener */
  bool answers;  /**< a listener that logs replies, too */
  bool marked;   /**< a write whose data is its name, by which it is found */
  bool left;     /**< a marked write that was sent completely */
  char path[64]; /**< of a watch, as requested; "" if longer */
  lk_watch *watch;
  struct peer_thing *watcher; /**< of a request: its watch, or NULL */
  lk_timer timer;
  lk_listener listener;
} peer_thing;

struct peer {
  lk_client *client; /**< NULL: there is none (any more) */
  lk_hooks hooks;
  failing_mem mem;
  int64_t now;
  unsigned char random; /**< every random byte */
  uint64_t seed;        /**< not 0: random bytes are made from it instead */
  bool forked;
  unsigned wakes;
  bool waking; /**< the hook `wake` is running */
  int depth; /**< callbacks on the stack */
  peer_thing *things;
  peer_thing base; /**< the listener that is always attached */
  lk_state state;
  bool resumed;    /**< the client was created with a session */
  bool read_only;  /**< the client accepts read-only servers */
  int64_t session; /**< of a server with a quorum; 0: none, or it expired */
  bool proves;     /**< the client authenticates by SASL */
  fake_mechanism *sasl; /**< in lk_client_config.sasl; or NULL */

  lk_want want;      /**< as last seen */
  uint64_t attempts; /**< the last one that was not 0 */
  uint64_t probe;    /**< of lk_client_want_probe(), as last seen */
  uint64_t probes;   /**< the last one that was not 0 */
  int32_t xid;       /**< last one seen in this session */
  char host[256];
  bool open;   /**< the transport is connected */
  bool eager;  /**< `wake` connects each transport at once */
  size_t room; /**< bytes that the transport still accepts */
  size_t step; /**< most bytes that move at once; 0: all */
  bool mute;   /**< do not log sent requests */
  lk_buf wire; /**< sent bytes of an incomplete frame */
  bool hello;  /**< the first frame is still to come */

  lk_buf log;        /**< the log; its reader empties it */
  int64_t log_now;   /**< time of the last line */
  int64_t log_start; /**< the time that the log shows as 0 */
  /** Called in every callback of the client's, after its line; may do
      anything. `event`: the name of a state, "ok" or the name of an error. */
  void (*react)(peer *p, const char *name, const char *event);
  void *arg; /**< of the peer's user */
};

/** Create the client; `config` without `mem`. Returns the result of
    lk_client_new(). */
int peer_init(peer *p, const lk_client_config *config);
/** Free the client, if it is not freed yet. Checks that all requests have
    completed and all memory is freed. */
void peer_done(peer *p);

/** A line for the log. */
void peer_log_line(peer *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- the driver's part; each sees to what the client then wants --------- */

void peer_settle(peer *p);
void peer_resolved(peer *p, uint32_t count);
void peer_connected(peer *p);
void peer_failed(peer *p, int err, const char *why);
void peer_receive(peer *p, const void *bytes, size_t len);
/** A server's reply to a probe; "": none. */
void peer_probed(peer *p, const char *answer);
/** Let time pass, and tick the client at each of its deadlines. */
void peer_pass(peer *p, int64_t ms);

/* ---- calls -------------------------------------------------------------- */

/** The options of a request. */
typedef struct peer_call {
  const char *name;
  const char *watch; /**< name of the watch to set, or NULL */
  int64_t timeout_ms;
  bool repeat;
  bool until_disconnect;
} peer_call;

/** Each returns the result of the call. */
int peer_get(peer *p, const peer_call *call, const char *path);
int peer_exists(peer *p, const peer_call *call, const char *path);
int peer_children(peer *p, const peer_call *call, const char *path);
int peer_create(peer *p, const peer_call *call, bool with_stat,
                const char *path, lk_bytes data, int flags);
int peer_delete(peer *p, const peer_call *call, const char *path,
                int32_t version);
int peer_set(peer *p, const peer_call *call, const char *path, lk_bytes data,
             int32_t version);
int peer_sync(peer *p, const peer_call *call, const char *path);
int peer_multi(peer *p, const peer_call *call, const lk_op *ops, size_t count);
int peer_count(peer *p, const peer_call *call, const char *path);
int peer_ephemerals(peer *p, const peer_call *call, const char *prefix);
int peer_get_acl(peer *p, const peer_call *call, const char *path);
int peer_set_acl(peer *p, const peer_call *call, const char *path,
                 const lk_acls *acl, int32_t version);
int peer_create_ttl(peer *p, const peer_call *call, const char *path,
                    lk_bytes data, int flags, int64_t ttl_ms);
int peer_multi_read(peer *p, const peer_call *call, const lk_read *reads,
                    size_t count);
int peer_who_am_i(peer *p, const peer_call *call);
int peer_config(peer *p, const peer_call *call);
int peer_reconfig(peer *p, const peer_call *call,
                  const lk_reconfiguration *change);
int peer_add_watch(peer *p, const peer_call *call, const char *path,
                   lk_watch_mode mode);
int peer_auth(peer *p, const char *name, const char *scheme, lk_bytes auth);
int peer_close(peer *p, const char *name);
void peer_free(peer *p);
/** Cancel a watch, if it exists. */
void peer_cancel(peer *p, const char *name, bool on_server);
void peer_listen(peer *p, const char *name, bool answers);
void peer_unlisten(peer *p, const char *name);
void peer_timer(peer *p, const char *name, int64_t in_ms);
void peer_stop(peer *p, const char *name);

/** The number of accepted requests that have not completed. */
size_t peer_open_requests(const peer *p);

#endif
