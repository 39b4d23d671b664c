/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include <latchkey/roster.h>
#include <latchkey/subscribe.h>

#include "base/mem.h"
#include "proto/engine/lease_slot.h"
#include "recipes/call.h"
#include "recipes/names.h"
#include "recipes/retry.h"

/**
 * @file
 * A roster: the children of a node and their data. One subscription reports the
 * list of children, and each child has a subscription to its data. The roster
 * is reported when it has changed and each child has a state.
 */

/* Children are not compared periodically: a new list finds out which exist. */
enum { NO_CHECKS = -1 };

typedef struct lk_roster_child lk_roster_child;

/* A child in a roster: its subscription, and a copy of its data. */
struct lk_roster_child {
  lk_roster *roster;
  lk_subscription *subscription; /* NULL: to be opened again */
  bool known; /* a state was reported; `err` and the following are valid */
  int err;    /* 0, LK_ERR_NO_NODE, or why the data cannot be read */
  lk_stat stat;
  void *data;
  size_t data_len;
  bool data_are_null; /* which is not the same as empty */
  int64_t number;     /* the sequence number of a candidate */
  lk_bytes name;      /* the end of `path` */
  char path[];
};

struct lk_roster {
  lk_mem mem;
  lk_client *client;
  lk_roster_config config;
  lk_roster_cb on_roster;
  void *arg;
  lk_subscription *list;      /* NULL: to be opened again */
  bool listed;                /* the children are those of the newest list */
  lk_roster_child **children; /* in the order of their names */
  size_t count;
  size_t unknown;           /* children without a state */
  bool changed;             /* since the last report */
  lk_roster_entry *entries; /* of the children that exist, as reported; room
                               for all */
  size_t entry_count;
  bool entries_current; /* false: the next report makes all entries anew */
  lk_retry_pause pause; /* before what lacked memory is opened again */
  unsigned callbacks_running;
  bool freeing; /* destroy the roster when `callbacks_running` is 0 */
  char path[];
};

static int roster_open_list(lk_roster *r);
static void on_pause_over(void *arg, int err);

/* ---- children ------------------------------------------------------------ */

/* Make a child without a subscription. NULL: no memory. */
static lk_roster_child *roster_child_new(lk_roster *r, lk_bytes name,
                                         int64_t number)
{
  const char *parent = strcmp(r->path, "/") == 0 ? "" : r->path;
  size_t dir_len = strlen(parent);
  lk_roster_child *child =
      lk__mem_new(&r->mem, sizeof *child + dir_len + name.len + sizeof "/");

  if (child == NULL)
    return NULL;
  child->roster = r;
  child->number = number;
  (void)lk__write_child_path(child->path, parent, name);
  child->name = lk_bytes_of(child->path + dir_len + strlen("/"), name.len);
  return child;
}

/* false: no memory. */
static bool child_copy_data(lk_roster_child *child, const lk_bytes *data)
{
  size_t len = data == NULL ? 0 : data->len;

  if (len > 0) {
    void *copy = lk__mem_resize(&child->roster->mem, child->data, len);

    if (copy == NULL)
      return false;
    memcpy(copy, data->at, len);
    child->data = copy;
  }
  child->data_len = len;
  child->data_are_null = data == NULL || data->at == NULL;
  return true;
}

/* The data; empty if they cannot be read. */
static lk_bytes roster_child_data(const lk_roster_child *child)
{
  if (child->err != 0)
    return lk_bytes_of("", 0);
  if (child->data_are_null)
    return lk_text(NULL);
  return lk_bytes_of(child->data_len == 0 ? "" : child->data, child->data_len);
}

/* Whether the child belongs to the roster: it is known, and exists. */
static inline bool roster_child_exists(const lk_roster_child *child)
{
  return child->known && child->err != LK_ERR_NO_NODE;
}

/* End the subscription; the memory stays. */
static void roster_child_close(lk_roster_child *child)
{
  lk_subscription_free(child->subscription);
  child->subscription = NULL;
}

