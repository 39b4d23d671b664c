/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "jute/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#if defined(__GNUC__)
#  define PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#  define PRINTF(at, first)
#endif

static const lk_field bytes_fields[] = {{"", LK_KIND_BYTES, 0, NULL}};
const lk_record lk__bytes_record = {"ustring", sizeof(lk_bytes), 1,
                                    bytes_fields};
const lk_record lk__name_record = {"name", sizeof(lk_bytes), 1, bytes_fields};

/* The fewest bytes that a field takes on the wire. */
static size_t field_min_size(const lk_field *f)
{
  switch (f->kind) {
  case LK_KIND_BOOL: return 1;
  case LK_KIND_INT:
  case LK_KIND_BYTES:
  case LK_KIND_SECRET:
  case LK_KIND_VECTOR: return 4;
  case LK_KIND_LONG:
  case LK_KIND_ID: return 8;
  case LK_KIND_STAT: return LK_STAT_SIZE;
  case LK_KIND_RECORD: return lk__record_min(f->elem);
  }
  return 0;
}

size_t lk__record_min(const lk_record *rec)
{
  size_t size = 0;

  for (size_t i = 0; i < rec->nfields; i++)
    size += field_min_size(&rec->fields[i]);
  return size;
}

/* ---- decode ----------------------------------------------------------- */

/* The fast path for a vector of plain strings, such as the names of many
 * children. The compiler can keep a local copy of the reader in registers. */
static void decode_strings(lk_bytes *items, size_t count, lk_reader *in)
{
  lk_reader r = *in;

  for (size_t i = 0; i < count; i++)
    items[i] = lk__reader_bytes(&r);
  *in = r;
}

/* Whether one of the names, which are views into `len` bytes at `all`, has a
 * "/". One search of all bytes takes a sixth of the instructions of a search of
 * each name. It can also find a byte of a length field. */
static bool any_has_slash(const lk_bytes *names, size_t count, const void *all,
                          size_t len)
{
  if (memchr(all, '/', len) == NULL)
    return false;
  for (size_t i = 0; i < count; i++) {
    if (memchr(names[i].at, '/', names[i].len) != NULL)
      return true;
  }
  return false;
}

/* As decode_strings(), for names of children, which are checked. */
static void decode_names(lk_bytes *items, size_t count, lk_reader *in)
{
  lk_reader r = *in;

  for (size_t i = 0; i < count; i++) {
    lk_bytes name = lk__reader_bytes(&r);

    if (name.len == 0 || memchr(name.at, '\0', name.len) != NULL)
      lk__reader_fail(&r, LK_ERR_MARSHALLING);
    items[i] = name;
  }
  if (r.err == 0 &&
      any_has_slash(items, count, in->at, (size_t)(r.at - in->at)))
    lk__reader_fail(&r, LK_ERR_MARSHALLING);
  *in = r;
}

static void decode_vector(const lk_record *elem, lk_vec *out, lk_reader *in,
                          lk_arena *arena)
{
  bool null;
  size_t count = lk__reader_count(in, lk__record_min(elem), &null);
  unsigned char *items;

  /* `items` NULL stands for Jute's null. An empty vector needs another address,
   * which is never dereferenced: that of the arena. */
  out->items = null ? NULL : arena;
  out->count = 0;
  if (count == 0)
    return;
  items = lk__arena_take_raw(arena, count, elem->size);
  if (items == NULL) {
    out->items = NULL;
    lk__reader_fail(in, LK_ERR_NO_MEMORY);
    return;
  }
  out->items = items;
  out->count = count;
  /* The items are uninitialised. Each one is set below, after an error to
   * zeros. */
  if (elem == &lk__bytes_record) {
    decode_strings((lk_bytes *)(void *)items, count, in);
    return;
  }
  if (elem == &lk__name_record) {
    decode_names((lk_bytes *)(void *)items, count, in);
    return;
  }
  for (size_t i = 0; i < count; i++)
    lk__record_decode(elem, items + i * elem->size, in, arena);
}

int lk__record_decode(const lk_record *rec, void *out, lk_reader *in,
                      lk_arena *arena)
{
  for (size_t i = 0; i < rec->nfields; i++) {
    const lk_field *f = &rec->fields[i];
    void *at = (char *)out + f->offset;

    switch (f->kind) {
    case LK_KIND_INT: *(int32_t *)at = lk__reader_int(in); break;
    case LK_KIND_LONG:
    case LK_KIND_ID: *(int64_t *)at = lk__reader_long(in); break;
    case LK_KIND_BOOL: *(bool *)at = lk__reader_bool(in); break;
    case LK_KIND_BYTES:
    case LK_KIND_SECRET: *(lk_bytes *)at = lk__reader_bytes(in); break;
    case LK_KIND_STAT: lk__reader_stat(in, at); break;
    case LK_KIND_RECORD: lk__record_decode(f->elem, at, in, arena); break;
    case LK_KIND_VECTOR: decode_vector(f->elem, at, in, arena); break;
    }
  }
  return in->err;
}

/* ---- encode ----------------------------------------------------------- */

static void encode_vector(const lk_record *elem, const lk_vec *v,
                          lk_writer *out)
{
  const unsigned char *items = v->items;

  if (items == NULL) {
    lk__writer_int(out, -1);
    return;
  }
  lk__writer_count(out, v->count);
  for (size_t i = 0; i < v->count && out->err == 0; i++)
    lk__record_encode(elem, items + i * elem->size, out);
}

