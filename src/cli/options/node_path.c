/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/client.h>

#include "cli/options/node_path.h"
#include "cli/options/tls_options.h"

/* Whether `path` has a component that is `name`. */
static bool has_component(const char *path, const char *name)
{
  size_t len = strlen(name);

  for (const char *s = strchr(path, '/'); s != NULL; s = strchr(s + 1, '/'))
    if (strncmp(s + 1, name, len) == 0 &&
        (s[len + 1] == '/' || s[len + 1] == '\0'))
      return true;
  return false;
}

/* Returns the rule that the invalid `path` breaks, as the end of a message. */
static const char *find_broken_rule(const char *path)
{
  size_t len = strlen(path);

  if (path[0] != '/')
    return "must begin with \"/\"";
  if (strstr(path, "//") != NULL)
    return "must not contain \"//\"";
  if (len > 1 && path[len - 1] == '/')
    return "must not end with \"/\"";
  if (has_component(path, ".") || has_component(path, ".."))
    return "must not have \".\" or \"..\" between slashes";
  return "holds bytes that ZooKeeper refuses: a path is UTF-8 without control "
         "characters, and without characters from U+D800 to U+F8FF or above "
         "U+FFEF";
}

/* Whether `path` is valid with the number of a sequential node behind it, which
   the server appends directly. */
static bool is_start_of_sequential(const char *path)
{
  cli_text whole = {0};

  cli_text_printf(&whole, "%s0000000000", path);
  const char *text = cli_text_end(&whole);
  bool valid = text != NULL && lk_path_check(text) == 0;

  cli_text_free(&whole);
  return valid;
}

bool cli_path_check(const char *path, bool sequential, cli_text *complaint)
{
  if (lk_path_check(path) == 0 || (sequential && is_start_of_sequential(path)))
    return true;
  cli_text_puts(complaint, "path \"");
  cli_text_add_printable(complaint, lk_text(path));
  cli_text_printf(complaint, "\" %s", find_broken_rule(path));
  return false;
}

bool cli_path_is_reserved(const char *hosts, const char *path)
{
  static const char reserved[] = "/zookeeper";
  size_t len = strlen(reserved);
  const char *chroot = strchr(cli_tls_behind_scheme(hosts), '/');
  bool has_chroot = chroot != NULL && chroot[1] != '\0';
  /* A path on the servers begins with the chroot, if there is one. */
  const char *start = has_chroot ? chroot : path;

  return strncmp(start, reserved, len) == 0 &&
         (start[len] == '/' || start[len] == '\0');
}
