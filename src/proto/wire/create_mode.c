/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/create_mode.h"

#include "proto/wire/opcode.h"

bool lk__create_flags_valid(int flags)
{
  bool no_other_flag = (flags & ~(LK_EPHEMERAL | LK_SEQUENTIAL)) == 0;

  return no_other_flag || flags == LK_CONTAINER;
}

bool lk__create_ttl_valid(int flags, int64_t ttl_ms)
{
  return (flags == LK_PERSISTENT || flags == LK_SEQUENTIAL) && ttl_ms > 0 &&
         ttl_ms <= LK_TTL_MAX_MS;
}

int32_t lk__create_opcode(int32_t op, int flags)
{
  return flags == LK_CONTAINER ? LK_OPCODE_CREATE_CONTAINER : op;
}
