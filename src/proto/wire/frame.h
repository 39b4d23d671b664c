/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_FRAME_H
#define LK_PROTO_WIRE_FRAME_H

#include "base/buf.h"

/**
 * Cuts a stream of bytes into frames. A frame that arrives whole is handed out
 * in the receive buffer. A frame that arrives in pieces is copied, unless the
 * pieces are received into lk__frame_room().
 */
typedef struct lk_frames {
  lk_buf partial; /**< the beginning of a frame, with its length field */
  size_t limit;   /**< bytes of the largest frame, without its length field */
  bool partial_was_returned; /**< lk__frame_next() has returned `partial`, and
                                  drops it in the next call */
  bool large_was_returned;   /**< a frame was returned that needs more memory
                                  than LK_FRAMES_KEPT; its user clears this */
} lk_frames;

/** Bytes of memory that are always kept between frames. More is kept until
    lk__frames_trim(), since a large frame is often followed by another one. */
enum { LK_FRAMES_KEPT = 64 * 1024 };

typedef enum lk_frame_result {
  LK_FRAME_NONE,    /**< all bytes are taken, and no frame is whole */
  LK_FRAME_WHOLE,   /**< *out is the next frame */
  LK_FRAME_BAD,     /**< the frame's length is negative */
  LK_FRAME_TOO_BIG, /**< the frame's length is above the limit */
  LK_FRAME_NO_MEMORY
} lk_frame_result;

/**
 * Take bytes from the start of *bytes until a frame is whole. The frame is
 * valid until the next call. The length field is untrusted: memory grows only
 * with the bytes that were received.
 */
lk_frame_result lk__frame_next(lk_frames *f, lk_bytes *bytes, lk_bytes *out);

/**
 * Memory for more bytes of a partial frame: `*len` bytes, at least `least`.
 * lk__frame_next() takes bytes that were received there without copying them.
 * It must get these bytes before any others. NULL: there is no partial frame
 * whose length is known, fewer than `least` bytes would do, or there is no
 * memory.
 */
unsigned char *lk__frame_room(lk_frames *f, size_t least, size_t *len);

/** Free the memory above LK_FRAMES_KEPT, unless a partial frame uses it. The
    frame that was returned last is not valid any more. */
void lk__frames_trim(lk_frames *f);
/** Drop a partial frame: a new connection begins. */
void lk__frames_reset(lk_frames *f);

#endif
