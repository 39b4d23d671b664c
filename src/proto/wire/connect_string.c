/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/connect_string.h"

#include "proto/wire/path.h"

#include <latchkey/client.h>

#include <stdio.h>

enum { DEFAULT_PORT = 2181, DEFAULT_TLS_PORT = 2281, NAME_MAX_LEN = 255 };

static const char tls_prefix[] = "tls://";

typedef struct span {
  const char *at;
  size_t len;
} span;

static span trim_blanks(span s)
{
  while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t')) {
    s.at++;
    s.len--;
  }
  while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
    s.len--;
  return s;
}

/* The text of one server, up to the next comma or `end`, without blanks around
 * it. `*p` moves behind the comma. */
static span next_server_text(const char **p, const char *end)
{
  const char *comma = memchr(*p, ',', (size_t)(end - *p));
  const char *stop = comma == NULL ? end : comma;
  span s = {*p, (size_t)(stop - *p)};

  *p = comma == NULL ? end : comma + 1;
  return trim_blanks(s);
}

/* The parsing functions return NULL, or a text about what is invalid. */

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

static bool is_letter_or_digit(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9');
}

/* The underscore is in names of containers. */
static bool is_in_names(char c)
{
  return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_';
}

static const char *check_name(span name)
{
  if (name.len == 0)
    return "a host name is missing";
  if (name.len > NAME_MAX_LEN)
    return "a host name is longer than 255 bytes";
  for (size_t i = 0; i < name.len; i++) {
    if (name.at[i] == '[' || name.at[i] == ']')
      return "brackets go around a whole IPv6 address, as in [::1]:2181";
    if (!is_in_names(name.at[i]))
      return "a host name holds a blank or another character it cannot have";
  }
  return NULL;
}

/* The characters of an IPv6 address, which has two colons at least, and of its
 * zone. The resolver checks the rest. */
static const char *check_bracketed(span address)
{
  const char *zone = memchr(address.at, '%', address.len);
  size_t len = zone == NULL ? address.len : (size_t)(zone - address.at);
  size_t colons = 0;
  bool is_valid = address.len <= NAME_MAX_LEN;

  for (size_t i = 0; i < len; i++) {
    colons += address.at[i] == ':';
    is_valid = is_valid && address.at[i] != '\0' &&
               strchr("0123456789abcdefABCDEF:.", address.at[i]) != NULL;
  }
  for (size_t i = len + 1; i < address.len; i++)
    is_valid = is_valid && is_in_names(address.at[i]);
  return is_valid && colons >= 2
             ? NULL
             : "brackets hold an IPv6 address, as in [::1]:2181";
}

/* Parse "[address]" or "[address]:port". Without a port `*port` is
 * unchanged. */
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

/* Parse the text of one server. Without a port `*port` is unchanged. */
static const char *parse_entry(span s, span *name, uint16_t *port)
{
  const char *colon = memchr(s.at, ':', s.len);
  const char *why = NULL;

  *name = s;
  if (s.at[0] == '[') {
    why = parse_bracketed(s, name, port);
    return why != NULL ? why : check_bracketed(*name);
  }
  if (colon != NULL) {
    size_t len = (size_t)(colon - s.at);

    if (memchr(colon + 1, ':', s.len - len - 1) != NULL)
      return "an IPv6 address needs brackets, as in [::1]:2181";
    *name = (span){s.at, len};
    why = parse_port((span){colon + 1, s.len - len - 1}, port);
  }
  return why != NULL ? why : check_name(*name);
}

/* Skip "tls://" at the start of the text, if it is there, and set `*tls` then.
 * Returns NULL if the text begins with another scheme. */
static const char *skip_scheme(const char *text, bool *tls)
{
  size_t len = sizeof tls_prefix - 1;

  text += strspn(text, " \t");
  if (strncmp(text, tls_prefix, len) == 0) {
    *tls = true;
    return text + len;
  }
  /* another scheme would end with the first "/" of the text */
  len = strcspn(text, ",/");
  bool other_scheme =
      len > 0 && text[len - 1] == ':' && strncmp(text + len, "//", 2) == 0;

  return other_scheme ? NULL : text;
}

/* Whether the text has a "tls://" before another server than the first. `slash`
 * is the first "/" of the text, or its end. */
static bool has_scheme_again(const char *text, const char *slash)
{
  size_t len = strlen("tls:");

  if ((size_t)(slash - text) < len || strncmp(slash, "//", 2) != 0)
    return false;
  const char *at = slash - len;

  return strncmp(at, tls_prefix, len) == 0 &&
         (at == text || strchr(", \t", at[-1]) != NULL);
}

/* Find the end of the servers, where the chroot begins. A chroot of "/" is
 * none: its length is set to 0. */
