/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Large requests, large replies and many requests, against a real server. */

#include "live/client/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SERVER_LIMIT = 0xfffff, /* the default of jute.maxbuffer */
  XID_AND_OPCODE = 4 + 4,
  BIG_PATH = 4 + 4, /* "/big" behind its length */
  DATA_LENGTH = 4,
  OPEN_ACL = 4 + 4 + (4 + 5) + (4 + 6), /* count, permissions, world, anyone */
  FLAGS = 4,
  /* The bytes of a create beside its data. */
  CREATE_OVERHEAD = XID_AND_OPCODE + BIG_PATH + DATA_LENGTH + OPEN_ACL + FLAGS,
  LISTED = 6600,     /* number of names in the long listing */
  NAME_LENGTH = 240, /* of each of these names */
  BATCH = 100        /* number of nodes that one request creates */
};

/* ---- sending ------------------------------------------------------------ */

static int create_big(lk_client *c, size_t len)
{
  char *data = calloc(1, len);
  int err;

  ck_assert_ptr_nonnull(data);
  err = lk_create2(c, "/big", lk_bytes_of(data, len), NULL, LK_PERSISTENT, NULL,
                   on_created, reset_last_reply());
  free(data);
  return wait_for_completion(err);
}

START_TEST(largest_request_that_a_server_accepts_is_sent)
{
  connect_here(WITH_CHROOT);
  const size_t max_len = SERVER_LIMIT - CREATE_OVERHEAD - strlen(chroot_path);

  ck_assert_int_eq(create_big(here, max_len + 1), LK_ERR_TOO_BIG);
  ck_assert_int_eq(create_big(here, max_len), 0);
  ck_assert_int_eq(get(here, "/big"), 0);
  ck_assert_uint_eq(last_reply.len, max_len);
  ck_assert_int_eq(delete_node(here, "/big", -1), 0);
  ck_assert_uint_eq(lk_client_connection(here), 1);
}
END_TEST

START_TEST(send_limit_is_configurable)
{
  lk_client_config config;
  lk_client *c;

  connect_here(WITH_CHROOT);
  config = config_of(chroot_path);
  config.send_limit = 1000;
  c = client_of(&config);
  ck_assert_int_eq(create_big(c, 1000), LK_ERR_TOO_BIG);
  ck_assert_int_eq(create_big(c, 500), 0);
  ck_assert_int_eq(delete_node(c, "/big", -1), 0);
}
END_TEST

START_TEST(outstanding_limit_refuses_further_requests)
{
  enum { LIMIT = 10 };
  lk_client_config config;
  completion completions[LIMIT + 1];
  lk_client *c;

  connect_here(WITHOUT_CHROOT);
  config = config_of("");
  config.outstanding_limit = LIMIT;
  c = client_of(&config);
  memset(completions, 0, sizeof completions);
  for (size_t i = 0; i < LIMIT; i++)
    ck_assert_int_eq(lk_server_sync(c, "/", NULL, on_done, &completions[i]), 0);
  ck_assert_int_eq(lk_server_sync(c, "/", NULL, on_done, &completions[LIMIT]),
                   LK_ERR_TOO_MANY);
  wait_until(&completions[LIMIT - 1].done);
  ck_assert_int_eq(lk_server_sync(c, "/", NULL, on_done, &completions[LIMIT]),
                   0);
  wait_until(&completions[LIMIT].done);
  ck_assert_int_eq(completions[LIMIT].err, 0);
}
END_TEST

/* ---- order -------------------------------------------------------------- */

enum { QUEUED = 1000 };

/* Creates and lists take turns. */
static bool is_create(size_t i)
{
  return i % 2 == 0;
}

START_TEST(requests_complete_in_order)
{
  completion *completions = calloc(QUEUED, sizeof *completions);

  connect_here(WITH_CHROOT);
  for (size_t i = 0; i < QUEUED; i++) {
    if (is_create(i))
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
    if (is_create(i))
      ck_assert_str_eq(completions[i].path, path);
    else
      ck_assert_uint_eq(completions[i].count, i / 2 + 1);
  }
  free(completions);
}
END_TEST

/* ---- receiving ---------------------------------------------------------- */

/* Create so many children that the reply with their names has 1.6 MB. A server
 * sends such a reply, although it accepts no request of this size. */
static void make_many_children(void)
{
  static char paths[BATCH][NAME_LENGTH + 16];
  lk_op ops[BATCH];

  ck_assert_int_eq(create(here, "/long", "", LK_PERSISTENT), 0);
  for (size_t i = 0; i < LISTED; i += BATCH) {
    for (size_t j = 0; j < BATCH; j++) {
      snprintf(paths[j], sizeof paths[j], "/long/%0*zu", NAME_LENGTH, i + j);
      ops[j] = lk_op_create(paths[j], lk_text(NULL), NULL, LK_PERSISTENT);
    }
    ck_assert_int_eq(multi(here, ops, BATCH), 0);
  }
}

START_TEST(receive_limit_refuses_a_long_listing)
{
  lk_client_config config;
  lk_client *c;

  connect_here(WITH_CHROOT);
  make_many_children();
  /* The default of the limit admits the listing. */
  ck_assert_int_eq(children(here, "/long"), 0);
  ck_assert_uint_eq(last_reply.count, LISTED);
  ck_assert_uint_eq(lk_client_connection(here), 1);
  config = config_of(chroot_path);
  config.receive_limit = 1000000;
  c = client_of(&config);
  ck_assert_int_eq(children(c, "/long"), LK_ERR_REPLY_TOO_BIG);
  ck_assert_int_eq(exists(c, "/long"), 0);
  ck_assert_int_eq(last_reply.stat.num_children, LISTED);
  ck_assert_uint_eq(lk_client_connection(c), 2);
}
END_TEST

TCase *limit_tests(void)
{
  TCase *t = tcase_create("limits");

  tcase_add_test(t, largest_request_that_a_server_accepts_is_sent);
  tcase_add_test(t, send_limit_is_configurable);
  tcase_add_test(t, outstanding_limit_refuses_further_requests);
  tcase_add_test(t, requests_complete_in_order);
  tcase_add_test(t, receive_limit_refuses_a_long_listing);
  return t;
}
