/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/writer.h"

void lk__writer_long(lk_writer *w, int64_t v)
{
  unsigned char *at = lk__writer_take(w, 8);

  if (at == NULL)
    return; /* the buffer is full, and the bytes were only counted */
  lk__put32(at, (uint32_t)((uint64_t)v >> 32));
  lk__put32(at + 4, (uint32_t)(uint64_t)v);
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
    lk__put32(w->buf + at, (uint32_t)v);
}
