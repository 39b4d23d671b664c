/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/names.h"

/* Of the texts of one format, none ends with another, and none ends with a
 * digit. So at most one text stands directly before the digits of a name. */
const lk_node_kind lk__node_kind_mutex = {"lock-", LK_FAMILY_MUTEX,
                                          LK_SIDE_WRITER};
const lk_node_kind lk__node_kind_write = {"__WRIT__", LK_FAMILY_RW,
                                          LK_SIDE_WRITER};
const lk_node_kind lk__node_kind_read = {"__READ__", LK_FAMILY_RW,
                                         LK_SIDE_READER};
const lk_node_kind lk__node_kind_kazoo_write = {"__lock__", LK_FAMILY_KAZOO,
                                                LK_SIDE_WRITER};
const lk_node_kind lk__node_kind_kazoo_read = {"__rlock__", LK_FAMILY_KAZOO,
                                               LK_SIDE_READER};
const lk_node_kind lk__node_kind_latch = {"latch-", LK_FAMILY_LATCH,
                                          LK_SIDE_FAMILY_ONLY};
const lk_node_kind lk__node_kind_permit = {"lease-", LK_FAMILY_PERMIT,
                                           LK_SIDE_FAMILY_ONLY};
const lk_node_kind lk__node_kind_kazoo_permit = {"", LK_FAMILY_PERMIT,
                                                 LK_SIDE_FAMILY_ONLY};
const lk_node_kind lk__node_kind_plain_write = {"w-", LK_FAMILY_PLAIN,
                                                LK_SIDE_WRITER};
const lk_node_kind lk__node_kind_plain_read = {"r-", LK_FAMILY_PLAIN,
                                               LK_SIDE_READER};

static const lk_node_kind *const known_kinds[] = {
    &lk__node_kind_mutex,       &lk__node_kind_write,      &lk__node_kind_read,
    &lk__node_kind_kazoo_write, &lk__node_kind_kazoo_read, &lk__node_kind_latch,
    &lk__node_kind_permit};
static const lk_node_kind *const plain_kinds[] = {&lk__node_kind_plain_write,
                                                  &lk__node_kind_plain_read};

const lk_name_format lk__name_format_known = {
    .kinds = known_kinds, .count = sizeof known_kinds / sizeof known_kinds[0]};
const lk_name_format lk__name_format_plain = {.kinds = plain_kinds,
                                              .count = sizeof plain_kinds /
                                                       sizeof plain_kinds[0],
                                              .exact = true};

static bool is_digit(unsigned char c)
{
  return c >= '0' && c <= '9';
}

/* Servers print a number with "%010d": with leading zeros, it has at least so
 * many characters, a minus included. */
enum { NUMBER_LEN = 10, MAX_DIGITS = 10 };

/* Read a number as the server prints it. The text before the number may end
 * with a digit or a minus, so the length of the number must be exact. */
static bool name_read_number(const char *at, size_t len, int64_t *out)
{
  bool minus = len > 0 && at[0] == '-';
  const char *end = at + len;
  const char *digits = minus ? at + 1 : at;
  int64_t n = 0;

  for (const char *digit = digits; digit < end; digit++) {
    if (!is_digit((unsigned char)*digit))
      return false;
    n = n * 10 + (*digit - '0');
  }
  *out = minus ? -n : n;
  bool is_minus_zero = minus && n == 0;
  bool is_minus_and_ten_digits =
      minus && len == NUMBER_LEN + 1 && digits[0] != '0';

  return (len == NUMBER_LEN && !is_minus_zero) || is_minus_and_ten_digits;
}

/* ---- names of known kinds: any text may precede that of the kind --------- */

static const lk_node_kind *node_kind_at_end(const lk_name_format *format,
                                            const char *at, size_t len)
{
  for (size_t i = 0; i < format->count; i++) {
    const char *text = format->kinds[i]->text;
    size_t text_len = strlen(text);

    if (len >= text_len && memcmp(at + len - text_len, text, text_len) == 0)
      return format->kinds[i];
  }
  return NULL;
}

static bool name_parse_known(const lk_name_format *format, lk_bytes name,
                             lk_name *out)
{
  const char *at = name.at;
  size_t len = name.len;
  size_t digits = 0;
  int64_t number = 0;
  int64_t place_value = 1;

  for (; len > 0 && is_digit((unsigned char)at[len - 1]); len--) {
    digits++;
    if (digits > MAX_DIGITS)
      return false;
    number += (at[len - 1] - '0') * place_value;
    place_value *= 10;
  }
  if (digits == 0)
    return false;
  out->number = number;
  out->kind = node_kind_at_end(format, at, len);
  /* A minus that does not belong to the text of the kind is the number's. */
  if (out->kind == NULL && len > 0 && at[len - 1] == '-') {
    out->number = -number;
    out->kind = node_kind_at_end(format, at, len - 1);
  }
  return out->kind != NULL;
}

/* ---- exact names: only a UUID may precede the text of the kind ----------- */

static bool is_hex(char c)
{
  return is_digit((unsigned char)c) || (c >= 'a' && c <= 'f');
}

static bool uuid_has_dash_at(size_t i)
{
  return i == 8 || i == 13 || i == 18 || i == 23;
}

