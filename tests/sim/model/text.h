/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SIM_MODEL_TEXT_H
#define LK_SIM_MODEL_TEXT_H

#include "jute/arena.h"

/** Text as a server has it after it was read, and as it will be said again:
    what is no UTF-8 has become U+FFFD, and what lies beyond the basic plane two
    characters. `text` itself if it is good; else from `memory`. */
lk_bytes sim_text_as_java(lk_bytes text, lk_arena *memory);

#endif
