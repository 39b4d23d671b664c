/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_ENGINE_LOG_H
#define LK_PROTO_ENGINE_LOG_H

#include <latchkey/client.h>

/** Log a line, with a format as in printf(). `level` is a lk_log_level; `err`
    is the error of the message, or 0. */
void lk__client_logf(const lk_client *c, int level, int err, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

#endif
