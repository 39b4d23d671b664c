/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/run/cgroup.h"
#include "support/suite.h"

#define V2 "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw"

static void expect_path(const char *line, const char *own, const char *wanted)
{
  char path[256] = "";
  bool found = cli_cgroup_below_mount(line, own, path, sizeof path);

  ck_assert_int_eq(found, wanted != NULL);
  if (wanted != NULL)
    ck_assert_str_eq(path, wanted);
}

START_TEST(our_cgroup_is_found_below_a_mount_of_version_2)
{
  expect_path(V2 "\n", "/", "/sys/fs/cgroup");
  expect_path(V2, "/a/b", "/sys/fs/cgroup/a/b");
  expect_path("22 1 0:21 / /proc rw,nosuid - proc proc rw\n", "/", NULL);
  expect_path("30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
              "/", NULL);
  /* Our cgroup is outside of what is mounted. */
  expect_path(V2, "/a/../../b", NULL);
  expect_path(V2, "/../b", NULL);
  /* Only /a and the cgroups below it are mounted. */
  expect_path("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "/a/b", "/mnt/b");
  expect_path("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "/a", "/mnt");
  expect_path("30 25 0:26 /a /mnt rw - cgroup2 none rw\n", "/ab", NULL);
  /* The line ends before the mount point. */
  expect_path("30 - cgroup2 \n/mnt\n", "/a", NULL);
}
END_TEST

START_TEST(octal_numbers_in_a_mount_stand_for_characters)
{
  expect_path("30 25 0:26 / /a\\040b\\134 rw - cgroup2 none rw\n", "/",
              "/a b\\");
  expect_path("30 25 0:26 /x\\011 /mnt rw - cgroup2 none rw\n", "/x\t/y",
              "/mnt/y");
  expect_path("30 25 0:26 / /a\\04 rw - cgroup2 none rw\n", "/", "/a\\04");
}
END_TEST

SUITE("cgroup", our_cgroup_is_found_below_a_mount_of_version_2,
      octal_numbers_in_a_mount_stand_for_characters)
