/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Replacing the list of servers. */

#include "proto/engine/hosts.h"
#include "proto/engine/load_balancing.h"

/* The index of a server in a list; in->count: it is not listed. Names are
 * compared as text, not by their addresses. */
static size_t find_server(const lk_hosts *in, const lk_host *server)
{
  size_t i = 0;

  while (i < in->count && (in->items[i].port != server->port ||
                           strcmp(in->items[i].name, server->name) != 0))
    i++;
  return i;
}

static bool is_listed(const lk_hosts *in, const lk_host *server)
{
  return find_server(in, server) < in->count;
}

enum server_group { KEPT_SERVERS, ADDED_SERVERS };

/* Move the servers of one group to the front of a list that replaces `old`. */
static void move_to_front(lk_hosts *fresh, const lk_hosts *old,
                          enum server_group group)
{
  size_t moved = 0;

  for (size_t i = 0; i < fresh->count; i++) {
    enum server_group group_of_server =
        is_listed(old, &fresh->items[i]) ? KEPT_SERVERS : ADDED_SERVERS;

    if (group_of_server == group)
      lk__host_swap(&fresh->items[i], &fresh->items[moved++]);
  }
}

static lk_list_change compare_lists(const lk_hosts *h, const lk_hosts *fresh)
{
  lk_list_change change = {.before = h->count,
                           .after = fresh->count,
                           .listed = is_listed(fresh, lk__hosts_current(h))};

  for (size_t i = 0; i < h->count; i++) {
    if (is_listed(fresh, &h->items[i]))
      change.kept++;
  }
  return change;
}

/* Put the servers of `fresh` in the order in which they are tried, and set its
 * server in turn. Returns whether that is another server than in `h`. */
static bool order_servers(lk_hosts *fresh, const lk_hosts *h, uint32_t random)
{
  lk_list_change change = compare_lists(h, fresh);

  switch (lk__choose_relocation(&change, random)) {
  case LK_RELOCATION_NONE:
    fresh->in_turn = find_server(fresh, lk__hosts_current(h));
    fresh->address_index = h->address_index;
    fresh->address_count = h->address_count;
    fresh->address_total = h->address_total;
    return false;
  case LK_RELOCATION_TO_ADDED: move_to_front(fresh, h, ADDED_SERVERS); break;
  case LK_RELOCATION_TO_KEPT: move_to_front(fresh, h, KEPT_SERVERS); break;
  }
  return true;
}

/* Copy what is known about kept servers, and which server is in use. */
static void copy_server_facts(lk_hosts *fresh, const lk_hosts *h)
{
  for (size_t i = 0; i < h->count; i++) {
    size_t index = find_server(fresh, &h->items[i]);

    if (index < fresh->count)
      fresh->items[index].unsupported = h->items[i].unsupported;
  }
  fresh->in_use = h->in_use < h->count
                      ? find_server(fresh, &h->items[h->in_use])
                      : fresh->count;
  fresh->unsupported = h->unsupported;
}

bool lk__hosts_replace(lk_hosts *h, lk_hosts *fresh,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg)
{
  char *unused_chroot = fresh->chroot;
  uint32_t r;

  lk__hosts_shuffle(fresh, random, arg);
  random(arg, &r, sizeof r);
  bool another_in_turn = order_servers(fresh, h, r);

  copy_server_facts(fresh, h);
  /* lk_client_chroot() returns this pointer, so the chroot keeps its
   * address. */
  fresh->chroot = h->chroot;
  fresh->chroot_len = h->chroot_len;
  h->chroot = unused_chroot; /* is freed with the old list */
  lk__hosts_free(h);
  *h = *fresh;
  return another_in_turn;
}
