/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/layouts.h"

#include <latchkey/semaphore.h>

static const lk_layout_rules layouts[] = {
    [LK_LAYOUT_CURATOR] = {.identity = LK_IDENTITY_CURATOR,
                           .roles = {[LK_MULTILOCK_MUTEX] = &lk__role_mutex,
                                     [LK_MULTILOCK_READ] = &lk__role_read,
                                     [LK_MULTILOCK_WRITE] = &lk__role_write},
                           .permit = &lk__role_permit,
                           .permit_identity = LK_IDENTITY_CURATOR,
                           .containers = true,
                           .downgrades = true},
    [LK_LAYOUT_KAZOO] = {.identity = LK_IDENTITY_HEX,
                         .roles = {[LK_MULTILOCK_MUTEX] = &lk__role_kazoo_write,
                                   [LK_MULTILOCK_READ] = &lk__role_kazoo_read,
                                   [LK_MULTILOCK_WRITE] =
                                       &lk__role_kazoo_write},
                         .permit = &lk__role_kazoo_permit,
                         .permit_identity = LK_IDENTITY_HEX_ONLY},
    [LK_LAYOUT_NATIVE] = {.identity = LK_IDENTITY_DATA,
                          .has_prefix = true,
                          .roles = {[LK_MULTILOCK_READ] = &lk__role_plain_read,
                                    [LK_MULTILOCK_WRITE] =
                                        &lk__role_plain_write}},
    [LK_LAYOUT_NATIVE_UUID] = {.identity = LK_IDENTITY_UUID,
                               .has_prefix = true,
                               .roles = {[LK_MULTILOCK_READ] =
                                             &lk__role_plain_read,
                                         [LK_MULTILOCK_WRITE] =
                                             &lk__role_plain_write}},
    [LK_LAYOUT_LATCH] = {.identity = LK_IDENTITY_CURATOR,
                         .roles = {[LK_MULTILOCK_MUTEX] = &lk__role_latch},
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
                      .excludes = lk__excludes_writer};
}
