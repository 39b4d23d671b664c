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

/* opcodes of ZooKeeper's protocol */
enum { OP_SET_DATA = 5, OP_SET_ACL = 7, OP_MULTI = 14, OP_CLOSE = -11 };

enum { SUFFIX_DIGITS = 10 }; /* of a sequence number */

static void free_entry(sim_entry *e)
{
  while (e->newest != NULL) {
    sim_version *v = e->newest;

    e->newest = v->older;
    free(v);
  }
  free(e);
}

void sim_history_free(sim_history *history)
{
  while (history->newest != NULL) {
    sim_entry *e = history->newest;

    history->newest = e->older;
    free_entry(e);
  }
  while (history->sessions != NULL) {
    sim_session *s = history->sessions;

    history->sessions = s->next;
    while (s->xids != NULL) {
      sim_xids *x = s->xids;

      s->xids = x->next;
      free(x);
    }
    free(s);
  }
}

/* ---- names -------------------------------------------------------------- */

/* A pattern of the names of contender nodes. The recipes have a list of such
 * patterns, too. This one is separate, so that the checker does not depend on
 * the code that it checks. */
typedef struct name_pattern {
  const char *text;
  bool is_reader;
  bool is_write_side;
} name_pattern;

static const name_pattern id_patterns[] = {
    {.text = "lock-"},
    {.text = "__WRIT__", .is_write_side = true},
    {.text = "__READ__", .is_reader = true},
    {.text = "__lock__"},
    {.text = "__rlock__", .is_reader = true}};
static const name_pattern plain_patterns[] = {
    {.text = "w-"}, {.text = "r-", .is_reader = true}};

/* false: the text is not a number alone. */
static bool parse_suffix(const char *s, int64_t *out)
{
  const char *digits = *s == '-' ? s + 1 : s;
  size_t count = strspn(digits, "0123456789");

  if (count == 0 || count > SUFFIX_DIGITS || digits[count] != '\0')
    return false;
  *out = strtoll(s, NULL, 10);
  return true;
}

static void set_pattern(sim_entry *e, const name_pattern *m)
{
  e->is_contender = true;
  e->is_reader = m->is_reader;
  e->is_write_side = m->is_write_side;
}

static void parse_name_with_id(sim_entry *e)
{
  for (size_t i = 0; i < sizeof id_patterns / sizeof *id_patterns; i++) {
    const char *text = id_patterns[i].text;

    for (const char *at = strstr(e->name, text); at != NULL;
         at = strstr(at + 1, text)) {
      if (parse_suffix(at + strlen(text), &e->suffix))
        set_pattern(e, &id_patterns[i]);
    }
  }
}

/* Parses a pattern that is followed by ten characters of a number, or by eleven
 * with a minus sign, and nothing else. */
static void parse_pattern_at(sim_entry *e, const char *at,
                             const name_pattern *m)
{
  size_t len = strlen(m->text);

  if (strncmp(at, m->text, len) != 0)
    return;
  const char *number = at + len;
  bool is_padded = strlen(number) == SUFFIX_DIGITS ||
                   (number[0] == '-' && strlen(number) == 1 + SUFFIX_DIGITS);

  if (is_padded && parse_suffix(number, &e->suffix))
    set_pattern(e, m);
}

/* Whether the name begins with a UUID and a hyphen. The bytes 8 and 13 of a
 * UUID are hyphens, too. */
static bool begins_with_uuid(const char *name)
{
  return strlen(name) > SIM_UUID && name[8] == '-' && name[13] == '-' &&
         name[SIM_UUID] == '-';
}

/* Parses a name without an id: the pattern may stand behind a UUID. */
static void parse_plain_name(sim_entry *e, const char *prefix)
{
  name_pattern mutex = {.text = prefix == NULL ? "seq-" : prefix};
  const char *at = begins_with_uuid(e->name) ? e->name + SIM_UUID + 1 : e->name;

  parse_pattern_at(e, at, &mutex);
  for (size_t i = 0; i < sizeof plain_patterns / sizeof *plain_patterns; i++)
    parse_pattern_at(e, at, &plain_patterns[i]);
}

