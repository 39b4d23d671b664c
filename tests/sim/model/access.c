/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sha1.h"
#include "sim/model/access.h"

#include <stdio.h>
#include <stdlib.h>

static lk_acl world_anyone[] = {{LK_PERM_ALL, {"world", 5}, {"anyone", 6}}};

const sim_access sim_access_open = {LK_PERM_ALL, 1, world_anyone};

static bool bytes_are_text(lk_bytes b, const char *text)
{
  return b.at != NULL && b.len == strlen(text) &&
         memcmp(b.at, text, b.len) == 0;
}

static bool bytes_equal(lk_bytes a, lk_bytes b)
{
  return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static bool ids_equal(const lk_acl *a, const lk_acl *b)
{
  return bytes_equal(a->scheme, b->scheme) && bytes_equal(a->id, b->id);
}

static bool is_world_anyone(const lk_acl *a)
{
  return bytes_are_text(a->scheme, "world") && bytes_are_text(a->id, "anyone");
}

static lk_bytes copy_bytes(lk_bytes b, lk_arena *memory)
{
  char *copy = lk__arena_take(memory, 1, b.len + 1);

  if (b.len > 0)
    memcpy(copy, b.at, b.len);
  return lk_bytes_of(copy, b.len);
}

/* ---- identities of a client --------------------------------------------- */

const sim_ids *sim_ids_new(lk_arena *memory)
{
  static lk_acl loopback[] = {{0, {"ip", 2}, {"127.0.0.1", 9}}};
  sim_ids *ids = lk__arena_take(memory, 1, sizeof *ids);

  *ids = (sim_ids){.count = 1, .entries = loopback};
  return ids;
}

static size_t user_name_len(lk_bytes id)
{
  const char *colon = id.len == 0 ? NULL : memchr(id.at, ':', id.len);

  return colon == NULL ? id.len : (size_t)(colon - (const char *)id.at);
}

enum { SHA1_TEXT = 28 }; /* length of a SHA-1 digest in base64 */

/* The id of an identity of scheme digest: USER:DIGEST. `auth` is USER:PASSWORD.
 */
static lk_bytes digest_id(lk_bytes auth, lk_arena *memory)
{
  size_t user = user_name_len(auth);
  char *text = lk__arena_take(memory, 1, user + 1 + SHA1_TEXT + 1);

  if (user > 0)
    memcpy(text, auth.at, user);
  text[user] = ':';
  lk__sha1_text(auth.at, auth.len, text + user + 1);
  return lk_bytes_of(text, user + 1 + SHA1_TEXT);
}

const sim_ids *sim_ids_add(const sim_ids *ids, lk_bytes scheme, lk_bytes auth,
                           lk_arena *memory)
{
  if (bytes_are_text(scheme, "ip"))
    return ids;
  if (!bytes_are_text(scheme, "digest") || auth.at == NULL)
    return NULL;
  lk_acl id = {0, lk_text("digest"), digest_id(auth, memory)};

  for (size_t i = 0; i < ids->count; i++) {
    if (ids_equal(&ids->entries[i], &id))
      return ids;
  }
  sim_ids *more = lk__arena_take(memory, 1, sizeof *more);

  more->count = ids->count + 1;
  more->entries = lk__arena_take(memory, more->count, sizeof *more->entries);
  memcpy(more->entries, ids->entries, ids->count * sizeof *more->entries);
  more->entries[ids->count] = id;
  return more;
}

lk_bytes sim_id_without_digest(const lk_acl *id)
{
  if (!bytes_are_text(id->scheme, "digest"))
    return id->id;
  return lk_bytes_of(id->id.at, user_name_len(id->id));
}

/* ---- access lists ------------------------------------------------------- */

/* Reads an address or a pattern of the ip scheme: "10.0.0.1" or
 * "10.0.0.0/8". `prefix_bits`: 32 for an address. */
static bool read_address(lk_bytes text, uint32_t *address,
                         unsigned *prefix_bits)
{
  char copy[32];
  unsigned part[4];
  int used = 0;

  *prefix_bits = 32;
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
    return sscanf(copy + used, "/%2u", prefix_bits) == 1 && *prefix_bits <= 32;
  return copy[used] == '\0';
}

static bool address_matches(lk_bytes client, lk_bytes pattern)
{
  uint32_t a, b;
  unsigned bits, all_bits;

  if (!read_address(client, &a, &all_bits) || !read_address(pattern, &b, &bits))
    return false;
  /* The first `bits` bits are equal. */
  return bits == 0 || (a ^ b) >> (32 - bits) == 0;
}

/* Whether the id is USER:DIGEST with a digest that is not empty. */
static bool digest_id_is_valid(lk_bytes id)
{
  size_t user = user_name_len(id);
  const char *text = id.at;

  return user + 1 < id.len &&
         memchr(text + user + 1, ':', id.len - user - 1) == NULL;
}

static bool acl_is_valid(const lk_acl *a)
{
  uint32_t address;
  unsigned bits;

  if (a->scheme.at == NULL || a->id.at == NULL)
    return false;
  if (bytes_are_text(a->scheme, "digest"))
    return digest_id_is_valid(a->id);
  if (bytes_are_text(a->scheme, "ip"))
    return read_address(a->id, &address, &bits);
  return is_world_anyone(a) || bytes_are_text(a->scheme, "auth");
}

static void add_entry(sim_access *a, int32_t perms, const lk_acl *id,
                      lk_arena *memory)
{
  lk_acl *e = &a->entries[a->count++];

  *e = (lk_acl){perms, copy_bytes(id->scheme, memory),
                copy_bytes(id->id, memory)};
  if (is_world_anyone(e))
    a->world_perms |= perms;
}

/* An entry of scheme "auth" stands for all identities that the client has
 * added; its address is not one of them. false: it has added none. */
static bool add_auth_ids(sim_access *a, int32_t perms, const sim_ids *ids,
                         lk_arena *memory)
{
  bool found = false;

  for (size_t i = 0; ids != NULL && i < ids->count; i++) {
    if (bytes_are_text(ids->entries[i].scheme, "ip"))
      continue;
    add_entry(a, perms, &ids->entries[i], memory);
    found = true;
  }
  return found;
}

/* Whether an earlier entry is equal to entry `i`. */
static bool entry_repeats(const lk_acl *entries, size_t i)
{
  for (size_t k = 0; k < i; k++) {
    if (entries[k].perms == entries[i].perms &&
        ids_equal(&entries[k], &entries[i]))
      return true;
  }
  return false;
}

const sim_access *sim_access_make(lk_vec entries, const sim_ids *ids,
                                  lk_arena *memory)
{
  const lk_acl *e = entries.items;
  /* Each entry may be "auth", which stands for all identities. */
  size_t entries_max = entries.count * (ids == NULL ? 1 : 1 + ids->count);

  if (entries.count == 0)
    return NULL;
  if (entries.count == 1 && e->perms == LK_PERM_ALL && is_world_anyone(e))
    return &sim_access_open;
  sim_access *a = lk__arena_take(memory, 1, sizeof *a);

  a->entries = lk__arena_take(memory, entries_max, sizeof *a->entries);
  for (size_t i = 0; i < entries.count; i++) {
    if (entry_repeats(e, i))
      continue;
    if (!acl_is_valid(&e[i]))
      return NULL;
    if (!bytes_are_text(e[i].scheme, "auth"))
      add_entry(a, e[i].perms, &e[i], memory);
    else if (!add_auth_ids(a, e[i].perms, ids, memory))
      return NULL;
  }
  return a;
}

const sim_access *sim_access_for_world(int32_t perms, lk_arena *memory)
{
  lk_acl e = world_anyone[0];

  e.perms = perms;
  return sim_access_make(lk__vec_of(&e, 1), NULL, memory);
}

static bool any_id_matches(const lk_acl *e, const sim_ids *ids)
{
  for (size_t i = 0; i < ids->count; i++) {
    const lk_acl *id = &ids->entries[i];

    if (bytes_equal(e->scheme, id->scheme) &&
        (bytes_are_text(e->scheme, "ip") ? address_matches(id->id, e->id)
                                         : bytes_equal(e->id, id->id)))
      return true;
  }
  return false;
}

bool sim_access_allows(const sim_access *a, const sim_ids *ids, int32_t perms)
{
  if (ids == NULL || (a->world_perms & perms) != 0)
    return true;
  for (size_t i = 0; i < a->count; i++) {
    if ((a->entries[i].perms & perms) != 0 &&
        any_id_matches(&a->entries[i], ids))
      return true;
  }
  return false;
}
