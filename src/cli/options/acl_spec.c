/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/acl.h>

#include "cli/options/acl_spec.h"

/* ---- ids of digests ------------------------------------------------------ */

static int base64_digit(char c)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "abcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c == '\0' ? NULL : strchr(digits, c);

  return at == NULL ? -1 : (int)(at - digits);
}

/* Whether `b` is base64 of `size` bytes, where `size` is not a multiple of 3:
   the last group of four characters encodes one or two bytes. */
static bool is_base64_of(lk_bytes b, size_t size)
{
  const char *s = b.at;
  size_t used = (size * 8 + 5) / 6;         /* characters before the "=" */
  int unused_bits = size % 3 == 1 ? 15 : 3; /* of the last one: must be 0 */

  if (b.len != (size + 2) / 3 * 4)
    return false;
  for (size_t i = 0; i < used; i++)
    if (base64_digit(s[i]) < 0)
      return false;
  for (size_t i = used; i < b.len; i++)
    if (s[i] != '=')
      return false;
  return (base64_digit(s[used - 1]) & unused_bits) == 0;
}

/* Whether `id` is "user:BASE64(HASH(user:password))". The hash is SHA-1;
   servers can be configured for hashes of 32 or 64 bytes
   (DigestAuthenticationProvider.digestAlg). */
static bool is_digest_id(lk_bytes id)
{
  const char *colon = memchr(id.at, ':', id.len);

  if (colon == NULL || colon == id.at)
    return false;
  size_t user = (size_t)(colon - (const char *)id.at);
  lk_bytes hash = lk_bytes_of(colon + 1, id.len - user - 1);

  return is_base64_of(hash, 20) || is_base64_of(hash, 32) ||
         is_base64_of(hash, 64);
}

static bool is_digest(const lk_acl *entry)
{
  return entry->scheme.len == strlen("digest") &&
         memcmp(entry->scheme.at, "digest", entry->scheme.len) == 0;
}

/* The part of `id` after the colon may be a password, so it is not shown. */
static void refuse_digest(cli_text *out, const char *what, lk_bytes id)
{
  const char *colon = memchr(id.at, ':', id.len);
  size_t user = colon == NULL ? 0 : (size_t)(colon - (const char *)id.at);

  cli_text_printf(out, "%s: \"digest:", what);
  cli_text_add_printable(out, lk_bytes_of(id.at, user));
  cli_text_puts(out, ":...\" is not base64 of the SHA-1 of user:password, so "
                     "no client could use the node; put digest:USER:PASSWORD "
                     "into a file for --auth-file, and use creator");
}

/* Refuses an id that holds a password instead of its hash: no client could use
   the node. */
static bool check_digests(const lk_acls *acl, const char *what,
                          cli_text *complaint)
{
  for (size_t i = 0; i < acl->count; i++) {
    const lk_acl *entry = &acl->entries[i];

    if (!is_digest(entry) || is_digest_id(entry->id))
      continue;
    refuse_digest(complaint, what, entry->id);
    return false;
  }
  return true;
}

/* ---- access lists -------------------------------------------------------- */

bool cli_acl_read(cli_acl *out, const char *what, const char *spec,
                  cli_text *complaint)
{
  const char *wrong;

  out->made = NULL;
  out->list = strcmp(spec, "creator") == 0 ? lk_acl_creator : lk_acl_open;
  if (strcmp(spec, "creator") == 0 || strcmp(spec, "open") == 0)
    return true;
  int err = lk_acl_parse(&out->made, spec, NULL, &wrong);

  if (err == 0) {
    out->list = *out->made;
    if (check_digests(&out->list, what, complaint))
      return true;
    cli_acl_free(out);
    return false;
  }
  if (err != LK_ERR_BAD_ARGUMENT) {
    cli_text_printf(complaint, "%s: %s", what, lk_error_text(err));
    return false;
  }
  cli_text_printf(complaint, "%s: \"", what);
  cli_text_add_printable(complaint, lk_bytes_of(wrong, strcspn(wrong, ",")));
  cli_text_puts(complaint, "\" is none of open, creator, scheme:id:perms "
                           "with perms from the letters cdrwa");
  return false;
}

void cli_acl_free(cli_acl *acl)
{
  lk_acl_free(acl->made, NULL);
  acl->made = NULL;
}

static lk_bytes trim_line(const char *s, const char *end)
{
  while (s < end && (*s == ' ' || *s == '\t'))
    s++;
  if (end > s && end[-1] == '\r')
    end--;
  return lk_bytes_of(s, (size_t)(end - s));
}

bool cli_auth_file_next_line(lk_bytes *text, lk_bytes *scheme, lk_bytes *auth)
{
  while (text->len > 0) {
    const char *s = text->at;
    const char *end = memchr(s, '\n', text->len);
    size_t len = end == NULL ? text->len : (size_t)(end - s);
    lk_bytes line = trim_line(s, s + len);
    size_t used = len + (end == NULL ? 0 : 1);

    *text = lk_bytes_of(s + used, text->len - used);
    if (line.len == 0 || *(const char *)line.at == '#')
      continue;
    const char *from = line.at;
    const char *colon = memchr(from, ':', line.len);

    if (colon == NULL)
      colon = from; /* an empty scheme: the caller complains */
    size_t name = (size_t)(colon - from);

    *scheme = lk_bytes_of(from, name);
    *auth = lk_bytes_of(colon + 1, line.len - name - 1);
    return true;
  }
  return false;
}
