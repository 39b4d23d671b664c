/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Parsing the text of an ensemble's configuration, of lines such as
 * "server.1=host:2888:3888:participant;host:2181" and "version=100000000". */

#include <latchkey/ensemble.h>

typedef struct span {
  const char *at;
  size_t len;
} span;

/* Cut off and return the text before the first `c`, or all of it if there is no
 * `c`. `s` then begins behind `c`. */
static span cut_until(span *s, char c)
{
  const char *end = s->len == 0 ? NULL : memchr(s->at, c, s->len);
  span first = {s->at, end == NULL ? s->len : (size_t)(end - s->at)};
  size_t removed = end == NULL ? s->len : first.len + 1;

  s->at += removed;
  s->len -= removed;
  return first;
}

/* Remove `text` from the start of `s`; false: `s` does not begin with it. */
static bool skip_prefix(span *s, const char *text)
{
  size_t len = strlen(text);

  if (s->len < len || memcmp(s->at, text, len) != 0)
    return false;
  s->at += len;
  s->len -= len;
  return true;
}

/* Remove `text` from the end of `s`; false: `s` does not end with it. */
static bool drop_suffix(span *s, const char *text)
{
  size_t len = strlen(text);

  if (s->len < len || memcmp(s->at + s->len - len, text, len) != 0)
    return false;
  s->len -= len;
  return true;
}

/* The value of a digit, or of a hexadecimal one in lower case; 16: `c` is no
 * such digit. */
static unsigned digit_of(char c)
{
  if (c >= '0' && c <= '9')
    return (unsigned)(c - '0');
  if (c >= 'a' && c <= 'f')
    return (unsigned)(c - 'a') + 10;
  return 16;
}

/* Parse a number of at most `most`. false: the text is no such number. */
static bool parse_number(span s, unsigned base, uint64_t most, uint64_t *out)
{
  uint64_t value = 0;

  for (size_t i = 0; i < s.len; i++) {
    unsigned digit = digit_of(s.at[i]);

    if (digit >= base || value > (most - digit) / base)
      return false;
    value = value * base + digit;
  }
  *out = value;
  return s.len > 0;
}

/* Parse the address for clients, "host:port" or "port". An IPv6 address is in
 * brackets. */
static bool read_client(span s, lk_server_entry *out)
{
  size_t port_at = s.len; /* the index behind the last colon; 0: no colon */
  uint64_t port;

  while (port_at > 0 && s.at[port_at - 1] != ':')
    port_at--;
  span port_text = {s.at + port_at, s.len - port_at};

  if (!parse_number(port_text, 10, UINT16_MAX, &port) || port == 0)
    return false;
  span host = {s.at, port_at == 0 ? 0 : port_at - 1};

  if (host.len > 1 && host.at[0] == '[' && host.at[host.len - 1] == ']')
    host = (span){host.at + 1, host.len - 2};
  out->client_host = lk_bytes_of(host.at, host.len);
  out->client_port = (uint16_t)port;
  return port_at == 0 || host.len > 0; /* ":port" without a host is invalid */
}

/* Parse a line behind "server.": ID=PEERS[:ROLE][;CLIENT]. */
static bool read_member(span s, lk_server_entry *out)
{
  span id = cut_until(&s, '=');
  span peers = cut_until(&s, ';');
  uint64_t n;

  /* Without an address for clients the host is empty, but not NULL. */
  *out = (lk_server_entry){.client_host = {s.at, 0}};
  if (!parse_number(id, 10, INT64_MAX, &n) ||
      (s.len > 0 && !read_client(s, out)))
    return false;
  out->id = (int64_t)n;
  out->observer = drop_suffix(&peers, ":observer");
  if (!out->observer)
    (void)drop_suffix(&peers, ":participant");
  out->peers = lk_bytes_of(peers.at, peers.len);
  return peers.len > 0;
}

/* Take the next line from `text`; false: there is none. */
static bool next_line(lk_bytes *text, span *out)
{
  span s = {text->at, text->len};

  if (s.len == 0)
    return false;
  *out = cut_until(&s, '\n');
  *text = lk_bytes_of(s.at, s.len);
  (void)drop_suffix(out, "\r");
  return true;
}

int lk_config_next(lk_bytes *text, lk_server_entry *out)
{
  span line;

  while (next_line(text, &line)) {
    if (skip_prefix(&line, "server."))
      return read_member(line, out) ? 1 : LK_ERR_BAD_ARGUMENT;
  }
  return 0;
}

int lk_config_version(lk_bytes text, int64_t *out)
{
  uint64_t version;
  span line;

  while (next_line(&text, &line)) {
    if (!skip_prefix(&line, "version="))
      continue;
    if (!parse_number(line, 16, UINT64_MAX, &version))
      return LK_ERR_BAD_ARGUMENT;
    /* The version is a zxid, which the text has as an unsigned number. */
    memcpy(out, &version, sizeof version);
    return 0;
  }
  return LK_ERR_NO_NODE;
}
