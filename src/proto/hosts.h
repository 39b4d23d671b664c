/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_HOSTS_H
#define LK_PROTO_HOSTS_H

#include "base/mem.h"

typedef struct lk_host {
  const char *name; /**< no brackets */
  uint16_t port;
  uint32_t address;    /**< which of its addresses the rest is about */
  uint64_t lacks;      /**< requests that it does not know, a bit for each */
  int64_t lacks_until; /**< then it is asked again: servers are upgraded */
} lk_host;

/** The servers of a connect string and which one is tried. */
typedef struct lk_hosts {
  const lk_mem *mem;
  char *text; /**< the names, cut up */
  lk_host *items;
  size_t count;
  char *chroot; /**< "" if none; stays where it is */
  size_t chroot_len;
  size_t at;          /**< the one in turn */
  uint32_t address;   /**< which of its addresses */
  uint32_t addresses; /**< how many it has, as far as known */
  size_t tried;       /**< hosts tried without success in this round */
} lk_hosts;

/**
 * Parse a connect string. `why` gets what is wrong, a constant text.
 * @return 0, LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY.
 */
int lk__hosts_init(lk_hosts *h, const lk_mem *mem, const char *text,
                   const char **why);
void lk__hosts_free(lk_hosts *h);

/** Put the servers in random order; `random` as in lk_hooks. */
void lk__hosts_shuffle(lk_hosts *h,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg);

/**
 * Take over the servers of `fresh`, which is used up, in random order. The
 * chroot stays, and so does the server in turn, unless it has to be another for
 * the sake of balance (rebalance.h).
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

/** The one in turn does not know a request, `which` < 64 of those there are,
    or so we say until then. */
void lk__hosts_lack(lk_hosts *h, unsigned which, int64_t until);
bool lk__hosts_lacks(const lk_hosts *h, unsigned which, int64_t now);

/** The one in turn works: a new round begins with the next. */
void lk__hosts_worked(lk_hosts *h);

#endif
