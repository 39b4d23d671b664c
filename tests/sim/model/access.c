/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sha1.h"
#include "sim/model/access.h"

#include <stdio.h>
#include <stdlib.h>

static lk_acl everybody[] = {{LK_PERM_ALL, {"world", 5}, {"anyone", 6}}};

const sim_access sim_access_open = {LK_PERM_ALL, 1, everybody};

static bool is(lk_bytes b, const char *text)
{
  return b.at != NULL && b.len == strlen(text) &&
         memcmp(b.at, text, b.len) == 0;
}

static bool same(lk_bytes a, lk_bytes b)
{
  return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static bool same_id(const lk_acl *a, const lk_acl *b)
{
  return same(a->scheme, b->scheme) && same(a->id, b->id);
}

static bool for_everybody(const lk_acl *a)
{
  return is(a->scheme, "world") && is(a->id, "anyone");
}

static lk_bytes keep(lk_bytes b, lk_arena *memory)
{
  char *copy = lk__arena_take(memory, 1, b.len + 1);

  if (b.len > 0)
    memcpy(copy, b.at, b.len);
  return lk_bytes_of(copy, b.len);
}

/* ---- who somebody is ---------------------------------------------------- */

const sim_ids *sim_ids_new(lk_arena *memory)
{
  static lk_acl local[] = {{0, {"ip", 2}, {"127.0.0.1", 9}}};
  sim_ids *who = lk__arena_take(memory, 1, sizeof *who);

  *who = (sim_ids){1, local};
  return who;
}

static size_t user_len(lk_bytes id)
{
  const char *colon = id.len == 0 ? NULL : memchr(id.at, ':', id.len);

  return colon == NULL ? id.len : (size_t)(colon - (const char *)id.at);
}

static lk_bytes digest_id(lk_bytes auth, lk_arena *memory)
{
  size_t user = user_len(auth);
  char *text = lk__arena_take(memory, 1, user + 1 + 28 + 1);

  if (user > 0)
    memcpy(text, auth.at, user);
  text[user] = ':';
  lk__sha1_text(auth.at, auth.len, text + user + 1);
  return lk_bytes_of(text, user + 1 + 28);
}

const sim_ids *sim_ids_add(const sim_ids *who, lk_bytes scheme, lk_bytes auth,
                           lk_arena *memory)
{
  if (is(scheme, "ip"))
    return who;
  if (!is(scheme, "digest") || auth.at == NULL)
    return NULL;
  lk_acl id = {0, lk_text("digest"), digest_id(auth, memory)};

  for (size_t i = 0; i < who->count; i++) {
    if (same_id(&who->ids[i], &id))
      return who;
  }
  sim_ids *more = lk__arena_take(memory, 1, sizeof *more);

  more->count = who->count + 1;
  more->ids = lk__arena_take(memory, more->count, sizeof *more->ids);
  memcpy(more->ids, who->ids, who->count * sizeof *more->ids);
  more->ids[who->count] = id;
  return more;
}

lk_bytes sim_id_user(const lk_acl *id)
{
  if (!is(id->scheme, "digest"))
    return id->id;
  return lk_bytes_of(id->id.at, user_len(id->id));
}

/* ---- lists -------------------------------------------------------------- */

/* "10.0.0.1" or "10.0.0.0/8". */
static bool read_address(lk_bytes text, uint32_t *address, unsigned *bits)
{
  char copy[32];
  unsigned part[4];
  int used = 0;

  *bits = 32;
  if (text.len >= sizeof copy)
    return false;
  memcpy(copy, text.at, text.len);
  copy[text.len] = '\0';
  if (sscanf(copy, "%3u.%3u.%3u.%3u%n", &part[0], &part[1], &part[2], &part[3],
             &used) != 4)
    return false;
  *address = 0;
  for (int i = 0; i < 4; i++) {
    if (part[i] > 255)
      return false;
    *address = *address << 8 | part[i];
  }
  if (copy[used] == '/')
    return sscanf(copy + used, "/%2u%n", bits, &used) == 1 && *bits <= 32;
  return copy[used] == '\0';
}

static bool address_matches(lk_bytes is_at, lk_bytes allowed)
{
  uint32_t a, b;
  unsigned bits, ignored;

  if (!read_address(is_at, &a, &ignored) || !read_address(allowed, &b, &bits))
    return false;
  return bits == 0 || (a ^ b) >> (32 - bits) == 0;
}

/* Two parts, the second of which is not empty. */
static bool valid_digest(lk_bytes id)
{
  size_t user = user_len(id);
  const char *text = id.at;

  return user + 1 < id.len &&
         memchr(text + user + 1, ':', id.len - user - 1) == NULL;
}

static bool valid(const lk_acl *a)
{
  uint32_t address;
  unsigned bits;

  if (a->scheme.at == NULL || a->id.at == NULL)
    return false;
  if (is(a->scheme, "digest"))
    return valid_digest(a->id);
  if (is(a->scheme, "ip"))
    return read_address(a->id, &address, &bits);
  return for_everybody(a) || is(a->scheme, "auth");
}

static void add(sim_access *a, int32_t perms, const lk_acl *id,
                lk_arena *memory)
{
  lk_acl *e = &a->entries[a->count++];

  *e = (lk_acl){perms, keep(id->scheme, memory), keep(id->id, memory)};
  if (for_everybody(e))
    a->everybody |= perms;
}

/* "auth" is everybody that one has proved to be; an address is no proof. */
static bool add_self(sim_access *a, int32_t perms, const sim_ids *who,
                     lk_arena *memory)
{
  bool proved = false;

  for (size_t i = 0; who != NULL && i < who->count; i++) {
    if (is(who->ids[i].scheme, "ip"))
      continue;
    add(a, perms, &who->ids[i], memory);
    proved = true;
  }
  return proved;
}

const sim_access *sim_access_make(lk_vec entries, const sim_ids *who,
                                  lk_arena *memory)
{
  const lk_acl *e = entries.items;
  size_t most = entries.count * (who == NULL ? 1 : 1 + who->count);

  if (entries.count == 0)
    return NULL;
  if (entries.count == 1 && e->perms == LK_PERM_ALL && for_everybody(e))
    return &sim_access_open;
  sim_access *a = lk__arena_take(memory, 1, sizeof *a);

  a->entries = lk__arena_take(memory, most, sizeof *a->entries);
  for (size_t i = 0; i < entries.count; i++) {
    bool twice = false;

    for (size_t k = 0; k < i; k++)
      twice = twice || (e[k].perms == e[i].perms && same_id(&e[k], &e[i]));
    if (twice)
      continue;
    if (!valid(&e[i]))
      return NULL;
    if (!is(e[i].scheme, "auth"))
      add(a, e[i].perms, &e[i], memory);
    else if (!add_self(a, e[i].perms, who, memory))
      return NULL;
  }
  return a;
}

const sim_access *sim_access_everybody(int32_t perms, lk_arena *memory)
{
  lk_acl e = everybody[0];

  e.perms = perms;
  return sim_access_make(lk__vec_of(&e, 1), NULL, memory);
}

static bool is_one_of(const lk_acl *e, const sim_ids *who)
{
  for (size_t i = 0; i < who->count; i++) {
    const lk_acl *id = &who->ids[i];

    if (same(e->scheme, id->scheme) &&
        (is(e->scheme, "ip") ? address_matches(id->id, e->id)
                             : same(e->id, id->id)))
      return true;
  }
  return false;
}

bool sim_access_allows(const sim_access *a, const sim_ids *who, int32_t perms)
{
  if (who == NULL || (a->everybody & perms) != 0)
    return true;
  for (size_t i = 0; i < a->count; i++) {
    if ((a->entries[i].perms & perms) != 0 && is_one_of(&a->entries[i], who))
      return true;
  }
  return false;
}
