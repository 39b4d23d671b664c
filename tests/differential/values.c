/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/values.h"
#include "jute/record.h"

#include <stdio.h>

int32_t random_weighted(generator *w, const weighted *of)
{
  uint32_t sum = 0, at;

  for (const weighted *i = of; i->weight > 0; i++)
    sum += i->weight;
  for (at = sim_roll(&w->rng, sum); at >= of->weight; of++)
    at -= of->weight;
  return of->value;
}

/* ---- paths -------------------------------------------------------------- */

static char *next_text(generator *w)
{
  return w->texts[w->text++ % COUNT_OF(w->texts)];
}

/* A path below the base or below a known node. It may exist or not; its depth
 * is limited. */
lk_bytes new_path(generator *w)
{
  static const char *const names[] = {"a", "b",        "c",  "d",
                                      "e", "\xc3\xbc", "f g"};
  const generator_node *parent = random_node(w);
  const char *at = parent == NULL || one_in_2(w) ? w->base : parent->path;
  char *text = next_text(w);

  if (strlen(at) > 60)
    at = w->base;
  snprintf(text, GENERATOR_PATH, "%.*s/%s", GENERATOR_PATH - 20, at,
           ANY_OF(w, names));
  return lk_text(text);
}

lk_bytes odd_path(generator *w)
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
  char *text = next_text(w);

  if (one_in_16(w))
    return lk_text(ANY_OF(w, roots));
  snprintf(text, GENERATOR_PATH, "%s%s", w->base, ANY_OF(w, ends));
  if (one_in_16(w)) /* with a NUL byte */
    return lk_bytes_of(text, strlen(text) + 1);
  return lk_text(text);
}

lk_bytes random_path(generator *w)
{
  const generator_node *n = random_node(w);

  if (sim_chance(&w->rng, 20))
    return odd_path(w);
  if (one_in_125(w))
    return lk_text("/zookeeper/config");
  if (one_in_16(w))
    return lk_text(w->base);
  if (n == NULL || sim_chance(&w->rng, 200))
    return new_path(w);
  return lk_text(n->path);
}

/* A server with recursive watches cannot look up the watches of a path without
 * a slash, and the model has no path with a NUL byte. */
lk_bytes path_to_watch(generator *w)
{
  lk_bytes path = random_path(w);
  bool fits = path.len > 0 && *(const char *)path.at == '/' &&
              memchr(path.at, '\0', path.len) == NULL;

  return fits ? path : lk_text(w->base);
}

lk_bytes path_to_delete(generator *w)
{
  lk_bytes a = random_path(w), b = random_path(w);

  return a.len > b.len ? a : b;
}

int32_t random_version(generator *w, int32_t known)
{
  if (one_in_2(w))
    return -1;
  return sim_chance(&w->rng, 700) ? known
                                  : (int32_t)sim_between(&w->rng, -2, 3);
}

int32_t version_of(generator *w, lk_bytes path)
{
  const generator_node *n = find_node(w, path);

  return random_version(w, n == NULL ? 0 : n->version);
}

/* ---- values that are written -------------------------------------------- */

lk_bytes random_data(generator *w)
{
  static const char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  static char large[6000];

  if (one_in_16(w))
    return lk_text(NULL);
  if (one_in_125(w))
    return lk_bytes_of(large, sim_roll(&w->rng, sizeof large));
  return lk_bytes_of(letters, sim_roll(&w->rng, sizeof letters));
}

static lk_acl entry(int32_t perms, const char *scheme, const char *id)
{
  lk_acl a = {perms, lk_text(scheme), lk_text(id)};

  return a;
}

static int32_t random_perms(generator *w)
{
  int32_t perms = (int32_t)sim_roll(&w->rng, 32);

  /* Without ADMIN no client could open the node again, and it would block the
   * rest of the run. */
  return sim_chance(&w->rng, 900) ? perms | LK_PERM_ADMIN : perms;
}

static lk_acl random_entry(generator *w)
{
  static const char *const ids[] = {
      "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=", "ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=",
      "nobody", "a:b:c", ""};
  static const weighted kinds[] = {{0, 60}, {1, 20}, {2, 10}, {3, 6},
                                   {4, 2},  {5, 1},  {6, 1},  {0, 0}};

  switch (random_weighted(w, kinds)) {
  case 0: return entry(random_perms(w), "world", "anyone");
  case 1: return entry(random_perms(w), "digest", ANY_OF(w, ids));
  case 2: return entry(random_perms(w), "auth", "");
  case 3:
    return entry(random_perms(w), "ip",
                 one_in_2(w) ? "127.0.0.0/8" : "10.0.0.1");
  case 4: return entry(LK_PERM_ALL, "world", "everyone");
  case 5: return entry(LK_PERM_ALL, "nosuch", "x");
  default: return entry(LK_PERM_ALL, "ip", "x");
  }
}

lk_vec random_acl(generator *w, lk_acl entries[4], bool open)
{
  size_t count = 1 + sim_roll(&w->rng, 3);

  if (sim_chance(&w->rng, open ? 930 : 300)) {
    entries[0] = entry(LK_PERM_ALL, "world", "anyone");
    return lk__vec_of(entries, 1);
  }
  if (one_in_16(w))
    return lk__vec_of(one_in_2(w) ? entries : NULL, 0);
  for (size_t i = 0; i < count; i++)
    entries[i] = i > 0 && one_in_16(w) ? entries[0] : random_entry(w);
  return lk__vec_of(entries, count);
}
