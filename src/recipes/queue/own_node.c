/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/error_meaning.h"
#include "recipes/queue/own_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- name and data ------------------------------------------------------ */

static size_t own_node_path_base_len(lk_node_identity identity, const char *dir,
                                     const char *name)
{
  return strlen(dir) + 1 + lk__name_unique_part_len(identity) + strlen(name);
}

/* The length of `data`, a space and the UUID; 0 if the UUID is in the name. */
static size_t own_node_data_len(lk_node_identity identity, lk_bytes data)
{
  size_t space_len = data.len > 0 ? 1 : 0;

  return identity == LK_IDENTITY_DATA ? data.len + space_len + LK_UUID_LEN : 0;
}

size_t lk__own_node_size(lk_node_identity identity, const char *dir,
                         const char *name, lk_bytes data)
{
  size_t dir_size = strlen(dir) + 1;
  size_t path_size =
      own_node_path_base_len(identity, dir, name) + LK_NUMBER_MAX_LEN + 1;

  return dir_size + path_size + own_node_data_len(identity, data);
}

static void own_node_set_data(lk_own_node *own, lk_bytes data)
{
  size_t path_size = own->path_base_len + LK_NUMBER_MAX_LEN + 1;

  own->data = own->path + path_size;
  own->data_len = own_node_data_len(own->identity, data);
  if (data.len == 0)
    return;
  memcpy(own->data, data.at, data.len);
  own->data[data.len] = ' ';
}

void lk__own_node_init(lk_own_node *own, char *memory,
                       lk_node_identity identity, const char *dir,
                       const char *name, lk_bytes data)
{
  size_t dir_len = strlen(dir);

  own->identity = identity;
  own->path_base_len = own_node_path_base_len(identity, dir, name);
  own->dir = memory;
  own->path = own->dir + dir_len + 1;
  memcpy(own->dir, dir, dir_len + 1);
  memcpy(own->path, dir, dir_len);
  own->path[dir_len] = '/';
  /* The unique part, between the slash and `name`, is written later. */
  memcpy(own->path + own->path_base_len - strlen(name), name, strlen(name) + 1);
  if (identity == LK_IDENTITY_DATA)
    own_node_set_data(own, data);
}

void lk__own_node_set_unique_part(lk_own_node *own,
                                  const unsigned char random[16])
{
  /* Cut off the number of an earlier node. */
  own->path[own->path_base_len] = '\0';
  lk__name_write_unique_part(own->identity, own->unique_part, random);
  if (own->identity == LK_IDENTITY_DATA)
    memcpy(own->data + own->data_len - LK_UUID_LEN, own->unique_part,
           LK_UUID_LEN);
  else
    memcpy(lk__own_node_name(own), own->unique_part, strlen(own->unique_part));
}

lk_bytes lk__own_node_base(const lk_own_node *own)
{
  return lk_bytes_of(lk__own_node_name(own),
                     own->path_base_len - strlen(own->dir) - 1);
}

void lk__own_node_set_number(lk_own_node *own, int64_t number)
{
  snprintf(own->path + own->path_base_len, LK_NUMBER_MAX_LEN + 1, "%010" PRId64,
           number);
}

static bool name_equals_own_base(const lk_own_node *own, lk_bytes name)
{
  return lk__names_are_equal(name, lk__own_node_base(own));
}

lk_bytes lk__own_node_find(const lk_own_node *own, const lk_bytes *names,
                           size_t count)
{
  if (!lk__identity_is_unnumbered(own->identity))
    return lk__names_find_own(names, count, lk__own_node_base(own));
  for (size_t i = 0; i < count; i++) {
    if (name_equals_own_base(own, names[i]))
      return names[i];
  }
  return lk_bytes_of(NULL, 0);
}

/* ---- whether the own node exists ---------------------------------------- */

void lk__own_node_requested(lk_own_node *own, uint64_t seen_zxid)
{
  own->state = LK_OWN_REQUESTED;
  own->requested_after_zxid = seen_zxid;
}

bool lk__own_node_accept_name(lk_own_node *own, lk_bytes name)
{
  char *at = lk__own_node_name(own);
  int64_t number;
  bool name_fits =
      lk__identity_is_unnumbered(own->identity)
          ? name_equals_own_base(own, name)
          : lk__name_has_base(name, lk__own_node_base(own), &number);

  if (!name_fits)
    return false;
  memcpy(at, name.at, name.len);
  at[name.len] = '\0';
  own->state = LK_OWN_CREATED;
  return true;
}

void lk__own_node_set_found(lk_own_node *own, uint64_t token,
                            uint64_t connection)
{
  own->state = LK_OWN_CREATED;
  own->token = token;
  own->verified_on = connection;
}

int lk__own_node_created(lk_own_node *own, const char *path, uint64_t token,
                         uint64_t connection)
{
  size_t dir_len = strlen(own->dir);

  if (path == NULL || strncmp(path, own->dir, dir_len) != 0 ||
      path[dir_len] != '/' ||
      !lk__own_node_accept_name(own, lk_text(path + dir_len + 1))) {
    own->state = LK_OWN_IN_DOUBT;
    return LK_ERR_PROTOCOL;
  }
  lk__own_node_set_found(own, token, connection);
  return 0;
}

void lk__own_node_forget(lk_own_node *own)
{
  own->state = LK_OWN_NONE;
  own->token = 0;
  own->unreadable = false;
}

static lk_own_state own_state_after_failed_create(int err)
{
  lk_outcome outcome = lk__error_meaning(err).outcome;

  if (err == LK_ERR_SESSION_EXPIRED) /* the node was deleted with the session */
    return LK_OWN_NONE;
  return outcome == LK_OUTCOME_IN_DOUBT || outcome == LK_OUTCOME_ABANDONED
             ? LK_OWN_IN_DOUBT
             : LK_OWN_NONE;
}

void lk__own_node_create_failed(lk_own_node *own, int err)
{
  own->state = own_state_after_failed_create(err);
}

/* Unlike lk__own_node_forget(), this keeps the token and `unreadable`. The next
 * create sets the token anew. */
void lk__own_node_set_absent(lk_own_node *own)
{
  own->state = LK_OWN_NONE;
}

bool lk__own_node_needs_verification(const lk_own_node *own,
                                     uint64_t connection)
{
  return lk__identity_shares_names(own->identity) &&
         own->verified_on != connection;
}
