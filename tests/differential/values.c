/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/values.h"
#include "jute/record.h"

#include <stdio.h>

int32_t random_weighted(generator *g, const weighted *list)
{
  const weighted *chosen = list;
  uint32_t sum = 0;

  for (const weighted *i = list; i->weight > 0; i++)
    sum += i->weight;
  uint32_t left = sim_roll(&g->rng, sum);

  for (; left >= chosen->weight; chosen++)
    left -= chosen->weight;
  return chosen->value;
}

/* ---- paths -------------------------------------------------------------- */

static char *next_text(generator *g)
{
  return g->texts[g->ntexts++ % COUNT_OF(g->texts)];
}

lk_bytes new_path(generator *g)
{
  static const char *const names[] = {"a", "b",        "c",  "d",
                                      "e", "\xc3\xbc", "f g"};
  const generator_node *parent = random_node(g);
  const char *top = parent == NULL || one_in_2(g) ? g->base : parent->path;
  char *text = next_text(g);

  if (strlen(top) > 60)
    top = g->base;
  snprintf(text, GENERATOR_PATH, "%.*s/%s", GENERATOR_PATH - 20, top,
           ANY_OF(g, names));
  return lk_text(text);
}

lk_bytes odd_path(generator *g)
{
  static const char *const roots[] = {"", "x", "/", "//"};
  static const char *const ends[] = {"/",
                                     "//a",
                                     "/a/",
                                     "/.",
                                     "/..",
                                     "/./b",
                                     "/../b",
                                     "/...",
                                     "/a\x01",
                                     "/a\x7f",
                                     "/a\xc2\x85",
                                     "/\xed\x80\x80",
                                     "/\xee\x80\x80",
                                     "/\xef\xbf\xb0",
                                     "/\xef\xbf\xaf",
                                     "/\xf0\x9f\x98\x80",
                                     "/\xff",
                                     "/a\x1f"};
  char *text = next_text(g);

  if (one_in_16(g))
    return lk_text(ANY_OF(g, roots));
  snprintf(text, GENERATOR_PATH, "%s%s", g->base, ANY_OF(g, ends));
  if (one_in_16(g)) /* the NUL byte belongs to the path */
    return lk_bytes_of(text, strlen(text) + 1);
  return lk_text(text);
}

lk_bytes random_path(generator *g)
{
  const generator_node *n = random_node(g);

  if (sim_chance(&g->rng, 20))
    return odd_path(g);
  if (one_in_125(g))
    return lk_text("/zookeeper/config");
  if (one_in_16(g))
    return lk_text(g->base);
  if (n == NULL || sim_chance(&g->rng, 200))
    return new_path(g);
  return lk_text(n->path);
}

/* A server with recursive watches cannot look up the watches of a path without
 * a slash, and the model has no path with a NUL byte. */
lk_bytes path_to_watch(generator *g)
{
  lk_bytes path = random_path(g);
  bool fits = path.len > 0 && *(const char *)path.at == '/' &&
              memchr(path.at, '\0', path.len) == NULL;

  return fits ? path : lk_text(g->base);
}

lk_bytes path_to_delete(generator *g)
{
  lk_bytes a = random_path(g), b = random_path(g);

  return a.len > b.len ? a : b; /* the longer one probably has no children */
}

int32_t random_version(generator *g, int32_t known)
{
  if (one_in_2(g))
    return -1;
  return sim_chance(&g->rng, 700) ? known
                                  : (int32_t)sim_between(&g->rng, -2, 3);
}

int32_t version_for(generator *g, lk_bytes path)
{
  const generator_node *n = find_node(g, path);

  return random_version(g, n == NULL ? 0 : n->version);
}

/* ---- values that are written -------------------------------------------- */

lk_bytes random_data(generator *g)
{
  static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  static char zeros[6000];

  if (one_in_16(g))
    return lk_text(NULL);
  if (one_in_125(g))
    return lk_bytes_of(zeros, sim_roll(&g->rng, sizeof zeros));
  return lk_bytes_of(letters, sim_roll(&g->rng, sizeof letters));
}

static lk_acl entry(int32_t perms, const char *scheme, const char *id)
{
  lk_acl a = {perms, lk_text(scheme), lk_text(id)};

  return a;
}

static int32_t random_perms(generator *g)
{
  int32_t perms = (int32_t)sim_roll(&g->rng, 32);

  /* Without ADMIN no client could open the node again, and it would block the
   * rest of the run. */
  return sim_chance(&g->rng, 900) ? perms | LK_PERM_ADMIN : perms;
}

static lk_acl random_entry(generator *g)
{
  /* The digests of the passwords that generator_auth() gives, and odd ids. */
  static const char *const ids[] = {
      "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=", "ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=",
      "nobody", "a:b:c", ""};
  enum { WORLD, DIGEST, AUTH, IP, BAD_WORLD_ID, BAD_SCHEME, BAD_ADDRESS };
  static const weighted kinds[] = {
      {WORLD, 60},       {DIGEST, 20},    {AUTH, 10},       {IP, 6},
      {BAD_WORLD_ID, 2}, {BAD_SCHEME, 1}, {BAD_ADDRESS, 1}, {0, 0}};

  switch (random_weighted(g, kinds)) {
  case WORLD: return entry(random_perms(g), "world", "anyone");
  case DIGEST: return entry(random_perms(g), "digest", ANY_OF(g, ids));
  case AUTH: return entry(random_perms(g), "auth", "");
  case IP:
    return entry(random_perms(g), "ip",
                 one_in_2(g) ? "127.0.0.0/8" : "10.0.0.1");
  case BAD_WORLD_ID: return entry(LK_PERM_ALL, "world", "everyone");
  case BAD_SCHEME: return entry(LK_PERM_ALL, "nosuch", "x");
  default: return entry(LK_PERM_ALL, "ip", "x");
  }
}

lk_vec random_acl(generator *g, lk_acl entries[4], uint32_t open_permille)
{
  size_t count = 1 + sim_roll(&g->rng, 3);

  if (sim_chance(&g->rng, open_permille)) {
    entries[0] = entry(LK_PERM_ALL, "world", "anyone");
    return lk__vec_of(entries, 1);
  }
  if (one_in_16(g)) /* an empty list or null */
    return lk__vec_of(one_in_2(g) ? entries : NULL, 0);
  for (size_t i = 0; i < count; i++)
    entries[i] =
        i > 0 && one_in_16(g) ? entries[0] /* twice */ : random_entry(g);
  return lk__vec_of(entries, count);
}
