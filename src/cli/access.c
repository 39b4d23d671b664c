/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/acl.h>

#include "cli/access.h"

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
    return true;
  }
  if (err != LK_ERR_BAD_ARGUMENT) {
    cli_text_puts(complaint, lk_error_text(err));
    return false;
  }
  cli_text_printf(complaint, "%s: \"", what);
  cli_text_clean(complaint, lk_bytes_of(wrong, strcspn(wrong, ",")));
  cli_text_puts(complaint, "\" is none of open, creator, scheme:id:perms "
                           "with perms from the letters cdrwa");
  return false;
}

void cli_acl_free(cli_acl *acl)
{
  lk_acl_free(acl->made, NULL);
  acl->made = NULL;
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
