/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_GENERATOR_H
#define LK_DIFFERENTIAL_GENERATOR_H

#include "base/buf.h"
#include "sim/model/rng.h"

/**
 * Random requests in a small part of the tree, so that requests meet the
 * effects of others. Replies show which nodes exist; the knowledge may be
 * wrong, and some requests ignore it.
 */
enum { GENERATOR_NODES = 160, GENERATOR_PATH = 200 };

typedef struct generator_node {
  char path[GENERATOR_PATH];
  int32_t version;
  int32_t aversion;
} generator_node;

typedef struct generator {
  sim_rng rng;
  bool last; /**< the outcome of a later request depends on timing: wait for the
                reply first */
  char base[16]; /**< all requests are below this node */
  generator_node nodes[GENERATOR_NODES];
  size_t count;
  char texts[8][GENERATOR_PATH]; /**< paths of the current request */
  unsigned text;
} generator;

/** Continue below another node, which the first request must create. */
void generator_move(generator *w, const char *base);

/** Append the body of a request, and return its opcode. */
int32_t generator_request(generator *w, lk_buf *body);
/** As above: a read; a request that sets data; any write. */
int32_t generator_read(generator *w, lk_buf *body);
int32_t generator_set(generator *w, lk_buf *body);
int32_t generator_write(generator *w, lk_buf *body);
/** Re-register watches; changes after `zxid` were missed. */
int32_t generator_set_watches(generator *w, int64_t zxid, lk_buf *body);
/** addAuth; `known` false: of an unknown scheme. */
void generator_auth(generator *w, bool known, lk_buf *body);

/** Learn from a request and its reply in normal form. */
void generator_learn(generator *w, int32_t op, lk_bytes requests,
                     lk_bytes replies);

#endif
