/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/options/tls_options.h"
#include "support/suite.h"
#include "unit/cli/expected_text.h"

#include <stdlib.h>

START_TEST(option_of_tls_wins_over_the_environment)
{
  cli_tls_options t = {.selected = true};

  setenv("LATCHKEY_TLS_CACERT", "ca", 1);
  setenv("LATCHKEY_TLS_CERT", "cert", 1);
  setenv("LATCHKEY_TLS_KEY", "key", 1);
  setenv("LATCHKEY_TLS_KEY_PASSWORD_FILE", "password", 1);
  setenv("LATCHKEY_TLS_CRL", "", 1);
  setenv("LATCHKEY_TLS_NAME", "name", 1);
  lk_tls_config c = cli_tls_config(&t);

  ck_assert_str_eq(c.ca_file, "ca");
  ck_assert_str_eq(c.cert_file, "cert");
  ck_assert_str_eq(c.key_file, "key");
  ck_assert_str_eq(c.password_file, "password");
  ck_assert_str_eq(c.server_name, "name");
  ck_assert_ptr_null(c.crl_file);
  t.items[CLI_TLS_CACERT] = "other";
  t.items[CLI_TLS_KEY] = "other key";
  c = cli_tls_config(&t);
  ck_assert_str_eq(c.ca_file, "other");
  ck_assert_str_eq(c.key_file, "other key");
  ck_assert_str_eq(c.cert_file, "cert");
  ck_assert_ptr_null(c.password_file);
  t.items[CLI_TLS_KEY] = NULL;
  t.items[CLI_TLS_CERT] = "other cert";
  c = cli_tls_config(&t);
  ck_assert_str_eq(c.cert_file, "other cert");
  ck_assert_ptr_null(c.key_file);
  ck_assert_ptr_null(c.password_file);
  unsetenv("LATCHKEY_TLS_CACERT");
  unsetenv("LATCHKEY_TLS_CERT");
  unsetenv("LATCHKEY_TLS_KEY");
  unsetenv("LATCHKEY_TLS_KEY_PASSWORD_FILE");
  unsetenv("LATCHKEY_TLS_CRL");
  unsetenv("LATCHKEY_TLS_NAME");
}
END_TEST

START_TEST(command_line_that_is_suggested_has_the_options_of_tls)
{
  cli_tls_options t = {.selected = true,
                       .items = {[CLI_TLS_CACERT] = "ca.pem"}};
  cli_text out = {0};

  cli_tls_add_servers(&t, "a:1,b/x/y", &out);
  cli_tls_add_options(&t, &out);
  expect_text(&out, "tls://a:1,b --cacert ca.pem");
  t = (cli_tls_options){.selected = true, .insecure = true};
  cli_tls_add_servers(&t, "tls://a:1/x", &out);
  cli_tls_add_options(&t, &out);
  expect_text(&out, "tls://a:1 --insecure");
  t = (cli_tls_options){0};
  cli_tls_add_servers(&t, "a:1/x", &out);
  cli_tls_add_options(&t, &out);
  expect_text(&out, "a:1");
}
END_TEST

SUITE("tls_options", option_of_tls_wins_over_the_environment,
      command_line_that_is_suggested_has_the_options_of_tls)
