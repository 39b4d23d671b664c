/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_CONNECT_STRING_H
#define LK_PROTO_WIRE_CONNECT_STRING_H

#include "base/mem.h"

/** A server of a connect string. */
typedef struct lk_address {
  const char *name; /**< host name or IP address, without brackets */
  uint16_t port;
} lk_address;

/** A connect string, "[tls://]host[:port]{,host[:port]}[/chroot]". */
typedef struct lk_connect_string {
  char *text; /**< the memory of the names, each NUL-terminated */
  lk_address *servers;
  size_t count;
  bool tls;
  char *chroot; /**< "" if there is none */
  size_t chroot_len;
} lk_connect_string;

/**
 * Parse a connect string. A server without a port gets port 2281 if the text
 * begins with "tls://" or `tls` is set, else 2181. `*why` is set to a constant
 * text about what is invalid, or to NULL.
 * @return 0, LK_ERR_BAD_HOSTS, LK_ERR_NO_MEMORY; after an error there is
 * nothing to free.
 */
int lk__connect_string_parse(lk_connect_string *out, const lk_mem *mem,
                             const char *text, bool tls, const char **why);
void lk__connect_string_free(lk_connect_string *s, const lk_mem *mem);

#endif
