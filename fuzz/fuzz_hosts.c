/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/*
 * A connect string.
 *
 * Oracle: a string that is accepted, printed and parsed again names the same
 * servers and chroot. An error has a reason. Each server is tried once in a
 * round.
 */

#include "proto/engine/hosts.h"
#include "proto/wire/path.h"
#include "target.h"

#include <latchkey/client.h>

#include <stdio.h>

static void check_name(const lk_host *h)
{
  must(h->name[0] != '\0' && strlen(h->name) <= 255 && h->port > 0);
  for (const char *s = h->name; *s != '\0'; s++)
    must(*s > ' ' && *s < 0x7f && strchr(",/[]", *s) == NULL);
}

/* The connect string of the hosts: "name:port,…" and the chroot, with IPv6
 * addresses in brackets. */
static char *print_hosts(const lk_hosts *h)
{
  size_t room = h->count * 300 + h->chroot_len + 1, len = 0;
  char *text = malloc(room);

  must(text != NULL);
  for (size_t i = 0; i < h->count; i++) {
    const lk_host *at = &h->items[i];
    bool literal6 = strchr(at->name, ':') != NULL;

    check_name(at);
    len += (size_t)snprintf(text + len, room - len, "%s%s%s%s:%u",
                            i == 0 ? "" : ",", literal6 ? "[" : "", at->name,
                            literal6 ? "]" : "", (unsigned)at->port);
  }
  memcpy(text + len, h->chroot, h->chroot_len + 1);
  return text;
}

static void check_same_hosts(const lk_hosts *a, const lk_hosts *b)
{
  must(a->count == b->count && a->tls == b->tls &&
       strcmp(a->chroot, b->chroot) == 0);
  for (size_t i = 0; i < a->count; i++)
    must(strcmp(a->items[i].name, b->items[i].name) == 0 &&
         a->items[i].port == b->items[i].port);
}

static void print_and_parse(const lk_hosts *h)
{
  char *text = print_hosts(h);
  const char *why;
  lk_hosts again;

  must(lk__hosts_init(&again, &lk__mem_libc, text, h->tls, &why) == 0);
  check_same_hosts(h, &again);
  lk__hosts_free(&again);
  free(text);
}

static void check_rotation(lk_hosts *h)
{
  size_t tried = 0;

  do
    must(lk__hosts_current(h) == &h->items[tried]);
  while (!lk__hosts_next(h) && ++tried > 0);
  must(tried == h->count - 1 && h->in_turn == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  char *text = copy_as_text(data, size), why_not[64];
  const char *why;
  lk_hosts h;
  int err = lk__hosts_init(&h, &lk__mem_libc, text, false, &why);

  must(lk_hosts_check(text, why_not, sizeof why_not) == err);
  must((err == 0) == (why == NULL) && (err == 0) == (why_not[0] == '\0'));
  must(err == 0 || err == LK_ERR_BAD_HOSTS);
  free(text);
  if (err != 0)
    return 0;
  must(h.count > 0 && h.chroot_len == strlen(h.chroot));
  must(h.chroot_len == 0 || lk__path_valid(h.chroot, LK_PATH_OF_NODE));
  print_and_parse(&h);
  check_rotation(&h);
  lk__hosts_free(&h);
  return 0;
}
