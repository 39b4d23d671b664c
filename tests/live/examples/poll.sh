#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/poll.c holds its lock until its standard input ends. A second one
# waits meanwhile, and then holds with a larger token.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}" "${LATCHKEY:=latchkey}"
export LATCHKEY abs_top_builddir
# shellcheck disable=SC2016 # the inner shell's variables
"$abs_top_srcdir/script/server" with -- sh -c '
  poll=$abs_top_builddir/examples/poll
  folder=$(mktemp -d) && cd "$folder" && mkfifo in1 in2 || exit 99
  trap "rm -rf \"$folder\"" EXIT
  count() { "$LATCHKEY" status /locks/poll | grep -c "$1"; }
  waits() { [ "$(count ^waits)" = 1 ]; }
  await() { # COMMAND...: until it succeeds, for about 40 s
    n=0
    until "$@"; do n=$((n + 1)) && [ $n -lt 400 ] && sleep .1 || exit 1; done
  }

  "$poll" "$LATCHKEY_ZK" <in1 >out1 & first=$!
  exec 3>in1
  await grep -q ^holding out1
  "$poll" "$LATCHKEY_ZK" <in2 >out2 3>&- & second=$!
  exec 4>in2
  await waits
  ! grep -q ^holding out2 || exit 1
  "$poll" "$LATCHKEY_ZK" </dev/null || exit 1 # it ends while it waits
  exec 3>&- # the end of the first input
  wait $first || exit 1
  await grep -q ^holding out2
  echo line >&4
  wait $second || exit 1
  [ "$(count ^holds)" = 0 ] || exit 1

  cat out1 out2
  # The two tokens become $1 and $2.
  set -- $(cat out1 out2 | sed -n "s/^holding .*token //p")
  [ $# = 2 ] && [ "$1" -lt "$2" ]'
