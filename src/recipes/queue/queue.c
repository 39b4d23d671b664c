/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/queue.h"

#include <string.h>

#include "base/mem.h"
#include "recipes/names.h"
#include "recipes/queue/acquisition.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/holding.h"
#include "recipes/queue/lease.h"
#include "recipes/queue/own_node.h"
#include "recipes/queue/predecessors.h"

/* ---- sequence numbers ---------------------------------------------------- */

/* Half of an int32 counter. */
static const int64_t warning_level = (int64_t)1 << 30;

bool lk__sequence_is_in_range(int64_t number)
{
  return number >= 0 && number <= LK_SEQUENCE_LIMIT;
}

/* Whether the owner should be warned: half of the counter is used. */
static bool sequence_is_near_end(int64_t number)
{
  return number >= warning_level;
}

/* ---- nodes of other locks ------------------------------------------------ */

/* The digits of the number that a server appends to a name. */
enum { SEQUENCE_LEN = 10 };

static size_t count_digits_at_end(lk_bytes name)
{
  const unsigned char *at = name.at;
  size_t len = name.len;

  while (len > 0 && at[len - 1] >= '0' && at[len - 1] <= '9')
    len--;
  return name.len - len;
}

/* Whether `name` is the directory of a semaphore's permits in Curator's layout.
 */
static bool is_permits_dir(lk_bytes name)
{
  return lk__names_are_equal(name, lk_text("leases"));
}

/* Whether `name`, which is no contender's name in this queue, may be a
   contender node, or the directory of permits, of any program's lock or
   semaphore. */
static bool name_is_foreign(lk_bytes name)
{
  size_t digits = count_digits_at_end(name);

  return digits >= SEQUENCE_LEN || lk__name_is_hex(name) ||
         is_permits_dir(name);
}

/* ---- sorted numbers ------------------------------------------------------ */

/* Restore the heap `a` of `n` numbers, whose largest is on top, after element
 * `i` has changed: move the element down to its place. */
static void heap_sift_down(int64_t *a, size_t i, size_t n)
{
  int64_t sunk = a[i];

  for (size_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && a[child + 1] > a[child])
      child++;
    if (a[child] <= sunk)
      break;
    a[i] = a[child];
  }
  a[i] = sunk;
}

/* A heapsort: a list may be long, and qsort() may allocate memory. */
void lk__numbers_sort(int64_t *a, size_t n)
{
  for (size_t i = n / 2; i-- > 0;)
    heap_sift_down(a, i, n);
  while (n > 1) {
    int64_t top = a[0];

    n--;
    a[0] = a[n];
    a[n] = top;
    heap_sift_down(a, 0, n);
  }
}

/* A sort key is the number and the kind of a name in one integer, ordered by
 * the number: the number, then the family, then two bits for the side. */
enum { KEYS_PER_NUMBER = 64, KEYS_PER_FAMILY = 4 };

static int64_t sort_key_of(const lk_name *n)
{
  return n->number * KEYS_PER_NUMBER +
         (int64_t)n->kind->family * KEYS_PER_FAMILY + (int64_t)n->kind->side;
}

/* Division rounds towards 0, so the kind of a negative key is made positive. */
static int64_t sort_key_number(int64_t key)
{
  int64_t kind = (key % KEYS_PER_NUMBER + KEYS_PER_NUMBER) % KEYS_PER_NUMBER;

  return (key - kind) / KEYS_PER_NUMBER;
}

/* Whether two nodes of one number belong to a downgrade: the holder of the
 * write side creates a read node with the number of its write node, and perhaps
 * a second one while the first is being deleted. In ascending order, the later
 * key is then a reader's, and the earlier one a reader's or the writer's. */
static bool keys_are_downgrade(int64_t earlier, int64_t later)
{
  int64_t reader = LK_FAMILY_RW * KEYS_PER_FAMILY + LK_SIDE_READER;
  int64_t writer = LK_FAMILY_RW * KEYS_PER_FAMILY + LK_SIDE_WRITER;
  bool earlier_is_same_reader = earlier == later;
  bool earlier_is_its_writer = earlier == later - reader + writer;

  return later % KEYS_PER_NUMBER == reader &&
         (earlier_is_same_reader || earlier_is_its_writer);
}

static bool keys_have_duplicates(int64_t *keys, size_t count)
{
  lk__numbers_sort(keys, count);
  for (size_t i = 1; i < count; i++) {
    if (sort_key_number(keys[i]) == sort_key_number(keys[i - 1]) &&
        !keys_are_downgrade(keys[i - 1], keys[i]))
      return true;
  }
  return false;
}

/* ---- the position in a list ---------------------------------------------- */

/* Insert an entry by its number. If there is no room, the entry with the
 * smallest number is dropped. */
