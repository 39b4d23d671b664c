/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/history.h"

#include "sim/world/allocate.h"
#include "sim/world/lock_mix.h"
#include "sim/world/lock_styles.h"

#include <latchkey/lock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_SET_DATA = 5, OP_SET_ACL = 7, OP_MULTI = 14, OP_CLOSE = -11 };

static void free_entry(sim_entry *e)
{
  while (e->newest != NULL) {
    sim_version *v = e->newest;

    e->newest = v->older;
    free(v);
  }
  free(e);
}

void sim_history_free(sim_history *l)
{
  while (l->newest != NULL) {
    sim_entry *e = l->newest;

    l->newest = e->older;
    free_entry(e);
  }
  while (l->sessions != NULL) {
    sim_session *s = l->sessions;

    l->sessions = s->next;
    while (s->xids != NULL) {
      sim_xids *x = s->xids;

      s->xids = x->next;
      free(x);
    }
    free(s);
  }
}

/* ---- names -------------------------------------------------------------- */

/* What makes a name a contender's, and what it does: written down here once
 * more, not taken from what is to be judged. */
typedef struct mark {
  const char *text;
  bool reader;
  bool writ;
} mark;

static const mark marks[] = {{"lock-", false, false},
                             {"__WRIT__", false, true},
                             {"__READ__", true, false},
                             {"__lock__", false, false},
                             {"__rlock__", true, false}};
static const mark sides[] = {{"w-", false, false}, {"r-", true, false}};

static bool parse_suffix(const char *s, int64_t *out)
{
  size_t digits = strspn(s + (*s == '-'), "0123456789");

  if (digits == 0 || digits > 10 || s[(*s == '-') + digits] != '\0')
    return false;
  *out = strtoll(s, NULL, 10);
  return true;
}

static void take_mark(sim_entry *e, const mark *m)
{
  e->contends = true;
  e->reader = m->reader;
  e->writ = m->writ;
}

static void parse_known(sim_entry *e)
{
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    for (const char *at = e->name; (at = strstr(at, marks[i].text)) != NULL;
         at++) {
      if (parse_suffix(at + strlen(marks[i].text), &e->suffix))
        take_mark(e, &marks[i]);
    }
  }
}

/* The mark, and ten places. */
static void parse_behind(sim_entry *e, const char *at, const mark *m)
{
  size_t len = strlen(m->text);

  if (strncmp(at, m->text, len) != 0)
    return;
  at += len;
  if (strlen(at) == 10 + (size_t)(at[0] == '-' && strlen(at) == 11) &&
      parse_suffix(at, &e->suffix))
    take_mark(e, m);
}

static void parse_plain(sim_entry *e, const char *prefix)
{
  mark own = {prefix == NULL ? "seq-" : prefix, false, false};
  bool uuid = strlen(e->name) > SIM_UUID && e->name[8] == '-' &&
              e->name[13] == '-' && e->name[SIM_UUID] == '-';
  const char *at = e->name + (uuid ? SIM_UUID + 1 : 0);

  parse_behind(e, at, &own);
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
    parse_behind(e, at, &sides[i]);
}

static bool is_kazoos_lease(const char *name)
{
  return strlen(name) == 32 && strspn(name, "0123456789abcdef") == 32;
}

static void parse_name(const sim_lock_style *h, sim_entry *e)
{
  e->foreign = strstr(e->name, SIM_FOREIGN) != NULL;
  e->lease = h->layout == LK_LAYOUT_KAZOO ? is_kazoos_lease(e->name)
                                          : strstr(e->name, "-lease-") != NULL;
  if (sim_plain_names(h))
    parse_plain(e, h->prefix);
  else
    parse_known(e);
}

static void take_key(const sim_lock_style *h, sim_entry *e, const sim_node *n)
{
  size_t len = (size_t)n->stat.data_length;

  if (h->unique > 0 && strlen(e->name) >= h->unique)
    memcpy(e->key, e->name, h->unique);
  else if (h->unique == 0 && len >= SIM_UUID)
    memcpy(e->key, (const char *)n->data + len - SIM_UUID, SIM_UUID);
}

bool sim_same_contender(const sim_entry *a, const sim_entry *b)
{
  return a->key[0] != '\0' && strcmp(a->key, b->key) == 0;
}

/* ---- committed transactions --------------------------------------------- */

static void add_version(const sim_history *l, sim_entry *e, const sim_node *n,
                        int64_t zxid)
{
  sim_version *v = sim_allocate(sizeof *v);
  size_t len = (size_t)n->stat.data_length;

  if (len >= sizeof v->data)
    len = sizeof v->data - 1;
  if (len > 0)
    memcpy(v->data, n->data, len);
  v->zxid = zxid;
  v->version = n->stat.version;
  v->at_us = l->agenda->now_us;
  v->older = e->newest;
  e->newest = v;
}

