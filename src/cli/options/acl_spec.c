/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/acl.h>

#include "cli/options/acl_spec.h"

/* The access lists use malloc() and free(). */
static const lk_mem *const default_mem = NULL;

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
  size_t groups = size / 3 + 1;
  bool ends_with_one_byte = size % 3 == 1;
  size_t padding = ends_with_one_byte ? 2 : 1; /* number of "=" */
  size_t digits = groups * 4 - padding;
  /* The last digit has 4 or 2 bits that encode nothing. They must be 0. */
  int unused_bits = ends_with_one_byte ? 0xf : 0x3;

  if (b.len != groups * 4)
    return false;
  for (size_t i = 0; i < digits; i++)
    if (base64_digit(s[i]) < 0)
      return false;
  for (size_t i = digits; i < b.len; i++)
    if (s[i] != '=')
      return false;
  return (base64_digit(s[digits - 1]) & unused_bits) == 0;
}

/* Whether `id` is "user:BASE64(HASH(user:password))". The hash is SHA-1;
   servers can be configured for hashes of 32 or 64 bytes
   (DigestAuthenticationProvider.digestAlg). */
static bool is_digest_id(lk_bytes id)
{
  const char *colon = memchr(id.at, ':', id.len);

  if (colon == NULL || colon == id.at)
    return false;
  size_t user_len = (size_t)(colon - (const char *)id.at);
  lk_bytes hash = lk_bytes_of(colon + 1, id.len - user_len - 1);

  return is_base64_of(hash, 20) || is_base64_of(hash, 32) ||
         is_base64_of(hash, 64);
}

static bool has_digest_scheme(const lk_acl *entry)
{
  return entry->scheme.len == strlen("digest") &&
         memcmp(entry->scheme.at, "digest", entry->scheme.len) == 0;
}

/* The part of `id` after the colon may be a password, so it is not shown. */
static void refuse_digest_id(cli_text *out, const char *name, lk_bytes id)
{
  const char *colon = memchr(id.at, ':', id.len);
  size_t user_len = colon == NULL ? 0 : (size_t)(colon - (const char *)id.at);

  cli_text_printf(out, "%s: \"digest:", name);
  cli_text_add_printable(out, lk_bytes_of(id.at, user_len));
  cli_text_puts(out, ":...\" is not base64 of the SHA-1 of user:password, so "
                     "no client could use the node; put digest:USER:PASSWORD "
                     "into a file for --auth-file, and use creator");
}

/* Refuses an id of the scheme digest that contains no hash: no client could use
   the node. */
static bool check_digests(const lk_acls *acl, const char *name,
                          cli_text *complaint)
{
  for (size_t i = 0; i < acl->count; i++) {
    const lk_acl *entry = &acl->entries[i];

    if (!has_digest_scheme(entry) || is_digest_id(entry->id))
      continue;
    refuse_digest_id(complaint, name, entry->id);
    return false;
  }
  return true;
}

/* ---- access lists -------------------------------------------------------- */

bool cli_acl_read(cli_acl *out, const char *name, const char *spec,
                  cli_text *complaint)
{
  const char *wrong;
  bool creator = strcmp(spec, "creator") == 0;

  out->parsed = NULL;
  out->list = *(creator ? lk_acl_creator() : lk_acl_open());
  if (creator || strcmp(spec, "open") == 0)
    return true;
  int err = lk_acl_parse(&out->parsed, spec, default_mem, &wrong);

  if (err == 0) {
    out->list = *out->parsed;
    if (check_digests(&out->list, name, complaint))
      return true;
    cli_acl_free(out);
    return false;
  }
  if (err != LK_ERR_BAD_ARGUMENT) {
    cli_text_printf(complaint, "%s: %s", name, lk_error_text(err));
    return false;
  }
  cli_text_printf(complaint, "%s: \"", name);
  cli_text_add_printable(complaint, lk_bytes_of(wrong, strcspn(wrong, ",")));
  cli_text_puts(complaint, "\" is none of open, creator, scheme:id:perms "
                           "with perms from the letters cdrwa");
  return false;
}

void cli_acl_free(cli_acl *acl)
{
  lk_acl_free(acl->parsed, default_mem);
  acl->parsed = NULL;
}

/* ---- lines of an auth file ----------------------------------------------- */

/* Removes blanks at the start, and the CR of a file with CRLF at the end. */
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
    size_t len_with_newline = len + (end == NULL ? 0 : 1);

    *text = lk_bytes_of(s + len_with_newline, text->len - len_with_newline);
    if (line.len == 0 || *(const char *)line.at == '#')
      continue;
    const char *start = line.at;
    const char *colon = memchr(start, ':', line.len);

    if (colon == NULL)
      colon = start; /* an empty scheme: the caller complains */
    size_t scheme_len = (size_t)(colon - start);

    *scheme = lk_bytes_of(start, scheme_len);
    *auth = lk_bytes_of(colon + 1, line.len - scheme_len - 1);
    return true;
  }
  return false;
}
