/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/engine/hosts.h"
#include "support/failing_mem.h"
#include "support/suite.h"

#include <latchkey/client.h>

#include <stdio.h>

static lk_hosts hosts;
static const char *why;
static const bool tls_only_if_named = false;
static const bool tls_always = true;

static void parse(const char *text)
{
  size_t size = strlen(text) + 1;
  char *exact = malloc(size); /* ASan reports a read behind it, or after the
                                 free */

  memcpy(exact, text, size);
  int err =
      lk__hosts_init(&hosts, &lk__mem_libc, exact, tls_only_if_named, &why);

  free(exact);
  ck_assert_msg(err == 0, "%s: %s", text, why);
  ck_assert_ptr_null(why);
}

/* The hosts of a connect string as "host port host port … chroot". */
static const char *parsed(const char *text)
{
  static char all[512];
  size_t len = 0;

  parse(text);
  for (size_t i = 0; i < hosts.count; i++)
    len += (size_t)snprintf(all + len, sizeof all - len, "%s %u ",
                            hosts.items[i].name, (unsigned)hosts.items[i].port);
  snprintf(all + len, sizeof all - len, "%s", hosts.chroot);
  ck_assert_uint_eq(hosts.chroot_len, strlen(hosts.chroot));
  lk__hosts_free(&hosts);
  return all;
}

START_TEST(servers_ports_and_chroot_are_parsed)
{
  ck_assert_str_eq(parsed("a"), "a 2181 ");
  ck_assert_str_eq(parsed("a:1"), "a 1 ");
  ck_assert_str_eq(parsed("a:65535,b,c:2182"), "a 65535 b 2181 c 2182 ");
  ck_assert_str_eq(parsed("a:1/root"), "a 1 /root");
  ck_assert_str_eq(parsed("a,b/root/of it"), "a 2181 b 2181 /root/of it");
  ck_assert_str_eq(parsed("10.0.0.1:2181"), "10.0.0.1 2181 ");
  ck_assert_str_eq(parsed("a/"), "a 2181 ");
  ck_assert_str_eq(parsed("a:00080"), "a 80 ");
  ck_assert_str_eq(parsed("A-_:1"), "A-_ 1 ");
}
END_TEST

START_TEST(ipv6_addresses_stand_in_brackets)
{
  ck_assert_str_eq(parsed("[::1]"), "::1 2181 ");
  ck_assert_str_eq(parsed("[::1]:5"), "::1 5 ");
  ck_assert_str_eq(parsed("[fe80::1%eth0]:5,[::2]/c"),
                   "fe80::1%eth0 5 ::2 2181 /c");
  ck_assert_str_eq(parsed("b:1,[::ffff:10.0.0.1]:7"), "b 1 ::ffff:10.0.0.1 7 ");
}
END_TEST

START_TEST(tls_in_front_changes_the_default_port)
{
  parse("tls://a");
  ck_assert(hosts.tls);
  lk__hosts_free(&hosts);
  parse("a");
  ck_assert(!hosts.tls);
  lk__hosts_free(&hosts);
  ck_assert_int_eq(
      lk__hosts_init(&hosts, &lk__mem_libc, "a,b:1", tls_always, &why), 0);
  ck_assert(hosts.tls);
  ck_assert_uint_eq(hosts.items[0].port, 2281);
  ck_assert_uint_eq(hosts.items[1].port, 1);
  lk__hosts_free(&hosts);
  ck_assert_str_eq(parsed("tls://a:1,b,[::1]/root"),
                   "a 1 b 2281 ::1 2281 /root");
  ck_assert_str_eq(parsed(" tls:// a "), "a 2281 ");
}
END_TEST

START_TEST(blanks_and_empty_entries_are_left_out)
{
  ck_assert_str_eq(parsed(" a:1 ,\tb "), "a 1 b 2181 ");
  ck_assert_str_eq(parsed(",a,,b:2,"), "a 2181 b 2 ");
  ck_assert_str_eq(parsed(" , a:1 , /root "), "a 1 /root");
}
END_TEST

/* The error message of lk_hosts_check(); "" if the hosts are valid. */
static const char *message_for(const char *text)
{
  static char message[128];

  memset(message, 'x', sizeof message);
  int err = lk_hosts_check(text, message, sizeof message);

  ck_assert_int_eq(err, message[0] == '\0' ? 0 : LK_ERR_BAD_HOSTS);
  return message;
}