static int lock_of(const sim_history *l, const char *path, size_t dir_len)
{
  for (size_t i = 0; i < *l->nlocks; i++) {
    if (strlen(l->locks[i]) == dir_len &&
        memcmp(path, l->locks[i], dir_len) == 0)
      return (int)i;
  }
  return SIM_NO_LOCK;
}

static const sim_entry *find_writer(const sim_history *l, const sim_entry *r)
{
  const sim_entry *e = l->standing;

  while (e != NULL &&
         !(e->writ && e->lock_at == r->lock_at && e->suffix == r->suffix))
    e = e->next;
  return e;
}

sim_entry *sim_history_made(sim_history *l, const sim_node *node)
{
  size_t dir_len = (size_t)(strrchr(node->path, '/') - node->path);
  int lock_at = lock_of(l, node->path, dir_len);
  bool raw = strcmp(node->path, SIM_LIMIT) == 0 ||
             (dir_len == strlen(SIM_RAW) &&
              strncmp(node->path, SIM_RAW, dir_len) == 0);

  if ((lock_at == SIM_NO_LOCK && !raw) || strlen(node->path) >= SIM_ENTRY_PATH)
    return NULL;
  sim_entry *e = sim_allocate(sizeof *e);

  snprintf(e->path, sizeof e->path, "%s", node->path);
  e->name = e->path + dir_len + 1;
  e->dir_len = dir_len;
  e->lock_at = lock_at;
  e->made = node->stat.czxid;
  e->made_us = l->agenda->now_us;
  e->session = node->stat.ephemeral_owner;
  if (e->session != 0)
    e->by = sim_history_session(l, e->session);
  if (lock_at != SIM_NO_LOCK) {
    parse_name(*l->style, e);
    take_key(*l->style, e, node);
  } else {
    add_version(l, e, node, e->made);
  }
  if (e->reader)
    e->beside = find_writer(l, e);
  e->older = l->newest;
  l->newest = e;
  e->next = l->standing;
  if (e->next != NULL)
    e->next->prev = e;
  l->standing = e;
  return e;
}

static void take_down(sim_history *l, sim_entry *e)
{
  *(e->prev == NULL ? &l->standing : &e->prev->next) = e->next;
  if (e->next != NULL)
    e->next->prev = e->prev;
  e->prev = NULL;
  e->next = l->going;
  l->going = e;
}

void sim_history_removed(sim_history *l, const sim_node *node, int64_t zxid)
{
  sim_entry *e = sim_history_find(l, node->path);
  int lock_at = lock_of(l, node->path, strlen(node->path));

  if (lock_at != SIM_NO_LOCK)
    l->vanished[lock_at]++;
  if (e == NULL)
    return;
  e->removed = zxid;
  e->removed_us = l->agenda->now_us;
  take_down(l, e);
}

/* Whether a directory of locks, or one above it, or a node in it, keeps
 * somebody from something. */
static bool is_denied(const sim_tree *truth, const char *lock)
{
  const sim_node *dir = sim_tree_find(truth, lock);
  bool denied = false;

  if (dir == NULL)
    return false;
  for (const sim_node *n = dir; n != NULL; n = n->parent)
    denied = denied || n->perms != LK_PERM_ALL;
  for (const sim_node *n = dir->children; n != NULL; n = n->next)
    denied = denied || n->perms != LK_PERM_ALL;
  return denied;
}

static void see_access(sim_history *l, const sim_tree *truth)
{
  for (size_t i = 0; i < *l->nlocks; i++) {
    if (is_denied(truth, l->locks[i]))
      l->denied_us[i] = INT64_MAX;
    else if (l->denied_us[i] == INT64_MAX)
      l->denied_us[i] = l->agenda->now_us;
  }
}

static void see_version(sim_history *l, const sim_node *n, int64_t zxid)
{
  if (n->stat.mzxid == zxid && (n->stat.czxid != zxid || n->stat.version > 0))
    add_version(l, sim_history_find(l, n->path), n, zxid);
}

static void see_data(sim_history *l, const sim_tree *truth, int64_t zxid)
{
  const sim_node *dir = sim_tree_find(truth, SIM_RAW);
  const sim_node *limit = sim_tree_find(truth, SIM_LIMIT);

  for (const sim_node *n = dir == NULL ? NULL : dir->children; n != NULL;
       n = n->next)
    see_version(l, n, zxid);
  if (limit != NULL)
    see_version(l, limit, zxid);
}

