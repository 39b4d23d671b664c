/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_BASE_ERROR_MEANING_H
#define LK_BASE_ERROR_MEANING_H

/**
 * @file
 * The meaning of each error: the outcome of the request, and the next action of
 * its sender.
 */

/** The outcome of a write that completed with an error. */
typedef enum lk_outcome {
  LK_OUTCOME_EXECUTED,
  LK_OUTCOME_REFUSED,  /**< a server checked it after all writes that
                            were ordered before it, and refused it */
  LK_OUTCOME_NOT_DONE, /**< it was not sent, or a server refused it before it
                            was ordered */
  LK_OUTCOME_IN_DOUBT,
  LK_OUTCOME_ABANDONED /**< in doubt, and the client does not find out */
} lk_outcome;

/** The next action of the sender of the request. */
typedef enum lk_advice {
  LK_ADVICE_AWAIT_CONNECTION, /**< wait until the client reports a new
                                   connection, or that it has ended */
  LK_ADVICE_RETRY_LATER,      /**< send it again after a pause */
  LK_ADVICE_GIVE_UP
} lk_advice;

typedef struct lk_error_meaning {
  lk_outcome outcome;
  lk_advice request; /**< the action if a caller waits for the result */
  lk_advice cleanup; /**< the action for a cleanup, which no caller waits for
                          and which is therefore retried for longer */
} lk_error_meaning;

/** The meaning of `err`: 0, an error of a server or an error of the client. */
lk_error_meaning lk__error_meaning(int err);

#endif
