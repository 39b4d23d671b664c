#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README's program takes its lock, twice; the second token is larger.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}"
# shellcheck disable=SC2016 # the inner shell's variables
said=$("$abs_top_srcdir/script/server" with -- sh -c '
  "$1" "$LATCHKEY_ZK" && "$1" "$LATCHKEY_ZK"' - "$abs_top_builddir/examples/lock")
result=$?
[ $result = 0 ] || exit $result
echo "$said"
# shellcheck disable=SC2046 # two words
set -- $(echo "$said" |
  sed -n 's/^\/locks\/nightly is ours, fencing token \([0-9]*\)$/\1/p')
[ $# = 2 ] && [ "$1" -lt "$2" ]