/* The length of a UUID and "-" at the start of a name. 0: there is none. */
static size_t name_uuid_len(const char *at, size_t len)
{
  if (len <= LK_UUID_LEN || at[LK_UUID_LEN] != '-')
    return 0;
  for (size_t i = 0; i < LK_UUID_LEN; i++) {
    bool fits = uuid_has_dash_at(i) ? at[i] == '-' : is_hex(at[i]);

    if (!fits)
      return 0;
  }
  return LK_UUID_LEN + 1;
}

/* Whether a name consists of the text of `kind` and a number. */
static bool name_parse_of_kind(const lk_node_kind *kind, const char *at,
                               size_t len, lk_name *out)
{
  size_t text_len = strlen(kind->text);

  out->kind = kind;
  return len > text_len && len - text_len <= LK_NUMBER_MAX_LEN &&
         memcmp(at, kind->text, text_len) == 0 &&
         name_read_number(at + text_len, len - text_len, &out->number);
}

static bool name_parse_exact(const lk_name_format *format, lk_bytes name,
                             lk_name *out)
{
  const char *at = name.at;
  size_t uuid_len = name_uuid_len(at, name.len);

  for (size_t i = 0; i < format->count; i++) {
    const lk_node_kind *kind = format->kinds[i];

    if (name_parse_of_kind(kind, at, name.len, out) ||
        (uuid_len > 0 &&
         name_parse_of_kind(kind, at + uuid_len, name.len - uuid_len, out)))
      return true;
  }
  return false;
}

bool lk__name_parse(const lk_name_format *format, lk_bytes name, lk_name *out)
{
  return format->exact ? name_parse_exact(format, name, out)
                       : name_parse_known(format, name, out);
}

bool lk__names_are_equal(lk_bytes a, lk_bytes b)
{
  return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

bool lk__node_kinds_contend(const lk_node_kind *a, const lk_node_kind *b)
{
  if (a->side == LK_SIDE_FAMILY_ONLY || b->side == LK_SIDE_FAMILY_ONLY)
    return a->family == b->family;
  return true;
}

enum { HEX_LEN = 32 }; /* the length of a UUID without its dashes */

size_t lk__name_unique_part_len(lk_node_identity identity)
{
  switch (identity) {
  case LK_IDENTITY_CURATOR: return LK_UNIQUE_PART_MAX_LEN;
  case LK_IDENTITY_HEX:
  case LK_IDENTITY_HEX_ONLY: return HEX_LEN;
  case LK_IDENTITY_UUID: return LK_UUID_LEN + 1;
  case LK_IDENTITY_DATA:
  case LK_IDENTITY_NONE: break;
  }
  return 0;
}

static bool uuid_has_dash_before_byte(size_t i)
{
  return i == 4 || i == 6 || i == 8 || i == 10;
}

void lk__name_write_unique_part(lk_node_identity identity,
                                char out[LK_UNIQUE_PART_MAX_LEN + 1],
                                const unsigned char random[16])
{
  static const char hex[] = "0123456789abcdef";
  bool has_dashes =
      identity != LK_IDENTITY_HEX && identity != LK_IDENTITY_HEX_ONLY;
  char *p = out;

  if (identity == LK_IDENTITY_CURATOR) {
    memcpy(p, "_c_", strlen("_c_"));
    p += strlen("_c_");
  }
  for (size_t i = 0; i < 16; i++) {
    unsigned b = random[i];

    if (i == 6)
      b = 0x40 | (b & 0x0f); /* version 4 */
    if (i == 8)
      b = 0x80 | (b & 0x3f); /* the variant of RFC 4122 */
    if (has_dashes && uuid_has_dash_before_byte(i))
      *p++ = '-';
    *p++ = hex[b >> 4];
    *p++ = hex[b & 0x0f];
  }
  if (identity == LK_IDENTITY_CURATOR || identity == LK_IDENTITY_UUID)
    *p++ = '-';
  *p = '\0';
}

bool lk__name_is_hex(lk_bytes name)
{
  const char *at = name.at;

  for (size_t i = 0; i < name.len; i++) {
    if (!is_hex(at[i]))
      return false;
  }
  return name.len == lk__name_unique_part_len(LK_IDENTITY_HEX_ONLY);
}

bool lk__name_has_base(lk_bytes name, lk_bytes base, int64_t *number)
{
  return name.len > base.len && name.len - base.len <= LK_NUMBER_MAX_LEN &&
         memcmp(name.at, base.at, base.len) == 0 &&
         name_read_number((const char *)name.at + base.len, name.len - base.len,
                          number);
}

lk_bytes lk__names_find_own(const lk_bytes *names, size_t count, lk_bytes base)
{
  lk_bytes own = {0};
  int64_t lowest = INT64_MAX;
  int64_t number;

  for (size_t i = 0; i < count; i++) {
    if (!lk__name_has_base(names[i], base, &number) || number >= lowest)
      continue;
    lowest = number;
    own = names[i];
  }
  return own;
}

char *lk__write_child_path(char *at, const char *dir, lk_bytes name)
{
  size_t dir_len = strlen(dir);

  memcpy(at, dir, dir_len);
  at += dir_len;
  *at++ = '/';
  memcpy(at, name.at, name.len);
  at += name.len;
  *at++ = '\0';
  return at;
}
