/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SYNC_CLIENT_THREAD_H
#define LK_SYNC_CLIENT_THREAD_H

#include "sync/handle.h"

/** The main function of the thread of the handle, which runs until the handle
    is freed. `c` is a lk_sync_client. */
void *lk__sync_thread_main(void *c);

#endif
