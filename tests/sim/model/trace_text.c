/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "proto/wire/opcode.h"
#include "sim/model/model.h"

#include <inttypes.h>
#include <stdio.h>

/**
 * @file Text for the trace, in static buffers that are reused.
 */

enum { ZXID_CAP = 32, WORDS_CAP = 160 };

const char *sim_zxid_text(int64_t zxid)
{
  static char texts[4][ZXID_CAP];
  static unsigned next;
  char *text = texts[next++ % 4];

  snprintf(text, ZXID_CAP, "%" PRId64 ":%" PRId64, zxid >> 32,
           zxid & 0xffffffff);
  return text;
}

static const char *verb(int32_t op)
{
  const lk_opcode_info *info = lk__opcode_info(op);

  if (info != NULL)
    return info->name;
  return op == SIM_OP_DELETE_CONTAINER ? "deleteContainer" : "createSession";
}

const char *sim_txn_text(const sim_txn *x)
{
  static char text[WORDS_CAP];
  int len = snprintf(text, WORDS_CAP, "%s for %" PRIx64, verb(x->op),
                     (uint64_t)x->session);

  if (x->err != 0)
    len += snprintf(text + len, WORDS_CAP - (size_t)len, ": error %d", x->err);
  for (size_t i = 0; i < x->count && len < WORDS_CAP; i++) {
    const sim_txn_operation *a = &x->operations[i];

    len += snprintf(
        text + len, WORDS_CAP - (size_t)len, "%s %s%s", i == 0 ? "" : ",",
        x->count > 1 && a->op != 0 ? verb(a->op) : "", x->count > 1 ? " " : "");
    if (len < WORDS_CAP && a->request_path != NULL)
      len += snprintf(text + len, WORDS_CAP - (size_t)len, "%s",
                      a->path == NULL ? a->request_path : a->path->text);
  }
  return text;
}
