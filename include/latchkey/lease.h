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
 * The lease deadline is a time on the client's clock. Before it, no other
 * client can hold a lock that this session holds. It is computed from replies
 * of the servers: a reply proves that the session was alive when a request was
 * sent (`gap_ms` in lk_lease_config says which one), and the session cannot
 * expire within one session timeout of that time. The client records replies
 * from its first connection on, so the first lock of an old connection is
 * granted without waiting for new ones. If a session is resumed with a shorter
 * timeout, the deadline moves to an earlier time.
 *
 * The deadline is proven under these assumptions:
 *   - The assurance is LK_ASSURE_QUORUM, the default. With a weaker one the
 *     deadline can be wrong; lk_assurance says when.
 *   - No other client deletes the node by which this session holds the lock.
 *     After that another client may hold before this one is notified.
 *   - No other client uses the session. A second client that has its id and
 *     password can resume it while this client lives, and close it: then
 *     another client may hold at once, and this one may get no notification
 *     before the deadline.
 *   - During one session timeout, the clocks of client and servers drift apart
 *     by less than 1 % of it plus 10 ms. A machine whose clocks all stop, such
 *     as a paused virtual machine, violates this: call lk_lock_ok() right
 *     before each action, and pass the fencing token to the service acted upon.
 *   - The session timeout is at least two ticks of the servers, which is the
 *     default minSessionTimeout. The leader pings its followers every half
 *     tick; with a session timeout of four ticks or more, every tick is enough.
 *     At an observer that is connected to a follower (observerMasterPort), the
 *     session timeout is at least four ticks, and the observer's reports arrive
 *     on time; with six ticks or more, they may be half a tick late.
 *   - The servers' bounds for session timeouts do not change while the client
 *     reconnects. If a server resumes the session with a shorter timeout, and
 *     the reply that says so is lost, the deadline is too late until the next
 *     reply.
 *
 * Locks and their client may be freed in any order; see lk_client_free(). If
 * the client is freed first, its locks are lost, or their acquires end, with
 * LK_ERR_CLOSED.
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

/** The requests that renew the lease, from the strongest assurance to the
    weakest. The lease deadline moves only when a reply to such a request
    arrives: one of the selected assurance, or of one above it in this list. A
    lock is granted only if the lease deadline is at least a quarter of the
    session timeout ahead (`gap_ms` has an exception); if it is not, the client
    first sends a check of the own node, which renews the lease. Other values
    are refused with LK_ERR_BAD_ARGUMENT. */
typedef enum lk_assurance {
  /** Committed transactions. Every quarter of the session timeout the client
      sends a multi that checks the own nodes of all locks that it holds. If it
      holds none, but is the next to hold one, it checks the own node of that
      waiter. The deadline is right even if the server in use, or its leader,
      is cut off from the other servers. */
  LK_ASSURE_QUORUM = 0,
  /** sync requests, and a read of each node held once in a session timeout; no
      transactions. The deadline can be wrong: a deposed leader that has not
      noticed its deposition can reply to a sync (ZOOKEEPER-1675), for up to
      syncLimit ticks, plus the time for which its process is paused. So another
      client may hold the lock before the deadline. */
  LK_ASSURE_SYNC = 1,
  /** Any request, pings included; and the reads of LK_ASSURE_SYNC. The deadline
      can be wrong for two reasons. A server that is cut off from the others may
      reply for up to syncLimit ticks after the lock has passed to another
      client. And servers report to their leader only every half tick which
      sessions are alive: if a client has sent nothing for most of a session
      timeout, its session may expire although a server has just replied to it.
      The same happens if a server fails before its next report.
      Most other clients offer no more than this. */
  LK_ASSURE_PING = 2
} lk_assurance;

/** Options of a session lease. Set `size`; 0 selects the default of each. */
typedef struct lk_lease_config {
  size_t size; /**< sizeof(lk_lease_config) */
  lk_assurance assurance;
  /** How long before the lease deadline a lock becomes unsure, so that its
      holder has time to stop. 0: an eighth of the session timeout. */
  int32_t margin_ms;
  /** For LK_ASSURE_QUORUM and LK_ASSURE_SYNC: two requests, E and L, prove a
      lease together. E is any request, L a transaction (with LK_ASSURE_SYNC
      also a sync):

          send E ... reply to E ... at least `gap_ms` ... send L ... reply to L

      When the reply to L arrives, the lease lasts for a session timeout T from
      the sending of E, less the drift of the clocks. The reason for the gap: a
      follower that has received E tells the leader so only with its reply to
      the leader's next ping. So the gap must not be shorter than the period of
      these pings, half a tick. An observer that is connected to a follower
      (observerMasterPort, ZooKeeper 3.6.0 and later, ZOOKEEPER-3140) tells that
      follower first, with its reply to a ping of the follower: two hops, so the
      gap must not be shorter than a tick. 0: T / 4, enough under the servers'
      default bounds, and at such an observer if T is at least four ticks. If
      `gap_ms` is more than T / 2, a grant needs a deadline that is only
      (T - gap_ms) / 2 ahead, instead of T / 4.

      With LK_ASSURE_PING, each reply counts from the sending of its own
      request. */
  int32_t gap_ms;
  /** Invoked if a node cannot be deleted: it stays until the session ends.
      `err` is LK_ERR_NO_AUTH: there is no DELETE permission on the directory;
      or LK_ERR_REPLY_TOO_BIG: the reply to the create was lost, and the node
      cannot be found, since the list of the queue is larger than the client's
      `receive_limit`, and the server (before ZooKeeper 3.6) does not support
      getEphemerals. `path` is borrowed; it lacks the sequence number if that is
      not known. May be NULL. */
  void (*left_behind)(lk_client *c, const char *path, int err, void *arg);
  void *arg;
} lk_lease_config;

/**
 * Choose the options of the client's session lease. They are set once, by the
 * first call or by the first lock, which takes the defaults: call this before
 * any lock is made. The same options again are accepted. `config` NULL: the
 * defaults. Set `gap_ms` before the client has a connection: replies that were
 * received with another gap prove nothing for the new one.
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
