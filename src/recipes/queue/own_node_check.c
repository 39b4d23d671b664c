/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "recipes/lease/session_lease.h"
#include "recipes/queue/own_node_check.h"
#include "recipes/queue/request_count.h"

lk_check_result lk__check_result_of(int err)
{
  switch (err) {
  case 0:
  case LK_ERR_BAD_VERSION:
  case LK_ERR_NO_AUTH: return LK_CHECK_EXISTS;
  case LK_ERR_NO_NODE: return LK_CHECK_MISSING;
  default: return LK_CHECK_UNKNOWN;
  }
}

lk_check_result lk__contender_check_result(const lk_contender *ct, int err)
{
  lk_check_result result = lk__check_result_of(err);

  return result == LK_CHECK_EXISTS && !ct->machine->check_proves_own(ct)
             ? LK_CHECK_UNKNOWN
             : result;
}

int lk__contender_check_own(lk_contender *ct, lk_multi_cb done)
{
  enum { ANY_VERSION = -1 };
  lk_op check = lk_op_check(ct->own.path, ANY_VERSION);

  return lk__contender_count_request(
      ct,
      lk_multi(lk__contender_client(ct), &check, 1, LK_NO_OPTIONS, done, ct));
}