/* Free a child that is closed. */
static void roster_child_free(lk_roster_child *child)
{
  const lk_mem *mem = &child->roster->mem;

  lk__mem_free(mem, child->data);
  lk__mem_free(mem, child);
}

/* ---- running callbacks --------------------------------------------------- */

static void roster_destroy(lk_roster *r)
{
  lk_client *c = r->client;
  lk_mem mem = r->mem;

  for (size_t i = 0; i < r->count; i++)
    roster_child_free(r->children[i]);
  lk__mem_free(&mem, r->children);
  lk__mem_free(&mem, r->entries);
  lk__mem_free(&mem, r);
  lk__client_unref(c);
}

static void roster_enter(lk_roster *r)
{
  r->callbacks_running++;
}

static void roster_leave(lk_roster *r)
{
  if (--r->callbacks_running == 0 && r->freeing)
    roster_destroy(r);
}

/* ---- creation ------------------------------------------------------------ */

int lk_roster_subscribe(lk_roster **out, lk_client *client, const char *path,
                        const lk_roster_config *config, lk_roster_cb on_roster,
                        void *arg)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_roster_config);
  const lk_mem *mem = lk_client_mem(client);
  lk_roster_config options;

  *out = NULL;
  if (lk__client_copy_options(client, &sized, &options, config) != 0 ||
      lk__layout_rules(options.layout) == NULL || on_roster == NULL)
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0)
    return LK_ERR_BAD_PATH;
  size_t len = strlen(path);
  lk_roster *r = lk__mem_new(mem, sizeof *r + len + 1);

  if (r == NULL)
    return LK_ERR_NO_MEMORY;
  r->mem = *mem;
  r->client = client;
  r->config = options;
  r->on_roster = on_roster;
  r->arg = arg;
  r->changed = true;
  memcpy(r->path, path, len); /* the memory is zeroed, so a NUL follows */
  int err = roster_open_list(r);

  if (err != 0) {
    lk__mem_free(mem, r);
    return err;
  }
  lk__client_ref(client);
  *out = r;
  return 0;
}

/* ---- reports ------------------------------------------------------------- */

static void roster_report_error(lk_roster *r, int err)
{
  if (!r->freeing)
    r->on_roster(r, err, NULL, 0, r->arg);
}

static lk_roster_entry entry_of(const lk_roster_child *child)
{
  return (lk_roster_entry){.name = child->name,
                           .data = roster_child_data(child),
                           .err = child->err,
                           .stat = child->err == 0 ? &child->stat : NULL,
                           .number = child->number};
}

