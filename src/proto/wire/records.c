/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/records.h"

#include <assert.h>

#define ELEM_INT(elem)    NULL
#define ELEM_LONG(elem)   NULL
#define ELEM_ID(elem)     NULL
#define ELEM_BOOL(elem)   NULL
#define ELEM_BYTES(elem)  NULL
#define ELEM_SECRET(elem) NULL
#define ELEM_STAT(elem)   NULL
#define ELEM_RECORD(elem) &lk__##elem##_record
#define ELEM_VECTOR(elem) &lk__##elem##_record

/* The structs of LK_OWN_RECORDS are public and written by hand: check the type
 * of each member against the list of fields. */
#define CHECK_FIELD(record, kind, name, elem)                     \
  static_assert(_Generic(((struct lk_##record *)0)->name,         \
                         LK__TYPE_##kind(elem) : 1, default : 0), \
                "lk_" #record "." #name                           \
                " is of another type than its record");
#define CHECK(name, FIELDS) FIELDS(name, CHECK_FIELD)
LK_OWN_RECORDS(CHECK)

#define FIELD(record, kind, name, elem)                       \
  {#name, LK_KIND_##kind, offsetof(struct lk_##record, name), \
   ELEM_##kind(elem)},
#define TABLE(name, FIELDS)                                      \
  static const lk_field name##_fields[] = {FIELDS(name, FIELD)}; \
  const lk_record lk__##name##_record = {                        \
      #name, sizeof(struct lk_##name),                           \
      sizeof name##_fields / sizeof name##_fields[0], name##_fields};
LK_OWN_RECORDS(TABLE)
LK_RECORDS(TABLE)

const lk_record lk__empty_record = {"empty", 0, 0, NULL};

#define ADDRESS(name, FIELDS) &lk__##name##_record,
const lk_record *const lk__records[] = {LK_OWN_RECORDS(ADDRESS)
                                            LK_RECORDS(ADDRESS)};
const size_t lk__nrecords = sizeof lk__records / sizeof lk__records[0];