static bool is_kazoos_lease(const char *name)
{
  enum { DIGITS = 32 };

  return strlen(name) == DIGITS && strspn(name, "0123456789abcdef") == DIGITS;
}

static void parse_name(const sim_lock_style *style, sim_entry *e)
{
  e->is_foreign = strstr(e->name, SIM_FOREIGN) != NULL;
  e->is_permit = style->layout == LK_LAYOUT_KAZOO
                     ? is_kazoos_lease(e->name)
                     : strstr(e->name, "-lease-") != NULL;
  if (sim_names_have_no_id(style))
    parse_plain_name(e, style->prefix);
  else
    parse_name_with_id(e);
}

static void set_key(const sim_lock_style *style, sim_entry *e,
                    const sim_node *n)
{
  size_t len = (size_t)n->stat.data_length;

  if (sim_id_is_in_data(style)) {
    if (len >= SIM_UUID)
      memcpy(e->key, (const char *)n->data + len - SIM_UUID, SIM_UUID);
  } else if (strlen(e->name) >= style->id_len) {
    memcpy(e->key, e->name, style->id_len);
  }
}

bool sim_same_contender(const sim_entry *a, const sim_entry *b)
{
  return a->key[0] != '\0' && strcmp(a->key, b->key) == 0;
}

/* ---- committed transactions --------------------------------------------- */

static void add_version(const sim_history *history, sim_entry *e,
                        const sim_node *n, int64_t zxid)
{
  sim_version *v = sim_allocate(sizeof *v);
  size_t len = (size_t)n->stat.data_length;

  if (len >= sizeof v->data)
    len = sizeof v->data - 1;
  if (len > 0)
    memcpy(v->data, n->data, len);
  v->zxid = zxid;
  v->version = n->stat.version;
  v->at_us = history->agenda->now_us;
  v->older = e->newest;
  e->newest = v;
}

static int lock_index_of(const sim_history *history, const char *path,
                         size_t dir_len)
{
  for (size_t i = 0; i < *history->nlocks; i++) {
    if (strlen(history->locks[i]) == dir_len &&
        memcmp(path, history->locks[i], dir_len) == 0)
      return (int)i;
  }
  return SIM_NO_LOCK;
}

/* The write node with the number of the reader; NULL: none. */
static const sim_entry *find_write_node(const sim_history *history,
                                        const sim_entry *reader)
{
  for (const sim_entry *e = history->existing; e != NULL; e = e->next) {
    if (e->is_write_side && e->lock_index == reader->lock_index &&
        e->suffix == reader->suffix)
      return e;
  }
  return NULL;
}

static bool is_directory(const char *dir, const char *path, size_t dir_len)
{
  return dir_len == strlen(dir) && strncmp(path, dir, dir_len) == 0;
}

/* Whether nodes that belong to no lock are recorded in this directory. */
static bool is_recorded_directory(const char *path, size_t dir_len)
{
  return is_directory(SIM_REQUEST_DIR, path, dir_len) ||
         is_directory(SIM_ELECTION_DIR, path, dir_len) ||
         is_directory(SIM_GROUP_DIR, path, dir_len);
}

sim_entry *sim_history_add_node(sim_history *history, const sim_node *node)
{
  size_t dir_len = (size_t)(strrchr(node->path, '/') - node->path);
  int lock_index = lock_index_of(history, node->path, dir_len);
  bool is_recorded = lock_index != SIM_NO_LOCK ||
                     strcmp(node->path, SIM_LIMIT) == 0 ||
                     is_recorded_directory(node->path, dir_len);
  bool is_too_long = strlen(node->path) >= SIM_ENTRY_PATH; /* not of an actor */

  if (!is_recorded || is_too_long)
    return NULL;
  sim_entry *e = sim_allocate(sizeof *e);

  snprintf(e->path, sizeof e->path, "%s", node->path);
  e->name = e->path + dir_len + 1;
  e->dir_len = dir_len;
  e->lock_index = lock_index;
  e->created_zxid = node->stat.czxid;
  e->created_us = history->agenda->now_us;
  e->session = node->stat.ephemeral_owner;
  if (e->session != 0)
    e->creator_session = sim_history_session(history, e->session);
  if (lock_index != SIM_NO_LOCK) {
    parse_name(*history->style, e);
    set_key(*history->style, e, node);
  } else {
    add_version(history, e, node, e->created_zxid);
  }
  if (e->is_reader)
    e->downgraded_from = find_write_node(history, e);
  e->older = history->newest;
  history->newest = e;
  e->next = history->existing;
  if (e->next != NULL)
    e->next->prev = e;
  history->existing = e;
  return e;
}

