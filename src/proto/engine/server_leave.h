/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SERVER_LEAVE_H
#define LK_PROTO_ENGINE_SERVER_LEAVE_H

/**
 * @file
 * When a client leaves the server to which it is connected. There are four
 * reasons: the server has rejected a request as unknown; the list of servers
 * has changed; the server is read-only, and another one has a quorum; the
 * server does not reply.
 */

#include <latchkey/client.h>
#include <latchkey/driver.h>

#include "proto/engine/requests.h"

/** The request that the connected server rejected as unknown. The server closes
    the connection, but the replies to earlier requests come before. */
typedef struct lk_engine_rejected {
  int32_t op;       /**< opcode of the request; 0: no request was rejected */
  uint64_t end;     /**< lk_request.end of the request */
  int64_t until_ms; /**< when the client ends the connection at the latest */
} lk_engine_rejected;

/** The server rejected `r` as unknown: send nothing more on this connection.
    The connection is ended when the requests before `r` have their replies, or
    after a third of the session timeout. */
void lk__request_rejected(lk_client *c, const lk_request *r);
/** When the connection is ended for this reason; LK_NEVER: no request was
    rejected. */
int64_t lk__rejected_deadline(const lk_client *c);
/** Write to `out` which request the server has rejected: a line for the log. */
void lk__rejected_text(const lk_client *c, char *out, size_t size);

/** Moving to another server while connected: to a server of a new list, or from
    a read-only server to one with a quorum. The client leaves when no reply is
    outstanding. If that takes longer than a sixth of the session timeout, it
    stops sending. After a third of the session timeout it leaves in any
    case. */
typedef struct lk_engine_move {
  bool wanted;      /**< move to the server in turn */
  int64_t since_ms; /**< when the move was first wanted */
  bool quorum_only; /**< do not accept read-only servers in this round */
} lk_engine_move;

/** Begin a move to the server in turn. */
void lk__move_begin(lk_client *c);
/** When lk__move_run() has something to do; LK_NEVER: no move is wanted. */
int64_t lk__move_deadline(const lk_client *c);
/** Stop sending if that is due at the client's clock.
    @return whether the client must leave the server now. */
bool lk__move_run(lk_client *c);
/** Why the client leaves the server: a line for the log. */
const char *lk__move_text(const lk_client *c);

/** The search for a server with a quorum while the client is connected to a
    read-only server. Each server is asked "isro" in turn. After such a round
    the client pauses before it begins the next one; the pauses grow. */
typedef struct lk_engine_probe {
  uint64_t number;      /**< number of the probe under way; 0: there is none */
  uint64_t last_number; /**< number of the last probe */
  size_t asked;         /**< servers asked in this round */
  int64_t due_ms;       /**< when the probe under way times out, or the next
                             round begins; LK_NEVER: no search is under way */
  int64_t pause_ms;     /**< the pause after this round */
  lk_want want;         /**< the result of lk_client_want_probe() */
} lk_engine_probe;

/** Begin a search: the first round follows after a short pause. */
void lk__probe_begin(lk_client *c);
/** End the search, if there is one. */
void lk__probe_stop(lk_client *c);
/** Begin the next round, or give up the probe under way, which is due at
    `due_ms`. */
void lk__probe_run(lk_client *c);

/** The server that the driver should ask, see lk_client_want_probe(). */
lk_want lk__probe_want(const lk_client *c);
/** The server under probe has no quorum: go on with the next one. */
void lk__probe_next_server(lk_client *c);
/** The server under probe has a quorum: it becomes the server in turn. Its name
    may have several addresses, some of them of read-only servers, which are not
    accepted until all addresses were tried. */
void lk__probe_select(lk_client *c);

/** Servers that leave requests without a reply: when the client leaves such a
    server for another one, and the warning about a request that never gets a
    reply ("Silent servers" in doc/architecture.md).

    The *progress* of a connection is the newest frame other than an event or
    the reply to a ping, or bytes of a longer frame that is not complete. */
typedef struct lk_engine_silence {
  int64_t progress_ms; /**< the last progress of this connection */
  int64_t look_ms;     /**< when the client leaves the server, unless there is
                            progress before; LK_NEVER: it is not suspected */
  bool for_holder;     /**< it is suspected since a holder needs a reply */

  /** A holder needs a reply before this time, since the server was suspected;
      LK_NEVER: there is no such need. */
  int64_t needed_ms;
  int64_t left_ms;    /**< when a server was last left for a holder */
  size_t left_server; /**< index of this server in the list of servers;
                         SIZE_MAX: the list is another one now */

  int32_t op; /**< opcode of the oldest request without a reply when the last
                   connection was lost; 0: there was none, or a request of this
                   opcode has got a reply since */
  unsigned losses; /**< connections in a row that were lost at this opcode */
  unsigned stalls; /**< connections in a row that were ended by the limit for
                        all clients, until `op` is 0; at most 3 */
} lk_engine_silence;

void lk__silence_init(lk_engine_silence *s);
/** A connection is live: its server is not suspected. A holder's need for a
    reply stays: the server may reject setWatches2 and close. */
void lk__silence_begin(lk_client *c);

/** There was progress. */
void lk__silence_note_progress(lk_client *c);
/** `len` bytes of a frame have arrived, and not all of it. */
void lk__silence_note_bytes(lk_client *c, size_t len);
/** A request of this opcode has its reply. */
void lk__silence_note_reply(lk_client *c, int32_t op);

/**
 * A holder will be unsure at `needed_ms`, and needs a reply before. Suspect the
 * server if the oldest request waits for its reply for longer than usual, and
 * there is another server. Has an effect once in a session timeout.
 */
void lk__silence_suspect(lk_client *c, int64_t needed_ms);
/** When lk__silence_run() has something to do; LK_NEVER: not before something
    else happens. */
int64_t lk__silence_deadline(const lk_client *c);
/** Called by ticks alone, on a live connection. Bytes that have arrived may
    not have been read yet, so the server is suspected first, and left at a
    later tick. @return whether the client must leave the server now. */
bool lk__silence_run(lk_client *c);
/** Why it is left: a line for the log. */
void lk__silence_text(const lk_client *c, char *out, size_t size);

/** Whether to try another server than the one in turn: it is the one that was
    left, and a holder still needs a reply. */
bool lk__silence_avoids_server(const lk_client *c);

/** A live connection ends with `err`. To be called before its requests are set
    aside. Logs a warning after several losses at requests of one kind.
    @return whether the client must connect to another server without a pause,
    for a holder. */
bool lk__silence_note_loss(lk_client *c, int err);

#endif
