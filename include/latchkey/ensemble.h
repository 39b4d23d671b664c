/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_ENSEMBLE_H
#define LK_ENSEMBLE_H

/**
 * @file
 * The configuration of an ensemble: its servers. Part of <latchkey/client.h>.
 */

#include <latchkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Read "/zookeeper/config", independent of the chroot. Its data is the text for
 * lk_config_next(), empty on a standalone server. `call` may set a watch, whose
 * event has this path. Errors: NO_NODE (servers before 3.5), NO_AUTH (READ).
 */
LK_API int lk_get_config(lk_client *c, const lk_call *call, lk_get_cb done,
                         void *arg);

/** A server of an ensemble; views into the text. */
typedef struct lk_server_entry {
  int64_t id;
  lk_bytes peers; /**< for the other servers, "host:2888:3888", several with "|"
                       between */
  bool observer;
  lk_bytes client_host; /**< for clients, no brackets; of length 0: the host
                             of `peers` */
  uint16_t client_port; /**< 0: not in the text */
  uint64_t reserved[2];
} lk_server_entry;

/**
 * Parse the next server of the text from lk_get_config(); `text` moves behind
 * it. Other lines are skipped, also those that a newer server may add.
 *
 * @return 1; 0: there are no more; LK_ERR_BAD_ARGUMENT: a malformed one was
 *         skipped.
 */
LK_API int lk_config_next(lk_bytes *text, lk_server_entry *out);

/** The version of that text, as in lk_reconfiguration.
    @return 0; LK_ERR_NO_NODE: it has none; LK_ERR_BAD_ARGUMENT. */
LK_API int lk_config_version(lk_bytes text, int64_t *out);

/** A change of an ensemble. Set `size`, `version`, and either `members`, or one
    or both of `joining` and `leaving`. */
typedef struct lk_reconfiguration {
  size_t size;         /**< sizeof(lk_reconfiguration) */
  const char *joining; /**< "server.4=host:2888:3888;2181", commas between */
  const char *leaving; /**< ids, commas between: "1,3" */
  const char *members; /**< all servers, as in `joining`, or one a line */
  int64_t version;     /**< the configuration must have this version, else
                            BAD_VERSION; -1: any. 0 is a version, too: there is
                            no default */
} lk_reconfiguration;

/**
 * Change the ensemble. `done` gets the new text. Needs reconfigEnabled on the
 * servers, else RECONFIG_DISABLED, and WRITE on "/zookeeper/config", which at
 * first only a super user has, else NO_AUTH. Other errors: BAD_VERSION;
 * NEW_CONFIG_NO_QUORUM (too few of those servers follow the leader already);
 * RECONFIG_IN_PROGRESS; BAD_ARGUMENT (the text of `joining` or `members`);
 * MARSHALLING (an id in `leaving` that is no number); UNIMPLEMENTED
 * (reconfigEnabled is set, but the server belongs to no ensemble). After
 * LK_ERR_IN_DOUBT, the version of lk_get_config() shows whether the ensemble
 * was changed. Since 3.5.0.
 */
LK_API int lk_reconfig(lk_client *c, const lk_reconfiguration *change,
                       const lk_call *call, lk_get_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
