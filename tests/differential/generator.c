/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

/* What is believed to be there. */

#include "differential/values.h"
#include "proto/wire/multi.h"

#include <stdio.h>

/* ---- nodes -------------------------------------------------------------- */

void generator_move(generator *w, const char *base)
{
  snprintf(w->base, sizeof w->base, "%s", base);
  w->count = 0;
}

generator_node *known_node(generator *w, lk_bytes path)
{
  for (size_t i = 0; i < w->count; i++)
    if (strlen(w->nodes[i].path) == path.len &&
        memcmp(w->nodes[i].path, path.at, path.len) == 0)
      return &w->nodes[i];
  return NULL;
}

static void forget(generator *w, lk_bytes path)
{
  generator_node *n = known_node(w, path);

  if (n != NULL)
    *n = w->nodes[--w->count];
}

static void add(generator *w, lk_bytes path)
{
  generator_node *n = known_node(w, path);

  if (path.len <= strlen(w->base) || path.len >= WHIMS_PATH)
    return;
  if (n == NULL && w->count == WHIMS_NODES)
    n = &w->nodes[sim_roll(&w->rng, WHIMS_NODES)];
  if (n == NULL)
    n = &w->nodes[w->count++];
  memcpy(n->path, path.at, path.len);
  n->path[path.len] = '\0';
  n->version = n->aversion = 0;
}

const generator_node *some_node(generator *w)
{
  return w->count == 0 ? NULL
                       : &w->nodes[sim_roll(&w->rng, (uint32_t)w->count)];
}

/* ---- learning ----------------------------------------------------------- */

static void learn_stat(generator *w, lk_bytes path, const lk_stat *s)
{
  generator_node *n = known_node(w, path);

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

/* The bodies of a request, or of a part of one, and of its answer. */
static void learn_one(generator *w, int32_t op, lk_reader *asked,
                      lk_reader *said)
{
  const lk_opcode_info *info = lk__opcode_info(op);
  lk_bytes path = lk__reader_bytes(asked);
  lk_stat stat;

  if (asked->err != 0 || path.at == NULL)
    return;
  if (creates(info))
    add(w, lk__reader_bytes(said));
  else if (op == LK_OPCODE_DELETE)
    forget(w, path);
  else if (op != LK_OPCODE_CHECK && info->reply->nfields > 0 &&
           info->reply->fields[info->reply->nfields - 1].kind == LK_KIND_STAT &&
           lk__reader_left(said) >= LK_STAT_SIZE) {
    said->at = said->end - LK_STAT_SIZE;
    lk__reader_stat(said, &stat);
    learn_stat(w, path, &stat);
  }
}

static void learn_parts(generator *w, lk_reader *asked, lk_reader *said)
{
  lk_arena arena = {.mem = &lk__mem_libc};
  lk_operation part, result;

  while (lk__operation_decode(asked, false, &arena, &part) &&
         lk__operation_decode(said, true, &arena, &result)) {
    if (result.type == LK_OPCODE_CREATE || result.type == LK_OPCODE_CREATE2)
      add(w, result.type == LK_OPCODE_CREATE ? result.body.path.path
                                             : result.body.path_stat.path);
    else if (result.type == LK_OPCODE_DELETE)
      forget(w, part.body.path_version.path);
    else if (result.type == LK_OPCODE_SET_DATA)
      learn_stat(w, part.body.set_data.path, &result.body.stat.stat);
  }
  lk__arena_free(&arena);
}

void generator_learn(generator *w, int32_t op, lk_bytes asked, lk_bytes said)
{
  lk_reader question, answer;
  struct lk_reply_header head;

  lk__reader_init(&question, asked.at, asked.len);
  lk__reader_init(&answer, said.at, said.len);
  lk__record_decode(&lk__reply_header_record, &head, &answer, NULL);
  if (head.err == LK_ERR_NO_NODE && lk__opcode_info(op)->request->nfields > 0 &&
      lk__opcode_info(op)->request->fields[0].kind == LK_KIND_BYTES &&
      !creates(lk__opcode_info(op)))
    forget(w, lk__reader_bytes(&question));
  else if (head.err == 0 && op == LK_OPCODE_MULTI)
    learn_parts(w, &question, &answer);
  else if (head.err == 0 && lk__opcode_info(op)->request->nfields > 0)
    learn_one(w, op, &question, &answer);
}
