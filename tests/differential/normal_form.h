/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_NORMAL_FORM_H
#define LK_DIFFERENTIAL_NORMAL_FORM_H

#include "base/buf.h"

/**
 * The plain form of what servers say: the same bytes with what each server
 * chooses for itself replaced by what all have in common.
 *
 *   zxid             counted from the first of the comparison
 *   session          its number, in order of creation
 *   ctime, mtime     the zxid they belong to, if the time is the same whenever
 *                    that transaction shows, and was now when it was made
 *   password         empty, if it is the session's
 *   members          what /zookeeper/config says, a word; of that node, whose
 *                    versions are both -1, its length and time are none
 *   lists            sorted: of names, of identities, and also of access, as
 *                    one's own identities come into it in no order
 */

/** In place of an opcode. */
enum {
  PLAIN_EVENT = 0,
  PLAIN_HELLO = 1000, /**< a connect reply */
  PLAIN_CLOSED,
  PLAIN_SILENT,
  PLAIN_STRAY /**< a reply nobody asked for */
};

typedef struct normal_session {
  int64_t id;
  unsigned char password[16];
} normal_session;

/** When a transaction was made. */
typedef struct normal_moment {
  int64_t from_ms; /**< not before */
  int64_t to_ms;   /**< not after */
  int64_t at_ms;   /**< what the server says; 0: nothing yet */
} normal_moment;

/** What one side chose. */
typedef struct normal_form {
  const char *members; /**< of the ensemble; "": none */
  int64_t zxid;        /**< the last that was seen, in plain form */
  int64_t zxid_base;   /**< the zxid before the first; -1: not known yet */
  normal_session *sessions;
  size_t nsessions;
  normal_moment *moments; /**< by plain zxid */
  size_t nmoments;
  int64_t from_ms; /**< transactions that show now were not made before */
  int64_t to_ms;   /**< … nor after */
} normal_form;

void normal_free(normal_form *p);

/** Append the plain form of a frame, which answers `op`. */
void normal_frame(normal_form *p, int32_t op, lk_bytes frame, lk_buf *out);
/** What a plain zxid is called on this side. */
int64_t normal_zxid_there(const normal_form *p, int64_t zxid);

/** Add the text of something in plain form. */
void normal_print(int32_t op, lk_bytes bytes, lk_buf *out);

#endif
