/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Large requests, large replies and many requests, against a real server. */

#include "live/client/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SERVER_LIMIT = 0xfffff, /* the default of jute.maxbuffer */
  /* The bytes of a create beside its data: xid, opcode, path "/big", length of
     the data, the open access list (count, permissions, scheme, id), flags. */
  CREATE_OVERHEAD = 4 + 4 + 8 + 4 + 4 + 4 + 9 + 10 + 4,
  LISTED = 6600, /* number of names in the large listing */
  NAME = 240     /* length of each of these names */
};

/* ---- sending ------------------------------------------------------------ */

static int create_big(lk_client *c, size_t len)
{
  char *big = calloc(1, len);
  int err;

  ck_assert_ptr_nonnull(big);
  memset(&last, 0, sizeof last);
  err = lk_create2(c, "/big", lk_bytes_of(big, len), NULL, 0, NULL, on_created,
                   &last);
  free(big);
  if (err != 0)
    return err;
  wait_until(&last.done);
  return last.err;
}

START_TEST(request_of_the_servers_limit_is_sent)
{
  world_enter(1);
  const size_t room = SERVER_LIMIT - CREATE_OVERHEAD - strlen(chroot_path);

  ck_assert_int_eq(create_big(here, room + 1), LK_ERR_TOO_BIG);
  ck_assert_int_eq(create_big(here, room), 0);
  ck_assert_int_eq(get(here, "/big", NULL), 0);
  ck_assert_uint_eq(last.len, room);
  ck_assert_int_eq(erase(here, "/big", -1), 0);
  ck_assert_uint_eq(lk_client_connection(here), 1);
}
END_TEST

START_TEST(send_limit_is_configurable)
{
  lk_client_config config;
  lk_client *c;

  world_enter(1);
  config = config_of(chroot_path);
  config.send_limit = 1000;
  c = client_of(&config);
  ck_assert_int_eq(create_big(c, 1000), LK_ERR_TOO_BIG);
  ck_assert_int_eq(create_big(c, 500), 0);
  ck_assert_int_eq(erase(c, "/big", -1), 0);
}
END_TEST

START_TEST(outstanding_limit_refuses_further_requests)
{
  lk_client_config config;
  completion completions[11];
  lk_client *c;

  world_enter(0);
  config = config_of("");
  config.outstanding_limit = 10;
  c = client_of(&config);
  memset(completions, 0, sizeof completions);
  for (size_t i = 0; i < 10; i++)
    ck_assert_int_eq(lk_sync(c, "/", NULL, on_done, &completions[i]), 0);
  ck_assert_int_eq(lk_sync(c, "/", NULL, on_done, &completions[10]),
                   LK_ERR_TOO_MANY);
  wait_until(&completions[9].done);
  ck_assert_int_eq(lk_sync(c, "/", NULL, on_done, &completions[10]), 0);
  wait_until(&completions[10].done);
  ck_assert_int_eq(completions[10].err, 0);
}
END_TEST

/* ---- order -------------------------------------------------------------- */

enum { QUEUED = 1000 };

START_TEST(requests_complete_in_order)
{
  completion *completions = calloc(QUEUED, sizeof *completions);

  world_enter(1);
  for (size_t i = 0; i < QUEUED; i++) {
    if (i % 2 == 0)
      ck_assert_int_eq(lk_create2(here, "/n-", lk_text(""), NULL,
                                  LK_EPHEMERAL | LK_SEQUENTIAL, NULL,
                                  on_created, &completions[i]),
                       0);
    else
      ck_assert_int_eq(
          lk_get_children(here, "/", NULL, on_children, &completions[i]), 0);
  }
  wait_until(&completions[QUEUED - 1].done);
  for (size_t i = 0; i < QUEUED; i++) {
    char path[32];

    ck_assert(completions[i].done);
    ck_assert_int_eq(completions[i].err, 0);
    ck_assert(i == 0 || completions[i - 1].order < completions[i].order);
    snprintf(path, sizeof path, "/n-%010zu", i / 2);
    if (i % 2 == 0)
      ck_assert_str_eq(completions[i].path, path);
    else
      ck_assert_uint_eq(completions[i].count, i / 2 + 1);
  }
  free(completions);
}
END_TEST

/* ---- receiving ---------------------------------------------------------- */

/* Create so many children that their list takes 1.6 MB: LISTED names with a
   length of 4 bytes in front of each. No server accepts a request of this size.
 */
static void make_many_children(void)
{
  static char paths[100][NAME + 16];
  lk_op ops[100];

  ck_assert_int_eq(create(here, "/long", "", 0), 0);
  for (size_t i = 0; i < LISTED; i += 100) {
    for (size_t j = 0; j < 100; j++) {
      snprintf(paths[j], sizeof paths[j], "/long/%0*zu", NAME, i + j);
      ops[j] = lk_op_create(paths[j], lk_text(NULL), NULL, 0);
    }
    ck_assert_int_eq(multi(here, ops, 100), 0);
  }
}

START_TEST(receive_limit_ends_a_long_listing)
{
  lk_client_config config;
  lk_client *c;

  world_enter(1);
  make_many_children();
  ck_assert_int_eq(children(here, "/long", NULL), 0);
  ck_assert_uint_eq(last.count, LISTED);
  ck_assert_uint_eq(strlen(last.names[7]), sizeof last.names[7] - 1);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  config = config_of(chroot_path);
  config.receive_limit = 1000000;
  c = client_of(&config);
  ck_assert_int_eq(children(c, "/long", NULL), LK_ERR_TOO_BIG);
  ck_assert_int_eq(exists(c, "/long", NULL), 0);
  ck_assert_int_eq(last.stat.num_children, LISTED);
  ck_assert_uint_eq(lk_client_connection(c), 2);
}
END_TEST

TCase *limit_tests(void)
{
  TCase *t = tcase_create("limits");

  tcase_add_test(t, request_of_the_servers_limit_is_sent);
  tcase_add_test(t, send_limit_is_configurable);
  tcase_add_test(t, outstanding_limit_refuses_further_requests);
  tcase_add_test(t, requests_complete_in_order);
  tcase_add_test(t, receive_limit_ends_a_long_listing);
  return t;
}