void lk__record_encode_from(const lk_record *rec, size_t first,
                            const void *value, lk_writer *out)
{
  for (size_t i = first; i < rec->nfields; i++) {
    const lk_field *f = &rec->fields[i];
    const void *at = (const char *)value + f->offset;

    switch (f->kind) {
    case LK_KIND_INT: lk__writer_int(out, *(const int32_t *)at); break;
    case LK_KIND_LONG:
    case LK_KIND_ID: lk__writer_long(out, *(const int64_t *)at); break;
    case LK_KIND_BOOL: lk__writer_bool(out, *(const bool *)at); break;
    case LK_KIND_BYTES:
    case LK_KIND_SECRET: lk__writer_bytes(out, *(const lk_bytes *)at); break;
    case LK_KIND_STAT: lk__writer_stat(out, at); break;
    case LK_KIND_RECORD: lk__record_encode(f->elem, at, out); break;
    case LK_KIND_VECTOR: encode_vector(f->elem, at, out); break;
    }
  }
}

void lk__record_encode(const lk_record *rec, const void *value, lk_writer *out)
{
  lk__record_encode_from(rec, 0, value, out);
}

/* ---- print ------------------------------------------------------------ */

static bool print_format(lk_buf *out, const char *format, ...) PRINTF(2, 3);

static bool print_format(lk_buf *out, const char *format, ...)
{
  char text[256];
  va_list args;
  int len;

  va_start(args, format);
  len = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return len >= 0 && (size_t)len < sizeof text &&
         lk__buf_append(out, text, (size_t)len);
}

static bool print_byte(unsigned char c, lk_buf *out)
{
  if (c == '"' || c == '\\')
    return print_format(out, "\\%c", c);
  if (c >= ' ' && c <= '~')
    return lk__buf_append(out, &c, 1);
  return print_format(out, "\\x%02x", c);
}

static bool print_bytes(const lk_bytes *v, lk_buf *out)
{
  const unsigned char *at = v->at;
  bool ok = print_format(out, at == NULL ? "null" : "\"");

  if (at == NULL)
    return ok;
  for (size_t i = 0; i < v->len && ok; i++)
    ok = print_byte(at[i], out);
  return ok && print_format(out, "\"");
}

static bool print_stat(const lk_stat *s, lk_buf *out)
{
  return print_format(out, "{c=%" PRId64 " m=%" PRId64 " ver=%" PRId32,
                      s->czxid, s->mzxid, s->version) &&
         print_format(out, " cver=%" PRId32 " aver=%" PRId32 " own=0x%" PRIx64,
                      s->cversion, s->aversion, (uint64_t)s->ephemeral_owner) &&
         print_format(out, " len=%" PRId32 " kids=%" PRId32 " p=%" PRId64 "}",
                      s->data_length, s->num_children, s->pzxid);
}

static bool print_vector(const lk_record *elem, const lk_vec *v, lk_buf *out)
{
  const unsigned char *items = v->items;
  bool ok = items == NULL ? print_format(out, "#=-1")
                          : print_format(out, "#=%zu", v->count);

  for (size_t i = 0; items != NULL && i < v->count && ok; i++)
    ok = print_format(out, " ") &&
         lk__record_print(elem, items + i * elem->size, out);
  return ok;
}

static bool print_secret(const lk_bytes *v, lk_buf *out)
{
  return v->at == NULL ? print_format(out, "=null")
                       : print_format(out, "[%zu]", v->len);
}

/* Print the value of a field, whose name was printed. A field without a name
 * gets no "=". */
static bool print_value(const lk_field *f, const void *at, lk_buf *out)
{
  const char *sign = f->name[0] == '\0' ? "" : "=";

  switch (f->kind) {
  case LK_KIND_INT:
    return print_format(out, "%s%" PRId32, sign, *(const int32_t *)at);
  case LK_KIND_LONG:
    return print_format(out, "%s%" PRId64, sign, *(const int64_t *)at);
  case LK_KIND_ID:
    return print_format(out, "%s0x%" PRIx64, sign, *(const uint64_t *)at);
  case LK_KIND_BOOL: return print_format(out, "%s%d", sign, *(const bool *)at);
  case LK_KIND_BYTES:
    return print_format(out, "%s", sign) && print_bytes(at, out);
  case LK_KIND_SECRET: return print_secret(at, out);
  case LK_KIND_STAT: return print_stat(at, out);
  case LK_KIND_RECORD: return lk__record_print(f->elem, at, out);
  case LK_KIND_VECTOR: return print_vector(f->elem, at, out);
  }
  return false;
}

bool lk__record_print(const lk_record *rec, const void *value, lk_buf *out)
{
  bool ok = true;

  for (size_t i = 0; i < rec->nfields && ok; i++) {
    const lk_field *f = &rec->fields[i];

    /* The fields of a member record are printed like fields of this record. */
    ok = print_format(out, "%s%s", i == 0 ? "" : " ",
                      f->kind == LK_KIND_RECORD ? "" : f->name) &&
         print_value(f, (const char *)value + f->offset, out);
  }
  return ok;
}
