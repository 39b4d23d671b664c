/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/hosts.h"

#include <string.h>

#include "proto/wire/connect_string.h"

/* ---- creation ------------------------------------------------------------ */

int lk__hosts_init(lk_hosts *h, const lk_mem *mem, const char *text, bool tls,
                   const char **why)
{
  lk_connect_string s;
  int err = lk__connect_string_parse(&s, mem, text, tls, why);

  *h = (lk_hosts){.mem = mem, .tls = tls}; /* lk__hosts_free() accepts this */
  if (err != 0)
    return err;
  *h = (lk_hosts){.mem = mem,
                  .text = s.text,
                  .items = lk__mem_new(mem, s.count * sizeof(lk_host)),
                  .count = s.count,
                  .tls = s.tls,
                  .chroot = s.chroot,
                  .chroot_len = s.chroot_len};
  if (h->items == NULL) {
    lk__connect_string_free(&s, mem);
    return LK_ERR_NO_MEMORY;
  }
  for (size_t i = 0; i < s.count; i++)
    h->items[i] =
        (lk_host){.name = s.servers[i].name, .port = s.servers[i].port};
  lk__mem_free(mem, s.servers);
  return 0;
}

static void host_swap(lk_host *a, lk_host *b)
{
  lk_host copy = *a;

  *a = *b;
  *b = copy;
}

void lk__hosts_shuffle(lk_hosts *h,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg)
{
  if (h->in_order)
    return;
  for (size_t i = h->count; i > 1; i--) {
    uint32_t r;

    random(arg, &r, sizeof r);
    host_swap(&h->items[r % i], &h->items[i - 1]);
  }
}

/* ---- the server in turn -------------------------------------------------- */

void lk__hosts_use(lk_hosts *h)
{
  h->in_use = h->in_turn;
  h->unsupported = h->items[h->in_turn].unsupported;
}

void lk__hosts_note_addresses(lk_hosts *h, uint32_t count)
{
  if (h->address_total == 0)
    h->address_total = count;
  h->address_count = count < h->address_total ? count : h->address_total;
}

bool lk__hosts_next(lk_hosts *h)
{
  if (++h->address_index < h->address_count)
    return false;
  h->address_index = 0;
  h->address_count = 0;
  h->address_total = 0;
  h->in_turn = (h->in_turn + 1) % h->count;
  if (++h->tried_count < h->count)
    return false;
  h->tried_count = 0;
  return true;
}

bool lk__hosts_next_server(lk_hosts *h)
{
  h->address_count = 0;
  return lk__hosts_next(h);
}

void lk__hosts_end_round(lk_hosts *h)
{
  h->tried_count = 0;
}

/* The longest pause between two rounds of servers is a tenth of the session
 * timeout, but within these limits. */
enum { MAX_CAP_MS = 1000, MIN_CAP_MS = 20 };

int64_t lk__hosts_pause_ms(int32_t timeout_ms, unsigned failures,
                           unsigned doublings,
                           void (*random)(void *arg, void *out, size_t len),
                           void *arg)
{
  int64_t cap = timeout_ms / 10;
  uint32_t r;

  if (cap > MAX_CAP_MS)
    cap = MAX_CAP_MS;
  if (cap < MIN_CAP_MS)
    cap = MIN_CAP_MS;
  int64_t pause = failures > doublings ? cap : cap >> (doublings - failures);

  random(arg, &r, sizeof r);
  int64_t jitter = (int64_t)(r % (uint32_t)(pause / 2 + 1));

  return pause / 2 + jitter;
}

uint64_t lk__hosts_count_endpoints(const lk_hosts *h)
{
  uint64_t further_addresses = h->address_total > 1 ? h->address_total - 1 : 0;

  return h->count + further_addresses;
}

bool lk__host_is_address(const char *host)
{
  bool is_ipv6 = strchr(host, ':') != NULL;

  return is_ipv6 || host[strspn(host, "0123456789.")] == '\0';
}

/* ---- requests that a server does not support ----------------------------- */

void lk__hosts_mark_unsupported(lk_hosts *h, unsigned opcode_index,
                                int64_t until_ms)
{
  h->unsupported.opcodes |= UINT64_C(1) << opcode_index;
  h->unsupported.until_ms = until_ms;
  bool is_listed = h->in_use < h->count;

  if (is_listed)
    h->items[h->in_use].unsupported = h->unsupported;
}

bool lk__hosts_lack_support(const lk_hosts *h, unsigned opcode_index,
                            int64_t now)
{
  uint64_t opcode_bit = UINT64_C(1) << opcode_index;

  return (h->unsupported.opcodes & opcode_bit) != 0 &&
         now < h->unsupported.until_ms;
}

/* ---- load balancing ------------------------------------------------------ */

/* Draw true with this probability. `random` is uniform over its 2^32 values. */
static bool draw(double probability, uint32_t random)
{
  const double values = 4294967296.0; /* 2^32 */

  return (double)random / values < probability;
}

/* The list has more servers than before. A kept server keeps before/after of
 * its clients; the others move to added servers. */
static lk_relocation balance_grown_list(double before, double after,
                                        bool listed, uint32_t random)
{
  return listed && draw(before / after, random) ? LK_RELOCATION_NONE
                                                : LK_RELOCATION_TO_ADDED;
}

/* The list has no more servers than before. Only the clients of the removed
 * servers move, of which there are before - kept. Each server should have
 * 1/after of all clients in the end. A kept server has 1/before of them
 * already, and gets the rest from the removed servers. */
static lk_relocation balance_shrunk_list(double before, double after,
                                         double kept, uint32_t random)
{
  double to_kept = kept * (before - after) / (after * (before - kept));

  return draw(to_kept, random) ? LK_RELOCATION_TO_KEPT : LK_RELOCATION_TO_ADDED;
}

lk_relocation lk__choose_relocation(const lk_list_change *change,
                                    uint32_t random)
{
  double before = (double)change->before;
  double after = (double)change->after;

  if (change->after > change->before)
    return balance_grown_list(before, after, change->listed, random);
  if (change->listed)
    return LK_RELOCATION_NONE;
  return balance_shrunk_list(before, after, (double)change->kept, random);
}

/* ---- another list of servers --------------------------------------------- */

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
      host_swap(&fresh->items[i], &fresh->items[moved++]);
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

  if (fresh->in_order && !change.listed)
    return true; /* the first server is in turn */
  lk_relocation relocation = fresh->in_order
                                 ? LK_RELOCATION_NONE
                                 : lk__choose_relocation(&change, random);

  switch (relocation) {
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

  fresh->in_order = h->in_order;
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

/* ---- the end ------------------------------------------------------------- */

void lk__hosts_free(lk_hosts *h)
{
  lk__mem_free(h->mem, h->text);
  lk__mem_free(h->mem, h->chroot);
  lk__mem_free(h->mem, h->items);
  h->text = NULL;
  h->chroot = h->no_chroot;
  h->items = NULL;
  h->count = 0;
}
