/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The text of an ensemble's configuration. */

#include <latchkey/client.h>

#include "support/suite.h"

static lk_server_entry m;

enum { NO_MEMBER = 0, MEMBER = 1 }; /* results of lk_config_next() */

/* Read the first member from a copy of `text` in a block of exactly its size.
   Returns the result of lk_config_next(). */
static int read_first(const char *text)
{
  size_t len = strlen(text);
  char *block = malloc(len == 0 ? 1 : len);

  memcpy(block, text, len);
  lk_bytes left = lk_bytes_of(block, len);
  int result = lk_config_next(&left, &m);

  free(block);
  return result;
}

static bool is(lk_bytes bytes, const char *text)
{
  return bytes.len == strlen(text) && memcmp(bytes.at, text, bytes.len) == 0;
}

START_TEST(servers_come_one_after_the_other)
{
  lk_bytes text =
      lk_text("server.1=10.0.0.1:2888:3888:participant;0.0.0.0:2181\n"
              "group.1=1:2\n"
              "server.2=b:2888:3888:observer;[::1]:2182\r\n"
              "server.3=c:1:2|d:3:4;2183\n"
              "server.4=e:1:2\n"
              "version=1000000ff");
  int64_t version = 0;

  ck_assert_int_eq(lk_config_version(text, &version), 0);
  ck_assert_int_eq(version, 0x1000000ff);
  ck_assert_int_eq(lk_config_next(&text, &m), MEMBER);
  ck_assert_int_eq(m.id, 1);
  ck_assert(is(m.peers, "10.0.0.1:2888:3888") && !m.observer);
  ck_assert(is(m.client_host, "0.0.0.0"));
  ck_assert_uint_eq(m.client_port, 2181);
  ck_assert_int_eq(lk_config_next(&text, &m), MEMBER);
  ck_assert_int_eq(m.id, 2);
  ck_assert(is(m.peers, "b:2888:3888") && m.observer);
  ck_assert(is(m.client_host, "::1"));
  ck_assert_uint_eq(m.client_port, 2182);
  ck_assert_int_eq(lk_config_next(&text, &m), MEMBER);
  ck_assert(is(m.peers, "c:1:2|d:3:4") && !m.observer);
  ck_assert_uint_eq(m.client_host.len, 0);
  ck_assert_uint_eq(m.client_port, 2183);
  ck_assert_int_eq(lk_config_next(&text, &m), MEMBER);
  ck_assert(is(m.peers, "e:1:2"));
  ck_assert_uint_eq(m.client_port, 0);
  ck_assert_int_eq(lk_config_next(&text, &m), NO_MEMBER);
  ck_assert_int_eq(lk_config_next(&text, &m), NO_MEMBER);
}
END_TEST

START_TEST(unreadable_lines_are_reported_and_skipped)
{
  static const char *const bad[] = {
      "server.=a:1:2",
      "server.x=a:1:2",
      "server.a=a:1:2",
      "server.1f=a:1:2",
      "server.1",
      "server.1=",
      "server.1=;2181",
      "server.1=a:1:2;x",
      "server.1=a:1:2;0",
      "server.1=a:1:2;65536",
      "server.1=a:1:2;:1",
      "server.1=a:1:2;b:",
      "server.-1=a:1:2",
      "server.1=:observer",
      "server.9223372036854775808=a:1:2",
      "server.99999999999999999999999999=a:1:2",
  };
  lk_bytes text = lk_text("server.x=a\nserver.1=a:1:2");

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_msg(read_first(bad[i]) == LK_ERR_BAD_ARGUMENT, "%s", bad[i]);
  ck_assert_int_eq(lk_config_next(&text, &m), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_config_next(&text, &m), MEMBER);
  ck_assert_int_eq(read_first(""), NO_MEMBER);
  ck_assert_int_eq(read_first("\n\n"), NO_MEMBER);
  ck_assert_int_eq(read_first("servers.1=a"), NO_MEMBER);
  ck_assert_int_eq(read_first("server.9223372036854775807=a:1:2;1"), MEMBER);
  ck_assert_int_eq(m.id, INT64_MAX);
  text = lk_text("server.1=a:1:2;[b:5");
  ck_assert_int_eq(lk_config_next(&text, &m), MEMBER);
  ck_assert(is(m.client_host, "[b"));
}
END_TEST

START_TEST(a_version_is_hexadecimal)
{
  int64_t version = 7;

  ck_assert_int_eq(lk_config_version(lk_text(""), &version), LK_ERR_NO_NODE);
  ck_assert_int_eq(lk_config_version(lk_text("version=x"), &version),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_config_version(lk_text("version="), &version),
                   LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(
      lk_config_version(lk_text("version=10000000000000000"), &version),
      LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(version, 7);
  ck_assert_int_eq(lk_config_version(lk_text("a\nversion=ff\n"), &version), 0);
  ck_assert_int_eq(version, 255);
  ck_assert_int_eq(
      lk_config_version(lk_text("version=ffffffffffffffff"), &version), 0);
  ck_assert_int_eq(version, -1);
}
END_TEST

SUITE("ensemble_config", servers_come_one_after_the_other,
      unreadable_lines_are_reported_and_skipped, a_version_is_hexadecimal)
