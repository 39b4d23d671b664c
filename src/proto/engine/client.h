/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_CLIENT_H
#define LK_PROTO_ENGINE_CLIENT_H

/**
 * @file
 * A client. Each part is defined by the header of the file that works on it.
 */

#include <latchkey/client.h>

#include "base/heap.h"
#include "base/ring.h"
#include "base/safe_list.h"
#include "jute/arena.h"
#include "proto/engine/auth.h"
#include "proto/engine/connection.h"
#include "proto/engine/hosts.h"
#include "proto/engine/lease_slot.h"
#include "proto/engine/requests.h"
#include "proto/engine/sasl.h"
#include "proto/engine/server_leave.h"
#include "proto/engine/session.h"
#include "proto/engine/set_watches.h"
#include "proto/engine/watches.h"
#include "proto/wire/frame.h"

/** The lists of listeners. A client with many subscriptions has many listeners,
    of which few have a function for replies. */
enum { LK_LISTENERS_ALL, LK_LISTENERS_OF_REPLIES, LK_LISTENER_LISTS };

/** Enter `state` and notify the listeners. The caller has changed all other
    fields before, since a listener may call any function of the client. */
void lk__client_enter_state(lk_client *c, lk_state state, int err);
/** Notify the listeners that lk_client_close() was called. */
void lk__client_notify_closing(lk_client *c);
/** Whether a listener is to be notified of attempts that fail. */
bool lk__client_attempts_are_reported(const lk_client *c);
/** Notify the listeners that the last attempt has failed. */
void lk__client_notify_attempt(lk_client *c);
/** Notify the listeners of a reply, before its request completes. */
void lk__client_notify_reply(lk_client *c, const lk_reply *reply);

/** Log a line, with a format as in printf(). `err`
    is the error of the message, or 0. */
void lk__client_logf(const lk_client *c, lk_log_level level, int err,
                     const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Options of lk_client_config, with the defaults put in. They never change. */
typedef struct lk_engine_options {
  int32_t timeout_ms; /**< the session timeout that is asked for */
  int32_t give_up_ms;
  bool one_session;
  bool read_only;
  size_t send_limit;
  size_t outstanding_limit;
  lk_log_level log_level;
  void (*log)(void *arg, lk_log_level level, int err, const char *text);
  void *log_arg;
} lk_engine_options;

/** Calls of the library, which nest if a callback calls the client. */
typedef struct lk_engine_nesting {
  int depth;        /**< calls that have not returned */
  bool freed;       /**< lk_client_free() has taken effect */
  bool free_wanted; /**< free the client when the outermost input returns */
  bool wake_wanted; /**< call the hook `wake` when the outermost call returns */
  bool waking;      /**< the hook `wake` is running */
} lk_engine_nesting;

/** Bytes received. */
typedef struct lk_engine_input {
  lk_frames frames;
  int64_t large_ms;      /**< when a frame that needs much memory last came */
  lk_arena arena;        /**< memory for decoding one reply or event */
  const lk_reply *reply; /**< the reply whose callback is running, or NULL */
  /** Listeners are being notified of a reply, whose request has left its list
      and is not completed. */
  bool request_in_no_list;
} lk_engine_input;

struct lk_client {
  lk_mem mem;
  size_t refs; /**< of the program until lk_client_free() takes effect, and of
                  the objects that live on the client */
  lk_hooks hooks;
  lk_want want; /**< the result of lk_client_want() */
  lk_engine_options options;
  int64_t now;    /**< the clock in ms when it was last read */
  bool now_stale; /**< an input has ended or output was sent since then, so a
                       new request reads the clock */
  lk_engine_nesting nesting;
  lk_safe_list listeners[LK_LISTENER_LISTS]; /**< of lk_listener, in the order
                                                  in which they were attached */
  lk_heap timers;                            /**< of lk_timer */
  lk_engine_session session;
  lk_evidence_record evidence;
  lk_engine_lease lease;
  lk_engine_connection connection;
  lk_engine_error last_error;
  lk_engine_input input;
  lk_engine_output output;
  lk_engine_pings pings;
  lk_engine_silence silence;
  lk_engine_move move;
  lk_engine_rejected rejected;
  lk_engine_set_watches set_watches;
  lk_engine_auth auth;
  lk_engine_probe probe;
  lk_engine_requests requests;
  lk_engine_close close;
  lk_hosts hosts;
  lk_watches watches;
  lk_tls_config *tls; /**< for the transport; NULL: plain TCP */
  lk_sasl *sasl;      /**< NULL: the client does not use SASL */
  size_t unchecked;   /**< calls of lk__invariants_check() that checked nothing
                           since the last check */
};

/** Begin and end an input of the driver. If it is the outermost call, its begin
    reads the clock, and its end can free the client. */
void lk__client_enter(lk_client *c);
void lk__client_leave(lk_client *c);
/** Begin and end another call, without reading the clock. Neither frees the
    client: if the hook `wake` has called lk_client_free(), the next input does,
    which is due at once. */
void lk__client_begin_call(lk_client *c);
void lk__client_end_call(lk_client *c);
/** Call the driver's hook `wake` when the outermost call ends, since the fields
    of the client may be inconsistent until then. Outside of any call this is at
    once. */
void lk__client_wake(lk_client *c);

/* lk_timer: timers of recipes and programs on a client's clock. */

/** Invoke the callbacks of the timers that are due at the client's clock. */
void lk__timers_run(lk_client *c);
/** When the next timer is due; LK_NEVER: there is none. */
int64_t lk__timers_deadline(const lk_client *c);

#endif
