#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A thousand threads of examples/threads.c sell a thousand pieces, each once.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}"
# shellcheck disable=SC2016 # the inner shell's variables
output=$("$abs_top_srcdir/script/server" with -- sh -c '
  "$1" "$LATCHKEY_ZK" 1000' - "$abs_top_builddir/examples/threads")
result=$?
echo "$output"
[ $result = 0 ] || exit $result
case $output in
"1000 threads, 0 failed, 0 of 1000 pieces left, "*" ms") ;;
*) exit 1 ;;
esac
