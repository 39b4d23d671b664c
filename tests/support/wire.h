/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_WIRE_H
#define LK_SUPPORT_WIRE_H

#include "base/buf.h"
#include "jute/record.h"

/**
 * What a server writes and reads, for tests: frames are put together at the
 * end of a buffer, requests are shown as text. Aborts when there is no memory.
 */

/** A buffer on the C library's memory. */
lk_buf wire_buf(void);

/** Begin a frame; returns its mark for wire_end(), which sets its length. */
size_t wire_begin(lk_buf *b);
void wire_end(lk_buf *b, size_t mark);

void wire_int(lk_buf *b, int32_t v);
/** A buffer or ustring; `at` NULL is null. */
void wire_bytes(lk_buf *b, lk_bytes v);
void wire_record(lk_buf *b, const lk_record *rec, const void *value);

/** A connect response; the password is made of the id. */
void wire_welcome(lk_buf *b, int64_t session, int32_t timeout_ms);
/** … of a server without a quorum. */
void wire_welcome_read_only(lk_buf *b, int64_t session, int32_t timeout_ms);
/** The header of a reply, in a frame that was begun. */
void wire_header(lk_buf *b, int32_t xid, int64_t zxid, int32_t err);
/** A whole reply without a body. */
void wire_reply(lk_buf *b, int32_t xid, int64_t zxid, int32_t err);
/** A whole event; `type` as in lk_event_type. */
void wire_event(lk_buf *b, int32_t type, const char *path);

/** Add the name of the opcode and the fields of a request, of which `frame` has
    no length, to `out`. `hello`: it is a connect request. */
void wire_print(lk_bytes frame, bool hello, lk_buf *out);
/** Add text, printf-like. */
void wire_say(lk_buf *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
