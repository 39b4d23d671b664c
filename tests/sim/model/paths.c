/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/model/paths.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 256 };

/* FNV-1a. */
static uint32_t hash_of(const char *s, size_t len)
{
  uint32_t h = 2166136261U;

  for (size_t i = 0; i < len; i++)
    h = (h ^ (unsigned char)s[i]) * 16777619U;
  return h;
}

static sim_path **bucket_of(const sim_paths *p, uint32_t hash)
{
  return &p->buckets[(hash ^ hash >> 15) & (p->nbuckets - 1)];
}

static sim_path *find_path(const sim_paths *p, const char *s, size_t len,
                           uint32_t hash)
{
  for (sim_path *at = *bucket_of(p, hash); at != NULL; at = at->next) {
    if (at->hash == hash && at->len == len && memcmp(at->text, s, len) == 0)
      return at;
  }
  return NULL;
}

static void grow_buckets(sim_paths *p)
{
  sim_path **old = p->buckets;
  size_t count = p->nbuckets;

  p->nbuckets = count * 4;
  p->buckets = calloc(p->nbuckets, sizeof(sim_path *));
  for (size_t i = 0; i < count; i++) {
    while (old[i] != NULL) {
      sim_path *at = old[i];
      sim_path **to = bucket_of(p, at->hash);

      old[i] = at->next;
      at->next = *to;
      *to = at;
    }
  }
  free(old);
}

/* The index at which the last component of a path begins; 0: the path has no
 * slash. */
static size_t last_component(const char *s, size_t len)
{
  while (len > 0 && s[len - 1] != '/')
    len--;
  return len;
}

static sim_path *add_path(sim_paths *p, const char *s, size_t len,
                          uint32_t hash)
{
  sim_path *path = lk__arena_take(p->arena, 1, sizeof *path + len + 1);
  char *text = (char *)(path + 1);
  size_t last = last_component(s, len);

  memcpy(text, s, len);
  *path = (sim_path){.text = text,
                     .name = text + last,
                     .len = len,
                     .number = p->count++,
                     .hash = hash};
  if (last > 1)
    path->parent = sim_path_get(p, lk_bytes_of(s, last - 1));
  else
    path->parent =
        p->root; /* of the root itself: NULL, since it is the first */
  if (p->count > p->nbuckets)
    grow_buckets(p);
  sim_path **to = bucket_of(p, hash);

  path->next = *to;
  *to = path;
  return path;
}

void sim_paths_init(sim_paths *p, lk_arena *arena)
{
  *p = (sim_paths){.arena = arena, .nbuckets = FIRST_BUCKETS};
  p->buckets = calloc(p->nbuckets, sizeof(sim_path *));
  p->root = add_path(p, "/", 1, hash_of("/", 1));
  p->nameless = add_path(p, "", 0, hash_of("", 0));
}

void sim_paths_free(sim_paths *p)
{
  free(p->buckets);
}

sim_path *sim_path_find(const sim_paths *p, lk_bytes text)
{
  if (text.len == 0)
    return p->root;
  return find_path(p, text.at, text.len, hash_of(text.at, text.len));
}

sim_path *sim_path_get(sim_paths *p, lk_bytes text)
{
  if (text.len == 0)
    return p->root;
  uint32_t hash = hash_of(text.at, text.len);
  sim_path *at = find_path(p, text.at, text.len, hash);

  return at != NULL ? at : add_path(p, text.at, text.len, hash);
}

/* ---- chroots ------------------------------------------------------------ */

static bool is_at_or_below(lk_bytes path, const char *top)
{
  size_t len = strlen(top);
  const char *at = path.at;

  return path.len >= len && memcmp(at, top, len) == 0 &&
         (path.len == len || at[len] == '/');
}

lk_bytes sim_path_strip_chroot(const char *chroot, lk_bytes path)
{
  size_t len = strlen(chroot);

  if (len == 0 || path.at == NULL || is_at_or_below(path, "/zookeeper"))
    return path;
  if (!is_at_or_below(path, chroot))
    return (lk_bytes){0};
  return path.len == len
             ? lk_text("/")
             : lk_bytes_of((const char *)path.at + len, path.len - len);
}

void sim_write_path_with_chroot(lk_writer *w, const char *chroot, lk_bytes path)
{
  size_t len = strlen(chroot);

  if (len > 0 && path.len == 1)
    path.len = 0;
  lk__writer_count(w, len + path.len);
  lk__writer_raw(w, chroot, len);
  lk__writer_raw(w, path.at, path.len);
}
