/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SCOPE_DIGITS = 9 }; /* such a number fits into 32 bits */

/* Read what follows the percent sign of an IPv6 address: the name of an
   interface ("eth0") or its number ("2"). */
static bool address_read_scope(uint32_t *out, const char *name)
{
  size_t digits = strspn(name, "0123456789");

  *out = if_nametoindex(name);
  bool is_number =
      digits > 0 && digits <= MAX_SCOPE_DIGITS && name[digits] == '\0';

  if (*out == 0 && is_number)
    *out = (uint32_t)strtoul(name, NULL, 10);
  return *out != 0;
}

bool lk__address_parse(lk_address *out, const char *literal)
{
  char plain[INET6_ADDRSTRLEN];
  const char *scope = strchr(literal, '%');
  size_t len = scope == NULL ? strlen(literal) : (size_t)(scope - literal);

  memset(out, 0, sizeof *out);
  if (len >= sizeof plain)
    return false;
  memcpy(plain, literal, len);
  plain[len] = '\0';
  if (scope == NULL && inet_pton(AF_INET, plain, &out->v4.sin_addr) == 1) {
    out->v4.sin_family = AF_INET;
    return true;
  }
  if (inet_pton(AF_INET6, plain, &out->v6.sin6_addr) != 1)
    return false;
  out->v6.sin6_family = AF_INET6;
  return scope == NULL || address_read_scope(&out->v6.sin6_scope_id, scope + 1);
}

bool lk__address_copy(lk_address *out, const struct sockaddr *from)
{
  memset(out, 0, sizeof *out);
  if (from->sa_family == AF_INET)
    memcpy(&out->v4, from, sizeof out->v4);
  else if (from->sa_family == AF_INET6)
    memcpy(&out->v6, from, sizeof out->v6);
  else
    return false;
  return true;
}

void lk__address_set_port(lk_address *a, uint16_t port)
{
  if (a->any.sa_family == AF_INET6)
    a->v6.sin6_port = htons(port);
  else
    a->v4.sin_port = htons(port);
}

bool lk__address_equal(const lk_address *a, const lk_address *b)
{
  if (a->any.sa_family != b->any.sa_family)
    return false;
  if (a->any.sa_family == AF_INET)
    return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr &&
           a->v4.sin_port == b->v4.sin_port;
  return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof a->v6.sin6_addr) ==
             0 &&
         a->v6.sin6_scope_id == b->v6.sin6_scope_id &&
         a->v6.sin6_port == b->v6.sin6_port;
}

void lk__address_text(const lk_address *a, char *out, size_t size)
{
  char host[INET6_ADDRSTRLEN] = "?";

  if (a->any.sa_family == AF_INET) {
    inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof host);
    snprintf(out, size, "%s:%u", host, (unsigned)ntohs(a->v4.sin_port));
    return;
  }
  inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof host);
  if (a->v6.sin6_scope_id == 0)
    snprintf(out, size, "[%s]:%u", host, (unsigned)ntohs(a->v6.sin6_port));
  else
    snprintf(out, size, "[%s%%%lu]:%u", host,
             (unsigned long)a->v6.sin6_scope_id,
             (unsigned)ntohs(a->v6.sin6_port));
}
