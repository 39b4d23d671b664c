/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_TLS_OPTIONS_H
#define LK_CLI_OPTIONS_TLS_OPTIONS_H

#include <latchkey/tls.h>

#include "cli/output/text.h"

/**
 * @file
 * The TLS settings from the command line and the environment. "tls://" in front
 * of the servers selects TLS, and so does each TLS option; the environment
 * variables do not select it.
 */

/** The settings that have both an option and an environment variable; the
    option has precedence. */
typedef enum cli_tls_item {
  CLI_TLS_CACERT,
  CLI_TLS_CRL,
  CLI_TLS_CERT,
  CLI_TLS_KEY,
  CLI_TLS_KEY_PASSWORD_FILE,
  CLI_TLS_NAME,
  CLI_TLS_COUNT
} cli_tls_item;

/** The options of TLS, as they were given. */
typedef struct cli_tls_options {
  bool selected; /**< an option of TLS was given */
  bool insecure; /**< --insecure: any server certificate is accepted */
  const char *items[CLI_TLS_COUNT]; /**< NULL: not given */
} cli_tls_options;

/** Whether the connections to `hosts`, a connect string, use TLS. */
bool cli_tls_is_selected(const cli_tls_options *t, const char *hosts);

/** Returns the configuration for lk_client_config.tls. Its texts are borrowed
    from `t` and the environment. */
lk_tls_config cli_tls_config(const cli_tls_options *t);

/** If TLS is selected, checks that this build has it, that the options fit
    together, and that the files can be used. On false, `complaint` gets one
    line. */
bool cli_tls_check(const cli_tls_options *t, const char *hosts,
                   cli_text *complaint);

/** Prints a warning if --insecure is given, also if `quiet`. Unless `quiet`,
    prints a warning if a variable describes TLS and TLS is not selected. */
void cli_tls_warn(const cli_tls_options *t, const char *hosts, bool quiet);

/** Returns `hosts` without "tls://"; `hosts` itself if it begins otherwise. */
const char *cli_tls_behind_scheme(const char *hosts);

/** Appends `hosts` up to the chroot, with "tls://" in front of it if TLS is
    selected. */
void cli_tls_add_servers(const cli_tls_options *t, const char *hosts,
                         cli_text *out);

/** Appends the given TLS options, for a suggested command line. */
void cli_tls_add_options(const cli_tls_options *t, cli_text *out);

/** Calls lk_hosts_each(). The default port is that of TLS if TLS is selected.
 */
int cli_tls_hosts_each(const cli_tls_options *t, const char *hosts,
                       void (*each)(const char *host, uint16_t port, void *arg),
                       void *arg);

#endif
