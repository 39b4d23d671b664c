/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/hosts.h"

#include "proto/wire/connect_string.h"

#include <string.h>

/* The longest pause between two rounds of servers is a tenth of the session
 * timeout, but within these limits. */
enum { MAX_CAP_MS = 1000, MIN_CAP_MS = 20 };

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

void lk__hosts_free(lk_hosts *h)
{
  lk__mem_free(h->mem, h->text);
  lk__mem_free(h->mem, h->chroot);
  lk__mem_free(h->mem, h->items);
  h->text = NULL;
  h->chroot = NULL;
  h->items = NULL;
  h->count = 0;
}

void lk__host_swap(lk_host *a, lk_host *b)
{
  lk_host copy = *a;

  *a = *b;
  *b = copy;
}

bool lk__host_is_address(const char *host)
{
  bool is_ipv6 = strchr(host, ':') != NULL;

  return is_ipv6 || host[strspn(host, "0123456789.")] == '\0';
}

void lk__hosts_shuffle(lk_hosts *h,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg)
{
  for (size_t i = h->count; i > 1; i--) {
    uint32_t r;

    random(arg, &r, sizeof r);
    lk__host_swap(&h->items[r % i], &h->items[i - 1]);
  }
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

void lk__hosts_note_addresses(lk_hosts *h, uint32_t count)
{
  if (h->address_total == 0)
    h->address_total = count;
  h->address_count = count < h->address_total ? count : h->address_total;
}

bool lk__hosts_next_server(lk_hosts *h)
{
  h->address_count = 0;
  return lk__hosts_next(h);
}

void lk__hosts_use(lk_hosts *h)
{
  h->in_use = h->in_turn;
  h->unsupported = h->items[h->in_turn].unsupported;
}

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

void lk__hosts_end_round(lk_hosts *h)
{
  h->tried_count = 0;
}

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
