/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Identities and access lists, against a real server. */

#include "live/client/world.h"

START_TEST(creator_has_access_and_others_do_not)
{
  world_enter(_i);
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(create_as(here, "/bobs", &lk_acl_creator, 0), 0);
  ck_assert_int_eq(get(here, "/bobs", NULL), 0);
  ck_assert_int_eq(get(there, full("/bobs"), NULL), LK_ERR_NO_AUTH);
  ck_assert_int_eq(children(there, full("/bobs"), NULL), LK_ERR_NO_AUTH);
  ck_assert_int_eq(set(there, full("/bobs"), lk_text("x"), -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(create(there, full("/bobs/x"), "", 0), LK_ERR_NO_AUTH);
  ck_assert_int_eq(create(here, "/bobs/x", "", 0), 0);
  ck_assert_int_eq(erase(there, full("/bobs/x"), -1), LK_ERR_NO_AUTH);
  /* The server checks no password: it computes the id from user and password,
     so a wrong password gives another id. */
  ck_assert_int_eq(add_auth(there, "digest", "bob:wrong"), 0);
  ck_assert_int_eq(get(there, full("/bobs"), NULL), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(there, "digest", "bob:secret"), 0);
  ck_assert_int_eq(get(there, full("/bobs"), NULL), 0);
  ck_assert_int_eq(erase(there, full("/bobs/x"), -1), 0);
  ck_assert_int_eq(erase(here, "/bobs", -1), 0);
}
END_TEST

START_TEST(access_list_is_stored_unchanged)
{
  lk_acl entries[] = {
      {LK_PERM_READ, lk_text("world"), lk_text("anyone")},
      {LK_PERM_ALL, lk_text("digest"),
       lk_text("bob:fyVmFCwVbTJYrznoSu1koqYEYF0=")},
  };
  lk_acls acl = {entries, 2};

  world_enter(_i);
  ck_assert_int_eq(create_as(here, "/mixed", &acl, 0), 0);
  ck_assert_int_eq(get(here, "/mixed", NULL), 0);
  ck_assert_int_eq(set(here, "/mixed", lk_text("x"), -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(set(here, "/mixed", lk_text("x"), -1), 0);
  ck_assert_int_eq(create_as(here, "/readable", &lk_acl_read, 0), 0);
  ck_assert_int_eq(get(there, full("/readable"), NULL), 0);
  ck_assert_int_eq(set(here, "/readable", lk_text("x"), -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(erase(here, "/readable", -1), 0);
  ck_assert_int_eq(erase(here, "/mixed", -1), 0);
}
END_TEST

START_TEST(add_auth_is_sent_before_earlier_requests)
{
  lk_client_config config;
  completion a = {0};
  lk_client *c;

  world_enter(_i);
  ck_assert_int_eq(add_auth(here, "digest", "eve:x"), 0);
  ck_assert_int_eq(create_as(here, "/eves", &lk_acl_creator, 0), 0);
  config = config_of(chroot_path);
  c = client_of(&config);
  ck_assert_int_eq(lk_get(c, "/eves", NULL, on_get, &a), 0);
  ck_assert_int_eq(lk_add_auth(c, "digest", lk_text("eve:x"), NULL, NULL), 0);
  wait_until(&a.done);
  ck_assert_int_eq(a.err, 0);
  ck_assert_int_eq(erase(here, "/eves", -1), 0);
}
END_TEST

START_TEST(refused_credentials_are_final)
{
  completion a = {0};

  world_enter(_i);
  wait_for_state(here, LK_STATE_CONNECTED);
  ck_assert_int_eq(lk_get(here, "/", NULL, on_get, &a), 0);
  ck_assert_int_eq(add_auth(here, "nosuch", "x"), LK_ERR_AUTH_FAILED);
  wait_for_state(here, LK_STATE_AUTH_FAILED);
  wait_until(&a.done);
  ck_assert_int_eq(get(here, "/", NULL), LK_ERR_AUTH_FAILED);
  ck_assert_int_eq(add_auth(here, "digest", "a:b"), LK_ERR_AUTH_FAILED);
}
END_TEST

TCase *access_tests(void)
{
  const TTest *const tests[] = {
      creator_has_access_and_others_do_not,
      access_list_is_stored_unchanged,
      add_auth_is_sent_before_earlier_requests,
      refused_credentials_are_final,
  };
  TCase *t = tcase_create("access");

  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
    tcase_add_loop_test(t, tests[i], 0, 2);
  return t;
}
