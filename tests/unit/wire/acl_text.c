/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* Access lists as text, and the ids of the scheme digest. */

#include <latchkey/acl.h>

#include "base/sha1.h"
#include "support/failing_mem.h"
#include "support/suite.h"

#include <stdio.h>

static lk_acls *acl;
static const char *error_at; /* in the text; NULL: there is no error */

static int parse(const char *text)
{
  return lk_acl_parse(&acl, text, NULL, &error_at);
}

static void assert_entry(size_t i, const char *scheme, const char *id,
                         int32_t perms)
{
  const lk_acl *entry = &acl->entries[i];

  ck_assert_uint_lt(i, acl->count);
  ck_assert_uint_eq(entry->scheme.len, strlen(scheme));
  ck_assert_mem_eq(entry->scheme.at, scheme, strlen(scheme));
  ck_assert_ptr_nonnull(entry->id.at);
  ck_assert_uint_eq(entry->id.len, strlen(id));
  ck_assert_mem_eq(entry->id.at, id, strlen(id));
  ck_assert_int_eq(entry->perms, perms);
}

START_TEST(entries_are_scheme_id_and_perms)
{
  ck_assert_int_eq(
      parse("world:anyone:cdrwa,digest:bob:HASH=:rw,auth::a,ip:::1:5"), 0);
  ck_assert_ptr_null(error_at);
  ck_assert_uint_eq(acl->count, 4);
  assert_entry(0, "world", "anyone", LK_PERM_ALL);
  assert_entry(1, "digest", "bob:HASH=", LK_PERM_READ | LK_PERM_WRITE);
  assert_entry(2, "auth", "", LK_PERM_ADMIN);
  assert_entry(3, "ip", "::1", LK_PERM_READ | LK_PERM_CREATE);
  lk_acl_free(acl, NULL);
}
END_TEST

START_TEST(perms_are_letters_or_a_number)
{
  static const struct {
    const char *text;
    int32_t perms;
  } table[] = {{"a:b:c", LK_PERM_CREATE},
               {"a:b:d", LK_PERM_DELETE},
               {"a:b:r", LK_PERM_READ},
               {"a:b:w", LK_PERM_WRITE},
               {"a:b:a", LK_PERM_ADMIN},
               {"a:b:rrr", LK_PERM_READ},
               {"a:b:0", 0},
               {"a:b:31", LK_PERM_ALL},
               {"a:b:2147483647", INT32_MAX}};

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    ck_assert_int_eq(parse(table[i].text), 0);
    assert_entry(0, "a", "b", table[i].perms);
    lk_acl_free(acl, NULL);
  }
}
END_TEST

START_TEST(an_id_may_have_commas)
{
  ck_assert_int_eq(parse("x509:CN=alice,O=Ex:cdrwa,world:anyone:r"), 0);
  ck_assert_uint_eq(acl->count, 2);
  assert_entry(0, "x509", "CN=alice,O=Ex", LK_PERM_ALL);
  assert_entry(1, "world", "anyone", LK_PERM_READ);
  lk_acl_free(acl, NULL);
}
END_TEST

START_TEST(error_of_an_access_list_names_its_place)
{
  static const struct {
    const char *text;
    size_t at; /* the position of the error */
  } table[] = {
      {"", 0},
      {"world", 0},
      {"world:anyone", 0},
      {"world:anyone:", 0},
      {"world:anyone:x", 0},
      {"world:anyone:r1", 0},
      {":anyone:r", 0},
      {"a:b:r,", 6},
      {"a:b:r,,c:d:r", 6},
      {",a:b:r", 0},
      {"a:b:2147483648", 0},
      {"a:b:99999999999999999999", 0},
      {"a:b:-1", 0},
      /* A missing or misspelt part must not turn two entries into one. */
      {"world:anyone,digest:bob:x:r", 0},
      {"world:anyone:cdrwq,digest:bob:x:r", 0},
      {"a:b:r,world:anyone:q,ip:1:r", 6}};

  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    ck_assert_int_eq(parse(table[i].text), LK_ERR_BAD_ARGUMENT);
    ck_assert_ptr_null(acl);
    ck_assert_uint_eq((size_t)(error_at - table[i].text), table[i].at);
  }
  ck_assert_int_eq(lk_acl_parse(&acl, "x", NULL, NULL), LK_ERR_BAD_ARGUMENT);
}
END_TEST

