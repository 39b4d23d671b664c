/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_HARNESS_H
#define LK_SUPPORT_HARNESS_H

#include <latchkey/client.h>

#include "base/buf.h"
#include "support/failing_mem.h"
#include "support/mechanism.h"

/**
 * One client without a network. The test sets the clock, the number of bytes
 * that the transport accepts, and the bytes that the server sends. The harness
 * logs each output of the client as a line of text. It aborts if the client
 * breaks the contract of <latchkey/client.h>:
 *
 * - An accepted request completes once, after it was accepted.
 * - A watch reports only events that it may report, and when it may.
 * - Each state may follow the state before.
 * - The driver is woken when it has something to do.
 * - No callback is called after the client was freed.
 */
typedef struct harness harness;

/** A request, watch, timer or listener of the client, with a name. It exists as
    long as the harness. */
typedef struct harness_thing {
  struct harness_thing *next;
  harness *h;
  char name[24];

  /* Of a request. */
  bool accepted;
  int ended;      /**< how many times the request, or the watch, has ended */
  bool is_exists; /**< an exists can set a watch on a missing node */
  bool marked;   /**< the data of the write is its name, so that the harness can
                      recognise the write in the output */
  bool was_sent; /**< the marked write was sent completely */
  bool was_cancelled;
  lk_request_handle handle;
  /** The watch that the request sets, or NULL. */
  struct harness_thing *watcher;

  /* Of a watch. */
  bool removing;         /**< the server is asked to remove it */
  bool watch_is_set;     /**< the request that sets the watch has succeeded */
  bool in_last_callback; /**< the last callback of the watch is running */
  bool is_persistent;    /**< the watch is persistent or recursive */
  bool is_recursive;
  char path[64];   /**< the path of the watch; "" if it is longer */
  lk_watch *watch; /**< NULL: not set, or ended */

  /* Of a listener. */
  bool attached;
  bool logs_replies;
  bool logs_attempts;
  lk_listener listener;

  lk_timer timer;
} harness_thing;

struct harness {
  lk_client *client; /**< NULL: not made yet, or freed */
  lk_hooks hooks;
  failing_mem mem;
  int64_t now;
  unsigned char random; /**< the value of every random byte, if `seed` is 0 */
  uint64_t seed;        /**< random bytes are made from this; 0: see `random` */
  bool forked;          /**< what the hook `forked` returns */
  unsigned wakes;       /**< how many times the hook `wake` was called */
  bool waking;          /**< the hook `wake` is running */
  int depth;            /**< how many callbacks are running */
  harness_thing *things;
  harness_thing base; /**< the listener that is always attached */
  lk_state state;
  bool resumed;    /**< the client was created with a session */
  bool read_only;  /**< the client accepts read-only servers */
  int64_t session; /**< the session with a quorum; 0: none yet, or expired */
  bool proves;     /**< the client authenticates by SASL */
  fake_mechanism *sasl; /**< the one in lk_client_config.sasl, or NULL */

  lk_want want;      /**< what lk_client_want() last gave */
  uint64_t attempts; /**< the number of the last attempt */
  uint64_t probe;    /**< the attempt that lk_client_want_probe() last gave */
  uint64_t probes;   /**< the number of the last probe */
  int32_t xid;       /**< the last xid sent in this session */
  char host[256];    /**< a copy of want.host */
  bool open;         /**< the transport is connected */
  bool eager;        /**< the hook `wake` connects each transport at once */
  size_t room;       /**< how many bytes the transport still accepts */
  size_t step;       /**< the most bytes that move at once; 0: no limit */
  bool mute;         /**< do not log sent requests */
  lk_buf wire;       /**< the sent bytes of an incomplete frame */
  bool next_is_connect_request; /**< it has not been sent yet */