/* Who watches a node has to watch it again after a change. */
static void take_change(const sim_history *l, sim_entry *e, const sim_node *n)
{
  size_t len = strlen(LK_REVOKE_MESSAGE);

  e->changed_us = l->agenda->now_us;
  e->revoked = (size_t)n->stat.data_length == len &&
               memcmp(n->data, LK_REVOKE_MESSAGE, len) == 0;
}

static void see_change(sim_history *l, const sim_tree *truth, int64_t zxid)
{
  for (sim_entry *e = l->standing; e != NULL; e = e->next) {
    const sim_node *n = sim_tree_find(truth, e->path);

    if (n != NULL && n->stat.mzxid == zxid)
      take_change(l, e, n);
  }
}

static void settle(sim_history *l, int64_t by)
{
  for (sim_entry *e = l->going; e != NULL; e = e->next)
    e->how = e->session == by && by != 0 ? SIM_BY_OWNER : SIM_BY_OTHERS;
}

static void settle_session(sim_history *l, const sim_session *s)
{
  for (sim_entry *e = l->going; e != NULL; e = e->next)
    e->how = s->doomed    ? SIM_BY_OPERATOR
             : s->expired ? SIM_BY_EXPIRY
                          : SIM_BY_CLOSE;
}

/* The revalidation of a connection given up long ago comes late, takes the
 * session back, and lets through what was asked there: what its client asked
 * for later was committed before, a look whether the node is there, too. */
static void see_late(sim_history *l, const sim_commit *c)
{
  sim_session *s = sim_history_session(l, c->session);

  if (c->xid > s->top_xid) {
    s->top_xid = c->xid;
    return;
  }
  for (sim_entry *e = l->standing; e != NULL && e->made == c->zxid; e = e->next)
    e->left = true;
}

void sim_history_committed(sim_history *l, const sim_commit *c,
                           const sim_tree *truth)
{
  l->zxid = c->zxid;
  if (c->xid > 0)
    see_late(l, c);
  if (c->op == OP_CLOSE)
    settle_session(l, sim_history_session(l, c->session));
  else
    settle(l, c->session);
  if (c->op == OP_SET_ACL || c->op == OP_CLOSE)
    see_access(l, truth);
  else if (l->going != NULL)
    see_access(l, truth);
  if (c->op == OP_SET_DATA || c->op == OP_MULTI)
    see_data(l, truth, c->zxid);
  if (c->op == OP_SET_DATA)
    see_change(l, truth, c->zxid);
}

sim_session *sim_history_session(sim_history *l, int64_t id)
{
  sim_session *s = l->sessions;

  while (s != NULL && s->id != id)
    s = s->next;
  if (s == NULL) {
    s = sim_allocate(sizeof *s);
    s->id = id;
    s->next = l->sessions;
    l->sessions = s;
  }
  return s;
}

void sim_history_ended(sim_history *l, int64_t session, bool expired)
{
  sim_session *s = sim_history_session(l, session);

  s->over = true;
  s->expired = expired;
  s->over_us = l->agenda->now_us;
}

/* ---- questions ---------------------------------------------------------- */

sim_entry *sim_history_find(const sim_history *l, const char *path)
{
  sim_entry *e = l->standing;

  while (e != NULL && strcmp(e->path, path) != 0)
    e = e->next;
  return e;
}

sim_entry *sim_history_at(const sim_history *l, const char *path, int64_t zxid)
{
  for (sim_entry *e = l->newest; e != NULL; e = e->older) {
    if (sim_stood(e, zxid) && strcmp(e->path, path) == 0)
      return e;
  }
  return NULL;
}

sim_entry *sim_history_by_zxid(const sim_history *l, int64_t made)
{
  for (sim_entry *e = l->newest; e != NULL && (e->made >= made || l->wiped);
       e = e->older) {
    if (e->made == made)
      return e;
  }
  return NULL;
}

const sim_version *sim_version_at(const sim_entry *e, int64_t zxid)
{
  const sim_version *v = e->newest;

  while (v != NULL && v->zxid > zxid)
    v = v->older;
  return v;
}

/* Who reads beside its own writer has had its place as long as that. */
static int64_t since(const sim_entry *e)
{
  return e->beside == NULL ? e->made : e->beside->made;
}

bool sim_ahead(const sim_entry *rival, const sim_entry *own)
{
  if (rival == own || !rival->contends || !own->contends ||
      rival->lock_at != own->lock_at ||
      sim_age(rival->made) != sim_age(own->made) ||
      rival->suffix >= own->suffix || (rival->reader && own->reader))
    return false;
  return since(rival) < since(own);
}
