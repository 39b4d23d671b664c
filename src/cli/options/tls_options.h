/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_OPTIONS_TLS_OPTIONS_H
#define LK_CLI_OPTIONS_TLS_OPTIONS_H

#include <latchkey/tls.h>

#include "cli/output/text.h"

/**
 * @file
 * What the command line and the environment say of TLS. TLS is selected by
 * "tls://" in front of the servers and by each option of TLS; the variables of
 * the environment only describe it.
 */

/** What both can say; an option wins over its variable. */
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
  bool selected; /**< one of them was given */
  bool insecure;
  const char *items[CLI_TLS_COUNT]; /**< NULL: not given */
} cli_tls_options;

/** Whether the connections to `hosts`, a connect string, use TLS. */
bool cli_tls_is_selected(const cli_tls_options *t, const char *hosts);

/** What is trusted and shown. Texts are borrowed. */
lk_tls_config cli_tls_config(const cli_tls_options *t);

/** If TLS is selected, check that this build has it, that the options fit
    together, and that the files can be used. False, with one line in
    `complaint`. */
bool cli_tls_check(const cli_tls_options *t, const char *hosts,
                   cli_text *complaint);

/** Print the line that --insecure prints at each run, and, unless `quiet`, one
    for a variable that describes TLS where TLS is not selected. */
void cli_tls_warn(const cli_tls_options *t, const char *hosts, bool quiet);

/** `hosts` without "tls://". */
const char *cli_tls_behind_scheme(const char *hosts);

/** Append `hosts` with "tls://" in front of it, if TLS is selected, up to the
    chroot. */
void cli_tls_add_servers(const cli_tls_options *t, const char *hosts,
                         cli_text *out);

/** Append the options that were given, for a command line to suggest. */
void cli_tls_add_options(const cli_tls_options *t, cli_text *out);

/** As lk_hosts_each(), with the default port of TLS where it is selected. */
int cli_tls_hosts_each(const cli_tls_options *t, const char *hosts,
                       void (*each)(const char *host, uint16_t port, void *arg),
                       void *arg);

#endif
