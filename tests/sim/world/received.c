/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "sim/world/invariants.h"

#include "proto/wire/opcode.h"
#include "sim/model/paths.h"
#include "sim/world/conditions.h"

#include <stdlib.h>
#include <string.h>

/* The events and the replies to setWatches that a process receives. A
 * setWatches re-registers watches after a reconnect. */

enum { LENGTH_SIZE = 4, REPLY_TO_PING_SIZE = 20, FIRST_CAP = 64 };

bool sim_received_awaits_set_watches(const sim_received *received)
{
  size_t replies = 0;

  for (size_t i = 0; i < received->count; i++) {
    if (!sim_frame_is_event(&received->frames[i]))
      replies++;
  }
  return replies < received->set_watches_sent;
}

/* Whether all setWatches of the connection succeeded, so that all watches are
 * registered. */
static bool all_set_watches_succeeded(const sim_received *received)
{
  return !sim_received_awaits_set_watches(received) && !received->throttled;
}

/* All watches are registered again, so no event of an earlier connection can be
 * reported any more. */
static void clear_late_events(const sim_life *l)
{
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    r->late_set_watches = 0;
    r->throttled = false;
  }
}

/* A new connection. If a setWatches was lost with the old connection, it is
 * sent again with its zxid, so the oldest zxid is kept. */
void sim_received_begin(sim_life *l)
{
  sim_received *received = &l->received;
  sim_received fresh = {.frames = received->frames,
                        .cap = received->cap,
                        .late_zxid = INT64_MAX,
                        .oldest_zxid = INT64_MAX,
                        .lost = received->lost};

  if (received->set_watches_sent > 0)
    fresh.lost = !all_set_watches_succeeded(received);
  if (fresh.lost)
    fresh.late_zxid = fresh.oldest_zxid = received->oldest_zxid;
  else
    clear_late_events(l);
  *received = fresh;
}

void sim_received_end(sim_life *l)
{
  free(l->received.frames);
  l->received = (sim_received){0};
}

/* The zxid in the setWatches that is being sent: the server reports all changes
 * since then. It may be older than the newest zxid that the client has seen. */
static int64_t relative_zxid(const sim_life *l)
{
  enum { ZXID_OFFSET = 12 }; /* behind the length, the xid and the opcode */
  const unsigned char *zxid = l->frame_head + ZXID_OFFSET;

  return (int64_t)((uint64_t)lk__get32(zxid) << 32 | lk__get32(zxid + 4));
}

/* Whether a setWatches of the reconnect was answered on this connection. */
static bool has_set_watches_reply(const sim_received *received)
{
  for (size_t i = 0; i < received->count; i++) {
    if (received->frames[i].type == SIM_FRAME_SET_WATCHES ||
        received->frames[i].type == SIM_FRAME_THROTTLED)
      return true;
  }
  return false;
}

/* The server reports all changes since the zxid of a late setWatches. Watches
 * that were set meanwhile on the same paths receive these events, too. */
static void note_late_set_watches(sim_life *l, int64_t zxid)
{
  if (zxid < l->received.late_zxid)
    l->received.late_zxid = zxid;
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    if ((r->watch_registered || (r->sets_watch && r->completions == 0)) &&
        (r->late_set_watches == 0 || zxid + 1 < r->late_set_watches))
      r->late_set_watches = zxid + 1; /* 0 would say that there is none */
  }
}

/* A setWatches is late if it is not one of those that the reconnect sent first:
 * the client repeats one that was throttled. */
void sim_received_set_watches_sent(sim_life *l)
{
  sim_received *received = &l->received;
  int64_t zxid = relative_zxid(l);

  received->set_watches_sent++;
  if (zxid < received->oldest_zxid)
    received->oldest_zxid = zxid;
  if (has_set_watches_reply(received))
    note_late_set_watches(l, zxid);
  else
    received->at_reconnect++;
}

static void keep_frame(sim_received *received, int32_t type, int64_t zxid,
                       lk_bytes path)
{
  if (path.len >= SIM_CHANGE_PATH)
    return; /* not a path of the actors */
  if (received->count == received->cap) {
    received->cap = received->cap == 0 ? FIRST_CAP : received->cap * 2;
    received->frames =
        realloc(received->frames, received->cap * sizeof *received->frames);
    if (received->frames == NULL)
      abort();
  }
  sim_received_frame *frame = &received->frames[received->count++];

  *frame = (sim_received_frame){.type = type, .zxid = zxid};
  if (path.len > 0)
    memcpy(frame->path, path.at, path.len);
}

