/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_WHIMS_H
#define LK_DIFFERENTIAL_WHIMS_H

#include "base/buf.h"
#include "sim/model/rng.h"

/**
 * What somebody may ask of a server, at random, in a small corner of the tree,
 * so that one request meets what others did. What is there is learnt from the
 * answers; it is only a guess, and sometimes neglected.
 */
enum { WHIMS_NODES = 160, WHIMS_PATH = 200 };

typedef struct whims_node {
  char path[WHIMS_PATH];
  int32_t version;
  int32_t aversion;
} whims_node;

typedef struct whims {
  sim_rng rng;
  bool last;     /**< what comes behind the request at hand cannot be foreseen
                    until it is answered */
  char base[16]; /**< the node under which all happens */
  whims_node nodes[WHIMS_NODES];
  size_t count;
  char texts[8][WHIMS_PATH]; /**< paths of the request at hand */
  unsigned text;
} whims;

/** Begin again under another node, which is to be created first. */
void whims_move(whims *w, const char *base);

/** Append the body of a request, and say which. */
int32_t whims_request(whims *w, lk_buf *body);
/** The same, of what changes nothing, what changes data, and what changes
    anything. */
int32_t whims_read(whims *w, lk_buf *body);
int32_t whims_set(whims *w, lk_buf *body);
int32_t whims_write(whims *w, lk_buf *body);
/** Watches again; changes after `zxid` were missed. */
int32_t whims_set_watches(whims *w, int64_t zxid, lk_buf *body);
/** An identity. */
void whims_auth(whims *w, bool known, lk_buf *body);

/** What became of a request; `said` is the answer in plain form. */
void whims_learn(whims *w, int32_t op, lk_bytes asked, lk_bytes said);

#endif