static int compare_names(lk_bytes a, lk_bytes b)
{
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len == 0 ? 0 : memcmp(a.at, b.at, len);

  return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* All numbers are 0 unless the roster is that of an election. */
static int compare_entries(const void *a, const void *b)
{
  const lk_roster_entry *x = a, *y = b;
  int order = (x->number > y->number) - (x->number < y->number);

  return order != 0 ? order : compare_names(x->name, y->name);
}

static void roster_make_entries(lk_roster *r)
{
  r->entry_count = 0;
  for (size_t i = 0; i < r->count; i++) {
    if (roster_child_exists(r->children[i]))
      r->entries[r->entry_count++] = entry_of(r->children[i]);
  }
  if (r->config.election && r->entry_count > 0)
    qsort(r->entries, r->entry_count, sizeof *r->entries, compare_entries);
  r->entries_current = true;
}

/* Only the entry of the child is written, unless one is missing or obsolete. */
static void roster_update_entry(lk_roster *r, const lk_roster_child *child)
{
  lk_roster_entry new_entry = entry_of(child);
  lk_roster_entry *entry = r->entries_current
                               ? bsearch(&new_entry, r->entries, r->entry_count,
                                         sizeof new_entry, compare_entries)
                               : NULL;
  bool has_entry = entry != NULL;

  if (has_entry != roster_child_exists(child))
    r->entries_current = false;
  else if (has_entry)
    *entry = new_entry;
}

/* A child has a state. `was_known`: it had one before. */
static void roster_child_changed(lk_roster *r, const lk_roster_child *child,
                                 bool was_known)
{
  if (!was_known)
    r->unknown--;
  r->changed = true;
  roster_update_entry(r, child);
}

/* Report the roster if it has changed and each child has a state. */
static void roster_report(lk_roster *r)
{
  if (!r->listed || r->unknown > 0 || !r->changed || r->freeing)
    return;
  r->changed = false;
  if (!r->entries_current)
    roster_make_entries(r);
  r->on_roster(r, 0, r->entries, r->entry_count, r->arg);
}

/* ---- retries ------------------------------------------------------------- */

static void roster_retry_later(lk_roster *r)
{
  if (!r->pause.running)
    lk__retry_pause_start(&r->pause, r->client, INT64_MAX, on_pause_over, r);
}

/* ---- the data of the children -------------------------------------------- */

static bool is_end_of_client(int err)
{
  return err == LK_ERR_CLOSED || err == LK_ERR_AUTH_FAILED ||
         err == LK_ERR_SESSION_EXPIRED;
}

static void on_child_state(lk_subscription *s, int err, const lk_bytes *data,
                           const lk_stat *stat, void *arg)
{
  lk_roster_child *child = arg;
  lk_roster *r = child->roster;
  bool was_known = child->known;

  (void)s;
  if (is_end_of_client(err))
    return; /* the roster is notified by its list */
  if (!child_copy_data(child, data)) {
    roster_child_close(child);
    roster_retry_later(r);
    return;
  }
  child->known = true;
  child->err = err;
  if (stat != NULL)
    child->stat = *stat;
  roster_enter(r);
  roster_child_changed(r, child, was_known);
  roster_report(r);
  roster_leave(r);
}

/* Subscribe to the data, if that is not done yet. If no request for them can
   be made, because old servers allowed more characters in a name or because it
   is longer than the client sends, the child is known from then on, with this
   error. Returns 0, or an error after which the child is to be opened again.
   */
static int roster_child_open(lk_roster_child *child, lk_client *client)
{
  const lk_subscription_config config = {.size = sizeof config,
                                         .check_ms = NO_CHECKS};

  if (child->subscription != NULL)
    return 0;
  int err = lk_subscribe_data(&child->subscription, client, child->path,
                              &config, on_child_state, child);

  if (err != LK_ERR_BAD_PATH && err != LK_ERR_TOO_BIG)
    return err;
  child->known = true;
  child->err = err;
  return 0;
}

static void roster_open_child(lk_roster *r, lk_roster_child *child)
{
  bool was_known = child->known;

  if (roster_child_open(child, r->client) != 0)
    roster_retry_later(r);
  else if (child->known && !was_known)
    /* its data cannot be requested */
    roster_child_changed(r, child, was_known);
}

static void roster_open_children(lk_roster *r)
{
  for (size_t i = 0; i < r->count; i++)
    roster_open_child(r, r->children[i]);
}

/* ---- the list of children ------------------------------------------------ */

static int compare_listed(const void *a, const void *b)
{
  return compare_names(*(const lk_bytes *)a, *(const lk_bytes *)b);
}

/* The index of the child with this name, or `count`. */
static size_t roster_find(const lk_roster *r, lk_bytes name)
{
  size_t from = 0, to = r->count;

  while (from < to) {
    size_t middle = from + (to - from) / 2;
    int order = compare_names(r->children[middle]->name, name);

    if (order == 0)
      return middle;
    if (order < 0)
      from = middle + 1;
    else
      to = middle;
  }
  return r->count;
}

static void roster_remove_child(lk_roster *r, lk_roster_child *child)
{
  if (roster_child_exists(child))
    r->changed = true;
  if (!child->known)
    r->unknown--;
  roster_child_close(child);
  roster_child_free(child);
}

/* Put the child with this name into `out`: the present one, or a new one.
 * false: no memory. */
static bool roster_take_child(lk_roster *r, lk_bytes name, int64_t number,
                              lk_roster_child **out)
{
  size_t at = roster_find(r, name);

  if (at < r->count) {
    *out = r->children[at];
    return true;
  }
  *out = roster_child_new(r, name, number);
  return *out != NULL;
}

static bool roster_wants(const lk_roster *r, lk_bytes name, int64_t *number)
{
  *number = 0;
  bool shared;

  return !r->config.election ||
         lk_layout_contends(r->config.layout, NULL, name, number, &shared);
}

/* The new children among `children`, which are not in the roster. */
static void roster_free_new(lk_roster *r, lk_roster_child **children,
                            size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (roster_find(r, children[i]->name) == r->count)
      roster_child_free(children[i]);
  }
}

