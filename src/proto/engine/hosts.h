/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_HOSTS_H
#define LK_PROTO_ENGINE_HOSTS_H

/**
 * @file
 * The list of servers of a client: which one is tried next, the pauses between
 * rounds, what a server does not support, and the change to another list.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

/** Requests that a server does not support. */
typedef struct lk_unsupported {
  uint64_t opcodes; /**< a bit for each, by its index in lk__opcodes */
  int64_t until_ms; /**< when this expires, since servers are upgraded */
} lk_unsupported;

typedef struct lk_host {
  const char *name; /**< host name or IP address, without brackets */
  uint16_t port;
  lk_unsupported unsupported; /**< by all servers at this name and port */
} lk_host;

/** The list of servers of a client. The server "in turn" is the one to which
    the next connection attempt goes. */
typedef struct lk_hosts {
  const lk_mem *mem;
  char *text; /**< the memory of the names */
  lk_host *items;
  size_t count;
  bool tls;      /**< connections use TLS */
  bool in_order; /**< the servers are tried in the order of the text */
  char *chroot;  /**< "" if there is none; has the same address for the life of
                      the client */
  size_t chroot_len;
  char no_chroot[1];      /**< the `chroot` of hosts that were freed: "" */
  size_t in_turn;         /**< index of the server in turn */
  uint32_t address_index; /**< of the attempt among those at that server */
  uint32_t address_count; /**< of the attempts at that server, before the next
                               one is in turn */
  uint32_t address_total; /**< addresses of that server; 0: not yet resolved */
  size_t tried_count;     /**< servers tried without success in this round */
  size_t in_use; /**< index of the server with the present connection or
                      attempt; `count`: it is no longer in the list */
  lk_unsupported unsupported; /**< by the server in use */
} lk_hosts;

/**
 * Parse a connect string. If `tls` is set, connections use TLS even if the text
 * does not begin with "tls://". `*why` is set to a constant text about what is
 * invalid.
 * @return 0, LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY.
 */
int lk__hosts_init(lk_hosts *h, const lk_mem *mem, const char *text, bool tls,
                   const char **why);
void lk__hosts_free(lk_hosts *h);
/** Whether it is an address and not a name. */
bool lk__host_is_address(const char *host);

/** Put the servers in random order, unless `in_order` is set; `random` as in
    lk_hooks. */
void lk__hosts_shuffle(lk_hosts *h,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg);

/**
 * Replace the list by the servers of `fresh`, which is consumed, in random
 * order. The chroot stays. The server in turn stays, too, unless the client has
 * to move so that the load of the servers is balanced
 * (lk__choose_relocation()). With `in_order` it stays if it is listed, and
 * otherwise the first server is in turn.
 * @return whether another server is in turn now.
 */
bool lk__hosts_replace(lk_hosts *h, lk_hosts *fresh,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg);

static inline const lk_host *lk__hosts_current(const lk_hosts *h)
{
  return &h->items[h->in_turn];
}

/** Go on to the next address of the server in turn, or else to the next server.
    @return whether a round is over: all servers were tried. */
bool lk__hosts_next(lk_hosts *h);

/** The same without further addresses of the server in turn. */
bool lk__hosts_next_server(lk_hosts *h);

/** The driver reports `count` attempts at the server in turn. A later report
    does not raise the number, so that each server gets its turn. */
void lk__hosts_note_addresses(lk_hosts *h, uint32_t count);

/** A connection attempt to the server in turn begins. This server stays the one
    in use even if another server is in turn later or the list is replaced. */
void lk__hosts_use(lk_hosts *h);

/** Note that the server in use does not support the opcode with this index
    (< 64) until `until_ms`. The note holds for all servers at its name and
    port. */
void lk__hosts_mark_unsupported(lk_hosts *h, unsigned opcode_index,
                                int64_t until_ms);
/** Whether there is such a note for the server in use. */
bool lk__hosts_lack_support(const lk_hosts *h, unsigned opcode_index,
                            int64_t now);

/** The server in turn works: a new round begins with the server behind it. */
void lk__hosts_end_round(lk_hosts *h);

/** How often the pause between two rounds doubles until it is the longest. If a
 * client that holds a lock has lost one of the connections that maxClientCnxns
 * allows, others compete for it, each of which tries about once in a second. So
 * a holder tries after a few milliseconds at first: the server needs them to
 * notice that the old connection has ended. */
enum { LK_PAUSE_DOUBLINGS = 3, LK_HOLDER_PAUSE_DOUBLINGS = 8 };

/** The pause in ms before the next round of servers, with jitter. `failures`:
    the number of rounds that have failed in a row; `timeout_ms`: the session
    timeout; `doublings`: see above. */
int64_t lk__hosts_pause_ms(int32_t timeout_ms, unsigned failures,
                           unsigned doublings,
                           void (*random)(void *arg, void *out, size_t len),
                           void *arg);

/** The number of connection attempts of a round: one for each server, and one
    for each further address of the server in turn. */
uint64_t lk__hosts_count_endpoints(const lk_hosts *h);

/** The move of a client whose list of servers has changed. */
typedef enum lk_relocation {
  LK_RELOCATION_NONE,     /**< the client stays at its server */
  LK_RELOCATION_TO_ADDED, /**< it moves to a server that was not in the old
                               list */
  LK_RELOCATION_TO_KEPT   /**< it moves to another server that was in the old
                               list */
} lk_relocation;

/** How a list of servers has changed. */
typedef struct lk_list_change {
  size_t before; /**< servers of the old list */
  size_t after;  /**< servers of the new list */
  size_t kept;   /**< servers that are in both lists */
  bool listed;   /**< the client's server is in both lists */
} lk_list_change;

/**
 * Decide whether one client moves. If many clients are spread evenly over the
 * old list and each decides with this function, they are spread evenly over the
 * new list, and none moves without need. `random` is uniformly distributed over
 * its 2^32 values.
 */
lk_relocation lk__choose_relocation(const lk_list_change *change,
                                    uint32_t random);

#endif