static void position_insert_nearest(lk_queue_position *p, lk_queue_entry entry)
{
  size_t i = p->nearest_count;

  if (i == LK_KEPT_PREDECESSORS && entry.number < p->nearest[i - 1].number)
    return;
  if (i < LK_KEPT_PREDECESSORS)
    p->nearest_count++;
  else
    i--;
  for (; i > 0 && p->nearest[i - 1].number < entry.number; i--)
    p->nearest[i] = p->nearest[i - 1];
  p->nearest[i] = entry;
}

static void position_add_predecessor(lk_queue_position *p, lk_queue_entry entry,
                                     const lk_node_kind *kind)
{
  if (p->predecessors == 0 || entry.number < p->head.number)
    p->head = entry;
  p->predecessors++;
  position_insert_nearest(p, entry);
  if (kind->family == LK_FAMILY_RW && kind->side == LK_SIDE_WRITER)
    p->has_rw_writer = true;
}

void lk__queue_position_find(lk_queue_position *out, const lk_role *role,
                             lk_bytes own, const lk_bytes *names, size_t count,
                             int64_t *scratch)
{
  lk_name own_name;
  size_t keys = 0;

  memset(out, 0, sizeof *out);
  if (!lk__name_parse(role->format, own, &own_name) ||
      own_name.kind != role->kind)
    return;
  out->number = own_name.number;
  out->in_range = true;
  for (size_t i = 0; i < count; i++) {
    lk_name n;

    if (!lk__name_parse(role->format, names[i], &n) ||
        !lk__node_kinds_contend(role->kind, n.kind)) {
      if (name_is_foreign(names[i]))
        out->foreign = names[i];
      continue;
    }
    scratch[keys++] = sort_key_of(&n);
    out->found = out->found || lk__names_are_equal(names[i], own);
    out->unsafe = out->unsafe || n.number < 0;
    out->in_range = out->in_range && lk__sequence_is_in_range(n.number);
    if (n.kind->family != role->kind->family)
      out->foreign = names[i];
    if (n.number < own_name.number && role->excludes(n.kind))
      position_add_predecessor(out, (lk_queue_entry){names[i], n.number},
                               n.kind);
  }
  out->unsafe = out->unsafe || !lk__sequence_is_in_range(own_name.number) ||
                keys_have_duplicates(scratch, keys);
}

void lk__permit_nodes_find_position(lk_queue_position *out, const lk_role *role,
                                    lk_bytes own, const lk_bytes *names,
                                    size_t count, size_t limit)
{
  int64_t number;

  /* All children of the directory count, whatever their names are. */
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < count; i++) {
    out->found = out->found || lk__names_are_equal(names[i], own);
    if (!lk__name_is_permit(role, names[i], &number) &&
        name_is_foreign(names[i]))
      out->foreign = names[i];
  }
  out->predecessors = count > limit ? count - limit : 0;
}

/* How many listed contenders exclude a new contender of `role`. */
static size_t names_count_excluding(const lk_role *role, const lk_bytes *names,
                                    size_t count)
{
  size_t excluding = 0;

  for (size_t i = 0; i < count; i++) {
    lk_name n;

    if (lk__name_parse(role->format, names[i], &n) &&
        lk__node_kinds_contend(role->kind, n.kind) && role->excludes(n.kind))
      excluding++;
  }
  return excluding;
}

/* ---- the greatest length ------------------------------------------------- */

/* From this number of predecessors on a warning is logged. */
enum { LONG_QUEUE = 10000 };

/* Why a contender with this number of predecessors must not wait, or 0.
 * LK_ERR_BUSY: `once`, and there are predecessors. LK_ERR_QUEUE_FULL: there are
 * more than `max_queue`; a `max_queue` of 0 is no limit. */
static int contender_refusal(const lk_contender *ct, size_t predecessors)
{
  size_t max_queue = ct->config->max_queue;

  if (predecessors > 0 && ct->config->once)
    return LK_ERR_BUSY;
  if (max_queue > 0 && predecessors > max_queue)
    return LK_ERR_QUEUE_FULL;
  return 0;
}

bool lk__max_queue_needs_peek(const lk_contender *ct)
{
  bool may_refuse = ct->config->once || ct->config->max_queue > 0;

  return ct->config->peek && may_refuse;
}

/* Log a very long queue, once per client. The reply to a list grows with the
   queue. A Java client refuses a reply with more than 17,000 names. */
static void max_queue_warn_if_long(const lk_contender *ct, size_t predecessors)
{
  lk_session_lease *lease = ct->lease;

  if (predecessors < LONG_QUEUE || lease->queues.warned_length)
    return;
  lease->queues.warned_length = true;
  lk_client_log(lease->client, LK_LOG_WARNING, LK_ERR_TOO_MANY,
                "ten thousand contenders and more in one queue: think of "
                "max_queue, or of fewer contenders");
}

