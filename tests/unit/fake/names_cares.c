/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "unit/fake/names.h"

#include <ares.h>
#include <check.h>

/* Each channel uses the name server of the test. */

int __real_ares_init_options(ares_channel *channel,
                             struct ares_options *options, int mask);
int __wrap_ares_init_options(ares_channel *channel,
                             struct ares_options *options, int mask);

int __wrap_ares_init_options(ares_channel *channel,
                             struct ares_options *options, int mask)
{
  char server[32];

  if (fake_names_no_memory)
    return ARES_ENOMEM;
  if (fake_names_query_timeout_ms > 0) {
    options->timeout = fake_names_query_timeout_ms;
    mask |= ARES_OPT_TIMEOUTMS;
  }
  int status = __real_ares_init_options(channel, options, mask);

  fake_names_server(server, sizeof server);
  if (status == ARES_SUCCESS)
    ck_assert_int_eq(ares_set_servers_ports_csv(*channel, server),
                     ARES_SUCCESS);
  return status;
}
