/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Identities and access lists, against a real server. */

#include "live/client/world.h"

START_TEST(creator_has_access_and_others_do_not)
{
  connect_here(with_chroot(_i));
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(create_as(here, "/bobs", lk_acl_creator(), LK_PERSISTENT),
                   0);
  ck_assert_int_eq(get(here, "/bobs"), 0);
  ck_assert_int_eq(get(there, absolute("/bobs")), LK_ERR_NO_AUTH);
  ck_assert_int_eq(children(there, absolute("/bobs")), LK_ERR_NO_AUTH);
  ck_assert_int_eq(set(there, absolute("/bobs"), lk_text("x"), -1),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(create(there, absolute("/bobs/x"), "", LK_PERSISTENT),
                   LK_ERR_NO_AUTH);
  ck_assert_int_eq(create(here, "/bobs/x", "", LK_PERSISTENT), 0);
  ck_assert_int_eq(delete_node(there, absolute("/bobs/x"), -1), LK_ERR_NO_AUTH);
  /* The server checks no password: it computes the id from user and password,
     so a wrong password gives another id. */
  ck_assert_int_eq(add_auth(there, "digest", "bob:wrong"), 0);
  ck_assert_int_eq(get(there, absolute("/bobs")), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(there, "digest", "bob:secret"), 0);
  ck_assert_int_eq(get(there, absolute("/bobs")), 0);
  ck_assert_int_eq(delete_node(there, absolute("/bobs/x"), -1), 0);
  ck_assert_int_eq(delete_node(here, "/bobs", -1), 0);
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

  connect_here(with_chroot(_i));
  ck_assert_int_eq(create_as(here, "/mixed", &acl, LK_PERSISTENT), 0);
  ck_assert_int_eq(get(here, "/mixed"), 0);
  ck_assert_int_eq(set(here, "/mixed", lk_text("x"), -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(add_auth(here, "digest", "bob:secret"), 0);
  ck_assert_int_eq(set(here, "/mixed", lk_text("x"), -1), 0);
  ck_assert_int_eq(create_as(here, "/readable", lk_acl_read(), LK_PERSISTENT),
                   0);
  ck_assert_int_eq(get(there, absolute("/readable")), 0);
  ck_assert_int_eq(set(here, "/readable", lk_text("x"), -1), LK_ERR_NO_AUTH);
  ck_assert_int_eq(delete_node(here, "/readable", -1), 0);
  ck_assert_int_eq(delete_node(here, "/mixed", -1), 0);
}
END_TEST

START_TEST(add_auth_is_sent_before_earlier_requests)
{
  lk_client_config config;
  completion early_get = {0};
  lk_client *c;

  connect_here(with_chroot(_i));
  ck_assert_int_eq(add_auth(here, "digest", "eve:x"), 0);
  ck_assert_int_eq(create_as(here, "/eves", lk_acl_creator(), LK_PERSISTENT),
                   0);
  config = config_of(chroot_path);
  c = client_of(&config);
  ck_assert_int_eq(lk_get(c, "/eves", NULL, on_get, &early_get), 0);
  ck_assert_int_eq(lk_add_auth(c, "digest", lk_text("eve:x"), NULL, NULL), 0);
  wait_until(&early_get.done);
  ck_assert_int_eq(early_get.err, 0);
  ck_assert_int_eq(delete_node(here, "/eves", -1), 0);
}
END_TEST

START_TEST(refused_credentials_are_final)
{
  completion earlier_get = {0};

  connect_here(with_chroot(_i));
  wait_for_state(here, LK_STATE_CONNECTED);
  ck_assert_int_eq(lk_get(here, "/", NULL, on_get, &earlier_get), 0);
  ck_assert_int_eq(add_auth(here, "nosuch", "x"), LK_ERR_AUTH_FAILED);
  wait_for_state(here, LK_STATE_CLOSED);
  wait_until(&earlier_get.done); /* with success or an error */
  ck_assert_int_eq(get(here, "/"), LK_ERR_AUTH_FAILED);
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

  add_tests_without_and_with_chroot(t, tests, sizeof tests / sizeof tests[0]);
  return t;
}
