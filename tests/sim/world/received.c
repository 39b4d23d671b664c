/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"
#include "sim/model/paths.h"
#include "sim/world/conditions.h"

#include <stdlib.h>
#include <string.h>

/* What comes to a process, in its order: events, and answers to setWatches,
 * behind which a watch that stays stands again. */

bool sim_received_waits(const sim_received *h)
{
  size_t answered = 0;

  for (size_t i = 0; i < h->count; i++)
    answered += h->heard[i].type <= 0;
  return answered < h->asked;
}

/* All setWatches of the connection succeeded. Where one was throttled it is not
 * known here whether all that it had was registered later. */
static bool has_succeeded(const sim_received *h)
{
  return !sim_received_waits(h) && !h->throttled;
}

/* Nothing is due from the connection before: no event is late. */
static void forget_late(const sim_life *l)
{
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    r->mended = 0;
    r->throttled = false;
  }
}

/* A setWatches that was lost with its connection is sent again with its zxid.
 */
void sim_received_begin(sim_life *l)
{
  sim_received *h = &l->received;
  sim_received none = {.heard = h->heard,
                       .cap = h->cap,
                       .mended_zxid = INT64_MAX,
                       .asked_zxid = INT64_MAX,
                       .lost = h->asked > 0 ? !has_succeeded(h) : h->lost};

  if (none.lost)
    none.mended_zxid = none.asked_zxid = h->asked_zxid;
  else
    forget_late(l);
  *h = none;
}

void sim_received_end(sim_life *l)
{
  free(l->received.heard);
  l->received = (sim_received){0};
}

/* What the client had seen when it asked for the setWatches that is being sent:
 * it says so there. Since then it may have seen more. */
static int64_t relative_zxid(const sim_life *l)
{
  enum { RELATIVE_ZXID = 12 };
  const unsigned char *at = l->head + RELATIVE_ZXID;

  return (int64_t)((uint64_t)lk__get32(at) << 32 | lk__get32(at + 4));
}

/* A setWatches of a reconnect has been answered on this connection. */
static bool has_answer(const sim_received *h)
{
  size_t i = 0;

  while (i < h->count && h->heard[i].type != 0 && h->heard[i].type != -2)
    i++;
  return i < h->count;
}

/* The server reports all changes since the zxid of that setWatches. A watch
 * that is younger than some of them receives these events as well. */
static void note_mended(sim_life *l, int64_t zxid)
{
  if (zxid < l->received.mended_zxid)
    l->received.mended_zxid = zxid;
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    if ((r->stands || (r->watches && r->ends == 0)) &&
        (r->mended == 0 || zxid + 1 < r->mended))
      r->mended = zxid + 1;
  }
}

/* A client repeats the setWatches of a reconnect if it was throttled, and also
 * if a removeWatches behind it may have taken its watches away. */
void sim_received_asked(sim_life *l, int32_t xid)
{
  sim_received *h = &l->received;
  int64_t zxid = relative_zxid(l);

  h->asked++;
  if (zxid < h->asked_zxid)
    h->asked_zxid = zxid;
  if (xid != LK_XID_SET_WATCHES)
    h->mends[h->nmends++ % SIM_MOST_MENDS] = xid;
  else if (!has_answer(h)) {
    h->together++;
    return;
  }
  note_mended(l, zxid);
}

static bool mends(const sim_received *h, int32_t xid)
{
  for (size_t i = 0; i < h->nmends && i < SIM_MOST_MENDS; i++) {
    if (h->mends[i] == xid)
      return true;
  }
  return false;
}

static void keep(sim_received *h, int32_t type, int64_t zxid, lk_bytes path)
{
  if (path.len >= SIM_CHANGE_PATH)
    return; /* nobody's here */
  if (h->count == h->cap) {
    h->cap = h->cap == 0 ? 64 : h->cap * 2;
    h->heard = realloc(h->heard, h->cap * sizeof *h->heard);
    if (h->heard == NULL)
      abort();
  }
  sim_heard *heard = &h->heard[h->count++];

  *heard = (sim_heard){.type = type, .zxid = zxid};
  if (path.len > 0)
    memcpy(heard->path, path.at, path.len);
}

/* A server was too busy to register watches: events are late anew. */
static void note_throttled(sim_life *l)
{
  l->received.throttled = true;
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    r->throttled = r->throttled || r->stands;
    r->late_us = 0;
  }
}

/* Of what is longer only the beginning is here, which is enough. */
static void hear(sim_life *l)
{
  sim_received *h = &l->received;
  size_t len = h->len < sizeof h->frame ? h->len : sizeof h->frame;
  struct lk_reply_header head;
  struct lk_watcher_event event;
  lk_reader in;

  lk__reader_init(&in, h->frame + 4, len - 4);
  if (lk__record_decode(&lk__reply_header_record, &head, &in, NULL) != 0)
    return;
  if (head.err == LK_ERR_THROTTLED &&
      (head.xid == LK_XID_SET_WATCHES || mends(h, head.xid)))
    note_throttled(l);
  if (head.xid == LK_XID_SET_WATCHES)
    keep(h, head.err == LK_ERR_THROTTLED ? -2 : 0, head.zxid, lk_text(""));
  else if (mends(h, head.xid))
    keep(h, -1, head.zxid, lk_text(""));
  else if (head.xid == LK_XID_EVENT &&
           lk__record_decode(&lk__watcher_event_record, &event, &in, NULL) == 0)
    keep(h, event.type, 0,
         sim_path_strip_chroot(l->process->chroot, event.path));
}

bool sim_hears(const sim_world *w)
{
  return w->all_requests || sim_may_strike(w, SIM_FAULT_THROTTLE) ||
         sim_may_strike(w, SIM_FAULT_THROTTLE_WATCHES);
}

static size_t missing(const sim_received *h)
{
  return (h->came < 4 ? 4 : h->len) - h->came;
}

void sim_checker_received(sim_checker *j, sim_process *p, const void *bytes,
                          size_t len)
{
  sim_life *l = sim_life_of(j, p);
  sim_received *h = &l->received;
  const unsigned char *b = bytes;

  if (l->hears_us < sim_now_us(j))
    l->heard_us = l->hears_us;
  l->hears_us = sim_now_us(j);
  while (sim_hears(j->world) && len > 0) {
    size_t n = missing(h) < len ? missing(h) : len;
    size_t room = h->came < sizeof h->frame ? sizeof h->frame - h->came : 0;

    if (room > 0)
      memcpy(h->frame + h->came, b, n < room ? n : room);
    h->came += n;
    b += n;
    len -= n;
    if (h->came == 4)
      h->len = 4 + (size_t)lk__get32(h->frame);
    if (h->came < 4 || missing(h) > 0)
      continue;
    if (h->welcomed)
      hear(l);
    h->welcomed = true;
    h->came = 0;
  }
}
