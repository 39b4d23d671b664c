/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"
#include "proto/engine/request_queue.h"
#include "proto/wire/multi.h"
#include "proto/wire/path.h"

enum {
  FIRST_ROOM = 256,  /* bytes, enough for most requests */
  LENGTH_FIELD = 4,  /* bytes */
  HEADER = 4 + 4 + 4 /* bytes: length, xid, opcode */
};

static void encode_body(const lk_call_spec *spec, lk_writer *w)
{
  if (spec->ops != NULL)
    lk__multi_encode(w, spec->ops, spec->operations, spec->chroot);
  else if (spec->reads != NULL)
    lk__multi_read_encode(w, spec->reads, spec->operations, spec->chroot);
  else if (spec->path != NULL)
    lk__path_encode(spec->rec, spec->value, spec->chroot, spec->path, w);
  else if (spec->rec != NULL)
    lk__record_encode(spec->rec, spec->value, w);
}

int lk__request_encode(lk_buf *b, const lk_call_spec *spec, int32_t xid,
                       size_t limit, size_t *len)
{
  if (!lk__buf_reserve(b, FIRST_ROOM))
    return LK_ERR_NO_MEMORY;
  /* If the frame does not fit, the first pass counts its bytes, and the second
   * one writes it. */
  for (;;) {
    unsigned char *frame = b->at + b->end; /* the header always fits */
    lk_writer w = {.buf = frame, .cap = b->cap - b->end, .len = HEADER};

    lk__put32(frame + LENGTH_FIELD, (uint32_t)xid);
    lk__put32(frame + LENGTH_FIELD + 4, (uint32_t)spec->op);
    encode_body(spec, &w);
    if (w.err != 0)
      return w.err;
    size_t len_behind_field = w.len - LENGTH_FIELD;

    if (len_behind_field > limit)
      return LK_ERR_TOO_BIG;
    if (w.len <= w.cap) {
      lk__put32(frame, (uint32_t)len_behind_field);
      *len = w.len;
      return 0;
    }
    if (!lk__buf_reserve(b, w.len))
      return LK_ERR_NO_MEMORY;
  }
}
