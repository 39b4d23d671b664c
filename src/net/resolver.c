/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/resolver.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/resolver_thread.h"

enum { MAX_NAMES = 64, WHY_SIZE = 160 };

/* Another query may begin beside one that takes longer: its socket may have
   lost the way to the name server. */
enum { SLOW_QUERY_MS = 2000, MAX_QUERIES_OF_A_KIND = 2 };

/* The queries of one kind for a name. */
typedef struct name_queries {
  unsigned running;
  int64_t began_ms; /* when the last one was started */
} name_queries;

typedef struct lk_name {
  lk_link link;     /* in lk_resolver.names, the one that was used last at the
                       end */
  lk_link ready;    /* in lk_resolver.ready, or in no list */
  lk_link lookups;  /* each lk_lookup that waits */
  int64_t began_ms; /* when it was last looked up; INT64_MIN: never */
  int64_t found_ms; /* when the first query since then has found addresses;
                       INT64_MAX: none has */
  bool whole;       /* `list` has the addresses of both families, of a query
                       since then */
  bool asked_families; /* queries for each family were made since then */
  bool needs_families; /* the query for both has failed since then */
  name_queries queries[LK_LOOKUP_KINDS];
  lk_address *list; /* the addresses that were found last */
  size_t count;
  char why[WHY_SIZE]; /* why the last query that failed has found none */
  char host[];
} lk_name;

struct lk_resolver {
  const lk_mem *mem;
  lk_loop *loop;
  const lk_clock *clock;
  const lk_fork_check *fork_check;
  lk_lookup_threads *threads;
  lk_loop_timer timer; /* for the names that have lookups */
  lk_link names;
  size_t name_count;
  lk_link ready; /* names whose lookups are complete */
};

/* ---- names --------------------------------------------------------------- */

static bool name_is_running(const lk_name *m)
{
  for (int kind = 0; kind < LK_LOOKUP_KINDS; kind++)
    if (m->queries[kind].running > 0)
      return true;
  return false;
}

static bool name_is_fresh(const lk_name *m)
{
  return m->found_ms != INT64_MAX;
}

static void name_free(lk_resolver *r, lk_name *m)
{
  lk__list_remove(&m->link);
  lk__list_remove(&m->ready);
  r->name_count--;
  lk__mem_free(r->mem, m->list);
  lk__mem_free(r->mem, m);
}

/* Free the name that was used least recently, if there are too many. */
static void resolver_limit_names(lk_resolver *r)
{
  for (lk_link *l = r->names.next; l != &r->names; l = l->next) {
    lk_name *m = LK_OWNER(l, lk_name, link);

    if (r->name_count < MAX_NAMES)
      return;
    if (!name_is_running(m) && lk__list_empty(&m->lookups)) {
      name_free(r, m);
      return;
    }
  }
}

static lk_name *name_new(lk_resolver *r, const char *host)
{
  size_t size = strlen(host) + 1;
  lk_name *m = lk__mem_new(r->mem, sizeof *m + size);

  if (m == NULL)
    return NULL;
  resolver_limit_names(r);
  r->name_count++;
  lk__list_init(&m->link);
  lk__list_init(&m->ready);
  lk__list_init(&m->lookups);
  m->began_ms = INT64_MIN;
  m->found_ms = INT64_MAX;
  memcpy(m->host, host, size);
  return m;
}

/* NULL: it was not looked up, or is forgotten. */
static lk_name *resolver_find_name(const lk_resolver *r, const char *host)
{
  for (lk_link *l = r->names.next; l != &r->names; l = l->next) {
    lk_name *m = LK_OWNER(l, lk_name, link);

    if (strcmp(m->host, host) == 0)
      return m;
  }
  return NULL;
}

/* The name with this host, now the one that was used last; NULL: no memory. */
static lk_name *resolver_name(lk_resolver *r, const char *host)
{
  lk_name *m = resolver_find_name(r, host);

  if (m == NULL)
    m = name_new(r, host);
  if (m == NULL)
    return NULL;
  lk__list_remove(&m->link);
  lk__list_add(&r->names, &m->link);
  return m;
}

static void name_note_failure(lk_name *m, const char *why)
{
  snprintf(m->why, sizeof m->why, "resolve %.80s: %s", m->host, why);
}

