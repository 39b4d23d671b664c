/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/address.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/fork_check.h"

/* ---- one address --------------------------------------------------------- */

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

/* ---- the addresses of a host --------------------------------------------- */

bool lk__address_list_set_host(lk_address_list *a, const lk_mem *mem,
                               const char *host)
{
  if (a->host != NULL && strcmp(a->host, host) == 0)
    return true;

  char *copy = lk__mem_text(mem, host);

  if (copy == NULL)
    return false;
  lk__mem_free(mem, a->host);
  a->host = copy;
  a->count = 0;
  return true;
}

/* A random number below `count`. */
static size_t random_below(size_t count, lk_fork_check *random_source)
{
  uint32_t number;

  lk__fork_check_random(random_source, &number, sizeof number);
  return number % count;
}

const lk_address *lk__address_pick(const lk_address *list, size_t count,
                                   lk_fork_check *random_source)
{
  return &list[random_below(count, random_source)];
}

static void address_list_swap(lk_address_list *a, size_t i, size_t k)
{
  lk_listed_address saved = a->list[i];

  a->list[i] = a->list[k];
  a->list[k] = saved;
}

static void address_list_shuffle(lk_address_list *a,
                                 lk_fork_check *random_source)
{
  for (size_t i = a->count; i > 1; i--)
    address_list_swap(a, random_below(i, random_source), i - 1);
}

/* NULL: it is not in the list. */
static lk_listed_address *address_list_find(const lk_address_list *a,
                                            const lk_address *address)
{
  for (size_t i = 0; i < a->count; i++)
    if (lk__address_equal(&a->list[i].address, address))
      return &a->list[i];
  return NULL;
}

bool lk__address_list_set(lk_address_list *a, const lk_mem *mem,
                          const lk_address *list, size_t count,
                          lk_fork_check *random_source)
{
  lk_listed_address *copy = lk__mem_new(mem, count * sizeof *copy);

  if (copy == NULL)
    return false;
  for (size_t i = 0; i < count; i++) {
    const lk_listed_address *before = address_list_find(a, &list[i]);

    copy[i].address = list[i];
    copy[i].tried = before != NULL && before->tried;
  }
  lk__mem_free(mem, a->list);
  a->list = copy;
  a->count = count;
  address_list_shuffle(a, random_source);
  return true;
}

/* ---- a pass over the addresses ------------------------------------------- */

void lk__address_list_begin_pass(lk_address_list *a)
{
  for (size_t i = 0; i < a->count; i++)
    a->list[i].tried = false;
}

lk_listed_address *lk__address_list_next(lk_address_list *a, int family)
{
  lk_listed_address *other_family = NULL, *last_used = NULL;

  for (size_t i = 0; i < a->count; i++) {
    lk_listed_address *e = &a->list[i];

    if (e->tried)
      continue;
    if (lk__address_equal(&e->address, &a->last_used))
      last_used = e;
    else if (e->address.any.sa_family == family)
      return e;
    else if (other_family == NULL)
      other_family = e;
  }
  return other_family != NULL ? other_family : last_used;
}

void lk__address_list_note_untried(lk_address_list *a,
                                   const lk_address *address)
{
  lk_listed_address *e = address_list_find(a, address);

  if (e != NULL)
    e->tried = false;
}

size_t lk__address_list_count_untried(const lk_address_list *a)
{
  size_t count = 0;

  for (size_t i = 0; i < a->count; i++)
    if (!a->list[i].tried)
      count++;
  return count;
}

/* ---- the end of a list --------------------------------------------------- */

void lk__address_list_free(lk_address_list *a, const lk_mem *mem)
{
  lk__mem_free(mem, a->list);
  lk__mem_free(mem, a->host);
}
