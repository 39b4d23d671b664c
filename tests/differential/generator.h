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
enum {
  GENERATOR_NODES = 160,
  GENERATOR_PATH = 200 /**< bytes, with the NUL */
};

typedef struct generator_node {
  char path[GENERATOR_PATH];
  int32_t version;
  int32_t aversion;
} generator_node;

typedef struct generator {
  sim_rng rng;
  /** receive the reply to the current request before the next one is sent,
      whose outcome depends on timing otherwise */
  bool wait_for_reply;
  char base[16]; /**< all requests are below this node */
  generator_node nodes[GENERATOR_NODES]; /**< known to exist */
  size_t count;                          /**< of `nodes` */
  char texts[8][GENERATOR_PATH];         /**< paths of the current request */
  unsigned ntexts; /**< used so far, all requests taken together */
} generator;

/** Continue below another node, which the first request must create. */
void generator_move(generator *g, const char *base);

/** Append the body of a request, and return its opcode. */
int32_t generator_request(generator *g, lk_buf *body);
/** The same for a read, for a setData of any version, and for a write. */
int32_t generator_read(generator *g, lk_buf *body);
int32_t generator_set(generator *g, lk_buf *body);
int32_t generator_write(generator *g, lk_buf *body);
/** Re-register watches; changes after `zxid` were missed. */
int32_t generator_set_watches(generator *g, int64_t zxid, lk_buf *body);
/** Append the body of an auth request. */
void generator_auth(generator *g, lk_buf *body);
void generator_auth_of_unknown_scheme(generator *g, lk_buf *body);

/** Learn from the body of a request and its reply in normal form. */
void generator_learn(generator *g, int32_t op, lk_bytes request,
                     lk_bytes reply);

#endif
