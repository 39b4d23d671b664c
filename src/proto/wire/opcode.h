/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_OPCODE_H
#define LK_PROTO_WIRE_OPCODE_H

/**
 * @file
 * The opcodes of requests and their properties, the opcode and flags that
 * create each kind of node, and the body of the reply to each opcode.
 */

#include <latchkey/client.h>

#include "jute/arena.h"
#include "jute/reader.h"
#include "proto/wire/path.h"
#include "proto/wire/records.h"

/** LK_OPCODE_CREATE, … */
enum lk_opcode {
#define LK__OPCODE(constant, number, name, request, reply, flags) \
  LK_OPCODE_##constant = (number),
  LK_OPCODES(LK__OPCODE)
#undef LK__OPCODE
};

/** The properties of an opcode; see records.def. */
typedef struct lk_opcode_info {
  int32_t number;
  const char *name; /**< as in ZooKeeper's protocol, such as "getData" */
  const lk_record *request;
  const lk_record *reply;
  bool write;            /**< the leader orders it and gives it a zxid */
  bool leader;           /**< it goes to the leader, as all writes do */
  bool served_read_only; /**< a read-only server serves it */
  bool in_multi;         /**< may be an operation of a multi */
  bool in_multi_read;    /**< may be an operation of a multiRead */
  bool in_result; /**< may be the type of a result of a multi or multiRead */
  bool has_operations; /**< its bodies are lists of operations; see multi.h */
  bool never_alone;    /**< never sent as a request of its own */
} lk_opcode_info;

/** All opcodes. */
extern const lk_opcode_info lk__opcodes[];
extern const size_t lk__nopcodes;

/** The properties of opcode `op`; NULL: it is unknown. */
const lk_opcode_info *lk__opcode_info(int32_t op);

/** Whether a reply may have this error: 0 or an error of a server. The other
    numbers are errors of the client, and a reply with one is refused. */
static inline bool lk__reply_error_is_valid(int32_t err)
{
  return err <= 0 && err > -1000;
}

/** Reserved xids. Requests are numbered from 1 to INT32_MAX, then from 1
    again. */
enum lk_xid {
  LK_XID_EVENT = -1,
  LK_XID_PING = -2,
  LK_XID_AUTH = -4,
  LK_XID_SET_WATCHES = -8
};

/** The flags on the wire of a node with a TTL. The flags of other nodes are
    those of lk_create_flags. A server does not check that opcode and flags
    agree. Some pairs create another kind of node. A createTTL whose flags are
    not those of a node with a TTL and whose TTL is negative makes the server
    exit, and again at each restart. */
enum { LK_FLAGS_TTL = 5, LK_FLAGS_TTL_SEQUENTIAL = 6 };

/** Whether a node without TTL can be created with these lk_create_flags. */
bool lk__create_flags_valid(int flags);

/** Whether a node can be created with these lk_create_flags and this TTL. */
bool lk__create_ttl_valid(int flags, int64_t ttl_ms);

/** The opcode of a create: createContainer if `flags` ask for a container,
    since create and create2 would create a persistent node instead; else
    `op`. */
int32_t lk__create_opcode(int32_t op, int flags);

/** The flags on the wire of a node with a TTL that is created with `flags`. */
static inline int32_t lk__create_ttl_flags(int flags)
{
  return flags == LK_SEQUENTIAL ? LK_FLAGS_TTL_SEQUENTIAL : LK_FLAGS_TTL;
}

/** What the path of a create with these lk_create_flags names. */
static inline lk_path_use lk__create_path_use(int flags)
{
  return (flags & LK_SEQUENTIAL) != 0 ? LK_PATH_BEFORE_NUMBER : LK_PATH_OF_NODE;
}

/** The decoded body of a reply. The opcode of the request tells which member is
    set. */
typedef union lk_reply_body {
  struct lk_path_reply path;
  struct lk_path_stat_reply path_stat;
  struct lk_stat_reply stat;
  struct lk_data_reply data;
  struct lk_acl_reply acl;
  struct lk_names_stat_reply names_stat;
  struct lk_paths_reply paths;
  struct lk_count_reply count;
  struct lk_code_reply code;
  struct lk_who_am_i_reply who;
  struct {
    lk_op_result *results;
    int outcome;
  } multi;
  lk_read_result *reads;
} lk_reply_body;

/** The request of a reply, and the memory for decoding the reply. */
typedef struct lk_reply_context {
  int32_t op;         /**< opcode of the request */
  int64_t zxid;       /**< of the reply's header */
  size_t operations;  /**< number of operations of a multi or multiRead */
  const char *chroot; /**< removed from the paths in the reply */
  size_t chroot_len;
  lk_arena *arena; /**< for vectors and copies of paths */
} lk_reply_context;

/** Decode the body of a reply whose header has no error. The pointers in `*out`
    refer to the bytes of `in` and to the arena.
    @return 0, LK_ERR_NO_MEMORY; LK_ERR_MARSHALLING or LK_ERR_PROTOCOL: the body
    is malformed. */
int lk__reply_body_decode(const lk_reply_context *context, lk_reader *in,
                          lk_reply_body *out);

#endif
