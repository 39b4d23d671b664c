/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Large things and many things, against a real server. */

#include "live/client/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SERVER_LIMIT = 0xfffff,
  /* xid, opcode, path "/big", data, one open entry, flags */
  CREATE_OVERHEAD = 4 + 4 + 8 + 4 + 4 + 4 + 9 + 10 + 4,
  LISTED = 6600,
  NAME = 240
};

/* ---- sending
 * --------------------------------------------------------------------- */

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

START_TEST(a_request_as_large_as_the_server_takes_is_sent)
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

START_TEST(the_send_limit_is_the_users)
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

START_TEST(so_many_are_accepted_and_no_more)
{
  lk_client_config config;
  answer answers[11];
  lk_client *c;

  world_enter(0);
  config = config_of("");
  config.outstanding_limit = 10;
  c = client_of(&config);
  memset(answers, 0, sizeof answers);
  for (size_t i = 0; i < 10; i++)
    ck_assert_int_eq(lk_sync(c, "/", NULL, on_done, &answers[i]), 0);
  ck_assert_int_eq(lk_sync(c, "/", NULL, on_done, &answers[10]),
                   LK_ERR_TOO_MANY);
  wait_until(&answers[9].done);
  ck_assert_int_eq(lk_sync(c, "/", NULL, on_done, &answers[10]), 0);
  wait_until(&answers[10].done);
  ck_assert_int_eq(answers[10].err, 0);
}
END_TEST

/* ---- order
 * ------------------------------------------------------------------------ */

enum { QUEUED = 1000 };

START_TEST(answers_come_in_the_order_of_the_requests)
{
  answer *answers = calloc(QUEUED, sizeof *answers);

  world_enter(1);
  for (size_t i = 0; i < QUEUED; i++) {
    if (i % 2 == 0)
      ck_assert_int_eq(lk_create2(here, "/n-", lk_text(""), NULL,
                                  LK_EPHEMERAL | LK_SEQUENTIAL, NULL,
                                  on_created, &answers[i]),
                       0);
    else
      ck_assert_int_eq(
          lk_get_children(here, "/", NULL, on_children, &answers[i]), 0);
  }
  wait_until(&answers[QUEUED - 1].done);
  for (size_t i = 0; i < QUEUED; i++) {
    char path[32];

    ck_assert(answers[i].done);
    ck_assert_int_eq(answers[i].err, 0);
    ck_assert(i == 0 || answers[i - 1].order < answers[i].order);
    snprintf(path, sizeof path, "/n-%010zu", i / 2);
    if (i % 2 == 0)
      ck_assert_str_eq(answers[i].path, path);
    else
      ck_assert_uint_eq(answers[i].count, i / 2 + 1);
  }
  free(answers);
}
END_TEST

/* ---- receiving
 * --------------------------------------------------------------------- */

/* A listing of 6600 names of 240 letters and 4 bytes of length each: 1.6 MB,
   more than a server takes as a request. */
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

START_TEST(a_long_listing_arrives_unless_it_is_limited)
{
  lk_client_config config;
  lk_client *c;

  world_enter(1);
  make_many_children();
  ck_assert_int_eq(children(here, "/long", NULL), 0);
  ck_assert_uint_eq(last.count, LISTED);
  ck_assert_uint_eq(strlen(last.names[7]), 63); /* all we kept of it */
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

  tcase_add_test(t, a_request_as_large_as_the_server_takes_is_sent);
  tcase_add_test(t, the_send_limit_is_the_users);
  tcase_add_test(t, so_many_are_accepted_and_no_more);
  tcase_add_test(t, answers_come_in_the_order_of_the_requests);
  tcase_add_test(t, a_long_listing_arrives_unless_it_is_limited);
  return t;
}
