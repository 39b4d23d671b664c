/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/handshake_frames.h"
#include "proto/wire/records.h"

enum {
  PASSWORD_LEN = 16,
  LENGTH_FIELD = 4,
  /* Bytes of a connect response: protocol version, timeout, session id, and the
   * password with its length field. The last byte, readOnly, does not count:
   * servers before ZooKeeper 3.4 do not send it. */
  SHORTEST_RESPONSE = 4 + 4 + 8 + LENGTH_FIELD + PASSWORD_LEN,
  REPLY_HEADER = 4 + 8 + 4 /* bytes of a reply header: xid, zxid, error */
};

void lk__handshake_encode(const lk_handshake *h, void *buf)
{
  struct lk_connect_request request = {
      .last_zxid_seen = h->last_zxid,
      .timeout_ms = h->timeout_ms,
      .session_id = h->session.id,
      .password = lk_bytes_of(h->session.password, PASSWORD_LEN)};
  lk_writer w;

  lk__writer_init(&w, buf, LK_HANDSHAKE_LEN);
  lk__writer_int(&w, LK_HANDSHAKE_LEN - LENGTH_FIELD);
  lk__record_encode(&lk__connect_request_record, &request, &w);
  lk__writer_bool(&w, h->read_only); /* it is not part of the record */
}

/* A read-only server without local sessions replies with a reply header instead
 * of a connect response, and leaves the connection open. */
static lk_welcome welcome_of_header(lk_reader *r)
{
  struct lk_reply_header header;

  /* This cannot fail, since the frame has the length of a header. */
  (void)lk__record_decode(&lk__reply_header_record, &header, r, NULL);
  return header.err == LK_ERR_NOT_READ_ONLY ? LK_WELCOME_READ_ONLY
                                            : LK_WELCOME_BAD;
}

lk_welcome lk__handshake_decode(lk_handshake *h, lk_bytes frame)
{
  struct lk_connect_reply reply;
  lk_reader r;

  lk__reader_init(&r, frame.at, frame.len);
  if (frame.len == REPLY_HEADER)
    return welcome_of_header(&r);
  if (frame.len < SHORTEST_RESPONSE ||
      lk__record_decode(&lk__connect_reply_record, &reply, &r, NULL) != 0)
    return LK_WELCOME_BAD;
  bool read_only = lk__reader_left(&r) > 0 && lk__reader_bool(&r);

  /* A server that does not know the session replies with zeros. */
  if (reply.timeout_ms <= 0 || reply.session_id == 0)
    return LK_WELCOME_EXPIRED;
  if (reply.password.len != PASSWORD_LEN)
    return LK_WELCOME_BAD;
  if (read_only && !h->read_only)
    return LK_WELCOME_READ_ONLY;
  if (h->session.id != 0 && h->session.id != reply.session_id)
    return LK_WELCOME_EXPIRED; /* the server has made a new session */
  h->session.id = reply.session_id;
  h->timeout_ms = reply.timeout_ms;
  h->read_only = read_only;
  memcpy(h->session.password, reply.password.at, PASSWORD_LEN);
  return LK_WELCOME_SESSION;
}
