/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/lock_kind.h"
#include "support/suite.h"

/* The options of --layout single. */
static cli_options single_node(void)
{
  cli_options o;

  cli_options_init(&o);
  o.single_node = true;
  return o;
}

START_TEST(single_node_has_no_sides_no_permits_and_no_other_locks)
{
  static const char complaint[] =
      "--layout single excludes -s, -x, -p, --take and -l";
  cli_options plain = single_node();
  cli_options reader = single_node(), writer = single_node();
  cli_options permits = single_node(), take = single_node();
  cli_options several = single_node();

  reader.side = CLI_SIDE_READ;
  writer.side = CLI_SIDE_WRITE;
  permits.permits = 2;
  take.permits_to_take = 1;
  several.extra_locks[several.extra_count++] = "/other";
  ck_assert_ptr_null(cli_lock_kind_check(&plain));
  ck_assert_str_eq(cli_lock_kind_check(&reader), complaint);
  ck_assert_str_eq(cli_lock_kind_check(&writer), complaint);
  ck_assert_str_eq(cli_lock_kind_check(&permits), complaint);
  ck_assert_str_eq(cli_lock_kind_check(&take), complaint);
  ck_assert_str_eq(cli_lock_kind_check(&several), complaint);
}
END_TEST

SUITE("lock_kind", single_node_has_no_sides_no_permits_and_no_other_locks)
