/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_DOCTOR_SERVER_CHECKS_H
#define LK_CLI_DOCTOR_SERVER_CHECKS_H

#include "cli/doctor/clock_check.h"
#include "cli/doctor/four_letter_word.h"
#include "cli/doctor/port_check.h"
#include "cli/doctor/report.h"
#include "cli/options/options.h"
#include "net/driver.h"

typedef struct cli_server_checks cli_server_checks;

/** One server of the connect string: first the check of its port, then a
    session, which is closed at once. */
typedef struct cli_server_check {
  cli_server_checks *checks; /**< of which this check is an item */
  char *name;                /**< "host:port" */
  const char *host;          /**< points into the memory of `name` */
  uint16_t port;
  cli_port_check port_check;
  cli_four_letter_reply reply; /**< points into the result of `port_check` */
  lk_client *client;           /**< NULL: not created yet, or freed */
  lk_listener listener;
  int64_t timeout_ms; /**< timeout of the session; 0: no session */
  int failure_err;    /**< why there was no session; 0: not known */
  cli_text failure;   /**< the same in words */
  bool finished;      /**< the check of this server has ended */
} cli_server_check;

struct cli_server_checks {
  const cli_options *options;
  lk_tls_config tls; /**< of the options */
  cli_server_check *items;
  size_t count;
  int err;   /**< LK_ERR_NO_MEMORY or LK_ERR_SYSTEM */
  bool done; /**< the checks of all servers have ended */
  lk_loop *loop;
  lk_driver driver;
  lk_loop_timer connect_timer; /**< time limit of all checks */
  lk_loop_timer ticker;        /**< looks for servers that refuse a session */
};

/** Reads the servers from the connect string. Returns the error;
    cli_server_checks_free() is needed in any case. */
int cli_server_checks_open(cli_server_checks *s, const cli_options *o);
/** Checks all servers at once, for --connect-timeout at most. Returns the
    error. */
int cli_server_checks_run(cli_server_checks *s, cli_clock_check *clocks);
/** Called by port_check.c: the result of `port_check` is complete. */
void cli_server_check_on_port_checked(cli_server_check *check);
/** Returns the number of servers that gave a session. */
size_t cli_server_checks_count_serving(const cli_server_checks *s);
void cli_server_checks_free(cli_server_checks *s);

#endif
