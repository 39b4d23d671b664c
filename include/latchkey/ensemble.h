/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_ENSEMBLE_H
#define LK_ENSEMBLE_H

/**
 * @file
 * Which servers there are: the configuration of an ensemble, read, watched and
 * changed. Part of <latchkey/client.h>.
 */

#include <latchkey/request.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Read "/zookeeper/config", whatever the chroot; its data is the text that
 * lk_config_next() takes apart, empty on a server without ensemble. May watch;
 * the event has that very path. NO_NODE (before 3.5), NO_AUTH (READ).
 */
LK_API int lk_get_config(lk_client *c, const lk_call *call, lk_get_cb done,
                         void *arg);

/** A change of an ensemble. Set `size`. Either `members`, or one or both of the
    others. */
typedef struct lk_reconfiguration {
  size_t size;         /**< sizeof(lk_reconfiguration) */
  const char *joining; /**< "server.4=host:2888:3888;2181", commas between */
  const char *leaving; /**< ids, commas between: "1,3" */
  const char *members; /**< all there are then, as in `joining` */
  int64_t version; /**< the configuration must have this one, -1: any. Others
                        get BAD_VERSION */
} lk_reconfiguration;

/**
 * Change the ensemble. `done` gets the new text. Needs reconfigEnabled on the
 * servers, else RECONFIG_DISABLED, and WRITE on "/zookeeper/config", which at
 * first only a super user has, else NO_AUTH. BAD_VERSION;
 * NEW_CONFIG_NO_QUORUM; RECONFIG_IN_PROGRESS; BAD_ARGUMENTS (the text);
 * UNIMPLEMENTED without an ensemble. Since 3.5.0.
 */
LK_API int lk_reconfig(lk_client *c, const lk_reconfiguration *change,
                       const lk_call *call, lk_get_cb done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
