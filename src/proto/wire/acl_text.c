/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/acl.h>

#include "base/acl.h"
#include "base/mem.h"
#include "base/sha1.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
  char letter;
  int32_t perm;
} all_perms[] = {{'c', LK_PERM_CREATE},
                 {'d', LK_PERM_DELETE},
                 {'r', LK_PERM_READ},
                 {'w', LK_PERM_WRITE},
                 {'a', LK_PERM_ADMIN}};
enum { NPERMS = sizeof all_perms / sizeof all_perms[0] };

/* ---- reading ------------------------------------------------------------ */

/* false: the bytes are not a number from 0 to INT32_MAX. */
static bool read_number(const char *s, size_t len, int32_t *out)
{
  int64_t value = 0;

  for (size_t i = 0; i < len; i++) {
    if (s[i] < '0' || s[i] > '9')
      return false;
    value = value * 10 + (s[i] - '0');
    if (value > INT32_MAX)
      return false;
  }
  *out = (int32_t)value;
  return len > 0;
}

static int32_t perm_of(char letter)
{
  for (size_t i = 0; i < NPERMS; i++) {
    if (all_perms[i].letter == letter)
      return all_perms[i].perm;
  }
  return 0; /* no permission has this letter */
}

/* Parse permissions, which are a number or letters. */
static bool read_perms(const char *s, size_t len, int32_t *out)
{
  if (read_number(s, len, out))
    return true;
  *out = 0;
  for (size_t i = 0; i < len; i++) {
    if (perm_of(s[i]) == 0)
      return false;
    *out |= perm_of(s[i]);
  }
  return len > 0;
}

static bool contains_char(lk_bytes b, char c)
{
  return b.len > 0 && memchr(b.at, c, b.len) != NULL;
}

/* NULL: there is no colon. */
static const char *find_last_colon(const char *s, size_t len)
{
  while (len > 0 && s[len - 1] != ':')
    len--;
  return len == 0 ? NULL : s + len - 1;
}

/* Parse `scheme:id:perms`. An id may contain colons, so the scheme ends at the
 * first colon and the permissions begin behind the last one. false: the bytes
 * are not a whole entry. */
static bool read_entry(const char *s, size_t len, lk_acl *out)
{
  const char *first_colon = memchr(s, ':', len);
  const char *last_colon = find_last_colon(s, len);

  if (first_colon == last_colon || first_colon == s)
    return false; /* fewer than two colons, or no scheme */
  const char *id = first_colon + 1, *perms = last_colon + 1;

  if (!read_perms(perms, (size_t)(s + len - perms), &out->perms))
    return false;
  out->scheme = lk_bytes_of(s, (size_t)(first_colon - s));
  out->id = lk_bytes_of(id, (size_t)(last_colon - id));
  /* An id may contain commas, as that of an X.509 certificate does, or colons,
   * but not both: two entries in a row would look like one. */
  return !contains_char(out->scheme, ',') &&
         !(contains_char(out->id, ',') && contains_char(out->id, ':'));
}

/* Parse the next entry. An id may contain commas, so the entry ends at the
 * first comma before which it is whole, or at the end of the text. Returns the
 * text behind the entry and its comma; NULL: the text is not an entry. */
static const char *next_entry(const char *s, lk_acl *out)
{
  for (size_t len = 0;; len++) {
    if (s[len] != ',' && s[len] != '\0')
      continue;
    if (read_entry(s, len, out))
      return s[len] == ',' ? s + len + 1 : s + len;
    if (s[len] == '\0')
      return NULL;
  }
}

/* Count the valid entries. `*wrong` is set to the first invalid one, or to
 * NULL. A comma at the end is invalid: an entry must follow. */
static size_t count_entries(const char *text, const char **wrong)
{
  size_t count = 0;
  lk_acl entry;

  *wrong = NULL;
  for (const char *s = text;; count++) {
    const char *next = next_entry(s, &entry);

    if (next == NULL) {
      *wrong = s;
      return count;
    }
    bool comma_follows = next[-1] == ',';

    if (next[0] == '\0' && !comma_follows)
      return count + 1;
    s = next;
  }
}