/* ---- the request of a list ----------------------------------------------- */

static void on_list_reply(lk_client *c, int err, const lk_bytes *names,
                          size_t count, const lk_stat *stat, void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)stat;
  if (lk__contender_take_reply(ct)) {
    if (err != 0 && ct->wait.watches_directory)
      lk__contender_cancel_wait_watch(ct); /* a list that fails sets none */
    if (!lk__contender_fail_if_too_big(ct, err) &&
        lk__contender_rules(ct)->listed != NULL)
      lk__contender_rules(ct)->listed(ct, err, names, count);
  }
  lk__contender_unref(ct);
}

static void on_directory_event(lk_client *c, lk_watch *w, const lk_event *event,
                               void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)w;
  (void)event;
  lk__contender_ref(ct);
  ct->wait.watch = NULL;
  /* The watch may also have ended. If its connection was lost, the contender is
   * not waiting any more. */
  if (ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  lk__contender_unref(ct);
}

int lk__contender_send_list(lk_contender *ct)
{
  /* The server need not remove the earlier watch, since the same node is
   * watched again or is about to be deleted. */
  lk_watch_cancel(lk__contender_client(ct), ct->wait.watch);
  ct->wait.watch = NULL;
  lk_call call = {.size = sizeof call,
                  .until_disconnect = true,
                  .on_event = on_directory_event,
                  .watch_arg = ct,
                  .watch = &ct->wait.watch};

  return lk__contender_count_request(
      ct, lk_get_children(lk__contender_client(ct),
                          lk__own_node_directory(&ct->own),
                          ct->wait.watches_directory ? &call : LK_NO_OPTIONS,
                          on_list_reply, ct));
}

/* ---- LISTING_FIRST ------------------------------------------------------- */

int lk__contender_enter_listing_first(lk_contender *ct)
{
  return ct->machine->request_view(ct);
}

static void contender_take_first_list(lk_contender *ct, const lk_bytes *names,
                                      size_t count)
{
  int err =
      contender_refusal(ct, names_count_excluding(ct->role, names, count));

  lk__backoff_reset(&ct->pause.backoff);
  if (err != 0)
    lk__contender_fail(ct, err);
  else
    lk__contender_step(ct, LK_CONTENDER_ON_START);
}

/* A missing directory is an empty queue. */
static void contender_judge_first_list(lk_contender *ct, int err,
                                       const lk_bytes *names, size_t count)
{
  if (err != 0 && err != LK_ERR_NO_NODE)
    lk__contender_request_failed(ct, err);
  else
    contender_take_first_list(ct, names, err == 0 ? count : 0);
}

const lk_contender_rules lk__rules_listing_first = {
    .next = {LK_ON(START, CREATING), LK_ON_ANY_BEFORE_GRANT},
    .enter = lk__contender_enter_listing_first,
    .listed = contender_judge_first_list};

/* ---- what follows from the position -------------------------------------- */

static void contender_notify_if_counter_near_end(lk_contender *ct,
                                                 int64_t number)
{
  lk_notice notice = {.type = LK_NOTICE_COUNTER_NEAR_END};

  if (sequence_is_near_end(number))
    lk__contender_notify(ct, &notice);
}

static void contender_notify_mixed_queue(lk_contender *ct, lk_bytes name)
{
  size_t size = strlen(ct->own.dir) + sizeof "/" + name.len;
  lk_notice notice = {.type = LK_NOTICE_MIXED_QUEUE};
  char *path = lk__mem_new(&ct->lease->mem, size);

  if (path == NULL)
    return; /* the notice follows with the next list */
  (void)lk__write_child_path(path, ct->own.dir, name);
  notice.node = path;
  lk__contender_notify(ct, &notice);
  lk__mem_free(&ct->lease->mem, path);
}

static void contender_take_position(lk_contender *ct,
                                    const lk_queue_position *p)
{
  int err = contender_refusal(ct, p->predecessors);

  if (p->predecessors == 0) {
    lk__contender_try_grant(ct, lk_client_clock(lk__contender_client(ct)));
  } else if (err != 0) {
    lk__contender_fail(ct, err);
  } else {
    lk__contender_step(ct, LK_CONTENDER_ON_PREDECESSORS);
    lk__contender_notify_position(ct);
  }
}

static size_t max_permits_of(const lk_contender *ct)
{
  const int32_t *limit = ct->config->limit;

  if (limit == NULL)
    return SIZE_MAX;
  return *limit < 0 ? 0 : (size_t)*limit;
}