static void move_to_being_deleted(sim_history *history, sim_entry *e)
{
  if (e->prev == NULL)
    history->existing = e->next;
  else
    e->prev->next = e->next;
  if (e->next != NULL)
    e->next->prev = e->prev;
  e->prev = NULL;
  e->next = history->being_deleted;
  history->being_deleted = e;
}

void sim_history_delete_node(sim_history *history, const sim_node *node,
                             int64_t zxid)
{
  sim_entry *e = sim_history_find(history, node->path);
  int lock_index = lock_index_of(history, node->path, strlen(node->path));

  if (lock_index != SIM_NO_LOCK)
    history->dirs_vanished[lock_index]++;
  if (e == NULL)
    return;
  e->deleted_zxid = zxid;
  e->deleted_us = history->agenda->now_us;
  move_to_being_deleted(history, e);
}

/* Whether a client lacks a permission on the directory, on a node above it or
 * on a node in it. */
static bool permission_is_missing(const sim_tree *committed, const char *lock)
{
  const sim_node *dir = sim_tree_find(committed, lock);

  if (dir == NULL)
    return false;
  for (const sim_node *n = dir; n != NULL; n = n->parent) {
    if (n->perms != LK_PERM_ALL)
      return true;
  }
  for (const sim_node *n = dir->children; n != NULL; n = n->next) {
    if (n->perms != LK_PERM_ALL)
      return true;
  }
  return false;
}

static void note_access(sim_history *history, const sim_tree *committed)
{
  for (size_t i = 0; i < *history->nlocks; i++) {
    if (permission_is_missing(committed, history->locks[i]))
      history->denied_us[i] = SIM_DENIED_NOW;
    else if (history->denied_us[i] == SIM_DENIED_NOW)
      history->denied_us[i] = history->agenda->now_us;
  }
}

static void add_version_if_written(sim_history *history, const sim_node *n,
                                   int64_t zxid)
{
  bool has_first_version = n->stat.czxid == zxid && n->stat.version == 0;

  /* sim_history_add_node() has added the first version */
  if (n->stat.mzxid == zxid && !has_first_version)
    add_version(history, sim_history_find(history, n->path), n, zxid);
}

static void add_versions(sim_history *history, const sim_tree *committed,
                         int64_t zxid)
{
  const sim_node *dir = sim_tree_find(committed, SIM_REQUEST_DIR);
  const sim_node *limit = sim_tree_find(committed, SIM_LIMIT);

  if (dir != NULL) {
    for (const sim_node *n = dir->children; n != NULL; n = n->next)
      add_version_if_written(history, n, zxid);
  }
  if (limit != NULL)
    add_version_if_written(history, limit, zxid);
}

static void note_set(const sim_history *history, sim_entry *e,
                     const sim_node *n)
{
  size_t len = strlen(LK_REVOKE_MESSAGE);

  e->changed_us = history->agenda->now_us;
  e->revoked = (size_t)n->stat.data_length == len &&
               memcmp(n->data, LK_REVOKE_MESSAGE, len) == 0;
}

static void note_sets_of_existing(sim_history *history,
                                  const sim_tree *committed, int64_t zxid)
{
  for (sim_entry *e = history->existing; e != NULL; e = e->next) {
    const sim_node *n = sim_tree_find(committed, e->path);

    if (n != NULL && n->stat.mzxid == zxid)
      note_set(history, e, n);
  }
}

/* `deleter`: a session; 0: the servers themselves. */
static void set_deletion_cause(sim_history *history, int64_t deleter)
{
  for (sim_entry *e = history->being_deleted; e != NULL; e = e->next) {
    bool is_owner = deleter != 0 && e->session == deleter;

    e->deletion_cause = is_owner ? SIM_DELETED_BY_OWNER : SIM_DELETED_BY_OTHERS;
  }
}

