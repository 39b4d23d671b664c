/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_MECHANISM_H
#define LK_SUPPORT_MECHANISM_H

#include <latchkey/sasl.h>

/**
 * A fake SASL mechanism of several steps, which can fail in any of them. Each
 * call is a line in the log of the harness, and calls harness.react.
 */
typedef struct fake_mechanism {
  struct harness *h;
  int tokens;       /**< how many tokens the mechanism sends */
  bool speaks_last; /**< true: the exchange is done when the last token is sent,
                         as with GSSAPI; false: the server has to answer that
                         token, as with DIGEST-MD5 */
  int fail_at;      /**< the call that fails: 1 is the password, 2 the start, 3
                         the first step; 0: none */
  int fail_err;     /**< the error of that call */
  int calls;        /**< calls in the present exchange */
  bool running;     /**< between start and end of an exchange */
  bool done;        /**< the last step has returned LK_SASL_DONE */
  bool proved;      /**< an exchange on the present connection has succeeded */
} fake_mechanism;

/** Set `out` for lk_client_config.sasl. `m` must outlive the client. */
void fake_mechanism_config(fake_mechanism *m, lk_sasl_config *out);

#endif