/* Make an array of the children with these names, which are sorted. A name
 * that a faulty server has listed twice is taken once. Returns false if there
 * is no memory; then the roster is unchanged. */
static bool roster_make_children(lk_roster *r, const lk_bytes *names,
                                 size_t count, lk_roster_child **children,
                                 size_t *out_count)
{
  size_t taken = 0;
  int64_t number;

  for (size_t i = 0; i < count; i++) {
    bool repeated = i > 0 && compare_names(names[i - 1], names[i]) == 0;

    if (repeated || !roster_wants(r, names[i], &number))
      continue;
    if (!roster_take_child(r, names[i], number, &children[taken])) {
      roster_free_new(r, children, taken);
      return false;
    }
    taken++;
  }
  *out_count = taken;
  return true;
}

/* Replace the children by `children`, and free those that are not among them.
 */
static void roster_replace_children(lk_roster *r, lk_roster_child **children,
                                    size_t count)
{
  lk_roster_child **old = r->children;
  size_t old_count = r->count;

  for (size_t i = 0; i < count; i++) {
    if (roster_find(r, children[i]->name) == r->count)
      r->unknown++;
  }
  r->children = children;
  r->count = count;
  for (size_t i = 0; i < old_count; i++) {
    if (roster_find(r, old[i]->name) == r->count)
      roster_remove_child(r, old[i]);
  }
  lk__mem_free(&r->mem, old);
}

/* An array of `count` elements, which may be 0. NULL: no memory. */
static void *roster_new_array(const lk_roster *r, size_t count, size_t size)
{
  size_t room = count > 0 ? count : 1;

  return room <= SIZE_MAX / size ? lk__mem_new(&r->mem, room * size) : NULL;
}

/* A sorted copy of a list of names. NULL: no memory. */
static lk_bytes *roster_sort_names(const lk_roster *r, const lk_bytes *names,
                                   size_t count)
{
  lk_bytes *sorted = roster_new_array(r, count, sizeof *sorted);

  if (sorted != NULL && count > 0) {
    memcpy(sorted, names, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_listed);
  }
  return sorted;
}

/* Take over a list of names. false: no memory. */
static bool roster_take_names(lk_roster *r, const lk_bytes *names, size_t count)
{
  size_t children_count;
  lk_bytes *sorted = roster_sort_names(r, names, count);
  lk_roster_entry *entries = roster_new_array(r, count, sizeof *entries);
  lk_roster_child **children =
      roster_new_array(r, count, sizeof(lk_roster_child *));
  bool made = sorted != NULL && entries != NULL && children != NULL &&
              roster_make_children(r, sorted, count, children, &children_count);

  lk__mem_free(&r->mem, sorted);
  if (!made) {
    lk__mem_free(&r->mem, entries);
    lk__mem_free(&r->mem, children);
    return false;
  }
  lk__mem_free(&r->mem, r->entries);
  r->entries = entries;
  r->entries_current = false;
  roster_replace_children(r, children, children_count);
  return true;
}

/* There is no list, because of `err`. */
static void roster_list_failed(lk_roster *r, int err)
{
  r->listed = false;
  if (err == LK_ERR_NO_NODE)
    (void)roster_take_names(r, NULL, 0);
  r->changed = true;
  roster_report_error(r, err);
}

