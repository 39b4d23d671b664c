/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_LEASE_H
#define LK_LEASE_H

/**
 * @file
 * The session lease: what all locks of one client share. A client has one. It
 * is made when the first lock is made, or by lk_lease_configure(), and ends
 * with the client. Programs that want the defaults never call anything here.
 *
 * The session lease sends heartbeats while locks are held or waited for,
 * derives the lease deadline, and deletes the nodes that a release, a timeout
 * or a cancel has left on the server.
 *
 * The lease deadline says until when, on the client's clock, no other client
 * can have been given a lock that this session holds. It rests on replies of
 * the server; see lk_assurance. The client records them from its first
 * connection on, so a lock that is made late is not granted late. A session
 * that is resumed with a shorter timeout has an earlier deadline.
 *
 * The deadline is proven under these assumptions:
 *   - The clocks of client and servers differ in speed by less than one percent
 *     (and 10 ms in a session timeout). A machine whose clocks all stop, such
 *     as a paused virtual machine, violates this: call lk_lock_ok() right
 * before each action, and pass the fencing token to the service acted upon.
 *   - The servers' tick is at most half of the session timeout, their default
 *     bound, and their leader pings them on time. With a session timeout of
 * four ticks or more it may be half a tick late.
 *   - The servers' bounds for session timeouts stay as they are while a
 *     connection attempt fails. If the reply to a resume with a shorter timeout
 *     is lost, the client learns of that timeout with the next reply.
 *
 * Order of frees: locks first, then their client. If a client is freed first,
 * its locks are lost, or their acquires end, with LK_ERR_CLOSED. They stay
 * valid until they are freed; every call that needs the client returns an
 * error. The memory of such locks is given back through the client's lk_mem,
 * which must still work then. A lock must not be made on a client that was
 * freed.
 *
 * lk_client_close() ends all holds at once, before it returns: the servers may
 * grant a lock to another client before the reply arrives.
 *
 * Threads, callbacks: as the client.
 */

#include <latchkey/client.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The requests that renew the lease of a session that holds a lock. A grant of
    any kind needs a lease deadline, by this evidence, that is at least a
    quarter of the session timeout away. Otherwise a check of the own node
    precedes it. */
typedef enum lk_assurance {
  /** Committed transactions: every quarter of the session timeout a multi that
      checks the nodes held, or the node that is the next to hold. The deadline
      also holds when the server in use, or its leader, is cut off from the
      other servers. */
  LK_ASSURE_QUORUM = 0,
  /** sync requests, and a read of each node held once in a session timeout; no
      transactions. A deposed leader that has not noticed can answer a sync
      (ZOOKEEPER-1675), for up to syncLimit ticks. Time during which it stood
      still does not count. So the deadline can be late. */
  LK_ASSURE_SYNC,
  /** Any reply, and the same reads. A server that is cut off answers for up to
      syncLimit ticks after the lock has passed to another client. A client that
      was silent for most of a session timeout may lose its session although a
      reply came in time: servers report to their leader only every half a tick.
      Most other clients offer no more than this. */
  LK_ASSURE_PING
} lk_assurance;

/** Options of a session lease. Set `size`; 0 selects the default of each. */
typedef struct lk_lease_config {
  size_t size; /**< sizeof(lk_lease_config) */
  lk_assurance assurance;
  /** How long before the lease deadline a lock becomes unsure, so that its
      holder has time to stop. 0: an eighth of the session timeout. */
  int32_t margin_ms;
  /** How long before a committed request is sent the reply to an earlier one
      must have arrived, so that the earlier one counts; at least the leader's
      ping period, which is half a tick. 0: a quarter of the session timeout,
      enough under the servers' default bounds. Above half of the session
      timeout a grant needs a deadline that is half of what the gap leaves away,
      instead of a quarter. */
  int32_t gap_ms;
  /** A node could not be deleted, and stays until the session ends. `err`:
      LK_ERR_NO_AUTH: no DELETE permission on the directory. LK_ERR_TOO_BIG: it
      was not known after a broken connection which node it is, the list of the
      queue is larger than the client's `receive_limit`, and the server does not
      know getEphemerals (before ZooKeeper 3.6). `path` is borrowed, and without
      its number where that is not known. May be NULL. */
  void (*left_behind)(lk_client *c, const char *path, int err, void *arg);
  void *arg;
} lk_lease_config;

/**
 * Choose the options of the client's session lease. They are set once, by the
 * first call or by the first lock, which takes the defaults: call this before
 * any lock is made. The same options again are accepted. `config` NULL: the
 * defaults. A `gap_ms` is best chosen before the client has a connection: what
 * earlier replies prove with another gap does not count.
 *
 * @return 0; LK_ERR_STATE: other options are set already; LK_ERR_BAD_ARGUMENT;
 *         LK_ERR_NO_MEMORY.
 */
LK_API int lk_lease_configure(lk_client *c, const lk_lease_config *config);

/** The lease deadline by the client's assurance, in ms on lk_client_clock();
    INT64_MIN: nothing proves that the session lives. It needs no lock. */
LK_API int64_t lk_lease_deadline(const lk_client *c);

/**
 * Use another `margin_ms` (0: the default) from now on. For programs whose
 * margin depends on the session timeout that the server has granted; the
 * options that lk_lease_configure() compares stay as they were.
 *
 * @return 0; LK_ERR_BAD_ARGUMENT: negative; LK_ERR_NO_MEMORY: there was no
 *         session lease, and it could not be made.
 */
LK_API int lk_lease_set_margin(lk_client *c, int32_t margin_ms);

/** How many nodes are still to be deleted: 0 once all releases, timeouts and
    cancels are done on the server. */
LK_API size_t lk_lease_pending_cleanups(const lk_client *c);

#ifdef __cplusplus
}
#endif
#endif