/* ---- addresses ----------------------------------------------------------- */

static bool name_has_address(const lk_name *m, const lk_address *a)
{
  for (size_t i = 0; i < m->count; i++)
    if (lk__address_equal(&m->list[i], a))
      return true;
  return false;
}

static size_t count_found(const struct addrinfo *found)
{
  size_t count = 0;

  for (; found != NULL; found = found->ai_next)
    count++;
  return count;
}

/* Add the addresses to those that were found since the name was last looked up,
   or replace older ones. false: there is no memory. */
static bool name_remember(lk_resolver *r, lk_name *m,
                          const struct addrinfo *found)
{
  size_t kept = name_is_fresh(m) ? m->count : 0;
  lk_address *list = lk__mem_resize(r->mem, m->list,
                                    (kept + count_found(found)) * sizeof *list);

  if (list == NULL)
    return false;
  m->list = list;
  m->count = kept;
  for (; found != NULL; found = found->ai_next) {
    lk_address a;

    if (!lk__address_copy(&a, found->ai_addr))
      continue;
    lk__address_set_port(&a, 0);
    if (!name_has_address(m, &a))
      m->list[m->count++] = a;
  }
  if (m->count > 0 && !name_is_fresh(m))
    m->found_ms = lk__clock_now(r->clock);
  return true;
}

/* ---- localhost ----------------------------------------------------------- */

/* Whether RFC 6761 (section 6.3) reserves the name for loopback addresses. */
static bool is_localhost(const char *host)
{
  static const char name[] = "localhost";
  const size_t name_len = sizeof name - 1;
  size_t len = strlen(host);

  if (len > 0 && host[len - 1] == '.')
    len--; /* the root of the name space, which may be written */
  if (len < name_len)
    return false;
  size_t labels_before = len - name_len;

  return strncasecmp(host + labels_before, name, name_len) == 0 &&
         (labels_before == 0 || host[labels_before - 1] == '.');
}

static void name_add_loopback(lk_resolver *r, lk_name *m)
{
  static const char *const literals[] = {"127.0.0.1", "::1"};

  for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
    lk_address a;
    struct addrinfo found = {.ai_addr = &a.any};

    if (!lk__address_parse(&a, literals[i]) || !name_remember(r, m, &found))
      name_note_failure(m, "out of memory");
  }
  m->whole = true;
}

/* "localhost" needs no query if there is no hosts file that could say
   otherwise. A name server would be asked in vain, and musl waits 5 s for one
   that does not exist. */
static bool needs_no_query(const lk_name *m)
{
  return is_localhost(m->host) && access("/etc/hosts", R_OK) != 0;
}

/* ---- queries ------------------------------------------------------------- */

/* A query that still runs serves the present lookup as well. */
static void name_query(lk_resolver *r, lk_name *m, lk_lookup_kind kind)
{
  name_queries *q = &m->queries[kind];
  int64_t now_ms = lk__clock_now(r->clock);
  bool may_add = q->running < MAX_QUERIES_OF_A_KIND &&
                 now_ms - q->began_ms >= SLOW_QUERY_MS &&
                 !lk__lookup_threads_are_busy(r->threads);

  if (q->running > 0 && !may_add)
    return;
  if (!lk__lookup_threads_query(r->threads, m->host, kind, m)) {
    name_note_failure(m, "cannot start a thread");
    return;
  }
  q->running++;
  q->began_ms = now_ms;
}

static void name_query_families(lk_resolver *r, lk_name *m)
{
  m->asked_families = true;
  name_query(r, m, LK_LOOKUP_IPV4);
  name_query(r, m, LK_LOOKUP_IPV6);
}

/* When the families have to be asked for one by one; INT64_MAX: never. */
static int64_t name_families_ms(const lk_name *m)
{
  const name_queries *q = &m->queries[LK_LOOKUP_ANY];

  if (m->asked_families || m->whole)
    return INT64_MAX;
  if (m->needs_families)
    return INT64_MIN;
  return q->running > 0 ? q->began_ms + LK_LOOKUP_FAMILIES_MS : INT64_MAX;
}

/* The hosts file comes first: an administrator may give localhost one address
   only, as where IPv6 is switched off, or "a.localhost" another one. */
