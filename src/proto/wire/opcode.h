/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_PROTO_WIRE_OPCODE_H
#define LK_PROTO_WIRE_OPCODE_H

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

#endif