START_TEST(access_list_is_written_as_it_is_read)
{
  char text[100];
  lk_acl entries[] = {{LK_PERM_ALL, lk_text("world"), lk_text("anyone")},
                      {0, lk_text("auth"), lk_text("")},
                      {32, lk_text("a"), lk_text(NULL)},
                      {-1, lk_text("b"), lk_text("x,y")}};
  lk_acls list = {entries, 4};
  /* Perms that are not a set of letters are written as a number. */
  const char *whole = "world:anyone:cdrwa,auth::0,a::32,b:x,y:-1";

  ck_assert_uint_eq(lk_acl_print(text, sizeof text, &list), strlen(whole));
  ck_assert_str_eq(text, whole);
  ck_assert_uint_eq(lk_acl_print(NULL, 0, &list), strlen(whole));
  for (size_t size = 1; size <= strlen(whole) + 1; size++) {
    memset(text, '!', sizeof text);
    ck_assert_uint_eq(lk_acl_print(text, size, &list), strlen(whole));
    ck_assert_uint_eq(strlen(text), size - 1);
    ck_assert_mem_eq(text, whole, size - 1);
    ck_assert_int_eq(text[size], '!'); /* nothing is written behind `size` */
  }
  list.count = 0;
  ck_assert_uint_eq(lk_acl_print(text, sizeof text, &list), 0);
  ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(access_list_without_memory_is_refused)
{
  failing_mem mem;

  failing_mem_init(&mem);
  mem.fail_at = 1;
  ck_assert_int_eq(lk_acl_parse(&acl, "a:b:r", &mem.mem, &error_at),
                   LK_ERR_NO_MEMORY);
  ck_assert_ptr_null(acl);
  ck_assert_int_eq(lk_acl_parse(&acl, "a:b:r", &mem.mem, &error_at), 0);
  lk_acl_free(acl, &mem.mem);
  lk_acl_free(NULL, &mem.mem);
  ck_assert_uint_eq(mem.live, 0);
}
END_TEST

static void assert_sha1(const void *bytes, size_t len, const char *hex)
{
  unsigned char out[LK_SHA1_LEN];
  char text[2 * LK_SHA1_LEN + 1];

  lk__sha1(bytes, len, out);
  for (size_t i = 0; i < LK_SHA1_LEN; i++)
    sprintf(text + 2 * i, "%02x", out[i]);
  ck_assert_str_eq(text, hex);
}

/* The vectors of FIPS 180. */
START_TEST(sha1_matches_the_published_vectors)
{
  char *million = malloc(1000000);

  assert_sha1("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  assert_sha1("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
  assert_sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  memset(million, 'a', 1000000);
  assert_sha1(million, 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  free(million);
}
END_TEST

/* These lengths include all around the end of SHA-1's block of 64 bytes. The
   expected hash is that of the last one of the chain. */
START_TEST(sha1_of_each_length_up_to_200_is_right)
{
  unsigned char bytes[LK_SHA1_LEN * 200];

  memset(bytes, 0x5a, sizeof bytes);
  for (size_t len = 0; len < 200; len++)
    lk__sha1(bytes + LK_SHA1_LEN, len, bytes);
  assert_sha1(bytes, sizeof bytes, "b88061a41e38de531ee5cbd6f031646c66254f1b");
}
END_TEST

START_TEST(digest_is_the_one_that_servers_compute)
{
  enum { BASE64_LEN = 28 }; /* of a SHA-1 */
  char out[40];

  ck_assert_int_eq(lk_acl_digest(out, sizeof out, "bob:secret"), 0);
  ck_assert_str_eq(out, "bob:fyVmFCwVbTJYrznoSu1koqYEYF0=");
  ck_assert_int_eq(lk_acl_digest(out, sizeof out, "super:test"), 0);
  ck_assert_str_eq(out, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
  /* The first colon ends the name, so the password is "b:c". */
  ck_assert_int_eq(lk_acl_digest(out, sizeof out, "a:b:c"), 0);
  ck_assert_mem_eq(out, "a:", 2);
  ck_assert_uint_eq(strlen(out), strlen("a:") + BASE64_LEN);
  ck_assert_int_eq(lk_acl_digest(out, sizeof out, "bob"), LK_ERR_BAD_ARGUMENT);
  ck_assert_int_eq(lk_acl_digest(out, sizeof out, ":x"), LK_ERR_BAD_ARGUMENT);
  const size_t needed = strlen("bob:") + BASE64_LEN + 1;

  ck_assert_int_eq(lk_acl_digest(out, needed, "bob:secret"), 0);
  ck_assert_int_eq(lk_acl_digest(out, needed - 1, "bob:secret"),
                   LK_ERR_TOO_BIG);
}
END_TEST

START_TEST(list_does_not_point_into_its_text)
{
  char text[] = "world:anyone:r,digest:bob:HASH=:rw";

  ck_assert_int_eq(parse(text), 0);
  memset(text, 'x', sizeof text - 1);
  assert_entry(0, "world", "anyone", LK_PERM_READ);
  assert_entry(1, "digest", "bob:HASH=", LK_PERM_READ | LK_PERM_WRITE);
  lk_acl_free(acl, NULL);
}
END_TEST

SUITE("acl_text", entries_are_scheme_id_and_perms,
      perms_are_letters_or_a_number, an_id_may_have_commas,
      error_of_an_access_list_names_its_place,
      access_list_is_written_as_it_is_read,
      access_list_without_memory_is_refused, sha1_matches_the_published_vectors,
      sha1_of_each_length_up_to_200_is_right,
      digest_is_the_one_that_servers_compute, list_does_not_point_into_its_text)
