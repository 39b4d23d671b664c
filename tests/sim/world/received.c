/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"
#include "sim/model/paths.h"
#include "sim/world/conditions.h"

#include <stdlib.h>
#include <string.h>

/* Frames received by a process: events and replies to setWatches, which
 * re-register persistent watches. */

bool sim_received_awaits_set_watches(const sim_received *h)
{
  size_t answered = 0;

  for (size_t i = 0; i < h->count; i++)
    answered += h->frames[i].type <= 0;
  return answered < h->set_watches_sent;
}

/* Whether all setWatches of the connection succeeded. After a throttled one it
 * is not known which watches are registered. */
static bool has_succeeded(const sim_received *h)
{
  return !sim_received_awaits_set_watches(h) && !h->throttled;
}

/* No event of an earlier connection is still due. */
static void clear_late_events(const sim_life *l)
{
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    r->late_set_watches = 0;
    r->throttled = false;
  }
}

/* A setWatches that was lost with its connection is sent again with its
 * zxid. */
void sim_received_begin(sim_life *l)
{
  sim_received *h = &l->received;
  sim_received none = {.frames = h->frames,
                       .cap = h->cap,
                       .late_zxid = INT64_MAX,
                       .oldest_zxid = INT64_MAX,
                       .lost = h->set_watches_sent > 0 ? !has_succeeded(h)
                                                       : h->lost};

  if (none.lost)
    none.late_zxid = none.oldest_zxid = h->oldest_zxid;
  else
    clear_late_events(l);
  *h = none;
}

void sim_received_end(sim_life *l)
{
  free(l->received.frames);
  l->received = (sim_received){0};
}

/* The relative zxid in the setWatches that is being sent. The client may have
 * seen a later one since it was made. */
static int64_t relative_zxid(const sim_life *l)
{
  enum { RELATIVE_ZXID = 12 };
  const unsigned char *at = l->frame_head + RELATIVE_ZXID;

  return (int64_t)((uint64_t)lk__get32(at) << 32 | lk__get32(at + 4));
}

/* Whether a setWatches of the reconnect was answered on this connection. */
static bool has_set_watches_reply(const sim_received *h)
{
  size_t i = 0;

  while (i < h->count && h->frames[i].type != 0 && h->frames[i].type != -2)
    i++;
  return i < h->count;
}

/* The server reports all changes since the zxid of the setWatches. Newer
 * watches on the same paths receive these events, too. */
static void note_mended(sim_life *l, int64_t zxid)
{
  if (zxid < l->received.late_zxid)
    l->received.late_zxid = zxid;
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    if ((r->watch_registered || (r->sets_watch && r->completions == 0)) &&
        (r->late_set_watches == 0 || zxid + 1 < r->late_set_watches))
      r->late_set_watches = zxid + 1;
  }
}

/* A client repeats the reconnect's setWatches if it was throttled, or if a
 * removeWatches after it may have removed its watches. */
void sim_received_set_watches_sent(sim_life *l, int32_t xid)
{
  sim_received *h = &l->received;
  int64_t zxid = relative_zxid(l);

  h->set_watches_sent++;
  if (zxid < h->oldest_zxid)
    h->oldest_zxid = zxid;
  if (xid != LK_XID_SET_WATCHES)
    h->late_xids[h->nlate++ % SIM_MOST_LATE_SET_WATCHES] = xid;
  else if (!has_set_watches_reply(h)) {
    h->at_reconnect++;
    return;
  }
  note_mended(l, zxid);
}

static bool is_late_set_watches(const sim_received *h, int32_t xid)
{
  for (size_t i = 0; i < h->nlate && i < SIM_MOST_LATE_SET_WATCHES; i++) {
    if (h->late_xids[i] == xid)
      return true;
  }
  return false;
}

static void keep_frame(sim_received *h, int32_t type, int64_t zxid,
                       lk_bytes path)
{
  if (path.len >= SIM_CHANGE_PATH)
    return; /* not a path of the actors */
  if (h->count == h->cap) {
    h->cap = h->cap == 0 ? 64 : h->cap * 2;
    h->frames = realloc(h->frames, h->cap * sizeof *h->frames);
    if (h->frames == NULL)
      abort();
  }
  sim_received_frame *frame = &h->frames[h->count++];

  *frame = (sim_received_frame){.type = type, .zxid = zxid};
  if (path.len > 0)
    memcpy(frame->path, path.at, path.len);
}

/* The server was overloaded and did not register the watches: their events are
 * late again. */
static void note_throttled(sim_life *l)
{
  l->received.throttled = true;
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    r->throttled = r->throttled || r->watch_registered;
    r->late_since_us = 0;
  }
}

/* Only the beginning of a long frame is kept, which is enough. */
static void parse_frame(sim_life *l)
{
  sim_received *h = &l->received;
  size_t len =
      h->frame_len < sizeof h->frame_head ? h->frame_len : sizeof h->frame_head;
  struct lk_reply_header head;
  struct lk_watcher_event event;
  lk_reader in;

  lk__reader_init(&in, h->frame_head + 4, len - 4);
  if (lk__record_decode(&lk__reply_header_record, &head, &in, NULL) != 0)
    return;
  if (head.err == LK_ERR_THROTTLED &&
      (head.xid == LK_XID_SET_WATCHES || is_late_set_watches(h, head.xid)))
    note_throttled(l);
  if (head.xid == LK_XID_SET_WATCHES)
    keep_frame(h, head.err == LK_ERR_THROTTLED ? -2 : 0, head.zxid,
               lk_text(""));
  else if (is_late_set_watches(h, head.xid))
    keep_frame(h, -1, head.zxid, lk_text(""));
  else if (head.xid == LK_XID_EVENT &&
           lk__record_decode(&lk__watcher_event_record, &event, &in, NULL) == 0)
    keep_frame(h, event.type, 0,
               sim_path_strip_chroot(l->process->chroot, event.path));
}

bool sim_is_recording_frames(const sim_world *w)
{
  return w->all_requests || sim_fault_is_possible(w, SIM_FAULT_THROTTLE) ||
         sim_fault_is_possible(w, SIM_FAULT_THROTTLE_WATCHES);
}

static size_t bytes_missing(const sim_received *h)
{
  return (h->frame_received < 4 ? 4 : h->frame_len) - h->frame_received;
}

void sim_checker_note_received(sim_checker *checker, sim_process *p,
                               const void *bytes, size_t len)
{
  sim_life *l = sim_life_of(checker, p);
  sim_received *h = &l->received;
  const unsigned char *b = bytes;

  if (l->last_bytes_us < sim_now_us(checker))
    l->previous_bytes_us = l->last_bytes_us;
  l->last_bytes_us = sim_now_us(checker);
  while (sim_is_recording_frames(checker->world) && len > 0) {
    size_t n = bytes_missing(h) < len ? bytes_missing(h) : len;
    size_t room = h->frame_received < sizeof h->frame_head
                      ? sizeof h->frame_head - h->frame_received
                      : 0;

    if (room > 0)
      memcpy(h->frame_head + h->frame_received, b, n < room ? n : room);
    h->frame_received += n;
    b += n;
    len -= n;
    if (h->frame_received == 4)
      h->frame_len = 4 + (size_t)lk__get32(h->frame_head);
    if (h->frame_received < 4 || bytes_missing(h) > 0)
      continue;
    if (h->handshake_done)
      parse_frame(l);
    h->handshake_done = true;
    h->frame_received = 0;
  }
}