static void on_list(lk_subscription *s, int err, const lk_bytes *names,
                    size_t count, const lk_stat *stat, void *arg)
{
  lk_roster *r = arg;

  (void)s;
  (void)stat;
  roster_enter(r);
  if (err != 0) {
    roster_list_failed(r, err);
  } else if (roster_take_names(r, names, count)) {
    r->listed = true;
    roster_open_children(r);
    roster_report(r);
  } else {
    lk_subscription_free(r->list);
    r->list = NULL;
    roster_retry_later(r);
  }
  roster_leave(r);
}

static int roster_open_list(lk_roster *r)
{
  const lk_subscription_config config = {.size = sizeof config,
                                         .check_ms = r->config.check_ms};

  return lk_subscribe_children(&r->list, r->client, r->path, &config, on_list,
                               r);
}

/* `err`: the client has ended. The list reports that, if it is open. */
static void on_pause_over(void *arg, int err)
{
  lk_roster *r = arg;

  roster_enter(r);
  if (err != 0) {
    if (r->list == NULL)
      roster_report_error(r, err);
  } else {
    if (r->list == NULL && roster_open_list(r) != 0)
      roster_retry_later(r);
    roster_open_children(r);
  }
  roster_leave(r);
}

/* ---- end ----------------------------------------------------------------- */

/* Send no more requests. The children stay, for a callback that reads them. */
static void roster_close(lk_roster *r)
{
  for (size_t i = 0; i < r->count; i++)
    roster_child_close(r->children[i]);
  lk_subscription_free(r->list);
  r->list = NULL;
  lk__retry_pause_stop(&r->pause, r->client);
}

void lk_roster_free(lk_roster *r)
{
  if (r == NULL || r->freeing)
    return;
  roster_enter(r);
  r->freeing = true;
  roster_close(r);
  roster_leave(r);
}

/* ---- a roster that is read once ------------------------------------------ */

/* A read of a roster: a subscription that ends with its first report. */
typedef struct roster_read {
  lk_client *client;
  lk_roster *roster;
  lk_timer timer; /* the deadline */
  lk_roster_get_cb done;
  void *arg;
} roster_read;

/* The roster is destroyed after the callback, so its entries are valid until
 * then. */
static void roster_read_complete(roster_read *read, int err,
                                 const lk_roster_entry *entries, size_t count)
{
  lk_client *c = read->client;
  lk_roster_get_cb done = read->done;
  void *arg = read->arg;

  lk_timer_stop(c, &read->timer);
  lk_roster_free(read->roster);
  lk__mem_free(lk_client_mem(c), read);
  if (done != NULL)
    done(c, err, entries, count, arg);
}

static void on_roster(lk_roster *r, int err, const lk_roster_entry *entries,
                      size_t count, void *arg)
{
  (void)r;
  roster_read_complete(arg, err, entries, count);
}

static void on_deadline(lk_client *c, void *arg)
{
  (void)c;
  roster_read_complete(arg, LK_ERR_DEADLINE, NULL, 0);
}

int lk_roster_get(lk_client *client, const char *path,
                  const lk_roster_config *config, const lk_call *call,
                  lk_roster_get_cb done, void *arg)
{
  lk_call options;
  int err = lk__call_options_copy(client, &options, call);

  if (err != 0)
    return err;
  int64_t deadline_ms = lk__call_deadline(client, &options);

  if (deadline_ms <= lk_client_clock(client))
    return LK_ERR_DEADLINE;
  const lk_mem *mem = lk_client_mem(client);
  roster_read *read = lk__mem_new(mem, sizeof *read);

  if (read == NULL)
    return LK_ERR_NO_MEMORY;
  *read = (roster_read){.client = client, .done = done, .arg = arg};
  read->timer = (lk_timer){.fire = on_deadline, .arg = read};
  err =
      lk_roster_subscribe(&read->roster, client, path, config, on_roster, read);
  if (err != 0) {
    lk__mem_free(mem, read);
    return err;
  }
  if (deadline_ms != INT64_MAX)
    lk_timer_start(client, &read->timer, deadline_ms);
  return 0;
}
