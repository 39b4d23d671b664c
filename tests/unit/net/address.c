/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/address.h"

#include <string.h>

#include "support/suite.h"

static lk_address parse(const char *literal)
{
  lk_address a;

  ck_assert_msg(lk__address_parse(&a, literal), "%s", literal);
  return a;
}

static void expect_text(const char *literal, const char *text)
{
  char got[LK_ADDRESS_TEXT_SIZE];
  lk_address a = parse(literal);

  lk__address_set_port(&a, 2181);
  lk__address_text(&a, got, sizeof got);
  ck_assert_str_eq(got, text);
}

START_TEST(literals_are_read_and_written)
{
  expect_text("127.0.0.1", "127.0.0.1:2181");
  expect_text("255.255.255.255", "255.255.255.255:2181");
  expect_text("::1", "[::1]:2181");
  expect_text("2001:DB8:0::1", "[2001:db8::1]:2181");
  expect_text("::ffff:1.2.3.4", "[::ffff:1.2.3.4]:2181");
  expect_text("fe80::1%7", "[fe80::1%7]:2181");
  ck_assert_uint_eq(parse("fe80::1%4000000").v6.sin6_scope_id, 4000000);
  ck_assert_uint_eq(parse("fe80::1%999999999").v6.sin6_scope_id, 999999999);
  ck_assert_uint_ne(parse("fe80::1%lo").v6.sin6_scope_id, 0);
}
END_TEST

START_TEST(host_names_are_not_address_literals)
{
  static const char *const names[] = {
      "",
      "localhost",
      "1",
      "127.1",
      "0x7f.0.0.1",
      "1.2.3.4.5",
      "1.2.3.256",
      "[::1]",
      "::1%",
      "::1%nosuchdevice",
      "::1%1x",
      "::1%1000000000",
      "::1%99999999999",
      "127.0.0.1%lo",
      ":::",
      "%lo",
      "127.0.0.1 ",
      "1111:2222:3333:4444:5555:6666:123.123.123.123.123.123.123.123"};
  lk_address a;

  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    ck_assert_msg(!lk__address_parse(&a, names[i]), "%s", names[i]);
}
END_TEST

START_TEST(addresses_are_equal_if_all_parts_are)
{
  lk_address a = parse("127.0.0.1"), b = parse("127.0.0.1");

  ck_assert(lk__address_equal(&a, &b));
  lk__address_set_port(&b, 1);
  ck_assert(!lk__address_equal(&a, &b));
  b = parse("127.0.0.2");
  ck_assert(!lk__address_equal(&a, &b));
  b = parse("::1");
  ck_assert(!lk__address_equal(&a, &b));
  a = parse("::1");
  ck_assert(lk__address_equal(&a, &b));
  lk__address_set_port(&b, 1);
  ck_assert(!lk__address_equal(&a, &b));
  b = parse("::1%1");
  ck_assert(!lk__address_equal(&a, &b));
  b = parse("::2");
  ck_assert(!lk__address_equal(&a, &b));
}
END_TEST

START_TEST(only_ipv4_and_ipv6_addresses_are_copied)
{
  struct sockaddr other;
  lk_address from = parse("fe80::1%3"), to;

  memset(&other, 0, sizeof other);
  other.sa_family = AF_UNIX;
  ck_assert(!lk__address_copy(&to, &other));
  ck_assert(lk__address_copy(&to, &from.any));
  ck_assert(lk__address_equal(&from, &to));
  ck_assert_uint_eq(lk__address_len(&to), sizeof(struct sockaddr_in6));
  from = parse("1.2.3.4");
  ck_assert(lk__address_copy(&to, &from.any));
  ck_assert(lk__address_equal(&from, &to));
  ck_assert_uint_eq(lk__address_len(&to), sizeof(struct sockaddr_in));
}
END_TEST

SUITE("address", literals_are_read_and_written,
      host_names_are_not_address_literals, addresses_are_equal_if_all_parts_are,
      only_ipv4_and_ipv6_addresses_are_copied)
