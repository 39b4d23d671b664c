#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# script/demo: each of its claims holds, with fewer contenders; likewise
# script/demo elect.
# script/playground: it runs the commands of its standard input; servers can be
# separated and killed, and return.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}"
export LATCHKEY_BUILD="$abs_top_builddir"
"$abs_top_srcdir/script/server" check || exit

"$abs_top_srcdir/script/demo" 100 25 2 3 || exit 1
"$abs_top_srcdir/script/demo" elect || exit 1

# shellcheck disable=SC2016 # the inner shell's variables
output=$(echo '
  latchkey run /l -- sh -c '\''echo held in "$LATCHKEY_LOCK"; sleep 100'\'' &
  until latchkey status /l | grep ^holds >/dev/null; do sleep .1; done
  latchkey run -n /l -- echo never; echo "busy: $?"
  kill %1; wait %1; echo "killed: $?"
  latchkey run /l -- echo again
  echo a:b | cut -d: -f2
  exit 7' | "$abs_top_srcdir/script/playground" 2>/dev/null)
code=$?
echo "$output"
[ "$code" = 7 ] && [ "$output" = "Starting private ZooKeeper servers ...
held in /l
busy: 124
killed: 143
again
b" ] || exit 1

# shellcheck disable=SC2016 # the inner shell's variables
output=$(echo '
  count() { servers | grep -c -E "(leader|follower)$"; }
  count
  cut 1
  kill 2
  until [ "$(count)" = 0 ]; do sleep .1; done
  echo "no quorum"
  start 2
  heal
  until [ "$(count)" = 3 ]; do sleep .1; done
  latchkey run /l -- echo "a quorum again"
  start 9 || echo refused' | "$abs_top_srcdir/script/playground" --ensemble)
code=$?
echo "$output"
[ "$code" = 0 ] && [ "$output" = "Starting private ZooKeeper servers ...
3
server 1 is cut off from the others
server 2 is killed
no quorum
server 2 runs
every server reaches the others again
a quorum again
error: cannot start 9
refused" ]
