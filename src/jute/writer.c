/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"

void lk__writer_init(lk_writer *w, void *buf, size_t cap)
{
  w->buf = buf;
  w->cap = cap;
  w->len = 0;
  w->err = 0;
}

void lk__writer_raw(lk_writer *w, const void *bytes, size_t len)
{
  if (len == 0)
    return;
  if (len > SIZE_MAX - w->len) {
    w->err = LK_ERR_TOO_BIG;
    return;
  }
  if (w->len <= w->cap && len <= w->cap - w->len)
    memcpy(w->buf + w->len, bytes, len);
  w->len += len;
}

static void put32(unsigned char *at, uint32_t v)
{
  at[0] = (unsigned char)(v >> 24);
  at[1] = (unsigned char)(v >> 16);
  at[2] = (unsigned char)(v >> 8);
  at[3] = (unsigned char)v;
}

void lk__writer_int(lk_writer *w, int32_t v)
{
  unsigned char bytes[4];

  put32(bytes, (uint32_t)v);
  lk__writer_raw(w, bytes, sizeof bytes);
}

void lk__writer_long(lk_writer *w, int64_t v)
{
  unsigned char bytes[8];

  put32(bytes, (uint32_t)((uint64_t)v >> 32));
  put32(bytes + 4, (uint32_t)(uint64_t)v);
  lk__writer_raw(w, bytes, sizeof bytes);
}

void lk__writer_bool(lk_writer *w, bool v)
{
  unsigned char byte = v ? 1 : 0;

  lk__writer_raw(w, &byte, 1);
}

void lk__writer_count(lk_writer *w, size_t count)
{
  if (count > INT32_MAX) {
    w->err = LK_ERR_TOO_BIG;
    return;
  }
  lk__writer_int(w, (int32_t)count);
}

void lk__writer_bytes(lk_writer *w, lk_bytes v)
{
  if (v.at == NULL) {
    lk__writer_int(w, -1);
    return;
  }
  lk__writer_count(w, v.len);
  if (w->err == 0)
    lk__writer_raw(w, v.at, v.len);
}

void lk__writer_stat(lk_writer *w, const lk_stat *v)
{
  lk__writer_long(w, v->czxid);
  lk__writer_long(w, v->mzxid);
  lk__writer_long(w, v->ctime);
  lk__writer_long(w, v->mtime);
  lk__writer_int(w, v->version);
  lk__writer_int(w, v->cversion);
  lk__writer_int(w, v->aversion);
  lk__writer_long(w, v->ephemeral_owner);
  lk__writer_int(w, v->data_length);
  lk__writer_int(w, v->num_children);
  lk__writer_long(w, v->pzxid);
}

void lk__writer_patch(lk_writer *w, size_t at, int32_t v)
{
  if (at <= w->cap && w->cap - at >= 4)
    put32(w->buf + at, (uint32_t)v);
}
