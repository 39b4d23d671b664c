/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_JUTE_RECORD_H
#define LK_JUTE_RECORD_H

#include "base/buf.h"
#include "jute/arena.h"
#include "jute/reader.h"
#include "jute/writer.h"

/** An array of `count` items at `items`, NULL for ZooKeeper's null. */
typedef struct lk_vec {
  void *items;
  size_t count;
} lk_vec;

/** The type of a field in C and on the wire. */
typedef enum lk_kind {
  LK_KIND_INT,    /**< int32_t */
  LK_KIND_LONG,   /**< int64_t */
  LK_KIND_ID,     /**< int64_t, printed in hex */
  LK_KIND_BOOL,   /**< bool */
  LK_KIND_BYTES,  /**< lk_bytes: buffer and ustring */
  LK_KIND_SECRET, /**< lk_bytes of which only the length is printed */
  LK_KIND_STAT,   /**< lk_stat, read with one check of its length */
  LK_KIND_RECORD, /**< another record's struct as a member of this one */
  LK_KIND_VECTOR  /**< lk_vec of records; `items` NULL is Jute's null */
} lk_kind;

typedef struct lk_record lk_record;

typedef struct lk_field {
  const char *name; /**< "" for the only field of lk__bytes_record */
  lk_kind kind;
  uint32_t offset;       /**< of the member in the struct */
  const lk_record *elem; /**< the record of a RECORD, or of each item of a
                              VECTOR; else NULL */
} lk_field;

/** The fields of a C struct, in the order of the wire. */
struct lk_record {
  const char *name;
  size_t size; /**< bytes of the struct */
  size_t nfields;
  const lk_field *fields;
};

/** The record of a plain string, whose struct is lk_bytes. A vector of names is
    a vector of these. */
extern const lk_record lk__bytes_record;

/** The record of the name of a child, whose struct is lk_bytes. A vector of
    these is malformed if a name is empty or has a "/" or a NUL: a path that is
    made of such a name, which only a faulty server sends, would lead out of the
    directory. */
extern const lk_record lk__name_record;

/** A vector for encoding, which only reads the items. */
static inline lk_vec lk__vec_of(const void *items, size_t count)
{
  lk_vec v = {NULL, count};

  memcpy(&v.items, &items, sizeof items); /* drops `const` without a warning */
  return v;
}

/** The fewest bytes that a value of the record takes on the wire. */
size_t lk__record_min(const lk_record *rec);
/**
 * Decode into the struct `out`. The items of vectors are in `arena`; bytes are
 * views into the reader's bytes. An empty vector's `items` is not NULL, since
 * that stands for Jute's null, but must not be dereferenced. Bytes behind the
 * record are left to the caller.
 * @return 0, LK_ERR_MARSHALLING, LK_ERR_NO_MEMORY; also in in->err.
 */
int lk__record_decode(const lk_record *rec, void *out, lk_reader *in,
                      lk_arena *arena);
/** Append `value`. It did not fit if out->len is larger than out->cap then, and
    cannot be encoded if out->err is set. */
void lk__record_encode(const lk_record *rec, const void *value, lk_writer *out);
/** The same without the fields before the index `first`. */
void lk__record_encode_from(const lk_record *rec, size_t first,
                            const void *value, lk_writer *out);
/** Append `value` as one line of `name=value` pairs. Bytes are quoted, with
    unprintable ones escaped; secrets are left out. false: there is no memory,
    and a part of the line may have been appended. */
bool lk__record_print(const lk_record *rec, const void *value, lk_buf *out);

#endif