  lk_buf log;        /**< the log, which its reader empties */
  int64_t log_now;   /**< the time of the last line */
  int64_t log_start; /**< the time that the log shows as 0 */
  /** Called in each callback of the client, after its line was logged. May call
      any function. `event`: the name of a state, "ok" or the name of an error.
   */
  void (*react)(harness *h, const char *name, const char *event);
  void *arg; /**< for the user of the harness */
};

/** Create the client. The harness sets the `mem` and the log of a copy of
    `config`. Returns the result of lk_client_new(). */
int harness_init(harness *h, const lk_client_config *config);
/** Free the client, if it is not freed yet. Checks that all requests have
    completed and all memory is freed. */
void harness_done(harness *h);

/** Append a line to the log, printf-like. */
void harness_log_line(harness *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- what the driver does ----------------------------------------------- */

/** Do all that the client wants now. The functions that follow report something
    to the client, and then do the same. */
void harness_settle(harness *h);
void harness_resolved(harness *h, uint32_t count);
void harness_connected(harness *h);
void harness_failed(harness *h, int err, const char *why);
void harness_receive(harness *h, const void *bytes, size_t len);
/** A server has replied `answer` to a probe; "": the probe has failed. */
void harness_probed(harness *h, const char *answer);
/** Let time pass, and tick the client at each of its deadlines. */
void harness_pass(harness *h, int64_t ms);

/* ---- calls -------------------------------------------------------------- */

/** The options of a request. */
typedef struct harness_call {
  const char *name;
  const char *watch; /**< name of the watch to set, or NULL */
  int64_t timeout_ms;
  bool repeat;
  bool until_disconnect;
  bool fails_offline;
  bool cancellable; /**< harness_cancel_request() can cancel it */
} harness_call;

/** Each returns the result of the call. */
int harness_get(harness *h, const harness_call *call, const char *path);
int harness_exists(harness *h, const harness_call *call, const char *path);
int harness_children(harness *h, const harness_call *call, const char *path);
int harness_create(harness *h, const harness_call *call, bool with_stat,
                   const char *path, lk_bytes data, int flags);
int harness_delete(harness *h, const harness_call *call, const char *path,
                   int32_t version);
int harness_set(harness *h, const harness_call *call, const char *path,
                lk_bytes data, int32_t version);
int harness_sync(harness *h, const harness_call *call, const char *path);
int harness_multi(harness *h, const harness_call *call, const lk_op *ops,
                  size_t count);
int harness_count(harness *h, const harness_call *call, const char *path);
int harness_ephemerals(harness *h, const harness_call *call,
                       const char *prefix);
int harness_get_acl(harness *h, const harness_call *call, const char *path);
int harness_set_acl(harness *h, const harness_call *call, const char *path,
                    const lk_acls *acl, int32_t version);
int harness_create_ttl(harness *h, const harness_call *call, const char *path,
                       lk_bytes data, int flags, int64_t ttl_ms);
int harness_multi_read(harness *h, const harness_call *call,
                       const lk_read *reads, size_t count);
int harness_who_am_i(harness *h, const harness_call *call);
int harness_config(harness *h, const harness_call *call);
int harness_reconfig(harness *h, const harness_call *call,
                     const lk_reconfiguration *change);
int harness_add_watch(harness *h, const harness_call *call, const char *path,
                      lk_watch_mode mode);
int harness_auth(harness *h, const char *name, const char *scheme,
                 lk_bytes auth);
int harness_close(harness *h, const char *name);
void harness_free(harness *h);
/** Cancel a watch, if it exists. */
void harness_cancel(harness *h, const char *name, bool on_server);
/** Cancel a request, if it exists and is cancellable. */
void harness_cancel_request(harness *h, const char *name);
/** Attach a listener, which also logs the replies, or the attempts that fail.
 */
void harness_listen(harness *h, const char *name, bool logs_replies,
                    bool logs_attempts);
void harness_unlisten(harness *h, const char *name);
void harness_timer(harness *h, const char *name, int64_t in_ms);
void harness_stop(harness *h, const char *name);

/** The number of accepted requests that have not completed. */
size_t harness_open_requests(const harness *h);

#endif
