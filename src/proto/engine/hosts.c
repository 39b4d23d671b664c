/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/hosts.h"
#include "proto/engine/load_balancing.h"
#include "proto/wire/path.h"

#include <latchkey/client.h>

#include <stdio.h>

enum { DEFAULT_PORT = 2181, DEFAULT_TLS_PORT = 2281, NAME_MAX_LEN = 255 };

static const char tls_prefix[] = "tls://";

typedef struct span {
  const char *at;
  size_t len;
} span;

static span trim(span s)
{
  while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
    s.at++;
    s.len--;
  }
  while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
    s.len--;
  return s;
}

/* The entry up to the next comma or `end`; *p moves behind it. */
static span entry(const char **p, const char *end)
{
  const char *comma = memchr(*p, ',', (size_t)(end - *p));
  const char *stop = comma == NULL ? end : comma;
  span s = {*p, (size_t)(stop - *p)};

  *p = comma == NULL ? end : comma + 1;
  return trim(s);
}

static const char *parse_port(span s, uint16_t *out)
{
  unsigned value = 0;

  if (s.len == 0 || s.len > 5)
    return "a port is a number from 1 to 65535";
  for (size_t i = 0; i < s.len; i++) {
    if (s.at[i] < '0' || s.at[i] > '9')
      return "a port is a number from 1 to 65535";
    value = value * 10 + (unsigned)(s.at[i] - '0');
  }
  if (value < 1 || value > 65535)
    return "a port is a number from 1 to 65535";
  *out = (uint16_t)value;
  return NULL;
}

static const char *check_name(span name)
{
  if (name.len == 0)
    return "a host name is missing";
  if (name.len > NAME_MAX_LEN)
    return "a host name is longer than 255 bytes";
  for (size_t i = 0; i < name.len; i++) {
    unsigned char ch = (unsigned char)name.at[i];

    if (ch <= ' ' || ch >= 0x7f)
      return "a host name holds a blank or another character it cannot have";
    if (ch == '[' || ch == ']')
      return "brackets go around a whole IPv6 address, as in [::1]:2181";
  }
  return NULL;
}

/* "[address]" or "[address]:port" */
static const char *parse_bracketed(span s, span *name, uint16_t *port)
{
  const char *close = memchr(s.at, ']', s.len);

  if (close == NULL)
    return "a bracket is not closed, as in [::1]:2181";
  *name = (span){s.at + 1, (size_t)(close - s.at) - 1};
  span rest = {close + 1, s.len - (size_t)(close + 1 - s.at)};

  if (rest.len == 0)
    return NULL;
  if (rest.at[0] != ':')
    return "only :port may follow a closing bracket";
  return parse_port((span){rest.at + 1, rest.len - 1}, port);
}

/* NULL, or what is wrong with one entry. One without a port leaves `*port`. */
static const char *parse_entry(span s, span *name, uint16_t *port)
{
  const char *why = NULL;

  *name = s;
  if (s.at[0] == '[') {
    why = parse_bracketed(s, name, port);
  } else {
    const char *colon = memchr(s.at, ':', s.len);

    if (colon != NULL) {
      size_t len = (size_t)(colon - s.at);

      if (memchr(colon + 1, ':', s.len - len - 1) != NULL)
        return "an IPv6 address needs brackets, as in [::1]:2181";
      *name = (span){s.at, len};
      why = parse_port((span){colon + 1, s.len - len - 1}, port);
    }
  }
  return why != NULL ? why : check_name(*name);
}

/* What follows "tls://"; `*tls` is set if that was there. NULL: it begins like
 * the URL of something else. */
static const char *skip_scheme(const char *text, bool *tls)
{
  size_t len = sizeof tls_prefix - 1;

  text += strspn(text, " \t");
  if (strncmp(text, tls_prefix, len) == 0) {
    *tls = true;
    return text + len;
  }
  len = strcspn(text, ",/");
  return len > 0 && text[len - 1] == ':' && strncmp(text + len, "//", 2) == 0
             ? NULL
             : text;
}

