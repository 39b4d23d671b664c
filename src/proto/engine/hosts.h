/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_HOSTS_H
#define LK_PROTO_ENGINE_HOSTS_H

#include "base/mem.h"

/** Requests that a server does not support. */
typedef struct lk_unsupported {
  uint64_t opcodes; /**< a bit for each, by its index in lk__opcodes */
  int64_t until_ms; /**< then they are tried again: servers are upgraded */
} lk_unsupported;

typedef struct lk_host {
  const char *name; /**< no brackets */
  uint16_t port;
  lk_unsupported unsupported; /**< all servers of that name and port */
} lk_host;

/** The servers of a client, and the one in turn. */
typedef struct lk_hosts {
  const lk_mem *mem;
  char *text; /**< the names, cut up */
  lk_host *items;
  size_t count;
  bool tls;     /**< they are reached by TLS */
  char *chroot; /**< "" if none; stays where it is */
  size_t chroot_len;
  size_t at;                  /**< the one in turn */
  uint32_t address;           /**< which of its addresses */
  uint32_t addresses;         /**< how many it has, as far as known */
  size_t tried;               /**< hosts tried without success in this round */
  size_t used;                /**< the one of the present connection or attempt;
                                   `count`: it is not listed any more */
  lk_unsupported unsupported; /**< of that one */
} lk_hosts;

/**
 * Parse a connect string. `tls`: the servers are reached by TLS, whether the
 * text says so or not. `why` gets what is invalid, a constant text.
 * @return 0, LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY.
 */
int lk__hosts_init(lk_hosts *h, const lk_mem *mem, const char *text, bool tls,
                   const char **why);
void lk__hosts_free(lk_hosts *h);
void lk__host_swap(lk_host *a, lk_host *b);

/** Put the servers in random order; `random` as in lk_hooks. */
void lk__hosts_shuffle(lk_hosts *h,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg);

/**
 * Take over the servers of `fresh`, which is used up, in random order. The
 * chroot stays, and so does the server in turn, unless it has to be another for
 * the sake of balance (load_balancing.h).
 * @return whether it is another.
 */
bool lk__hosts_replace(lk_hosts *h, lk_hosts *fresh,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg);

static inline const lk_host *lk__hosts_current(const lk_hosts *h)
{
  return &h->items[h->at];
}

/** The next address, or the next server. true: a round is over. */
bool lk__hosts_next(lk_hosts *h);

/** A connection attempt to the server in turn begins: that server is in use
    from now on, also when another one is in turn or the list is replaced. */
void lk__hosts_use(lk_hosts *h);

/** Note until when the server in use counts as not supporting the request
    `which` (< 64). The note belongs to its name and port. */
void lk__hosts_mark_unsupported(lk_hosts *h, unsigned which, int64_t until_ms);
bool lk__hosts_lack_support(const lk_hosts *h, unsigned which, int64_t now);

/** The server in turn works: a new round begins behind it. */
void lk__hosts_end_round(lk_hosts *h);

/** The pause before the next round, in ms, with jitter: after so many failed
    ones, at a session timeout of `timeout_ms`. */
int64_t lk__hosts_pause_ms(int32_t timeout_ms, unsigned failures,
                           void (*random)(void *arg, void *out, size_t len),
                           void *arg);

/** How many are tried in a round: the servers, and further addresses of the one
    in turn. */
size_t lk__hosts_count_endpoints(const lk_hosts *h);

#endif
