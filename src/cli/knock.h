/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_KNOCK_H
#define LK_CLI_KNOCK_H

#include <ev.h>
#include <sys/types.h>

#include <latchkey/tls.h>

#include "cli/text.h"

/**
 * @file
 * Knocking at a server's door, before any session: look its name up, connect,
 * by TLS if that is selected, ask a four-letter word. A child process does it,
 * which is killed when it takes too long: looking up a name can wait for ever.
 */

/** How far it went. */
typedef enum cli_knock_stage {
  CLI_KNOCK_NAMING,  /**< the name is being looked up */
  CLI_KNOCK_NO_NAME, /**< `text`: why it is nobody's */
  CLI_KNOCK_CALLING, /**< `address` is being connected to */
  CLI_KNOCK_CLOSED,  /**< `text`: why no address can be connected to */
  CLI_KNOCK_SHAKING, /**< TCP is connected, and the TLS handshake does not end
                      */
  CLI_KNOCK_NO_TLS,  /**< `text`: why TLS failed; and see `cause` */
  CLI_KNOCK_OPEN,    /**< connected and asked, and nothing came */
  CLI_KNOCK_HUNG_UP, /**< connected and asked, and it hung up */
  CLI_KNOCK_ANSWERED /**< `text`: what it said */
} cli_knock_stage;

/** What the child has to tell; small enough to be written in one piece. */
typedef struct cli_knock_news {
  cli_knock_stage stage;
  size_t len; /**< of `text`, which has no NUL */
  bool other; /**< the port speaks TLS where TCP was tried, or the reverse */
  bool tls;   /**< `connection` is known */
  lk_tls_cause cause;
  lk_tls_connection connection;
  char address[80];
  char text[2048];
} cli_knock_news;

typedef struct cli_knock {
  void (*over)(struct cli_knock *k, void *arg); /**< told once, by the loop */
  void *arg;
  cli_knock_news news; /**< the last */
  pid_t pid;
  struct ev_loop *loop; /**< NULL: it is over */
  ev_io watcher;
} cli_knock;

/** Knock at `host` for `patience_ms` at most; `tls` NULL: by plain TCP. Zero it
    and set `over` first. 0, or an errno. */
int cli_knock_begin(cli_knock *k, const char *host, uint16_t port,
                    const lk_tls_config *tls, int64_t patience_ms,
                    struct ev_loop *loop);
/** End it, however far it went. */
void cli_knock_end(cli_knock *k);

#endif