static void name_on_queries_end(lk_resolver *r, lk_name *m)
{
  if (m->count == 0 && is_localhost(m->host))
    name_add_loopback(r, m);
}

static void name_begin(lk_resolver *r, lk_name *m)
{
  int64_t now_ms = lk__clock_now(r->clock);

  if (m->began_ms != INT64_MIN && now_ms - m->began_ms < LK_LOOKUP_INTERVAL_MS)
    return;
  m->began_ms = now_ms;
  m->found_ms = INT64_MAX;
  m->whole = false;
  m->asked_families = false;
  m->needs_families = false;
  if (needs_no_query(m))
    name_add_loopback(r, m);
  else
    name_query(r, m, LK_LOOKUP_ANY);
}

/* ---- when a lookup is complete ------------------------------------------- */

static bool name_has_result(const lk_name *m, int64_t now_ms)
{
  return m->whole || !name_is_running(m) ||
         (name_is_fresh(m) &&
          now_ms >= m->found_ms + LK_LOOKUP_SECOND_FAMILY_MS);
}

/* When a lookup gets the remembered addresses; INT64_MAX: never. */
static int64_t name_remembered_ms(const lk_name *m, const lk_lookup *l)
{
  return m->count == 0 || name_is_fresh(m) || l->got_remembered
             ? INT64_MAX
             : m->began_ms + LK_LOOKUP_REMEMBERED_MS;
}

/* When something is due for the lookups of the name. */
static int64_t name_due_ms(const lk_name *m, int64_t now_ms)
{
  int64_t due_ms = name_families_ms(m);

  if (name_has_result(m, now_ms))
    return INT64_MIN;
  if (name_is_fresh(m) && m->found_ms + LK_LOOKUP_SECOND_FAMILY_MS < due_ms)
    due_ms = m->found_ms + LK_LOOKUP_SECOND_FAMILY_MS;
  for (lk_link *l = m->lookups.next; l != &m->lookups; l = l->next) {
    int64_t at_ms = name_remembered_ms(m, LK_OWNER(l, lk_lookup, link));

    if (at_ms < due_ms)
      due_ms = at_ms;
  }
  return due_ms;
}

/* Start the queries that are due, move the names whose lookups are complete to
   `ready`, and set the timer for the others. */
static void resolver_update(lk_resolver *r)
{
  int64_t now_ms = lk__clock_now(r->clock), next_ms = INT64_MAX;

  for (lk_link *l = r->names.next; l != &r->names; l = l->next) {
    lk_name *m = LK_OWNER(l, lk_name, link);

    if (lk__list_empty(&m->lookups) || !lk__list_empty(&m->ready))
      continue;
    if (name_families_ms(m) <= now_ms)
      name_query_families(r, m);
    if (!name_is_running(m))
      name_on_queries_end(r, m);
    int64_t due_ms = name_due_ms(m, now_ms);

    if (due_ms <= now_ms)
      lk__list_add(&r->ready, &m->ready);
    else if (due_ms < next_ms)
      next_ms = due_ms;
  }
  if (next_ms == INT64_MAX)
    lk__loop_stop_timer(r->loop, &r->timer);
  else
    lk__loop_set_timer(r->loop, &r->timer, next_ms - now_ms);
}

static void on_resolver_timer(lk_loop_timer *t)
{
  lk_resolver *r = LK_OWNER(t, lk_resolver, timer);

  if (!lk__fork_check_in_child(r->fork_check))
    resolver_update(r);
}

/* A result for both families replaces those of one. */
static void name_take_found(lk_resolver *r, lk_name *m,
                            const lk_lookup_result *result)
{
  if (result->kind == LK_LOOKUP_ANY)
    m->found_ms = INT64_MAX;
  else if (m->whole)
    return;
  if (!name_remember(r, m, result->found))
    name_note_failure(m, "out of memory");
  else if (!name_is_fresh(m))
    name_note_failure(m, "no address");
  else if (result->kind == LK_LOOKUP_ANY)
    m->whole = true;
}

void lk__resolver_on_query_result(lk_resolver *r,
                                  const lk_lookup_result *result)
{
  lk_name *m = result->name;

  m->queries[result->kind].running--;
  if (result->found != NULL)
    name_take_found(r, m, result);
  else
    name_note_failure(m, result->why);
  if (result->kind == LK_LOOKUP_ANY && result->found == NULL)
    m->needs_families = result->temporary;
  resolver_update(r);
}

