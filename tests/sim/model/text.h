/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_TEXT_H
#define LK_SIM_MODEL_TEXT_H

#include "jute/arena.h"

/** Text as a Java server stores and returns it: invalid UTF-8 becomes U+FFFD,
    and a character beyond the basic plane becomes two surrogates. Returns
    `text` itself if nothing changes; otherwise memory of `memory`. */
lk_bytes sim_text_as_java(lk_bytes text, lk_arena *memory);

#endif
