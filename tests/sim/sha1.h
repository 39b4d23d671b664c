/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_SHA1_H
#define LK_SIM_SHA1_H

#include <stddef.h>

/** The base64 of the SHA-1 of some bytes: 28 letters and a NUL. */
void sim_sha1_text(const void *bytes, size_t len, char out[29]);

#endif
