/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* What the generator knows of the nodes, and how it learns from replies. */

#include "differential/values.h"
#include "proto/wire/multi.h"

#include <stdio.h>

/* ---- nodes -------------------------------------------------------------- */

void generator_move(generator *g, const char *base)
{
  snprintf(g->base, sizeof g->base, "%s", base);
  g->count = 0;
}

generator_node *find_node(generator *g, lk_bytes path)
{
  for (size_t i = 0; i < g->count; i++)
    if (strlen(g->nodes[i].path) == path.len &&
        memcmp(g->nodes[i].path, path.at, path.len) == 0)
      return &g->nodes[i];
  return NULL;
}

static void forget_node(generator *g, lk_bytes path)
{
  generator_node *n = find_node(g, path);

  if (n != NULL)
    *n = g->nodes[--g->count];
}

static void add_node(generator *g, lk_bytes path)
{
  generator_node *n = find_node(g, path);

  if (path.len <= strlen(g->base) || path.len >= GENERATOR_PATH)
    return;
  if (n == NULL && g->count == GENERATOR_NODES)
    n = &g->nodes[sim_roll(&g->rng, GENERATOR_NODES)]; /* replace any */
  if (n == NULL)
    n = &g->nodes[g->count++];
  memcpy(n->path, path.at, path.len);
  n->path[path.len] = '\0';
  n->version = n->aversion = 0;
}

const generator_node *random_node(generator *g)
{
  return g->count == 0 ? NULL
                       : &g->nodes[sim_roll(&g->rng, (uint32_t)g->count)];
}

/* ---- learning ----------------------------------------------------------- */

static void learn_stat(generator *g, lk_bytes path, const lk_stat *s)
{
  generator_node *n = find_node(g, path);

  if (n == NULL)
    return;
  n->version = s->version;
  n->aversion = s->aversion;
}

static bool creates(const lk_opcode_info *info)
{
  return info->request == &lk__create_request_record ||
         info->request == &lk__create_ttl_request_record;
}

static bool begins_with_path(const lk_opcode_info *info)
{
  return info->request->nfields > 0 &&
         info->request->fields[0].kind == LK_KIND_BYTES;
}

static bool ends_with_stat(const lk_record *reply)
{
  return reply->nfields > 0 &&
         reply->fields[reply->nfields - 1].kind == LK_KIND_STAT;
}

/* Learns from a request other than a multi, and its reply. */
static void learn_single(generator *g, int32_t op, lk_reader *request,
                         lk_reader *reply)
{
  const lk_opcode_info *info = lk__opcode_info(op);
  lk_bytes path = lk__reader_bytes(request);
  lk_stat stat;

  if (request->err != 0 || path.at == NULL)
    return;
  if (creates(info))
    add_node(g, lk__reader_bytes(reply));
  else if (op == LK_OPCODE_DELETE)
    forget_node(g, path);
  else if (op != LK_OPCODE_CHECK && ends_with_stat(info->reply) &&
           lk__reader_left(reply) >= LK_STAT_SIZE) {
    reply->at = reply->end - LK_STAT_SIZE;
    lk__reader_stat(reply, &stat);
    learn_stat(g, path, &stat);
  }
}

static void learn_multi(generator *g, lk_reader *request, lk_reader *reply)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation operation, result;

  while (lk__operation_decode(request, LK_OPERATIONS_OF_REQUEST, &arena,
                              &operation) &&
         lk__operation_decode(reply, LK_OPERATIONS_OF_REPLY, &arena, &result)) {
    if (result.type == LK_OPCODE_CREATE || result.type == LK_OPCODE_CREATE2)
      add_node(g, result.type == LK_OPCODE_CREATE ? result.body.path.path
                                                  : result.body.path_stat.path);
    else if (result.type == LK_OPCODE_DELETE)
      forget_node(g, operation.body.path_version.path);
    else if (result.type == LK_OPCODE_SET_DATA)
      learn_stat(g, operation.body.set_data.path, &result.body.stat.stat);
  }
  lk__arena_free(&arena);
}

void generator_learn(generator *g, int32_t op, lk_bytes request, lk_bytes reply)
{
  const lk_opcode_info *info = lk__opcode_info(op);
  lk_reader in, reply_in;
  struct lk_reply_header head;

  lk__reader_init(&in, request.at, request.len);
  lk__reader_init(&reply_in, reply.at, reply.len);
  lk__record_decode(&lk__reply_header_record, &head, &reply_in, NULL);
  /* A create reports the missing parent by the same error. */
  if (head.err == LK_ERR_NO_NODE && begins_with_path(info) && !creates(info))
    forget_node(g, lk__reader_bytes(&in));
  else if (head.err == 0 && op == LK_OPCODE_MULTI)
    learn_multi(g, &in, &reply_in);
  else if (head.err == 0 && info->request->nfields > 0)
    learn_single(g, op, &in, &reply_in);
}
