/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_SUPPORT_MECHANISM_H
#define LK_SUPPORT_MECHANISM_H

#include <latchkey/sasl.h>

/**
 * A fake SASL mechanism of several steps, which can fail at any of them. The
 * test is called in each. The log of its peer records all calls.
 */
typedef struct fake_mechanism {
  struct peer *p;
  int tokens;       /**< tokens that it sends */
  bool speaks_last; /**< with the last one it is done, as GSSAPI is; else it
                         wants an answer to that, as DIGEST-MD5 does */
  int fail_at;  /**< fail in this call: 1 is the password, 2 the start, 3 the
                     first step; 0: never */
  int fail_err; /**< with this */
  int calls;    /**< of the exchange under way */
  bool running; /**< between start and end */
  bool done;    /**< it said so */
  bool proved;  /**< on the connection at hand */
} fake_mechanism;

/** For lk_client_config.sasl; `out` lives as long as the client. */
void fake_mechanism_config(fake_mechanism *m, lk_sasl_config *out);

#endif