int lk_acl_parse(lk_acls **out, const char *text, const lk_mem *mem,
                 const char **wrong)
{
  const char *bad;
  size_t count = count_entries(text, &bad);

  *out = NULL;
  if (wrong != NULL)
    *wrong = bad;
  if (bad != NULL)
    return LK_ERR_BAD_ARGUMENT;
  size_t len = strlen(text);

  if (mem == NULL)
    mem = &lk__mem_libc;
  /* The size cannot overflow, since there are fewer entries than bytes. */
  lk_acls *acls = lk__mem_new(mem, sizeof *acls + count * sizeof(lk_acl) + len);

  if (acls == NULL)
    return LK_ERR_NO_MEMORY;
  lk_acl *entries = (lk_acl *)(void *)(acls + 1);
  char *copy = (char *)(entries + count);

  memcpy(copy, text, len);
  for (size_t i = 0; i < count; i++) {
    const char *from = text;

    text = next_entry(text, &entries[i]);
    /* The entry refers to `from`: let it refer to the same place in the copy.
     */
    entries[i].scheme.at = copy;
    entries[i].id.at = copy + ((const char *)entries[i].id.at - from);
    copy += text - from;
  }
  acls->entries = entries;
  acls->count = count;
  *out = acls;
  return 0;
}

void lk_acl_free(lk_acls *acl, const lk_mem *mem)
{
  lk__mem_free(mem == NULL ? &lk__mem_libc : mem, acl);
}

/* ---- writing ------------------------------------------------------------ */

/* The caller's buffer. As in snprintf(), text that does not fit is counted. */
typedef struct output {
  char *at;
  size_t size;
  size_t len; /* of the whole text, also of the part that does not fit */
} output;

static void append_text(output *o, const void *bytes, size_t len)
{
  const char *from = bytes;

  for (size_t i = 0; i < len; i++, o->len++) {
    if (o->len + 1 < o->size)
      o->at[o->len] = from[i];
  }
}

/* Print permissions as letters, or as a number if no letters can express
 * them. */
static void append_perms(output *o, int32_t bits)
{
  char text[16];
  int len = snprintf(text, sizeof text, "%" PRId32, bits);

  if (bits <= 0 || bits > LK_PERM_ALL) {
    append_text(o, text, (size_t)len);
    return;
  }
  for (size_t i = 0; i < NPERMS; i++) {
    if (bits & all_perms[i].perm)
      append_text(o, &all_perms[i].letter, 1);
  }
}

size_t lk_acl_print(char *out, size_t size, const lk_acls *acl)
{
  output o = {out, size, 0};

  for (size_t i = 0; i < acl->count; i++) {
    const lk_acl *entry = &acl->entries[i];

    if (i > 0)
      append_text(&o, ",", 1);
    append_text(&o, entry->scheme.at, entry->scheme.len);
    append_text(&o, ":", 1);
    append_text(&o, entry->id.at, entry->id.len);
    append_text(&o, ":", 1);
    append_perms(&o, entry->perms);
  }
  if (size > 0)
    out[o.len < size ? o.len : size - 1] = '\0';
  return o.len;
}

/* ---- digests ------------------------------------------------------------ */

int lk_acl_digest(char *out, size_t size, const char *credentials)
{
  const char *colon = strchr(credentials, ':');

  if (colon == NULL || colon == credentials)
    return LK_ERR_BAD_ARGUMENT;
  size_t user_and_colon_len = (size_t)(colon - credentials) + 1;

  if (size < user_and_colon_len + LK_SHA1_TEXT_LEN + 1)
    return LK_ERR_TOO_BIG;
  memcpy(out, credentials, user_and_colon_len);
  lk__sha1_text(credentials, strlen(credentials), out + user_and_colon_len);
  return 0;
}
