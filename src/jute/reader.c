/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/reader.h"

void lk__reader_fail(lk_reader *r, int err)
{
  if (r->err == 0)
    r->err = err;
  r->at = r->end;
}

/* The next `len` bytes; NULL: fewer are left. */
static const unsigned char *take_bytes(lk_reader *r, size_t len)
{
  const unsigned char *at = r->at;

  if (lk__reader_left(r) < len) {
    lk__reader_fail(r, LK_ERR_MARSHALLING);
    return NULL;
  }
  r->at += len;
  return at;
}

bool lk__reader_bool(lk_reader *r)
{
  const unsigned char *at = take_bytes(r, 1);

  return at != NULL && *at != 0;
}

/* Read a length or count of elements that take at least `size` bytes each.
 * Returns -1 for null and after an error, for example if that many elements do
 * not fit into the bytes that are left. */
static int32_t take_count(lk_reader *r, size_t size)
{
  int32_t count = lk__reader_int(r);

  if (r->err != 0)
    return -1;
  if (count < -1 || (count > 0 && (size_t)count > lk__reader_left(r) / size)) {
    lk__reader_fail(r, LK_ERR_MARSHALLING);
    return -1;
  }
  return count;
}

lk_bytes lk__reader_bytes_slow(lk_reader *r)
{
  int32_t len = take_count(r, 1);

  if (len < 0)
    return lk_bytes_of(NULL, 0);
  return lk_bytes_of(take_bytes(r, (size_t)len), (size_t)len);
}

size_t lk__reader_count(lk_reader *r, size_t min_size, bool *null)
{
  int32_t count = take_count(r, min_size == 0 ? 1 : min_size);

  *null = count < 0;
  return *null ? 0 : (size_t)count;
}

void lk__reader_stat(lk_reader *r, lk_stat *out)
{
  const unsigned char *at = take_bytes(r, LK_STAT_SIZE);

  memset(out, 0, sizeof *out);
  if (at == NULL)
    return;
  /* Each number is the sum of the sizes of the fields before. */
  out->czxid = lk__get_long(at);
  out->mzxid = lk__get_long(at + 8);
  out->ctime = lk__get_long(at + 16);
  out->mtime = lk__get_long(at + 24);
  out->version = lk__get_int(at + 32);
  out->cversion = lk__get_int(at + 36);
  out->aversion = lk__get_int(at + 40);
  out->ephemeral_owner = lk__get_long(at + 44);
  out->data_length = lk__get_int(at + 52);
  out->num_children = lk__get_int(at + 56);
  out->pzxid = lk__get_long(at + 60);
}
