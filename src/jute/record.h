/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_RECORD_H
#define LK_JUTE_RECORD_H

#include "base/buf.h"
#include "jute/arena.h"
#include "jute/reader.h"
#include "jute/writer.h"

/** The type of a field in C and on the wire. */
typedef enum lk_kind {
  LK_KIND_INT,    /**< int32_t */
  LK_KIND_LONG,   /**< int64_t */
  LK_KIND_ID,     /**< int64_t, shown in hex */
  LK_KIND_BOOL,   /**< bool */
  LK_KIND_BYTES,  /**< lk_bytes: buffer and ustring */
  LK_KIND_SECRET, /**< lk_bytes of which only the length is shown */
  LK_KIND_STAT,   /**< lk_stat, read in one go */
  LK_KIND_RECORD, /**< another record, in place */
  LK_KIND_VECTOR  /**< lk_vec of records; `items` NULL is Jute's null */
} lk_kind;

typedef struct lk_record lk_record;

typedef struct lk_field {
  const char *name; /**< "" in an element that is only a value */
  lk_kind kind;
  size_t offset;
  const lk_record *elem; /**< RECORD, VECTOR: of what; else NULL */
} lk_field;

struct lk_record {
  const char *name;
  size_t size; /**< of the struct, bytes */
  size_t nfields;
  const lk_field *fields;
};

/** The record of a plain string, lk_bytes: what a vector of names is made of.
 */
extern const lk_record lk__bytes_record;

/** A vector of items that are only read, for encoding. */
static inline lk_vec lk__vec_of(const void *items, size_t count)
{
  lk_vec v = {NULL, count};

  memcpy(&v.items, &items, sizeof items);
  return v;
}

/** The fewest bytes a value takes on the wire. */
size_t lk__record_min(const lk_record *rec);
/**
 * Decode into the struct `out`. Vectors live in `arena`, text is views into
 * the reader's bytes; `items` of an empty vector is not NULL and not to be
 * followed. Bytes that are left over are left.
 * @return 0, LK_ERR_MARSHALLING, LK_ERR_NO_MEMORY; also in in->err.
 */
int lk__record_decode(const lk_record *rec, void *out, lk_reader *in,
                      lk_arena *arena);
/** Append `value`; out->len and out->err tell whether it fits and is valid. */
void lk__record_encode(const lk_record *rec, const void *value, lk_writer *out);
/** Append `value` as one line of text, `name=value` pairs; bytes are quoted
    and what is not printable is escaped, secrets are left out. false: no
    memory, a part may be there. */
bool lk__record_print(const lk_record *rec, const void *value, lk_buf *out);

#endif
