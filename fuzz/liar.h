/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_FUZZ_LIAR_H
#define LK_FUZZ_LIAR_H

#include "input.h"
#include "support/model_server.h"

/**
 * @file
 * A server that lies: the model server of the unit tests, whose replies are
 * changed. What it has executed is right, and what it says of it is not.
 */

typedef enum lie_kind {
  LIE_ERROR,        /**< an error instead of the execution */
  LIE_ERROR_LATER,  /**< an error after the execution */
  LIE_NOT_EXECUTED, /**< success of a delete that was not executed */
  LIE_ZXID,         /**< another zxid in the header */
  LIE_BYTES,        /**< any bytes in the body */
  LIE_BODY, /**< a valid body with another name, path, stat or other data */
  LIE_KINDS
} lie_kind;

/** Change the next replies. */
typedef struct lie {
  lie_kind kind;
  unsigned left; /**< how many replies, without those to pings and auth;
                      UINT_MAX: all */
  unsigned what; /**< the part that is changed */
  unsigned where;
  lk_bytes text; /**< in the input */
} lie;

lie take_lie(fuzz_input *in);

/** model_server.serve: serve the request, and lie if `l` has lies left. */
bool lie_serve(lie *l, model_link *link, lk_bytes frame);

#endif