static const char *find_chroot(const char *text, span *chroot)
{
  size_t len = strlen(text);
  const char *slash = strchr(text, '/');
  const char *end = slash == NULL ? text + len : slash;

  *chroot = trim_blanks((span){end, len - (size_t)(end - text)});
  if (chroot->len == 1)
    chroot->len = 0;
  return end;
}

/* Empty texts between two commas do not count. */
static size_t count_servers(const char *text, const char *end)
{
  size_t count = 0;

  for (const char *p = text; p < end;) {
    if (next_server_text(&p, end).len > 0)
      count++;
  }
  return count;
}

/* Split `text`, a copy that this function changes, into the names of servers.
 * out->servers has room for all of them. */
static const char *split_servers(lk_connect_string *out, char *text,
                                 size_t hosts_len)
{
  const char *end = text + hosts_len;

  for (const char *p = text; p < end;) {
    span name, s = next_server_text(&p, end);
    uint16_t port = out->tls ? DEFAULT_TLS_PORT : DEFAULT_PORT;

    if (s.len == 0)
      continue;
    const char *why = parse_entry(s, &name, &port);

    if (why != NULL)
      return why;
    /* `name` is a part of `text`, and may be followed by blanks or a port. */
    text[(name.at - text) + (ptrdiff_t)name.len] = '\0';
    out->servers[out->count++] = (lk_address){.name = name.at, .port = port};
  }
  return out->count == 0 ? "no host is named" : NULL;
}

/* Parse the servers, which are the text from `text` to `end`, and check the
 * chroot. `*why` stays NULL if there is no memory. */
static int parse_servers_and_chroot(lk_connect_string *out, const lk_mem *mem,
                                    const char *text, const char *end,
                                    span chroot, const char **why)
{
  size_t len = (size_t)(end - text);

  out->text = lk__mem_new(mem, len + 1);
  out->chroot = lk__mem_new(mem, chroot.len + 1);
  /* One more, since the size must not be 0. */
  out->servers =
      lk__mem_new(mem, (count_servers(text, end) + 1) * sizeof(lk_address));
  if (out->text == NULL || out->chroot == NULL || out->servers == NULL)
    return LK_ERR_NO_MEMORY;
  memcpy(out->text, text, len);
  memcpy(out->chroot, chroot.at, chroot.len);
  out->chroot_len = chroot.len;
  *why = split_servers(out, out->text, len);
  if (*why == NULL && chroot.len > 0 &&
      !lk__path_valid(out->chroot, LK_PATH_OF_NODE))
    *why = "what follows the first / must be a valid path (the chroot)";
  return *why == NULL ? 0 : LK_ERR_BAD_HOSTS;
}

int lk__connect_string_parse(lk_connect_string *out, const lk_mem *mem,
                             const char *text, bool tls, const char **why)
{
  span chroot;

  *out = (lk_connect_string){.tls = tls};
  *why = NULL;
  text = skip_scheme(text, &out->tls);
  if (text == NULL) {
    *why = "only tls:// may come before the servers";
    return LK_ERR_BAD_HOSTS;
  }
  const char *end = find_chroot(text, &chroot);

  if (has_scheme_again(text, end)) {
    *why = "tls:// stands once, before the first server";
    return LK_ERR_BAD_HOSTS;
  }
  int err = parse_servers_and_chroot(out, mem, text, end, chroot, why);

  if (err != 0)
    lk__connect_string_free(out, mem);
  return err;
}

void lk__connect_string_free(lk_connect_string *s, const lk_mem *mem)
{
  lk__mem_free(mem, s->text);
  lk__mem_free(mem, s->chroot);
  lk__mem_free(mem, s->servers);
  *s = (lk_connect_string){.tls = s->tls};
}

/* Parse a program's connect string. NULL is invalid, as the empty text is. */
static int parse_hosts(lk_connect_string *out, const char *hosts,
                       const char **why)
{
  bool tls = false; /* unless the text says so */

  return lk__connect_string_parse(out, &lk__mem_libc,
                                  hosts == NULL ? "" : hosts, tls, why);
}

int lk_hosts_check(const char *hosts, char *text, size_t size)
{
  lk_connect_string s;
  const char *why = "";
  int err = parse_hosts(&s, hosts, &why);

  if (err == 0)
    lk__connect_string_free(&s, &lk__mem_libc);
  if (size > 0)
    snprintf(text, size, "%s", err == 0 || why == NULL ? "" : why);
  return err;
}

int lk_hosts_each(const char *hosts,
                  void (*each)(const char *host, uint16_t port, void *arg),
                  void *arg)
{
  lk_connect_string s;
  const char *why;
  int err = parse_hosts(&s, hosts, &why);

  if (err != 0)
    return err;
  for (size_t i = 0; i < s.count; i++)
    each(s.servers[i].name, s.servers[i].port, arg);
  lk__connect_string_free(&s, &lk__mem_libc);
  return 0;
}
