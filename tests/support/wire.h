/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_WIRE_H
#define LK_SUPPORT_WIRE_H

#include "base/buf.h"
#include "jute/record.h"

/**
 * Encodes what a server sends, at the end of a buffer, and prints the requests
 * that it receives. Aborts if there is no memory.
 */

/** An empty buffer with the C library's memory. */
lk_buf wire_buf(void);

/** Begin a frame; returns its mark for wire_end(), which sets its length. */
size_t wire_begin(lk_buf *b);
void wire_end(lk_buf *b, size_t mark);

void wire_int(lk_buf *b, int32_t v);
/** Append a buffer or ustring; `at` NULL: null. */
void wire_bytes(lk_buf *b, lk_bytes v);
void wire_record(lk_buf *b, const lk_record *rec, const void *value);

/** Append a connect response. Each byte of the password is the last byte of the
    session's id. */
void wire_welcome(lk_buf *b, int64_t session, int32_t timeout_ms);
/** Append a connect response of a server without a quorum. */
void wire_welcome_read_only(lk_buf *b, int64_t session, int32_t timeout_ms);
/** Append the header of a reply to a frame begun by wire_begin(). */
void wire_header(lk_buf *b, int32_t xid, int64_t zxid, int32_t err);
/** Append a whole reply without a body. */
void wire_reply(lk_buf *b, int32_t xid, int64_t zxid, int32_t err);
/** Append a whole reply to a getChildren2. */
void wire_list(lk_buf *b, int32_t xid, int64_t zxid, const lk_bytes *names,
               size_t count, const lk_stat *stat);
/** Append a whole event; `type` as in lk_event_type. */
void wire_event(lk_buf *b, int32_t type, const char *path);

/** Append the name and the fields of a request to `out`. `frame` does not
    include the length in front. `hello`: the frame is a connect request. */
void wire_print(lk_bytes frame, bool hello, lk_buf *out);
/** Append text, printf-like. */
void wire_say(lk_buf *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