/* Whether "tls://" is in front of a server here, where the first slash is. */
static bool has_scheme_again(const char *text, const char *slash)
{
  size_t len = strlen("tls:");

  if ((size_t)(slash - text) < len || strncmp(slash, "//", 2) != 0)
    return false;
  const char *at = slash - len;

  return strncmp(at, tls_prefix, len) == 0 &&
         (at == text || strchr(", \t", at[-1]) != NULL);
}

/* Where the servers end and the chroot begins; "" if there is none. */
static const char *split(const char *text, span *chroot)
{
  size_t len = strlen(text);
  const char *slash = strchr(text, '/');

  const char *end = slash == NULL ? text + len : slash;

  *chroot = trim((span){end, len - (size_t)(end - text)});
  if (chroot->len == 1)
    chroot->len = 0;
  return end;
}

static size_t count_entries(const char *text, const char *end)
{
  size_t count = 0;

  for (const char *p = text; p < end;)
    count += entry(&p, end).len > 0;
  return count;
}

/* Cut `text`, which is ours, into names; items has room for all. */
static const char *cut(lk_hosts *h, char *text, size_t hosts_len)
{
  const char *end = text + hosts_len;

  for (const char *p = text; p < end;) {
    span name, s = entry(&p, end);
    uint16_t port = h->tls ? DEFAULT_TLS_PORT : DEFAULT_PORT;

    if (s.len == 0)
      continue;
    const char *why = parse_entry(s, &name, &port);

    if (why != NULL)
      return why;
    text[(name.at - text) + (ptrdiff_t)name.len] = '\0';
    h->items[h->count++] = (lk_host){.name = name.at, .port = port};
  }
  return h->count == 0 ? "no host is named" : NULL;
}

