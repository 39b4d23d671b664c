/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "differential/side.h"

#include "support/wire.h"

enum { LENGTH_FIELD = 4 };

void side_open(side *s, unsigned conn, unsigned server)
{
  lk_buf *in = &s->conns[conn].in;

  if (in->mem == NULL)
    *in = wire_buf();
  lk__buf_consume(in, lk__buf_len(in));
  s->conns[conn].consumed = 0;
  s->conns[conn].closed = false;
  s->kind->open(s, conn, server);
}

void side_close(side *s, unsigned conn)
{
  s->kind->close(s, conn);
}

/* The length field of the first frame; -1: not received yet. */
static int64_t frame_len(const lk_buf *in)
{
  lk_reader r;

  lk__reader_init(&r, lk__buf_bytes(in), lk__buf_len(in));
  int32_t len = lk__reader_int(&r);

  return r.err != 0 ? -1 : len;
}

side_result side_receive(side *s, unsigned conn, lk_bytes *frame)
{
  lk_buf *in = &s->conns[conn].in;

  lk__buf_consume(in, s->conns[conn].consumed);
  s->conns[conn].consumed = 0;
  for (;;) {
    int64_t len = frame_len(in);

    if (len >= 0 && lk__buf_len(in) >= LENGTH_FIELD + (size_t)len) {
      *frame = lk_bytes_of(lk__buf_bytes(in) + LENGTH_FIELD, (size_t)len);
      s->conns[conn].consumed = LENGTH_FIELD + (size_t)len;
      return SIDE_FRAME;
    }
    if (s->conns[conn].closed)
      return SIDE_CLOSED;
    if (!s->kind->wait(s, conn))
      return SIDE_SILENT;
  }
}

void side_free(side *s)
{
  for (unsigned i = 0; i < SIDE_CONNS; i++)
    lk__buf_free(&s->conns[i].in);
  s->kind->free(s);
}
