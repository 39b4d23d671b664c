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
  LK_OUTCOME_REFUSED,  /**< a server has judged it, behind all that was ordered
                            before it */
  LK_OUTCOME_NOT_DONE, /**< it was not sent, or a server refused it before it
                          was ordered */
  LK_OUTCOME_IN_DOUBT,
  LK_OUTCOME_ABANDONED /**< in doubt, and its client looks for it no more */
} lk_outcome;

/** The next action of the sender of the request. */
typedef enum lk_advice {
  LK_ADVICE_AWAIT_CONNECTION, /**< the connection is gone; the client reports
                                   the next one, or its own end */
  LK_ADVICE_RETRY_LATER,      /**< send it again after a pause */
  LK_ADVICE_GIVE_UP
} lk_advice;

typedef struct lk_error_meaning {
  lk_outcome outcome;
  lk_advice request; /**< of which a caller awaits the result */
  lk_advice cleanup; /**< which no caller awaits: it goes on for longer */
} lk_error_meaning;

/** `err` is 0, a server's error or the client's own. */
lk_error_meaning lk__error_meaning(int err);

#endif
