#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Identifiers that were removed from the interface are nowhere in the tree,
# except in NEWS.md. Whoever removes another one adds a line here.

cd "${srcdir:-.}" || exit 99
failed=0

retired='
LK_ANNOUNCEMENT
LK_ERR_BAD_ARGUMENTS
LK_ERR_LOSS
LK_ERR_UNKNOWN
LK_EVENT_RESUMED
LK_LOCK_EVENT_HELD
LK_PROOF_[A-Z_]+
LK_READ_LIST
LK_WATCH_NODE
LK_WATCH_TREE
LK_WITH_LIBEV
announce
lk_answer
lk_children
lk_client_answer
lk_client_lives_until
lk_client_now
lk_client_room
lk_client_trouble
lk_count
lk_keeper
lk_keeper_client
lk_keeper_config
lk_keeper_deadline
lk_keeper_free
lk_keeper_new
lk_keeper_set_margin
lk_keeper_unfinished
lk_list
lk_lock_guarded
lk_lock_handoffs
lk_multilock_member
lk_proof
lk_read_list
lk_rwlock_read
lk_rwlock_write
lk_semaphore_history
lk_sync_children
lk_sync_client_run
lk_sync_count
lk_sync_list
lk_sync_lock_config
lk_sync_lock_guarded
lk_sync_lock_handoffs
lk_sync_lock_turn
lk_sync_lock_wait
lk_sync_rwlock_read
lk_sync_rwlock_write
lk_sync_sync
local_queue
'

words=$(echo $retired | tr ' ' '|')
found=$(find include src tests examples bench fuzz doc man README.md \
  -name '*.[ch]' -o -name '*.def' -o -name '*.md' -o -name '*.[0-9]' \
  -o -name '*.py' -o -name '*.txt' | sort |
  xargs grep -nEw "$words" /dev/null)
if [ -n "$found" ]; then
  echo "retired identifiers:"
  echo "$found"
  failed=1
fi

# The numbers of removed error codes are not used again.
numbers='-1004|-1008'
found=$(grep -nE "^  X\([A-Z_]+, ($numbers)," include/latchkey/error.h)
if [ -n "$found" ]; then
  echo "numbers that once meant another error:"
  echo "$found"
  failed=1
fi

exit $failed
