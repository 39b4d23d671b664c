/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_SILENT_SERVER_H
#define LK_PROTO_ENGINE_SILENT_SERVER_H

/**
 * @file
 * Servers that leave requests without a reply: when the client leaves such a
 * server for another one, and the warning about a request that never gets a
 * reply ("Silent servers" in doc/architecture.md).
 *
 * The *progress* of a connection is the newest frame other than an event or the
 * reply to a ping, or bytes of a longer frame that is not complete.
 */

#include <latchkey/client.h>

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
/** A connection is live: its server is not suspected, and no need is left. */
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
