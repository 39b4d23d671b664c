/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_GENERATOR_H
#define LK_DIFFERENTIAL_GENERATOR_H

#include "base/buf.h"
#include "sim/model/rng.h"

/**
 * What somebody may ask of a server, at random, in a small corner of the tree,
 * so that one request meets what others did. What is there is learnt from the
 * answers; it is only a guess, and sometimes neglected.
 */
enum { WHIMS_NODES = 160, WHIMS_PATH = 200 };

typedef struct generator_node {
  char path[WHIMS_PATH];
  int32_t version;
  int32_t aversion;
} generator_node;

typedef struct generator {
  sim_rng rng;
  bool last;     /**< what comes behind the request at hand cannot be foreseen
                    until it is answered */
  char base[16]; /**< the node under which all happens */
  generator_node nodes[WHIMS_NODES];
  size_t count;
  char texts[8][WHIMS_PATH]; /**< paths of the request at hand */
  unsigned text;
} generator;

/** Begin again under another node, which is to be created first. */
void generator_move(generator *w, const char *base);

/** Append the body of a request, and say which. */
int32_t generator_request(generator *w, lk_buf *body);
/** The same, of what changes nothing, what changes data, and what changes
    anything. */
int32_t generator_read(generator *w, lk_buf *body);
int32_t generator_set(generator *w, lk_buf *body);
int32_t generator_write(generator *w, lk_buf *body);
/** Watches again; changes after `zxid` were missed. */
int32_t generator_set_watches(generator *w, int64_t zxid, lk_buf *body);
/** An identity. */
void generator_auth(generator *w, bool known, lk_buf *body);

/** What became of a request; `said` is the answer in plain form. */
void generator_learn(generator *w, int32_t op, lk_bytes asked, lk_bytes said);

#endif