static void set_deletion_cause_of_session(sim_history *history,
                                          const sim_session *s)
{
  sim_deletion_cause cause = SIM_DELETED_BY_CLOSE;

  if (s->ended_by_operator)
    cause = SIM_DELETED_BY_OPERATOR;
  else if (s->expired)
    cause = SIM_DELETED_BY_EXPIRY;
  for (sim_entry *e = history->being_deleted; e != NULL; e = e->next)
    e->deletion_cause = cause;
}

/* A server may take back the session for a connection that the client has given
 * up, when it revalidates the session late. It then commits an old request
 * after later ones of the client, even after the client has looked for the
 * node. The nodes of such a request are excused. */
static void excuse_late_nodes(sim_history *history, const sim_commit *c)
{
  sim_session *s = sim_history_session(history, c->session);

  if (c->xid > s->top_xid) {
    s->top_xid = c->xid;
    return;
  }
  for (sim_entry *e = history->existing;
       e != NULL && e->created_zxid == c->zxid; e = e->next)
    e->is_excused = true;
}

void sim_history_committed(sim_history *history, const sim_commit *c,
                           const sim_tree *committed)
{
  history->zxid = c->zxid;
  if (c->xid > 0) /* a request of a client */
    excuse_late_nodes(history, c);
  if (c->op == OP_CLOSE)
    set_deletion_cause_of_session(history,
                                  sim_history_session(history, c->session));
  else
    set_deletion_cause(history, c->session);
  if (c->op == OP_SET_ACL || c->op == OP_CLOSE ||
      history->being_deleted != NULL)
    note_access(history, committed);
  if (c->op == OP_SET_DATA || c->op == OP_MULTI)
    add_versions(history, committed, c->zxid);
  if (c->op == OP_SET_DATA)
    note_sets_of_existing(history, committed, c->zxid);
}

sim_session *sim_history_session(sim_history *history, int64_t id)
{
  sim_session *s = history->sessions;

  while (s != NULL && s->id != id)
    s = s->next;
  if (s == NULL) {
    s = sim_allocate(sizeof *s);
    s->id = id;
    s->next = history->sessions;
    history->sessions = s;
  }
  return s;
}

void sim_history_end_session(sim_history *history, int64_t session,
                             bool expired)
{
  sim_session *s = sim_history_session(history, session);

  s->over = true;
  s->expired = expired;
  s->over_us = history->agenda->now_us;
}

/* ---- queries ------------------------------------------------------------ */

sim_entry *sim_history_find(const sim_history *history, const char *path)
{
  sim_entry *e = history->existing;

  while (e != NULL && strcmp(e->path, path) != 0)
    e = e->next;
  return e;
}

sim_entry *sim_history_at(const sim_history *history, const char *path,
                          int64_t zxid)
{
  for (sim_entry *e = history->newest; e != NULL; e = e->older) {
    if (sim_entry_existed_at(e, zxid) && strcmp(e->path, path) == 0)
      return e;
  }
  return NULL;
}

sim_entry *sim_history_by_zxid(const sim_history *history, int64_t created_zxid)
{
  for (sim_entry *e = history->newest; e != NULL; e = e->older) {
    if (e->created_zxid == created_zxid)
      return e;
    if (e->created_zxid < created_zxid && !history->wiped)
      return NULL; /* all older entries have smaller zxids */
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

/* A downgraded reader has been in the queue since its write node was
 * created. */
static int64_t queued_since(const sim_entry *e)
{
  return e->downgraded_from == NULL ? e->created_zxid
                                    : e->downgraded_from->created_zxid;
}

bool sim_excludes(const sim_entry *rival, const sim_entry *own)
{
  if (rival == own || !rival->is_contender || !own->is_contender ||
      rival->lock_index != own->lock_index ||
      sim_incarnation(rival->created_zxid) !=
          sim_incarnation(own->created_zxid) ||
      rival->suffix >= own->suffix || (rival->is_reader && own->is_reader))
    return false;
  return queued_since(rival) < queued_since(own);
}
