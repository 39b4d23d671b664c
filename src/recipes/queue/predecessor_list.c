/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/mem.h"
#include "recipes/queue/predecessor_list.h"

static size_t child_path_size(const char *dir, lk_bytes name)
{
  return strlen(dir) + sizeof "/" + name.len;
}

static bool predecessors_make_room(lk_predecessors *p, const lk_mem *mem,
                                   size_t size)
{
  if (size <= p->block_size)
    return true;
  char *block = mem->resize(mem->arg, p->block, size);

  if (block == NULL)
    return false;
  p->block = block;
  p->block_size = size;
  return true;
}

/* Whether the predecessors will be read if the direct one is deleted. */
static bool all_may_be_read(const lk_queue_position *position, size_t listed)
{
  return listed > LK_SHORT_LIST &&
         position->predecessors <= LK_KEPT_PREDECESSORS;
}

/* The path of the head is always kept: it is reported to the caller. */
bool lk__predecessors_set(lk_predecessors *p, const lk_mem *mem,
                          const char *dir, uint64_t connection, size_t listed,
                          const lk_queue_position *position)
{
  size_t kept = position->nearest_count;

  if (kept > 1 && !all_may_be_read(position, listed))
    kept = 1;
  size_t size = child_path_size(dir, position->head.name);

  for (size_t i = 0; i < kept; i++)
    size += child_path_size(dir, position->nearest[i].name);
  if (kept > 0 && !predecessors_make_room(p, mem, size))
    return false;
  char *at = p->block;

  p->listed = listed;
  p->count = position->predecessors;
  p->kept = kept;
  p->has_rw_writer = position->has_rw_writer;
  p->in_range = position->in_range;
  p->connection = connection;
  for (size_t i = 0; i < kept; i++) {
    p->path[i] = at;
    at = lk__write_child_path(at, dir, position->nearest[i].name);
  }
  p->head_path = NULL;
  if (kept > 0) {
    p->head_path = at;
    (void)lk__write_child_path(at, dir, position->head.name);
  }
  return true;
}

void lk__predecessors_set_count_only(lk_predecessors *p, size_t count)
{
  p->count = count;
  p->kept = 0;
  p->head_path = NULL;
}

void lk__predecessors_remove(lk_predecessors *p, size_t i)
{
  p->count--;
  p->kept--;
  for (; i < p->kept; i++)
    p->path[i] = p->path[i + 1];
  bool all_are_kept = p->kept == p->count;

  /* `path` begins with the direct predecessor. If it has the paths of all
   * predecessors, the last one is the head's. */
  if (all_are_kept && p->kept > 0)
    p->head_path = p->path[p->kept - 1];
}

bool lk__predecessors_are_worth_reading(const lk_predecessors *p)
{
  return p->listed > LK_SHORT_LIST && p->count <= LK_MAX_PREDECESSOR_READS;
}

/* The direct predecessor holds the lock, so it is the only one left. */
void lk__predecessors_keep_direct(lk_predecessors *p)
{
  p->count = 1;
  p->kept = 1;
  p->head_path = p->path[0];
}

void lk__predecessors_free(lk_predecessors *p, const lk_mem *mem)
{
  lk__mem_free(mem, p->block);
}
