/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* The nodes that exist as far as the replies show. */

#include "differential/values.h"
#include "proto/wire/multi.h"

#include <stdio.h>

/* ---- nodes -------------------------------------------------------------- */

void generator_move(generator *w, const char *base)
{
  snprintf(w->base, sizeof w->base, "%s", base);
  w->count = 0;
}

generator_node *find_node(generator *w, lk_bytes path)
{
  for (size_t i = 0; i < w->count; i++)
    if (strlen(w->nodes[i].path) == path.len &&
        memcmp(w->nodes[i].path, path.at, path.len) == 0)
      return &w->nodes[i];
  return NULL;
}

static void forget_node(generator *w, lk_bytes path)
{
  generator_node *n = find_node(w, path);

  if (n != NULL)
    *n = w->nodes[--w->count];
}

static void add_entry(generator *w, lk_bytes path)
{
  generator_node *n = find_node(w, path);

  if (path.len <= strlen(w->base) || path.len >= GENERATOR_PATH)
    return;
  if (n == NULL && w->count == GENERATOR_NODES)
    n = &w->nodes[sim_roll(&w->rng, GENERATOR_NODES)];
  if (n == NULL)
    n = &w->nodes[w->count++];
  memcpy(n->path, path.at, path.len);
  n->path[path.len] = '\0';
  n->version = n->aversion = 0;
}

const generator_node *random_node(generator *w)
{
  return w->count == 0 ? NULL
                       : &w->nodes[sim_roll(&w->rng, (uint32_t)w->count)];
}

/* ---- learning ----------------------------------------------------------- */

static void learn_stat(generator *w, lk_bytes path, const lk_stat *s)
{
  generator_node *n = find_node(w, path);

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

/* Learns from a request, or one operation of it, and its reply. */
static void learn_operation(generator *w, int32_t op, lk_reader *requests,
                            lk_reader *replies)
{
  const lk_opcode_info *info = lk__opcode_info(op);
  lk_bytes path = lk__reader_bytes(requests);
  lk_stat stat;

  if (requests->err != 0 || path.at == NULL)
    return;
  if (creates(info))
    add_entry(w, lk__reader_bytes(replies));
  else if (op == LK_OPCODE_DELETE)
    forget_node(w, path);
  else if (op != LK_OPCODE_CHECK && info->reply->nfields > 0 &&
           info->reply->fields[info->reply->nfields - 1].kind == LK_KIND_STAT &&
           lk__reader_left(replies) >= LK_STAT_SIZE) {
    replies->at = replies->end - LK_STAT_SIZE;
    lk__reader_stat(replies, &stat);
    learn_stat(w, path, &stat);
  }
}

static void learn_parts(generator *w, lk_reader *requests, lk_reader *replies)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation part, result;

  while (lk__operation_decode(requests, false, &arena, &part) &&
         lk__operation_decode(replies, true, &arena, &result)) {
    if (result.type == LK_OPCODE_CREATE || result.type == LK_OPCODE_CREATE2)
      add_entry(w, result.type == LK_OPCODE_CREATE
                       ? result.body.path.path
                       : result.body.path_stat.path);
    else if (result.type == LK_OPCODE_DELETE)
      forget_node(w, part.body.path_version.path);
    else if (result.type == LK_OPCODE_SET_DATA)
      learn_stat(w, part.body.set_data.path, &result.body.stat.stat);
  }
  lk__arena_free(&arena);
}

void generator_learn(generator *w, int32_t op, lk_bytes requests,
                     lk_bytes replies)
{
  lk_reader question, answer;
  struct lk_reply_header head;

  lk__reader_init(&question, requests.at, requests.len);
  lk__reader_init(&answer, replies.at, replies.len);
  lk__record_decode(&lk__reply_header_record, &head, &answer, NULL);
  if (head.err == LK_ERR_NO_NODE && lk__opcode_info(op)->request->nfields > 0 &&
      lk__opcode_info(op)->request->fields[0].kind == LK_KIND_BYTES &&
      !creates(lk__opcode_info(op)))
    forget_node(w, lk__reader_bytes(&question));
  else if (head.err == 0 && op == LK_OPCODE_MULTI)
    learn_parts(w, &question, &answer);
  else if (head.err == 0 && lk__opcode_info(op)->request->nfields > 0)
    learn_operation(w, op, &question, &answer);
}
