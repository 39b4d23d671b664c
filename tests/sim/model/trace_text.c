/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdio.h>

/**
 * @file Zxids and transactions as text for the trace. The texts are in static
 * buffers that are used again.
 */

enum { ZXID_CAP = 32, TXN_TEXT_CAP = 160 };

const char *sim_zxid_text(int64_t zxid)
{
  static char texts[4][ZXID_CAP];
  static unsigned next;
  char *text = texts[next++ % 4];

  snprintf(text, ZXID_CAP, "%" PRId64 ":%" PRId64, zxid >> 32,
           zxid & 0xffffffff);
  return text;
}

static const char *opcode_text(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  if (info != NULL)
    return info->name;
  return op == SIM_OP_DELETE_CONTAINER ? "deleteContainer" : "createSession";
}

const char *sim_txn_text(const sim_txn *x)
{
  static char text[TXN_TEXT_CAP];
  int len = snprintf(text, TXN_TEXT_CAP, "%s for %" PRIx64, opcode_text(x->op),
                     (uint64_t)x->session);

  if (x->err != 0)
    len +=
        snprintf(text + len, TXN_TEXT_CAP - (size_t)len, ": error %d", x->err);
  for (size_t i = 0; i < x->count && len < TXN_TEXT_CAP; i++) {
    const sim_txn_operation *a = &x->operations[i];

    len += snprintf(text + len, TXN_TEXT_CAP - (size_t)len, "%s %s%s",
                    i == 0 ? "" : ",",
                    x->count > 1 && a->op != 0 ? opcode_text(a->op) : "",
                    x->count > 1 ? " " : "");
    if (len < TXN_TEXT_CAP && a->request_path != NULL)
      len += snprintf(text + len, TXN_TEXT_CAP - (size_t)len, "%s",
                      a->path == NULL ? a->request_path : a->path->text);
  }
  return text;
}