/* The server was overloaded and has not registered the watches, so their events
 * will be late. */
static void note_throttled(sim_life *l)
{
  l->received.throttled = true;
  for (sim_request *r = l->requests; r != NULL; r = r->next) {
    if (r->watch_registered)
      r->throttled = true;
    r->late_since_us = 0;
  }
}

/* frame_head has only the beginning of a long frame; nothing behind it is
 * needed. */
static void parse_frame(sim_life *l)
{
  sim_received *received = &l->received;
  size_t len = received->frame_len < sizeof received->frame_head
                   ? received->frame_len
                   : sizeof received->frame_head;
  struct lk_reply_header head;
  struct lk_watcher_event event;
  lk_reader in;

  lk__reader_init(&in, received->frame_head + LENGTH_SIZE, len - LENGTH_SIZE);
  if (lk__record_decode(&lk__reply_header_record, &head, &in, NULL) != 0)
    return;
  if (head.xid != LK_XID_PING && head.xid != LK_XID_EVENT)
    l->progress_us = sim_now_us(l->process->world->checker);
  if (head.err == LK_ERR_THROTTLED)
    l->throttled_us = sim_now_us(l->process->world->checker);
  if (head.err == LK_ERR_THROTTLED && head.xid == LK_XID_SET_WATCHES)
    note_throttled(l);
  if (head.xid == LK_XID_SET_WATCHES)
    keep_frame(received,
               head.err == LK_ERR_THROTTLED ? SIM_FRAME_THROTTLED
                                            : SIM_FRAME_SET_WATCHES,
               head.zxid, lk_text(""));
  else if (head.xid == LK_XID_EVENT &&
           lk__record_decode(&lk__watcher_event_record, &event, &in, NULL) == 0)
    keep_frame(received, event.type, 0,
               sim_path_strip_chroot(l->process->chroot, event.path));
}

bool sim_is_recording_frames(const sim_world *w)
{
  return w->all_requests || sim_fault_is_possible(w, SIM_FAULT_NARROW) ||
         sim_fault_is_possible(w, SIM_FAULT_THROTTLE) ||
         sim_fault_is_possible(w, SIM_FAULT_THROTTLE_WATCHES);
}

/* The number of bytes that the current frame lacks; until its length is known,
 * those that the length field lacks. */
static size_t bytes_missing(const sim_received *received)
{
  size_t known_len = received->frame_received < LENGTH_SIZE
                         ? LENGTH_SIZE
                         : received->frame_len;

  return known_len - received->frame_received;
}

/* Keeps the bytes that belong to the head of the current frame. */
static void keep_head(sim_received *received, const unsigned char *bytes,
                      size_t len)
{
  if (received->frame_received >= sizeof received->frame_head)
    return;
  size_t room = sizeof received->frame_head - received->frame_received;

  memcpy(received->frame_head + received->frame_received, bytes,
         len < room ? len : room);
}

void sim_checker_note_received(sim_checker *checker, sim_process *p,
                               const void *bytes, size_t len)
{
  sim_life *l = sim_life_of(checker, p);
  sim_received *received = &l->received;
  const unsigned char *b = bytes;

  if (l->last_bytes_us < sim_now_us(checker))
    l->previous_bytes_us = l->last_bytes_us;
  l->last_bytes_us = sim_now_us(checker);
  while (sim_is_recording_frames(checker->world) && len > 0) {
    size_t n = bytes_missing(received) < len ? bytes_missing(received) : len;

    keep_head(received, b, n);
    received->frame_received += n;
    b += n;
    len -= n;
    if (received->frame_received == LENGTH_SIZE)
      received->frame_len =
          LENGTH_SIZE + (size_t)lk__get32(received->frame_head);
    if (received->frame_received < LENGTH_SIZE || bytes_missing(received) > 0) {
      if (received->frame_received > REPLY_TO_PING_SIZE)
        l->progress_us = sim_now_us(checker);
      continue;
    }
    if (received->handshake_done) /* the frame is not the connect reply */
      parse_frame(l);
    received->handshake_done = true;
    received->frame_received = 0;
  }
}
