/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/server_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The branch of 3.8.0 is 8. All versions begin with 3. */
typedef struct version {
  unsigned branch;
  unsigned release; /* in the branch */
  bool of_debian;
} version;

static bool read_version(const char *text, version *v)
{
  *v = (version){.of_debian = false};
  return sscanf(text, "3.%u.%u", &v->branch, &v->release) == 2;
}

static version tested_version(void)
{
  const char *name = getenv("LATCHKEY_ZOOKEEPER");
  version v = {.branch = 8, .release = 0, .of_debian = true};

  if (name == NULL || *name == '\0')
    return v;
  if (!read_version(name, &v)) {
    fprintf(stderr, "LATCHKEY_ZOOKEEPER=%s: not a version\n", name);
    exit(99);
  }
  return v;
}

/* `words` are the first versions with a change, as in "3.7.2 3.8.2 debian". */
static bool has_change(const version *v, const char *words)
{
  bool in_debian = strstr(words, "debian") != NULL;
  unsigned last_branch = 0;
  version first;

  if (v->of_debian && in_debian)
    return true;
  for (; read_version(words, &first); words += strspn(words, " ")) {
    if (first.branch == v->branch)
      return v->release >= first.release;
    last_branch = first.branch;
    words += strcspn(words, " ");
  }
  return v->branch > last_branch;
}

bool server_has(server_difference d)
{
  static const char *const first_versions[] = {
#define DIFFERENCE(name, first, issue, servers, latchkey, test) first,
#include "support/server_differences.def"
#undef DIFFERENCE
  };
  const version v = tested_version();

  return has_change(&v, first_versions[d]);
}