START_TEST(message_names_the_error)
{
  static const struct {
    const char *text, *why;
  } bad[] = {
      {"", "no host is named"},
      {",, ,", "no host is named"},
      {"tls://", "no host is named"},
      {"http://a", "only tls:// may come before the servers"},
      {"TLS://a", "only tls:// may come before the servers"},
      {"a,tls://b", "tls:// stands once, before the first server"},
      {"tls://a,tls://b", "tls:// stands once, before the first server"},
      {"tls://a, tls://b/root", "tls:// stands once, before the first server"},
      {"tls://tls://a", "tls:// stands once, before the first server"},
      {"a,xtls://b", "a port is a number from 1 to 65535"},
      {"a,tls:/b", "a port is a number from 1 to 65535"},
      {"tls:/a", "a port is a number from 1 to 65535"},
      {"/root", "no host is named"},
      {"a:", "a port is a number from 1 to 65535"},
      {"a:0", "a port is a number from 1 to 65535"},
      {"a:65536", "a port is a number from 1 to 65535"},
      {"a:100000", "a port is a number from 1 to 65535"},
      {"a:4294967297", "a port is a number from 1 to 65535"},
      {"a:-1", "a port is a number from 1 to 65535"},
      {"a:+1", "a port is a number from 1 to 65535"},
      {"a:1x", "a port is a number from 1 to 65535"},
      {"a: 1", "a port is a number from 1 to 65535"},
      {"a:x,b", "a port is a number from 1 to 65535"},
      {"[::1]:", "a port is a number from 1 to 65535"},
      {"[::1]:99999", "a port is a number from 1 to 65535"},
      {":1", "a host name is missing"},
      {"a,:1", "a host name is missing"},
      {"[]", "brackets hold an IPv6 address, as in [::1]:2181"},
      {"[]:1", "brackets hold an IPv6 address, as in [::1]:2181"},
      {"[abc]:1", "brackets hold an IPv6 address, as in [::1]:2181"},
      {"[127.0.0.1]:1", "brackets hold an IPv6 address, as in [::1]:2181"},
      {"[::1%e;th]", "brackets hold an IPv6 address, as in [::1]:2181"},
      {"[127.0.0.1:2181;127.0.0.1]:2182",
       "brackets hold an IPv6 address, as in [::1]:2181"},
      {"h;x:1",
       "a host name holds a blank or another character it cannot have"},
      {"host+a",
       "a host name holds a blank or another character it cannot have"},
      {"a b", "a host name holds a blank or another character it cannot have"},
      {"a\nb", "a host name holds a blank or another character it cannot have"},
      {"[: :1]", "brackets hold an IPv6 address, as in [::1]:2181"},
      {"b\xc3\xa4r",
       "a host name holds a blank or another character it cannot have"},
      {"a]", "brackets go around a whole IPv6 address, as in [::1]:2181"},
      {"a[", "brackets go around a whole IPv6 address, as in [::1]:2181"},
      {"a]:1", "brackets go around a whole IPv6 address, as in [::1]:2181"},
      {"[[::1]", "brackets hold an IPv6 address, as in [::1]:2181"},
      {"::1", "an IPv6 address needs brackets, as in [::1]:2181"},
      {"a:1:2", "an IPv6 address needs brackets, as in [::1]:2181"},
      {"fe80::1,b", "an IPv6 address needs brackets, as in [::1]:2181"},
      {"[::1", "a bracket is not closed, as in [::1]:2181"},
      {"[::1,b]", "a bracket is not closed, as in [::1]:2181"},
      {"[", "a bracket is not closed, as in [::1]:2181"},
      {"[::1]x", "only :port may follow a closing bracket"},
      {"[::1]2181", "only :port may follow a closing bracket"},
      {"[[::1]]", "only :port may follow a closing bracket"},
      {"a//", "what follows the first / must be a valid path (the chroot)"},
      {"a/b/", "what follows the first / must be a valid path (the chroot)"},
      {"a/../b", "what follows the first / must be a valid path (the chroot)"},
      {"a/b\x01", "what follows the first / must be a valid path (the chroot)"},
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    ck_assert_str_eq(message_for(bad[i].text), bad[i].why);
  ck_assert_str_eq(message_for(NULL), "no host is named");
  ck_assert_str_eq(message_for("a:1,[::1]:2/c"), "");
  ck_assert_str_eq(message_for("zk_1.a-b:1,[fe80::1%eth0.5]:2"), "");
}
END_TEST

START_TEST(a_name_has_255_bytes_at_most)
{
  char name[300];

  memset(name, 'a', sizeof name);
  name[255] = '\0';
  ck_assert_str_eq(message_for(name), "");
  name[255] = 'a';
  name[256] = '\0';
  ck_assert_str_eq(message_for(name), "a host name is longer than 255 bytes");
}
END_TEST

START_TEST(message_is_cut_to_its_buffer)
{
  char out[8];

  ck_assert_int_eq(lk_hosts_check("a:0", out, sizeof out), LK_ERR_BAD_HOSTS);
  ck_assert_str_eq(out, "a port ");
  ck_assert_int_eq(lk_hosts_check("a:0", out, 1), LK_ERR_BAD_HOSTS);
  ck_assert_str_eq(out, "");
  ck_assert_int_eq(lk_hosts_check("a:0", NULL, 0), LK_ERR_BAD_HOSTS);
  ck_assert_int_eq(lk_hosts_check("a:1", NULL, 0), 0);
}
END_TEST

enum { ALL_SIZE = 100 };

static void append_server(const char *host, uint16_t port, void *arg)
{
  char *all = arg;
  size_t len = strlen(all);

  snprintf(all + len, ALL_SIZE - len, "%s %u ", host, (unsigned)port);
}

START_TEST(servers_are_handed_out_in_order_or_not_at_all)
{
  char all[ALL_SIZE] = "";

  ck_assert_int_eq(lk_hosts_each("b,[::1]:5,a:1/x", append_server, all), 0);
  ck_assert_str_eq(all, "b 2181 ::1 5 a 1 ");
  ck_assert_int_eq(lk_hosts_each("c,a:0", append_server, all),
                   LK_ERR_BAD_HOSTS);
  ck_assert_int_eq(lk_hosts_each(NULL, append_server, all), LK_ERR_BAD_HOSTS);
  ck_assert_str_eq(all, "b 2181 ::1 5 a 1 ");
}
END_TEST

START_TEST(list_without_memory_is_empty)
{
  failing_mem f;
  size_t n = 0;
  int err;

  do {
    failing_mem_init(&f);
    f.fail_at = ++n;
    err = lk__hosts_init(&hosts, &f.mem, "a:1,b/root", tls_only_if_named, &why);
    ck_assert_int_eq(err, failing_mem_failed(&f) ? LK_ERR_NO_MEMORY : 0);
    if (err == 0)
      lk__hosts_free(&hosts);
    ck_assert_uint_eq(f.live, 0);
  } while (failing_mem_failed(&f));
  ck_assert_uint_gt(n, 2); /* the list needs a few allocations */
}
END_TEST

/* ---- turns --------------------------------------------------------------- */

START_TEST(servers_take_turns_and_a_round_has_an_end)
{
  parse("a,b,c");
  ck_assert_str_eq(lk__hosts_current(&hosts)->name, "a");
  ck_assert(!lk__hosts_next(&hosts));
  ck_assert_str_eq(lk__hosts_current(&hosts)->name, "b");
  ck_assert(!lk__hosts_next(&hosts));
  ck_assert_str_eq(lk__hosts_current(&hosts)->name, "c");
  ck_assert(lk__hosts_next(&hosts));
  ck_assert_str_eq(lk__hosts_current(&hosts)->name, "a");
  ck_assert(!lk__hosts_next(&hosts));
  lk__hosts_end_round(&hosts);
  ck_assert(!lk__hosts_next(&hosts));
  ck_assert(!lk__hosts_next(&hosts));
  ck_assert(lk__hosts_next(&hosts));
  lk__hosts_free(&hosts);
}
END_TEST

START_TEST(every_address_of_a_name_has_a_turn)
{
  parse("a,b");
  hosts.address_count = 3;
  for (uint32_t address = 0; address < 3; address++) {
    ck_assert_str_eq(lk__hosts_current(&hosts)->name, "a");
    ck_assert_uint_eq(hosts.address_index, address);
    ck_assert(!lk__hosts_next(&hosts));
  }
  ck_assert_str_eq(lk__hosts_current(&hosts)->name, "b");
  ck_assert_uint_eq(hosts.address_index, 0);
  ck_assert_uint_eq(hosts.address_count, 0);
  ck_assert(lk__hosts_next(&hosts));
  /* The name now has fewer addresses than before. */
  hosts.address_count = 3;
  ck_assert(!lk__hosts_next(&hosts));
  hosts.address_count = 1;
  ck_assert(!lk__hosts_next(&hosts));
  ck_assert_str_eq(lk__hosts_current(&hosts)->name, "b");
  lk__hosts_free(&hosts);
}
END_TEST

static uint32_t draws[4]; /* the random numbers of lk__hosts_shuffle() */
static size_t drawn;      /* how many of them are used */

static void draw(void *arg, void *out, size_t len)
{
  ck_assert_ptr_eq(arg, draws);
  ck_assert_uint_eq(len, sizeof draws[0]);
  memcpy(out, &draws[drawn++], len);
}

START_TEST(each_order_of_the_servers_comes_as_often_as_any_other)
{
  bool seen[256] = {false};
  int orders = 0;

  for (uint32_t i = 0; i < 6; i++) {
    draws[0] = i % 3; /* chooses one of three hosts */
    draws[1] = i / 3; /* chooses one of the remaining two */
    drawn = 0;
    parse("a,b,c");
    lk__hosts_shuffle(&hosts, draw, draws);
    ck_assert_uint_eq(drawn, 2);
    unsigned order = 0;

    for (size_t k = 0; k < 3; k++)
      order = order << 2 | (unsigned)(hosts.items[k].name[0] - 'a');
    if (!seen[order])
      orders++;
    seen[order] = true;
    lk__hosts_free(&hosts);
  }
  ck_assert_int_eq(orders, 6);
}
END_TEST

static void fail_to_draw(void *arg, void *out, size_t len)
{
  (void)arg, (void)out, (void)len;
  ck_abort_msg("a random number is drawn");
}

static void check_order(const char *names)
{
  for (size_t i = 0; i < hosts.count; i++) {
    char name[2] = {names[i]};

    ck_assert_str_eq(lk__hosts_current(&hosts)->name, name);
    lk__hosts_next(&hosts);
  }
}

START_TEST(servers_are_tried_in_the_order_of_the_list)
{
  parse("c,a,d,b");
  hosts.in_order = true;
  lk__hosts_shuffle(&hosts, fail_to_draw, NULL);
  check_order("cadb");
  lk__hosts_free(&hosts);
}
END_TEST

/* Requests that a server may not support, as lk__hosts_mark_unsupported()
   numbers them. */
enum { REQUEST_4 = 4, REQUEST_5 = 5, REQUEST_6 = 6, LAST_REQUEST = 63 };

static const int64_t start_ms = 0;

/* A later mark of another request extends the time of the earlier one. */
START_TEST(unsupported_requests_are_kept_for_each_server_for_a_time)
{
  parse("a,b");
  lk__hosts_use(&hosts);
  ck_assert(!lk__hosts_lack_support(&hosts, REQUEST_5, start_ms));
  lk__hosts_mark_unsupported(&hosts, REQUEST_5, 1000);
  lk__hosts_mark_unsupported(&hosts, LAST_REQUEST, 2000);
  ck_assert(lk__hosts_lack_support(&hosts, REQUEST_5, 1999));
  ck_assert(lk__hosts_lack_support(&hosts, LAST_REQUEST, 1999));
  ck_assert(!lk__hosts_lack_support(&hosts, REQUEST_5, 2000));
  ck_assert(!lk__hosts_lack_support(&hosts, REQUEST_4, start_ms));
  hosts.in_turn = 1; /* b has its turn, and a is still in use */
  ck_assert(lk__hosts_lack_support(&hosts, REQUEST_5, start_ms));
  lk__hosts_use(&hosts);
  ck_assert(!lk__hosts_lack_support(&hosts, REQUEST_5, start_ms));
  hosts.in_turn = 0;
  lk__hosts_use(&hosts);
  ck_assert(lk__hosts_lack_support(&hosts, REQUEST_5, start_ms));
  lk__hosts_free(&hosts);
}
END_TEST

/* A driver shuffles the addresses each time that it resolves a name, so the
   client cannot keep unsupported requests for a single address. */
START_TEST(unsupported_requests_are_kept_for_all_addresses_of_a_name)
{
  parse("a");
  hosts.address_count = 2;
  lk__hosts_use(&hosts);
  lk__hosts_mark_unsupported(&hosts, REQUEST_5, 1000);
  hosts.address_index = 1;
  lk__hosts_use(&hosts);
  ck_assert(lk__hosts_lack_support(&hosts, REQUEST_5, start_ms));
  lk__hosts_free(&hosts);
}
END_TEST

static void draw_pseudo_random(void *arg, void *out, size_t len)
{
  static uint32_t seed = 1;

  (void)arg;
  ck_assert_uint_eq(len, sizeof seed);
  seed = seed * 1664525U + 1013904223U;
  memcpy(out, &seed, len);
}

static bool replace_hosts(const char *text)
{
  lk_hosts fresh;

  ck_assert_int_eq(
      lk__hosts_init(&fresh, &lk__mem_libc, text, tls_only_if_named, &why), 0);
  return lk__hosts_replace(&hosts, &fresh, draw_pseudo_random, NULL);
}

/* Without balancing: of a list that doubles, half of the clients would move. */
START_TEST(new_list_of_servers_keeps_its_order)
{
  for (int i = 0; i < 50; i++) {
    parse("c,b");
    hosts.in_order = true;
    lk__hosts_next(&hosts);
    ck_assert(!replace_hosts("d,b,c,a")); /* b stays in turn */
    check_order("bcad");
    ck_assert(replace_hosts("f,e,a,g")); /* b is not listed any more */
    check_order("feag");
    lk__hosts_free(&hosts);
  }
}
END_TEST

/* Have the client use the server of this name. Returns whether REQUEST_5 is
   marked as unsupported there. */
static bool use_and_lack_request_5(const char *name)
{
  while (strcmp(lk__hosts_current(&hosts)->name, name) != 0)
    lk__hosts_next(&hosts);
  lk__hosts_use(&hosts);
  return lk__hosts_lack_support(&hosts, REQUEST_5, start_ms);
}

START_TEST(new_list_of_servers_keeps_unsupported_requests)
{
  for (int i = 0; i < 50; i++) {
    parse("a,b,c");
    lk__hosts_use(&hosts);
    lk__hosts_mark_unsupported(&hosts, REQUEST_5, 1000);
    replace_hosts("d,c,e,a,f");
    /* a is still in use */
    ck_assert(lk__hosts_lack_support(&hosts, REQUEST_5, start_ms));
    ck_assert(!use_and_lack_request_5("c"));
    ck_assert(!use_and_lack_request_5("d"));
    ck_assert(!use_and_lack_request_5("f"));
    ck_assert(use_and_lack_request_5("a"));
    lk__hosts_free(&hosts);
  }
}
END_TEST

START_TEST(unsupported_requests_are_not_kept_for_the_next_server)
{
  parse("a");
  lk__hosts_use(&hosts);
  replace_hosts("b");
  /* a is in use until the client moves to b, so the marks are those of a. */
  lk__hosts_mark_unsupported(&hosts, REQUEST_5, 1000);
  ck_assert(lk__hosts_lack_support(&hosts, REQUEST_5, start_ms));
  replace_hosts("b,c");
  lk__hosts_mark_unsupported(&hosts, REQUEST_6, 1000);
  ck_assert(!use_and_lack_request_5("b"));
  ck_assert(!use_and_lack_request_5("c"));
  lk__hosts_free(&hosts);
}
END_TEST

SUITE("hosts", servers_ports_and_chroot_are_parsed,
      ipv6_addresses_stand_in_brackets, tls_in_front_changes_the_default_port,
      blanks_and_empty_entries_are_left_out, message_names_the_error,
      a_name_has_255_bytes_at_most, message_is_cut_to_its_buffer,
      servers_are_handed_out_in_order_or_not_at_all,
      list_without_memory_is_empty, servers_take_turns_and_a_round_has_an_end,
      every_address_of_a_name_has_a_turn,
      each_order_of_the_servers_comes_as_often_as_any_other,
      servers_are_tried_in_the_order_of_the_list,
      new_list_of_servers_keeps_its_order,
      unsupported_requests_are_kept_for_each_server_for_a_time,
      unsupported_requests_are_kept_for_all_addresses_of_a_name,
      new_list_of_servers_keeps_unsupported_requests,
      unsupported_requests_are_not_kept_for_the_next_server)
