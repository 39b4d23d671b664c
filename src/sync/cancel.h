/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CANCEL_H
#define LK_SYNC_CANCEL_H

#include "sync/handle.h"

struct lk_sync_cancel {
  lk_sync_client *client;
  atomic_bool set; /**< calls with this cancel are interrupted */
};

#endif
