/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_SERVERS_H
#define LK_CLI_SERVERS_H

#include <latchkey/ev.h>

#include "cli/clocks.h"
#include "cli/findings.h"
#include "cli/knock.h"
#include "cli/options.h"
#include "cli/word.h"

typedef struct cli_servers cli_servers;

/** One server of the connect string, examined by itself: its door, and then a
    session of its own, closed at once. */
typedef struct cli_server {
  cli_servers *all;
  char *name; /**< "host:port" */
  const char *host;
  uint16_t port;
  cli_knock knock;
  cli_word word; /**< parts of what it answered */
  lk_client *client;
  lk_listener listener;
  int64_t timeout_ms; /**< of the session; 0: there was none */
  cli_text trouble;   /**< why there was none, as far as that is known */
  bool over;
} cli_server;

struct cli_servers {
  const cli_options *options;
  cli_server *items;
  size_t count;
  int err; /**< LK_ERR_NO_MEMORY, or of the system */
  bool done;
  struct ev_loop *loop;
  lk_ev *ev;
  ev_timer patience;
  ev_timer ticker;
};

/** Take the servers from the connect string. Gives the error; free it in any
    case. */
int cli_servers_open(cli_servers *s, const cli_options *o);
/** Examine all at once, for --connect-timeout at most. Gives the error. */
int cli_servers_examine(cli_servers *s, cli_clocks *clocks);
/** How many gave a session. */
size_t cli_servers_serving(const cli_servers *s);
void cli_servers_free(cli_servers *s);

/** Say what was found of each, and whether they belong together. */
void cli_servers_tell(const cli_servers *s, cli_findings *f);

#endif