/* ---- lookups ------------------------------------------------------------- */

bool lk__resolver_lookup(lk_resolver *r, lk_lookup *l, const char *host)
{
  lk_name *m = resolver_name(r, host);

  if (m == NULL)
    return false;
  l->got_remembered = false;
  lk__list_add(&m->lookups, &l->link);
  name_begin(r, m);
  resolver_update(r);
  return true;
}

bool lk__resolver_is_asking(const lk_resolver *r, const char *host,
                            lk_lookup_kind kind)
{
  const lk_name *m = resolver_find_name(r, host);

  return m != NULL && m->queries[kind].running > 0;
}

void lk__lookup_cancel(lk_lookup *l)
{
  lk__list_remove(&l->link);
}

/* Move the lookups to `complete` that end now, or get the remembered addresses.
 */
static void name_take_complete(lk_name *m, int64_t now_ms, lk_link *complete)
{
  for (lk_link *l = m->lookups.next, *next; l != &m->lookups; l = next) {
    next = l->next;
    if (name_has_result(m, now_ms) ||
        name_remembered_ms(m, LK_OWNER(l, lk_lookup, link)) <= now_ms) {
      lk__list_remove(l);
      lk__list_add(complete, l);
    }
  }
}

/* The name is not used once `done` was called, which may lead to its end. */
static void name_complete_lookups(lk_resolver *r, lk_name *m)
{
  int64_t now_ms = lk__clock_now(r->clock);
  bool has_result = name_has_result(m, now_ms);
  size_t count = m->count;
  lk_address *list =
      count == 0 ? NULL : lk__mem_new(r->mem, count * sizeof *list);
  lk_link complete;
  char why[WHY_SIZE];

  if (count > 0 && list == NULL)
    name_note_failure(m, "out of memory");
  if (list == NULL)
    count = 0;
  else
    memcpy(list, m->list, count * sizeof *list);
  memcpy(why, m->why, sizeof why);
  lk__list_init(&complete);
  name_take_complete(m, now_ms, &complete);
  while (!lk__list_empty(&complete)) {
    lk_lookup *l = LK_OWNER(lk__list_pop(&complete), lk_lookup, link);

    if (!has_result) {
      l->got_remembered = true;
      lk__list_add(&m->lookups, &l->link);
    }
    l->done(l, list, count, count > 0 ? NULL : why);
  }
  lk__mem_free(r->mem, list);
}

void lk__resolver_deliver(lk_resolver *r)
{
  while (!lk__list_empty(&r->ready) &&
         !lk__fork_check_in_child(r->fork_check)) {
    lk_name *m = LK_OWNER(r->ready.next, lk_name, ready);

    lk__list_remove(&m->ready);
    name_complete_lookups(r, m);
    /* A callback may have forked: the child must not start threads. */
    if (!lk__fork_check_in_child(r->fork_check))
      resolver_update(r);
  }
}

/* ---- creation and end ---------------------------------------------------- */

int lk__resolver_new(lk_resolver **out, lk_loop *loop, const lk_clock *clock,
                     const lk_fork_check *fork_check, const lk_mem *mem)
{
  lk_resolver *r = lk__mem_new(mem, sizeof *r);

  *out = NULL;
  if (r == NULL)
    return LK_ERR_NO_MEMORY;
  *r = (lk_resolver){.mem = mem,
                     .loop = loop,
                     .clock = clock,
                     .fork_check = fork_check,
                     .timer = {.on_timer = on_resolver_timer}};
  lk__list_init(&r->names);
  lk__list_init(&r->ready);

  int err = lk__lookup_threads_new(&r->threads, loop, fork_check, mem, r);

  if (err != 0) {
    lk__mem_free(mem, r);
    return err;
  }
  *out = r;
  return 0;
}

void lk__resolver_free(lk_resolver *r)
{
  if (r == NULL)
    return;
  lk__loop_stop_timer(r->loop, &r->timer);
  lk__lookup_threads_free(r->threads, lk__fork_check_in_child(r->fork_check));
  while (!lk__list_empty(&r->names))
    name_free(r, LK_OWNER(r->names.next, lk_name, link));
  lk__mem_free(r->mem, r);
}
