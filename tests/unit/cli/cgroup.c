/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/cgroup.h"
#include "support/suite.h"

static const char mounts[] =
    "22 1 0:21 / /proc rw,nosuid - proc proc rw\n"
    "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

static void expect_cgroup(const char *mountinfo, const char *groups,
                          const char *wanted)
{
  char path[256] = "";
  bool found = cli_cgroup_locate(mountinfo, groups, path, sizeof path);

  ck_assert_int_eq(found, wanted != NULL);
  if (wanted != NULL)
    ck_assert_str_eq(path, wanted);
}

START_TEST(our_cgroup_is_found_where_version_2_is_mounted)
{
  expect_cgroup(mounts, "0::/\n", "/sys/fs/cgroup");
  expect_cgroup(mounts, "9:name=systemd:/x\n0::/a/b\n", "/sys/fs/cgroup/a/b");
  /* Our cgroup is outside of what is mounted. */
  expect_cgroup(mounts, "0::/a/../../b\n", NULL);
  /* Only version 1 is there. */
  expect_cgroup(mounts, "4:memory:/a\n", NULL);
  expect_cgroup("30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
                "0::/\n", NULL);
  /* Only /a and the cgroups below it are mounted. */
  expect_cgroup("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "0::/a/b\n",
                "/mnt/b");
  expect_cgroup("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "0::/a\n", "/mnt");
  expect_cgroup("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "0::/ab\n", NULL);
  /* The first line ends before the mount point. */
  expect_cgroup("30 - cgroup2 \n/mnt\n", "0::/a\n", NULL);
}
END_TEST

SUITE("cgroup", our_cgroup_is_found_where_version_2_is_mounted)
