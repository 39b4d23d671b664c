/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_KEEPER_H
#define LK_KEEPER_H

/**
 * @file
 * What the locks of one client share: the beat that keeps the lease, the lease
 * deadline, and the nodes that are still to be deleted after a release, a
 * timeout or a cancel. One keeper per client is usual. A client may have
 * several, for example with different assurances; each sends heartbeats of its
 * own, and one lock has the same owner in all of them: the session.
 *
 * The lease deadline says until when, on the client's clock, no other client
 * can have been given a lock that this session holds. It rests on answers of
 * the server, never on hope: see lk_assurance. It becomes earlier when the
 * session is resumed with a shorter timeout. It is proven for servers whose
 * tick is at most half the session timeout, which is their default bound, and
 * whose leader pings them on time: with a session timeout of four ticks or more
 * it may be half a tick late. It also assumes that the servers' bounds for
 * session timeouts stay as they are while a connection attempt fails: if the
 * reply to a resume with a shorter timeout is lost, the client does not know
 * that timeout until the next reply. A machine whose clocks all stop (a paused
 * virtual machine) is beyond any client: check lk_lock_ok() right before you
 * act, and give the fencing token to the service you act upon.
 *
 * Threads, callbacks: as the client.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lk_keeper lk_keeper;

/** What renews the lease of a session that holds a lock. A grant of any kind
    needs a lease deadline, by this evidence, that is at least a quarter of the
    session timeout away. Otherwise a check of the own node comes before it. */
typedef enum lk_assurance {
  /** Committed transactions: every quarter of the session timeout a multi that
      checks the nodes held, or the node that is the next to hold. Right also
      when the server at hand, or its leader, is cut off from the others. */
  LK_ASSURE_QUORUM = 0,
  /** sync: no transactions, and a read of each node held once in a session
      timeout. A deposed leader that has not noticed can answer it
      (ZOOKEEPER-1675), for up to syncLimit ticks, in which the time that it
      stood still does not count; so the deadline can be late. */
  LK_ASSURE_SYNC,
  /** Any answer, and the same reads. A server that is cut off answers for up to
      syncLimit ticks after the lock has passed to another; and who was silent
      for most of a session timeout may lose the session although an answer came
      in time, since servers tell their leader only every half a tick of whom
      they have heard. What other clients do at best. */
  LK_ASSURE_PING
} lk_assurance;

/** Options of a keeper. Set `size`, leave at 0 what should be as usual. */
typedef struct lk_keeper_config {
  size_t size; /**< sizeof(lk_keeper_config) */
  lk_assurance assurance;
  /** How long before the lease deadline holders are told they are unsure, so
      that they have time to stop. 0: an eighth of the session timeout. */
  int32_t margin_ms;
  /** At least the leader's ping period (half a tick). 0: a quarter of the
      session timeout, which is enough under the server's default bounds. Above
      half of the session timeout a grant has half of what the gap leaves
      instead of a quarter. */
  int32_t gap_ms;
  /** A node that could not be deleted and stays until the session ends:
      LK_ERR_NO_AUTH (no DELETE permission on the directory); LK_ERR_TOO_BIG
      (after a broken connection it was not known which node it is, the list of
      the queue is larger than the client's `receive_limit`, and the server does
      not know getEphemerals, as those before 3.6). `path` is borrowed, and
      without its number where that is not known. May be NULL. */
  void (*left_behind)(lk_keeper *k, const char *path, int err, void *arg);
  void *arg;
} lk_keeper_config;

/**
 * Make a keeper on `client`, which must outlive it or be freed first: then the
 * keeper is dead and only lk_keeper_free() is of use. `config` NULL: as usual.
 * Best made together with the client: one that has not seen the connection
 * begin has no evidence yet, and its first grant waits a gap (gap_ms) for some.
 *
 * @return 0, LK_ERR_NO_MEMORY, LK_ERR_BAD_ARGUMENT. After an error `*out` is
 *         NULL.
 */
LK_API int lk_keeper_new(lk_keeper **out, lk_client *client,
                         const lk_keeper_config *config);

/** Free; its locks must have been freed before. Nodes still to be deleted have
    had their delete sent if there was a connection; otherwise they go when the
    session ends. NULL is fine. */
LK_API void lk_keeper_free(lk_keeper *k);

LK_API lk_client *lk_keeper_client(const lk_keeper *k);

/** The lease deadline by the assurance asked for, in ms on lk_client_clock();
    INT64_MIN when nothing proves anything. */
LK_API int64_t lk_keeper_deadline(const lk_keeper *k);

/** Another margin_ms (0 or more) from now on; see there. For callers whose
    margin depends on the session timeout that the server grants. */
LK_API void lk_keeper_set_margin(lk_keeper *k, int32_t margin_ms);

/** How many nodes are still to be deleted: 0 once all releases, timeouts and
    cancels have been answered. */
LK_API size_t lk_keeper_unfinished(const lk_keeper *k);

#ifdef __cplusplus
}
#endif
#endif
