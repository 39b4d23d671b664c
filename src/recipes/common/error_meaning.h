/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_RECIPES_COMMON_ERROR_MEANING_H
#define LK_RECIPES_COMMON_ERROR_MEANING_H

#include <latchkey/error.h>

/** What an error of a request means, where it is none of the recipe's. */
typedef enum lk_error_advice {
  LK_ADVICE_AWAIT_CONNECTION, /**< the connection is gone; news of the next will
                                 come */
  LK_ADVICE_RETRY_LATER,      /**< not executed, ask again later */
  LK_ADVICE_GIVE_UP
} lk_error_advice;

lk_error_advice lk__error_advice(int err);

#endif
