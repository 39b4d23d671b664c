/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_DIFFERENTIAL_NORMAL_FORM_H
#define LK_DIFFERENTIAL_NORMAL_FORM_H

#include "base/buf.h"

/**
 * The normal form of replies and events: values that each server chooses are
 * replaced by values that both sides have in common.
 *
 *   zxid             counted from the first of the comparison
 *   session          its number, in order of creation
 *   ctime, mtime     the zxid of the transaction, if the time is the same in
 *                    all nodes that it changed, and within its execution
 *   password         empty, if it is the session's
 *   members          the content of /zookeeper/config: a word. The versions of
 *                    that node are -1; its length and time are 0
 *   lists            names, identities and access lists are sorted
 */

/** What a server sent or did, in place of the opcode of a reply. No opcode has
    one of these numbers. */
enum {
  NORMAL_EVENT = 0,
  NORMAL_CONNECT_REPLY = 1000, /**< above all opcodes */
  NORMAL_CLOSED,               /**< the server closed the connection */
  NORMAL_SILENT,               /**< the server sent nothing for a long time */
  NORMAL_UNEXPECTED            /**< a reply without a request */
};

/** Whether `op` is the opcode of a reply that begins with a reply header. */
static inline bool normal_is_reply(int32_t op)
{
  return op != NORMAL_EVENT && op < NORMAL_CONNECT_REPLY;
}

typedef struct normal_session {
  int64_t id;
  unsigned char password[16];
} normal_session;

/** When a transaction was executed. */
typedef struct normal_moment {
  int64_t from_ms; /**< lower bound */
  int64_t to_ms;   /**< upper bound */
  int64_t at_ms;   /**< as the server reports it; 0: not reported yet */
} normal_moment;

/** What is known of the values that the servers of one side chose. */
typedef struct normal_form {
  const char *members; /**< the members of the ensemble; "": none */
  int64_t zxid;        /**< the largest zxid seen, in normal form */
  int64_t zxid_base;   /**< the zxid before the first; -1: unknown */
  normal_session *sessions; /**< session 1 has index 0 */
  size_t nsessions;
  /** of each transaction; indexed by its zxid in normal form */
  normal_moment *moments;
  size_t nmoments;
  int64_t from_ms; /**< new transactions were executed after this … */
  int64_t to_ms;   /**< … and before this */
} normal_form;

void normal_free(normal_form *form);

/** Append the normal form of a frame: the reply to a request with opcode `op`,
    or one of the kinds above. */
void normal_frame(normal_form *form, int32_t op, lk_bytes frame, lk_buf *out);
/** The server's zxid for one in normal form. */
int64_t normal_to_zxid(const normal_form *form, int64_t zxid);

/** Append the text of a frame in normal form. `op`: see normal_frame(). */
void normal_print(int32_t op, lk_bytes frame, lk_buf *out);

#endif
