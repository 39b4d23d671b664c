/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "support/server_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/opcode.h"

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

void server_changes_of(const char *name, bool has[SERVER_DIFFERENCES])
{
  static const char *const first_versions[] = {
#define DIFFERENCE(name, first, issue, servers, latchkey, test) first,
#include "support/server_differences.def"
#undef DIFFERENCE
  };
  version v = {.branch = 8, .release = 0, .of_debian = true};

  bool is_debian = name == NULL || *name == '\0' || strcmp(name, "debian") == 0;

  if (!is_debian && !read_version(name, &v)) {
    fprintf(stderr, "%s: not a version of ZooKeeper\n", name);
    exit(99);
  }
  for (int d = 0; d < SERVER_DIFFERENCES; d++)
    has[d] = has_change(&v, first_versions[d]);
}

bool server_changes_have_opcode(const bool has[SERVER_DIFFERENCES], int32_t op)
{
  switch (op) {
  case LK_OPCODE_MULTI_READ: return has[SERVER_MULTI_READ];
  case LK_OPCODE_GET_EPHEMERALS: return has[SERVER_EPHEMERALS_OF_SESSION];
  case LK_OPCODE_GET_ALL_CHILDREN_NUMBER:
    return has[SERVER_COUNT_OF_DESCENDANTS];
  case LK_OPCODE_SET_WATCHES2:
  case LK_OPCODE_ADD_WATCH: return has[SERVER_PERSISTENT_WATCHES];
  case LK_OPCODE_WHO_AM_I: return has[SERVER_WHO_AM_I];
  default: return true;
  }
}

const char *server_tested_version(void)
{
  const char *name = getenv("LATCHKEY_ZOOKEEPER");

  return name == NULL || *name == '\0' ? NULL : name;
}

/* The changes of the version with which this test runs. */
static const bool *tested_changes(void)
{
  static bool has[SERVER_DIFFERENCES];
  static bool is_known;

  if (!is_known)
    server_changes_of(server_tested_version(), has);
  is_known = true;
  return has;
}

bool server_has(server_difference d)
{
  return tested_changes()[d];
}

bool server_has_opcode(int32_t op)
{
  return server_changes_have_opcode(tested_changes(), op);
}
