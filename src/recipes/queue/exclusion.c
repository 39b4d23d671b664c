/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/queue/exclusion.h"

/* A writer is excluded by all earlier readers and writers. A mutex is a writer,
 * too. Permits and leader latches exclude only their own kind. */
bool lk__excludes_writer(const lk_node_kind *earlier)
{
  return earlier->side != LK_SIDE_FAMILY_ONLY;
}

static bool excludes_reader(const lk_node_kind *earlier)
{
  return earlier->side == LK_SIDE_WRITER;
}

static bool excludes_latch(const lk_node_kind *earlier)
{
  return earlier->family == LK_FAMILY_LATCH;
}

#define WRITER(node_kind, name_format)                                 \
  {                                                                    \
    .kind = &(node_kind), .format = &(name_format), .exclusive = true, \
    .excludes = lk__excludes_writer                                    \
  }
#define READER(node_kind, name_format)              \
  {                                                 \
    .kind = &(node_kind), .format = &(name_format), \
    .excludes = excludes_reader                     \
  }

const lk_role lk__role_mutex =
    WRITER(lk__node_kind_mutex, lk__name_format_known);
const lk_role lk__role_write =
    WRITER(lk__node_kind_write, lk__name_format_known);
const lk_role lk__role_read = READER(lk__node_kind_read, lk__name_format_known);
const lk_role lk__role_kazoo_write =
    WRITER(lk__node_kind_kazoo_write, lk__name_format_known);
const lk_role lk__role_kazoo_read =
    READER(lk__node_kind_kazoo_read, lk__name_format_known);
const lk_role lk__role_plain_write =
    WRITER(lk__node_kind_plain_write, lk__name_format_plain);
const lk_role lk__role_plain_read =
    READER(lk__node_kind_plain_read, lk__name_format_plain);
const lk_role lk__role_latch = {.kind = &lk__node_kind_latch,
                                .format = &lk__name_format_known,
                                .exclusive = true,
                                .excludes = excludes_latch};
const lk_role lk__role_permit = {.kind = &lk__node_kind_permit,
                                 .format = &lk__name_format_known,
                                 .is_permit = true};
const lk_role lk__role_kazoo_permit = {.kind = &lk__node_kind_kazoo_permit,
                                       .format = &lk__name_format_known,
                                       .is_permit = true};
