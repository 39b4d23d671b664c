/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/acl.h"
#include "base/mem.h"
#include "recipes/lock/lock_options.h"
#include "recipes/names.h"
#include "recipes/queue/contender.h"
#include "recipes/queue/lease.h"

/* Only plain names can have a prefix. Announcements change the data of the own
 * node, so they need a layout in which no other client reads the data of
 * contender nodes, which is Curator's. */
static bool layout_is_valid(const lk_lock_config *config)
{
  const lk_layout_rules *rules = lk__layout_rules(config->layout);

  if (rules == NULL ||
      (config->announce && config->layout != LK_LAYOUT_CURATOR))
    return false;
  return rules->has_prefix ? lk__plain_prefix_is_valid(config->prefix)
                           : config->prefix == NULL;
}

int lk__lock_config_copy(const lk_client *c, lk_lock_config *out,
                         const lk_lock_config *config)
{
  static const lk_sized_struct sized = LK_SIZED_STRUCT(lk_lock_config);

  return lk__config_copy(c, &sized, out, config);
}

static bool path_is_root(const char *path)
{
  return strcmp(path, "/") == 0;
}

/* In the root, beside all other nodes, names must have a prefix that the caller
 * can choose. */
static bool layout_fits_root(const lk_lock_config *config)
{
  return lk__layout_rules(config->layout)->has_prefix &&
         (config->prefix == NULL || config->prefix[0] != '\0');
}

int lk__lock_options_check(const char *path, const lk_lock_config *config)
{
  if (lk__is_revocation(config->data) || lk__is_announcement(config->data) ||
      !layout_is_valid(config))
    return LK_ERR_BAD_ARGUMENT;
  if (lk_path_check(path) != 0 ||
      (path_is_root(path) && !layout_fits_root(config)))
    return LK_ERR_BAD_PATH;
  return 0;
}

const lk_role *lk__lock_options_role(const lk_lock_options *o,
                                     lk_multilock_side side)
{
  const lk_role *role = o->rules->roles[side];

  return role == NULL ? &o->plain.role : role;
}

enum { ANNOUNCEMENT_LEN = sizeof LK_ANNOUNCEMENT - 1 };

/* A copy of `data` with LK_ANNOUNCEMENT and a NUL behind it. */
static char *copy_data_with_announcement(const lk_mem *mem, lk_bytes data)
{
  char *to = lk__mem_new(mem, data.len + ANNOUNCEMENT_LEN + 1);

  if (to == NULL)
    return NULL;
  if (data.len > 0)
    memcpy(to, data.at, data.len);
  memcpy(to + data.len, LK_ANNOUNCEMENT, ANNOUNCEMENT_LEN + 1);
  return to;
}

/* An announcement says that no other contender precedes the holder. A reader
 * may have other readers before it, and a writer of a read-write lock can
 * become a reader, so neither announces. */
static bool role_can_announce(const lk_role *role)
{
  return role->exclusive && role->kind->family != LK_FAMILY_RW;
}

static bool is_copied(const void *copy, const void *original)
{
  return copy != NULL || original == NULL;
}

bool lk__lock_options_init(lk_lock_options *o, const lk_mem *mem,
                           const char *path, const lk_lock_config *config,
                           lk_multilock_side side)
{
  const lk_acls *parent =
      config->parent_acl == NULL ? config->acl : config->parent_acl;

  o->path = lk__mem_text(mem, path);
  o->data = copy_data_with_announcement(mem, config->data);
  if (config->prefix != NULL)
    o->prefix = lk__mem_text(mem, config->prefix);
  if (config->acl != NULL)
    o->acl = lk__acls_copy(mem, config->acl);
  if (parent != NULL)
    o->parent_acl = lk__acls_copy(mem, parent);
  o->rules = lk__layout_rules(config->layout);
  lk__plain_names_init(&o->plain, o->prefix);
  o->contender = (lk_contender_config){
      .machine = &lk__queue_machine,
      .role = lk__lock_options_role(o, side),
      .identity = o->rules->identity,
      .dir = path_is_root(path) ? "" : o->path,
      .data = lk_bytes_of(o->data, config->data.len),
      .acl = o->acl,
      .parent_acl = o->parent_acl,
      .persistent_parents = config->persistent_parents || !o->rules->containers,
      .unsure_when_suspended = config->unsure_when_suspended,
      .fail_on_expiry = config->fail_on_expiry,
      .revocable = config->revocable,
      .max_queue = config->max_queue,
      .peek = config->peek};
  if (config->announce && role_can_announce(o->contender.role))
    o->contender.announcement =
        lk_bytes_of(o->data, config->data.len + ANNOUNCEMENT_LEN);
  return o->path != NULL && o->data != NULL &&
         is_copied(o->prefix, config->prefix) &&
         is_copied(o->acl, config->acl) && is_copied(o->parent_acl, parent);
}

void lk__lock_options_free(lk_lock_options *o, const lk_mem *mem)
{
  lk__mem_free(mem, o->path);
  lk__mem_free(mem, o->data);
  lk__mem_free(mem, o->prefix);
  lk__mem_free(mem, o->acl);
  lk__mem_free(mem, o->parent_acl);
}
