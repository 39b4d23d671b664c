/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/names.h"

#include <latchkey/lock.h>
#include <latchkey/semaphore.h>

/* ---- kinds of nodes ------------------------------------------------------ */

/* Of the texts of one format, none ends with another, and none ends with a
 * digit. So at most one text stands directly before the digits of a name. */
const lk_node_kind lk__node_kind_mutex = {"lock-", LK_FAMILY_MUTEX,
                                          LK_SIDE_WRITER};
static const lk_node_kind node_kind_write = {"__WRIT__", LK_FAMILY_RW,
                                             LK_SIDE_WRITER};
static const lk_node_kind node_kind_read = {"__READ__", LK_FAMILY_RW,
                                            LK_SIDE_READER};
static const lk_node_kind node_kind_kazoo_write = {"__lock__", LK_FAMILY_KAZOO,
                                                   LK_SIDE_WRITER};
static const lk_node_kind node_kind_kazoo_read = {"__rlock__", LK_FAMILY_KAZOO,
                                                  LK_SIDE_READER};
static const lk_node_kind node_kind_latch = {"latch-", LK_FAMILY_LATCH,
                                             LK_SIDE_FAMILY_ONLY};
static const lk_node_kind node_kind_permit = {"lease-", LK_FAMILY_PERMIT,
                                              LK_SIDE_FAMILY_ONLY};
static const lk_node_kind node_kind_kazoo_permit = {"", LK_FAMILY_PERMIT,
                                                    LK_SIDE_FAMILY_ONLY};
static const lk_node_kind node_kind_plain_write = {"w-", LK_FAMILY_PLAIN,
                                                   LK_SIDE_WRITER};
static const lk_node_kind node_kind_plain_read = {"r-", LK_FAMILY_PLAIN,
                                                  LK_SIDE_READER};

static const lk_node_kind *const known_kinds[] = {
    &lk__node_kind_mutex,   &node_kind_write,      &node_kind_read,
    &node_kind_kazoo_write, &node_kind_kazoo_read, &node_kind_latch,
    &node_kind_permit};
static const lk_node_kind *const plain_kinds[] = {&node_kind_plain_write,
                                                  &node_kind_plain_read};

const lk_name_format lk__name_format_known = {
    .kinds = known_kinds, .count = sizeof known_kinds / sizeof known_kinds[0]};
const lk_name_format lk__name_format_plain = {.kinds = plain_kinds,
                                              .count = sizeof plain_kinds /
                                                       sizeof plain_kinds[0],
                                              .exact = true};

bool lk__node_kinds_contend(const lk_node_kind *a, const lk_node_kind *b)
{
  if (a->side == LK_SIDE_FAMILY_ONLY || b->side == LK_SIDE_FAMILY_ONLY)
    return a->family == b->family;
  return true;
}

/* ---- numbers ------------------------------------------------------------- */

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

/* ---- names --------------------------------------------------------------- */

bool lk__name_parse(const lk_name_format *format, lk_bytes name, lk_name *out)
{
  return format->exact ? name_parse_exact(format, name, out)
                       : name_parse_known(format, name, out);
}

