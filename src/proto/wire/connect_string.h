/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_CONNECT_STRING_H
#define LK_PROTO_WIRE_CONNECT_STRING_H

#include "base/mem.h"

/** A server of a connect string. */
typedef struct lk_address {
  const char *name; /**< or IP address, without brackets */
  uint16_t port;
} lk_address;

/** A connect string, "[tls://]host[:port]{,host[:port]}[/chroot]". */
typedef struct lk_connect_string {
  char *text; /**< the names, each with a NUL */
  lk_address *servers;
  size_t count;
  bool tls;
  char *chroot; /**< "" if there is none */
  size_t chroot_len;
} lk_connect_string;

/**
 * Parse a connect string. `tls`: without a port, 2281 is meant, whether or not
 * the text begins with "tls://". `*why` gets what is invalid, a constant text.
 * @return 0, LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY: there is nothing to free.
 */
int lk__connect_string_parse(lk_connect_string *out, const lk_mem *mem,
                             const char *text, bool tls, const char **why);
void lk__connect_string_free(lk_connect_string *s, const lk_mem *mem);

#endif
