/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_RECORDS_H
#define LK_PROTO_WIRE_RECORDS_H

#include "jute/record.h"
#include "proto/wire/records.def"

/* Declare a struct for each list of fields: struct lk_create_request, … */
#define LK__TYPE_INT(elem)    int32_t
#define LK__TYPE_LONG(elem)   int64_t
#define LK__TYPE_ID(elem)     int64_t
#define LK__TYPE_BOOL(elem)   bool
#define LK__TYPE_BYTES(elem)  lk_bytes
#define LK__TYPE_SECRET(elem) lk_bytes
#define LK__TYPE_STAT(elem)   lk_stat
#define LK__TYPE_RECORD(elem) struct lk_##elem
#define LK__TYPE_VECTOR(elem) lk_vec

#define LK__MEMBER(record, kind, name, elem) LK__TYPE_##kind(elem) name;
#define LK__STRUCT(name, FIELDS) \
  struct lk_##name {             \
    FIELDS(name, LK__MEMBER)     \
  };
LK_RECORDS(LK__STRUCT)

/* Declare the table of each struct's fields: lk__create_request_record, … */
#define LK__DECLARE(name, FIELDS) extern const lk_record lk__##name##_record;
LK_OWN_RECORDS(LK__DECLARE)
LK_RECORDS(LK__DECLARE)
#undef LK__DECLARE

/** The record without fields: the body of a ping, or of the reply to delete. */
extern const lk_record lk__empty_record;

/** All records, for tests of each. */
extern const lk_record *const lk__records[];
extern const size_t lk__nrecords;

#endif
