/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <latchkey/driver.h>
#include <latchkey/sasl.h>
#include <latchkey/version.h>

#include <stdio.h>

#include "support/suite.h"

START_TEST(library_has_the_version_of_its_headers)
{
  char text[32];

  snprintf(text, sizeof text, "%d.%d.%d", LK_VERSION_NUMBER >> 16,
           LK_VERSION_NUMBER >> 8 & 0xff, LK_VERSION_NUMBER & 0xff);
  ck_assert_str_eq(lk_version(), LK_VERSION);
  ck_assert_str_eq(lk_version(), text);
  ck_assert_str_eq(lk_version(), PACKAGE_VERSION);
}
END_TEST

START_TEST(features_are_those_of_the_build)
{
  bool has_tls = (lk_features() & LK_FEATURE_TLS) != 0;
  bool has_md5 = (lk_features() & LK_FEATURE_DIGEST_MD5) != 0;

  ck_assert(has_tls == (lk_transport_tls() != NULL));
#ifdef LK_WITH_GSASL
  ck_assert(has_md5);
#else
  ck_assert(!has_md5);
#endif
  ck_assert_uint_lt(lk_features(), 4);
}
END_TEST

SUITE("version", library_has_the_version_of_its_headers,
      features_are_those_of_the_build)
