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
  lk_buf partial; /**< the beginning of a frame, its length included */
  size_t limit;   /**< largest frame, bytes, without its length */
  bool handed;    /**< `partial` was handed out and can go */
} lk_frames;

typedef enum lk_frame_result {
  LK_FRAME_NONE,    /**< all bytes are taken, no frame is whole */
  LK_FRAME_WHOLE,   /**< *out is the next frame */
  LK_FRAME_BAD,     /**< a negative length */
  LK_FRAME_TOO_BIG, /**< one above the limit */
  LK_FRAME_NO_MEMORY
} lk_frame_result;

/**
 * Take bytes from *bytes, which moves on, until a frame is whole. The frame
 * is valid until the next call. The length field is untrusted: memory grows
 * only with bytes received.
 */
lk_frame_result lk__frame_next(lk_frames *f, lk_bytes *bytes, lk_bytes *out);

/**
 * Room for more of the frame that has begun, `*len` bytes and at least `least`;
 * NULL: there is none. Bytes received there are taken without a copy by the
 * next lk__frame_next(), which they must be given to before anything else.
 */
unsigned char *lk__frame_room(lk_frames *f, size_t least, size_t *len);

/** Drop a partial frame: a new connection begins. */
void lk__frames_reset(lk_frames *f);

#endif
