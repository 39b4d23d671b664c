#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the output of the example of each kind of lock.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}"
# shellcheck disable=SC2016 # the inner shell's variables
output=$("$abs_top_srcdir/script/server" with -- sh -c '
  for name in mutex semaphore_mutex rwlock semaphore multilock; do
    echo "-- $name"
    "$1/$name" "$LATCHKEY_ZK" || exit
  done' - "$abs_top_builddir/examples")
result=$?
echo "$output"
[ $result = 0 ] || exit $result
[ "$(echo "$output" | sed 's/token [1-9][0-9]*$/token N/')" = "\
-- mutex
held, fencing token N
held 2 times
still held
released
-- semaphore_mutex
held
again: deadlock: already held by this owner; release it first
released
-- rwlock
writing
reading
writing again: deadlock: already held by this owner; release it first
released
-- semaphore
10 threads have worked, never more than 3 at a time
-- multilock
both held, one token: yes
one of them alone: held by another client
released" ]