int lk__hosts_init(lk_hosts *h, const lk_mem *mem, const char *text, bool tls,
                   const char **why)
{
  span chroot;

  *h = (lk_hosts){.mem = mem, .tls = tls};
  *why = NULL;
  text = skip_scheme(text, &h->tls);
  if (text == NULL) {
    *why = "only tls:// may come before the servers";
    return LK_ERR_BAD_HOSTS;
  }
  const char *end = split(text, &chroot);
  size_t hosts_len = (size_t)(end - text);

  if (has_scheme_again(text, end)) {
    *why = "tls:// stands once, before the first server";
    return LK_ERR_BAD_HOSTS;
  }
  h->text = lk__mem_new(mem, hosts_len + 1);
  h->chroot = lk__mem_new(mem, chroot.len + 1);
  h->items = lk__mem_new(mem, (count_entries(text, end) + 1) * sizeof(lk_host));
  if (h->text == NULL || h->chroot == NULL || h->items == NULL) {
    lk__hosts_free(h);
    return LK_ERR_NO_MEMORY;
  }
  memcpy(h->text, text, hosts_len);
  memcpy(h->chroot, chroot.at, chroot.len);
  h->chroot_len = chroot.len;
  *why = cut(h, h->text, hosts_len);
  if (*why == NULL && chroot.len > 0 && !lk__path_valid(h->chroot, false))
    *why = "what follows the first / must be a valid path (the chroot)";
  if (*why == NULL)
    return 0;
  lk__hosts_free(h);
  return LK_ERR_BAD_HOSTS;
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

static void swap(lk_host *a, lk_host *b)
{
  lk_host other = *a;

  *a = *b;
  *b = other;
}

void lk__hosts_shuffle(lk_hosts *h,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg)
{
  for (size_t i = h->count; i > 1; i--) {
    uint32_t r;

    random(arg, &r, sizeof r);
    swap(&h->items[r % i], &h->items[i - 1]);
  }
}

/* ---- another list ------------------------------------------------------ */

/* Where a server stands in a list; its count: nowhere. Names are compared as
 * they are written. */
static size_t find(const lk_hosts *in, const lk_host *server)
{
  size_t i = 0;

  while (i < in->count && (in->items[i].port != server->port ||
                           strcmp(in->items[i].name, server->name) != 0))
    i++;
  return i;
}

static bool lists(const lk_hosts *in, const lk_host *server)
{
  return find(in, server) < in->count;
}

/* First those that `before` lists, or first those that it does not; otherwise
 * as they are. */
static void put_first(lk_hosts *h, const lk_hosts *before, bool listed)
{
  size_t first = 0;

  for (size_t i = 0; i < h->count; i++) {
    if (lists(before, &h->items[i]) == listed)
      swap(&h->items[i], &h->items[first++]);
  }
}

static lk_list_change compare(const lk_hosts *h, const lk_hosts *fresh)
{
  lk_list_change change = {.before = h->count,
                           .after = fresh->count,
                           .listed = lists(fresh, lk__hosts_current(h))};

  for (size_t i = 0; i < h->count; i++)
    change.kept += lists(fresh, &h->items[i]);
  return change;
}

/* The order of `fresh`, and which of it is in turn. false: still the same. */
static bool arrange(lk_hosts *fresh, const lk_hosts *h, uint32_t random)
{
  lk_list_change change = compare(h, fresh);

  switch (lk__balance_load(&change, random)) {
  case LK_RELOCATION_NONE:
    fresh->at = find(fresh, lk__hosts_current(h));
    fresh->address = h->address;
    fresh->addresses = h->addresses;
    return false;
  case LK_RELOCATION_TO_ADDED: put_first(fresh, h, false); break;
  case LK_RELOCATION_TO_KEPT: put_first(fresh, h, true); break;
  }
  return true;
}

/* What is known of servers goes with them, and so does which one is in use. */
static void keep_facts(lk_hosts *fresh, const lk_hosts *h)
{
  for (size_t i = 0; i < h->count; i++) {
    size_t place = find(fresh, &h->items[i]);

    if (place < fresh->count)
      fresh->items[place].lacks = h->items[i].lacks;
  }
  fresh->used =
      h->used < h->count ? find(fresh, &h->items[h->used]) : fresh->count;
  fresh->lacks = h->lacks;
}

bool lk__hosts_replace(lk_hosts *h, lk_hosts *fresh,
                       void (*random)(void *arg, void *out, size_t len),
                       void *arg)
{
  char *chroot = fresh->chroot;
  uint32_t r;

  lk__hosts_shuffle(fresh, random, arg);
  random(arg, &r, sizeof r);
  bool another = arrange(fresh, h, r);

  keep_facts(fresh, h);
  fresh->chroot = h->chroot;
  fresh->chroot_len = h->chroot_len;
  h->chroot = chroot;
  lk__hosts_free(h);
  *h = *fresh;
  return another;
}

/* ---- turns ------------------------------------------------------------- */

bool lk__hosts_next(lk_hosts *h)
{
  if (++h->address < h->addresses)
    return false;
  h->address = 0;
  h->addresses = 0;
  h->at = (h->at + 1) % h->count;
  if (++h->tried < h->count)
    return false;
  h->tried = 0;
  return true;
}

void lk__hosts_use(lk_hosts *h)
{
  h->used = h->at;
  h->lacks = h->items[h->at].lacks;
}

void lk__hosts_mark_unsupported(lk_hosts *h, unsigned which, int64_t until_ms)
{
  h->lacks.requests |= UINT64_C(1) << which;
  h->lacks.until_ms = until_ms;
  if (h->used < h->count)
    h->items[h->used].lacks = h->lacks;
}

bool lk__hosts_lack_support(const lk_hosts *h, unsigned which, int64_t now)
{
  return (h->lacks.requests >> which & 1) != 0 && now < h->lacks.until_ms;
}

void lk__hosts_end_round(lk_hosts *h)
{
  h->tried = 0;
}

int lk_hosts_check(const char *hosts, char *text, size_t size)
{
  lk_hosts h;
  const char *why = "";
  int err = lk__hosts_init(&h, &lk__mem_libc, hosts == NULL ? "" : hosts, false,
                           &why);

  if (err == 0)
    lk__hosts_free(&h);
  if (size > 0)
    snprintf(text, size, "%s", err == 0 ? "" : why == NULL ? "" : why);
  return err;
}

int lk_hosts_each(const char *hosts,
                  void (*each)(const char *host, uint16_t port, void *arg),
                  void *arg)
{
  lk_hosts h;
  const char *why;
  int err = lk__hosts_init(&h, &lk__mem_libc, hosts == NULL ? "" : hosts, false,
                           &why);

  if (err != 0)
    return err;
  for (size_t i = 0; i < h.count; i++)
    each(h.items[i].name, h.items[i].port, arg);
  lk__hosts_free(&h);
  return 0;
}
