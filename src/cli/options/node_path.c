/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/client.h>

#include "cli/options/node_path.h"
#include "cli/options/tls_options.h"

/* Whether `path` has the component `name`. */
static bool path_has(const char *path, const char *name)
{
  size_t len = strlen(name);

  for (const char *s = strchr(path, '/'); s != NULL; s = strchr(s + 1, '/'))
    if (strncmp(s + 1, name, len) == 0 &&
        (s[len + 1] == '/' || s[len + 1] == '\0'))
      return true;
  return false;
}

static const char *broken_rule(const char *path)
{
  size_t len = strlen(path);

  if (path[0] != '/')
    return "must begin with \"/\"";
  if (strstr(path, "//") != NULL)
    return "must not contain \"//\"";
  if (len > 1 && path[len - 1] == '/')
    return "must not end with \"/\"";
  if (path_has(path, ".") || path_has(path, ".."))
    return "must not have \".\" or \"..\" between slashes";
  return "holds bytes that ZooKeeper refuses: a path is UTF-8 without control "
         "characters";
}

/* Checks the path without its trailing "/". */
static bool is_start_of_sequential(const char *path)
{
  size_t len = strlen(path);
  cli_text start = {0};

  if (len < 3 || path[len - 1] != '/')
    return false;
  cli_text_add(&start, path, len - 1);
  const char *text = cli_text_end(&start);
  bool valid = text != NULL && lk_path_check(text) == 0;

  cli_text_free(&start);
  return valid;
}

bool cli_path_check(const char *path, bool sequential, cli_text *complaint)
{
  if (lk_path_check(path) == 0 || (sequential && is_start_of_sequential(path)))
    return true;
  cli_text_puts(complaint, "path \"");
  cli_text_add_printable(complaint, lk_text(path));
  cli_text_printf(complaint, "\" %s", broken_rule(path));
  return false;
}

/* Returns the rest of `path` after `start`; NULL: `path` begins otherwise. */
static const char *path_behind(const char *path, const char *start)
{
  size_t len = strlen(start);

  return strncmp(path, start, len) == 0 ? path + len : NULL;
}

bool cli_path_is_reserved(const char *hosts, const char *path)
{
  const char *chroot = strchr(cli_tls_behind_scheme(hosts), '/');
  bool none = chroot == NULL || chroot[1] == '\0';
  const char *rest = path_behind(none ? path : chroot, "/zookeeper");

  return rest != NULL && (*rest == '/' || *rest == '\0');
}
