/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_ERROR_MEANING_H
#define LK_RECIPES_COMMON_ERROR_MEANING_H

#include <latchkey/error.h>

/** What an error of a request means, where it is none of the recipe's. */
typedef enum lk_trouble {
  LK_TROUBLE_BROKEN, /**< the connection is gone; news of the next will come */
  LK_TROUBLE_BUSY,   /**< not executed, ask again later */
  LK_TROUBLE_FATAL
} lk_trouble;

lk_trouble lk__trouble_of(int err);

#endif
