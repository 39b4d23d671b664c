/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "cli/access.h"

static int32_t perm_of(char c)
{
  switch (c) {
  case 'c': return LK_PERM_CREATE;
  case 'd': return LK_PERM_DELETE;
  case 'r': return LK_PERM_READ;
  case 'w': return LK_PERM_WRITE;
  case 'a': return LK_PERM_ADMIN;
  default: return 0;
  }
}

/* scheme:id:perms, where the id may have colons of its own. */
static bool read_entry(lk_acl *out, const char *s, size_t len)
{
  const char *first = memchr(s, ':', len);
  const char *last = s + len;

  while (last > s && last[-1] != ':')
    last--;
  if (first == NULL || first == s || last == s + len || last - 1 == first)
    return false;
  out->perms = 0;
  for (const char *p = last; p < s + len; p++) {
    if (perm_of(*p) == 0)
      return false;
    out->perms |= perm_of(*p);
  }
  out->scheme = lk_bytes_of(s, (size_t)(first - s));
  out->id = lk_bytes_of(first + 1, (size_t)(last - first) - 2);
  return true;
}

static size_t count_entries(const char *spec)
{
  size_t count = 1;

  for (const char *s = spec; *s != '\0'; s++)
    count += *s == ',' ? 1 : 0;
  return count;
}

bool cli_acl_read(cli_acl *out, const char *spec, cli_text *complaint)
{
  out->entries = NULL;
  out->list = strcmp(spec, "creator") == 0 ? lk_acl_creator : lk_acl_open;
  if (strcmp(spec, "creator") == 0 || strcmp(spec, "open") == 0)
    return true;
  size_t count = count_entries(spec);

  out->entries = calloc(count, sizeof *out->entries);
  if (out->entries == NULL) {
    cli_text_puts(complaint, lk_error_text(LK_ERR_NO_MEMORY));
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    size_t len = strcspn(spec, ",");

    if (!read_entry(&out->entries[i], spec, len)) {
      cli_text_puts(complaint, "--acl: \"");
      cli_text_clean(complaint, lk_bytes_of(spec, len));
      cli_text_puts(complaint, "\" is none of open, creator, scheme:id:perms "
                               "with perms from the letters cdrwa");
      cli_acl_free(out);
      return false;
    }
    spec += len + (spec[len] == ',' ? 1 : 0);
  }
  out->list.entries = out->entries;
  out->list.count = count;
  return true;
}

void cli_acl_free(cli_acl *acl)
{
  free(acl->entries);
  acl->entries = NULL;
}

static lk_bytes trim(const char *s, const char *end)
{
  while (s < end && (*s == ' ' || *s == '\t'))
    s++;
  if (end > s && end[-1] == '\r')
    end--;
  return lk_bytes_of(s, (size_t)(end - s));
}

bool cli_auth_next(lk_bytes *text, lk_bytes *scheme, lk_bytes *auth)
{
  while (text->len > 0) {
    const char *s = text->at;
    const char *end = memchr(s, '\n', text->len);
    size_t len = end == NULL ? text->len : (size_t)(end - s);
    lk_bytes line = trim(s, s + len);
    size_t used = len + (end == NULL ? 0 : 1);

    *text = lk_bytes_of(s + used, text->len - used);
    if (line.len == 0 || *(const char *)line.at == '#')
      continue;
    const char *from = line.at;
    const char *colon = memchr(from, ':', line.len);

    if (colon == NULL)
      colon = from;
    size_t name = (size_t)(colon - from);

    *scheme = lk_bytes_of(from, name);
    *auth = lk_bytes_of(colon + 1, line.len - name - 1);
    return true;
  }
  return false;
}