/* Of the other permits, only the number matters. */
static void permit_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count)
{
  lk_contender_state state_before = ct->state;
  lk_queue_position p;

  lk__permit_nodes_find_position(&p, ct->role,
                                 lk_text(lk__own_node_name(&ct->own)), names,
                                 count, max_permits_of(ct));
  lk__backoff_reset(&ct->pause.backoff);
  ct->wait.limit_changed = false;
  ct->wait.listed_zxid = ct->lease->evidence->seen_zxid;
  lk__predecessors_set_count_only(&ct->predecessors, p.predecessors);
  if (!p.found)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (p.foreign.at != NULL)
    contender_notify_mixed_queue(ct, p.foreign);
  /* The callback of a notice may have stopped the contender. */
  if (p.found && ct->state == state_before)
    contender_take_position(ct, &p);
}

void lk__contender_take_list(lk_contender *ct, const lk_bytes *names,
                             size_t count)
{
  if (ct->role->is_permit) {
    permit_take_list(ct, names, count);
    return;
  }
  int64_t *scratch = lk__lease_scratch(ct->lease, count);
  lk_contender_state state_before = ct->state;
  lk_queue_position p;

  if (scratch == NULL) {
    lk__contender_fail(ct, LK_ERR_NO_MEMORY);
    return;
  }
  lk__queue_position_find(&p, ct->role, lk_text(lk__own_node_name(&ct->own)),
                          names, count, scratch);
  lk__backoff_reset(&ct->pause.backoff);
  if (!p.found) {
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  } else if (p.unsafe) {
    lk__contender_fail(ct, LK_ERR_SEQ_UNSAFE);
  } else if (!lk__predecessors_set(&ct->predecessors, &ct->lease->mem,
                                   ct->own.dir, lk__contender_connection(ct),
                                   count, &p)) {
    lk__contender_fail(ct, LK_ERR_NO_MEMORY);
  } else {
    contender_notify_if_counter_near_end(ct, p.number);
    max_queue_warn_if_long(ct, p.predecessors);
    if (p.foreign.at != NULL)
      contender_notify_mixed_queue(ct, p.foreign);
    /* The callback of a notice may have stopped the contender. */
    if (ct->state == state_before)
      contender_take_position(ct, &p);
  }
}

void lk__contender_limit_changed(lk_contender *ct)
{
  if (ct->state == LK_CONTENDER_WAITING)
    lk__contender_step(ct, LK_CONTENDER_ON_LIST_NEEDED);
  else
    ct->wait.limit_changed = true; /* used when the next list has come */
}

/* ---- LISTING ------------------------------------------------------------- */

/* Whether the next list may show that no predecessor is left, and so be
 * followed by a grant. A direct predecessor that was deleted has usually held
 * the lock; in a long queue it may be one of many whose sessions have expired.
 * The count of predecessors is that of the last list, less those deleted
 * since. */
static bool contender_list_may_grant(const lk_contender *ct)
{
  bool usually_grants =
      ct->wait.predecessor_deleted && ct->predecessors.listed <= LK_SHORT_LIST;

  return ct->role->is_permit || usually_grants || ct->predecessors.count <= 1;
}

static void on_check_before_list(lk_client *c, int err,
                                 const lk_op_result *results, size_t count,
                                 void *arg)
{
  lk_contender *ct = arg;

  (void)c;
  (void)results;
  (void)count;
  if (lk__contender_take_reply(ct))
    ct->round.checked = lk__check_result_of(err) != LK_CHECK_UNKNOWN;
  lk__contender_unref(ct);
}

/* If a grant may follow and the lease is too short for a grant, a check of the
 * own node is sent together with the list, in front of it. This saves a round
 * trip before the grant. */
int lk__contender_enter_listing(lk_contender *ct)
{
  int64_t now = lk_client_clock(lk__contender_client(ct));
  int err = 0;

  ct->round.checked = false;
  if (contender_list_may_grant(ct) && !lk__contender_lease_suffices(ct, now))
    err = lk__contender_check_own(ct, on_check_before_list);
  return err != 0 ? err : ct->machine->request_view(ct);
}

void lk__contender_judge_list(lk_contender *ct, int err, const lk_bytes *names,
                              size_t count)
{
  if (err == LK_ERR_NO_NODE)
    lk__contender_own_missing(ct, LK_ERR_NO_NODE);
  else if (err != 0)
    lk__contender_request_failed(ct, err);
  else
    lk__contender_take_list(ct, names, count);
}

const lk_contender_rules lk__rules_listing = {
    .next = {LK_ON(PREDECESSORS, SETTING_WATCHES), LK_ON(GRANT, HELD),
             LK_ON(CHECK_NEEDED, CHECKING_OWN),
             LK_ON(TOKEN_NEEDED, READING_OWN), LK_ON_ANY_IN_QUEUE},
    .need = LK_LEASE_WAITING,
    .enter = lk__contender_enter_listing,
    .listed = lk__contender_judge_list};
