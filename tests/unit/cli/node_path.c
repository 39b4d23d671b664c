/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/node_path.h"
#include "support/suite.h"

START_TEST(nodes_of_zookeeper_are_known_with_a_chroot_and_without)
{
  static const struct {
    const char *hosts, *path;
    bool reserved;
  } rows[] = {{"h:1", "/zookeeper", true},
              {"h:1,i:2/", "/zookeeper/quota", true},
              {"h:1", "/zookeepers", false},
              {"h:1", "/a/zookeeper", false},
              {"h:1/app", "/zookeeper", false},
              {"h:1/zookeeper", "/a", true},
              {"h:1/zookeeper/x", "/a", true},
              {"h:1/zookeepers", "/a", false},
              {"tls://h:1", "/zookeeper", true},
              {"tls://h:1", "/a", false},
              {"tls://h:1/zookeeper/x", "/a", true},
              {" tls://h:1/app", "/zookeeper", false}};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    ck_assert_msg(cli_path_is_reserved(rows[i].hosts, rows[i].path) ==
                      rows[i].reserved,
                  "%zu", i);
}
END_TEST

START_TEST(paths_are_checked_and_the_broken_rule_is_named)
{
  static const char bytes[] = "holds bytes that ZooKeeper refuses: a path is "
                              "UTF-8 without control characters, and without "
                              "characters from U+D800 to U+F8FF or above "
                              "U+FFEF";
  static const char dots[] = "must not have \".\" or \"..\" between slashes";
  static const char end[] = "must not end with \"/\"";
  static const struct {
    const char *path;
    bool sequential;
    const char *broken;
  } rows[] = {{"/", false, NULL},
              {"/a/.b/..c/d.", false, NULL},
              {"/a/", true, NULL},
              {"/", true, NULL},
              {"/a/.", true, NULL},
              {"/a/.", false, dots},
              {"a", false, "must begin with \"/\""},
              {"", true, "must begin with \"/\""},
              {"/a//b", false, "must not contain \"//\""},
              {"//", true, "must not contain \"//\""},
              {"/a/", false, end},
              {"/a/./b", false, dots},
              {"/a/..", false, dots},
              {"/../", true, end},
              {"/a\x01", false, bytes},
              {"/a\xff/", true, end}};

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    cli_text wrong = {0};

    ck_assert_msg(cli_path_check(rows[i].path, rows[i].sequential, &wrong) ==
                      (rows[i].broken == NULL),
                  "%zu", i);
    if (rows[i].broken != NULL)
      ck_assert_msg(strstr(cli_text_end(&wrong), rows[i].broken) != NULL,
                    "%zu: %s", i, wrong.at);
    cli_text_free(&wrong);
  }
}
END_TEST

SUITE("node_path", nodes_of_zookeeper_are_known_with_a_chroot_and_without,
      paths_are_checked_and_the_broken_rule_is_named)
