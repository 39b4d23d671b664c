/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_RUN_SERVICE_MANAGER_H
#define LK_CLI_RUN_SERVICE_MANAGER_H

#include "cli/output/text.h"
#include "net/loop.h"

/**
 * Messages to the service manager that has started latchkey, in the protocol of
 * sd_notify(3): datagrams to the socket NOTIFY_SOCKET. A unit with Type=notify
 * counts as started when COMMAND is started. Until then, its start timeout is
 * extended again and again, as the wait for a lock may take any time.
 */
typedef struct cli_service_manager {
  int fd;              /**< connected to the socket; -1: there is no manager */
  bool is_ready;       /**< COMMAND was started at least once */
  bool told_ready;     /**< the manager has been told so */
  lk_loop *loop;       /**< in which `timer` runs; NULL: in none */
  lk_loop_timer timer; /**< for the next extension, or to tell READY again */
} cli_service_manager;

/** Connects to NOTIFY_SOCKET. Returns 0, also without that variable, or an
    errno. */
int cli_service_manager_open(cli_service_manager *m);
void cli_service_manager_close(cli_service_manager *m);

/** Extends the start timeout from now on, unless COMMAND was started before. */
void cli_service_manager_start_waiting(cli_service_manager *m, lk_loop *loop);
/** COMMAND was started. */
void cli_service_manager_ready(cli_service_manager *m);
/** Stops the timer; called before the loop is freed. */
void cli_service_manager_stop(cli_service_manager *m);

/** Shows `text`, one line in UTF-8, as the status of the service. What is
    longer than 4,000 bytes is cut off. NULL is ignored. */
void cli_service_manager_status(const cli_service_manager *m, const char *text);

#endif