bool lk__names_are_equal(lk_bytes a, lk_bytes b)
{
  return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
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

/* ---- the unique part and the own name ------------------------------------ */

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

/* ---- exclusion ----------------------------------------------------------- */

/* A writer is excluded by all earlier readers and writers. A mutex is a writer,
 * too. Permits and leader latches exclude only their own kind. */
static bool excludes_writer(const lk_node_kind *earlier)
{
  return earlier->side != LK_SIDE_FAMILY_ONLY;
}

static bool excludes_reader(const lk_node_kind *earlier)
{
  return earlier->side == LK_SIDE_WRITER;
}

static bool excludes_latch(const lk_node_kind *earlier)
{
  return earlier->family == LK_FAMILY_LATCH;
}

#define WRITER(node_kind, name_format)                                 \
  {                                                                    \
    .kind = &(node_kind), .format = &(name_format), .exclusive = true, \
    .excludes = excludes_writer                                        \
  }
#define READER(node_kind, name_format)              \
  {                                                 \
    .kind = &(node_kind), .format = &(name_format), \
    .excludes = excludes_reader                     \
  }

static const lk_role role_mutex =
    WRITER(lk__node_kind_mutex, lk__name_format_known);
static const lk_role role_write =
    WRITER(node_kind_write, lk__name_format_known);
static const lk_role role_read = READER(node_kind_read, lk__name_format_known);
static const lk_role role_kazoo_write =
    WRITER(node_kind_kazoo_write, lk__name_format_known);
static const lk_role role_kazoo_read =
    READER(node_kind_kazoo_read, lk__name_format_known);
static const lk_role role_plain_write =
    WRITER(node_kind_plain_write, lk__name_format_plain);
static const lk_role role_plain_read =
    READER(node_kind_plain_read, lk__name_format_plain);
static const lk_role role_latch = {.kind = &node_kind_latch,
                                   .format = &lk__name_format_known,
                                   .exclusive = true,
                                   .excludes = excludes_latch};
const lk_role lk__role_permit = {.kind = &node_kind_permit,
                                 .format = &lk__name_format_known,
                                 .is_permit = true};
const lk_role lk__role_kazoo_permit = {.kind = &node_kind_kazoo_permit,
                                       .format = &lk__name_format_known,
                                       .is_permit = true};

bool lk__name_is_permit(const lk_role *role, lk_bytes name, int64_t *number)
{
  lk_name n;

  *number = 0;
  if (role->kind == &node_kind_kazoo_permit)
    return lk__name_is_hex(name);
  if (!lk__name_parse(role->format, name, &n) || n.kind != role->kind)
    return false;
  *number = n.number;
  return true;
}

/* ---- mutexes with plain names -------------------------------------------- */

/* "r-" and "w-" are refused: they are the names of a shared lock, whose readers
 * and writers a mutex with one of these prefixes would ignore. */
bool lk__plain_prefix_is_valid(const char *prefix)
{
  return prefix == NULL ||
         (strchr(prefix, '/') == NULL && strcmp(prefix, "r-") != 0 &&
          strcmp(prefix, "w-") != 0);
}

void lk__plain_names_init(lk_plain_names *p, const char *prefix)
{
  p->kind = (lk_node_kind){prefix == NULL ? "seq-" : prefix, LK_FAMILY_PLAIN,
                           LK_SIDE_WRITER};
  p->kinds[0] = &p->kind;
  p->format = (lk_name_format){.kinds = p->kinds,
                               .count = sizeof p->kinds / sizeof p->kinds[0],
                               .exact = true};
  p->role = (lk_role){.kind = &p->kind,
                      .format = &p->format,
                      .exclusive = true,
                      .excludes = excludes_writer};
}

/* ---- layouts ------------------------------------------------------------- */

static const lk_layout_rules layouts[] = {
    [LK_LAYOUT_CURATOR] = {.identity = LK_IDENTITY_CURATOR,
                           .roles = {[LK_MULTILOCK_MUTEX] = &role_mutex,
                                     [LK_MULTILOCK_READ] = &role_read,
                                     [LK_MULTILOCK_WRITE] = &role_write},
                           .permit = &lk__role_permit,
                           .permit_identity = LK_IDENTITY_CURATOR,
                           .containers = true,
                           .downgrades = true},
    [LK_LAYOUT_KAZOO] = {.identity = LK_IDENTITY_HEX,
                         .roles = {[LK_MULTILOCK_MUTEX] = &role_kazoo_write,
                                   [LK_MULTILOCK_READ] = &role_kazoo_read,
                                   [LK_MULTILOCK_WRITE] = &role_kazoo_write},
                         .permit = &lk__role_kazoo_permit,
                         .permit_identity = LK_IDENTITY_HEX_ONLY},
    [LK_LAYOUT_NATIVE] = {.identity = LK_IDENTITY_DATA,
                          .has_prefix = true,
                          .roles = {[LK_MULTILOCK_READ] = &role_plain_read,
                                    [LK_MULTILOCK_WRITE] = &role_plain_write}},
    [LK_LAYOUT_NATIVE_UUID] = {.identity = LK_IDENTITY_UUID,
                               .has_prefix = true,
                               .roles = {[LK_MULTILOCK_READ] = &role_plain_read,
                                         [LK_MULTILOCK_WRITE] =
                                             &role_plain_write}},
    [LK_LAYOUT_LATCH] = {.identity = LK_IDENTITY_CURATOR,
                         .roles = {[LK_MULTILOCK_MUTEX] = &role_latch},
                         .containers = true}};

const lk_layout_rules *lk__layout_rules(lk_layout layout)
{
  size_t index = (size_t)layout;

  return index < sizeof layouts / sizeof layouts[0] ? &layouts[index] : NULL;
}

bool lk__layout_has_side(const lk_layout_rules *rules, lk_multilock_side side)
{
  return rules->roles[side] != NULL || rules->has_prefix;
}

/* Whether `name` belongs to a reader or writer in a queue of `role`. NULL: the
 * layout has no such queue. */
static bool name_contends_with_role(const lk_role *role, lk_bytes name,
                                    int64_t *number, bool *shared)
{
  lk_name n;

  if (role == NULL || !lk__name_parse(role->format, name, &n) ||
      !lk__node_kinds_contend(role->kind, n.kind))
    return false;
  *number = n.number;
  *shared = n.kind->side == LK_SIDE_READER;
  return true;
}

bool lk_layout_contends(lk_layout layout, const char *prefix, lk_bytes name,
                        int64_t *number, bool *shared)
{
  const lk_layout_rules *rules = lk__layout_rules(layout);
  lk_plain_names plain;

  if (rules == NULL || !lk__plain_prefix_is_valid(prefix))
    return false;
  lk__plain_names_init(&plain, prefix);
  const lk_role *mutex =
      rules->has_prefix ? &plain.role : rules->roles[LK_MULTILOCK_MUTEX];

  return name_contends_with_role(mutex, name, number, shared) ||
         name_contends_with_role(rules->roles[LK_MULTILOCK_READ], name, number,
                                 shared);
}

bool lk_layout_is_permit(lk_layout layout, lk_bytes name, int64_t *number)
{
  const lk_layout_rules *rules = lk__layout_rules(layout);
  int64_t n;

  if (rules == NULL || rules->permit == NULL ||
      !lk__name_is_permit(rules->permit, name, &n))
    return false;
  *number = n;
  return true;
}

/* ---- data ---------------------------------------------------------------- */

bool lk__is_revocation(lk_bytes data)
{
  return data.at != NULL && data.len == strlen(LK_REVOKE_MESSAGE) &&
         memcmp(data.at, LK_REVOKE_MESSAGE, data.len) == 0;
}
