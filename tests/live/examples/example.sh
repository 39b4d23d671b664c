#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README's two programs acquire the same lock, one after the other; the
# second token is larger.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}"
# shellcheck disable=SC2016 # the inner shell's variables
output=$("$abs_top_srcdir/script/server" with -- sh -c '
  "$1/quickstart" "$LATCHKEY_ZK" && "$1/lock" "$LATCHKEY_ZK"' \
  - "$abs_top_builddir/examples")
result=$?
[ $result = 0 ] || exit $result
echo "$output"
# The two tokens become $1 and $2.
# shellcheck disable=SC2046
set -- $(echo "$output" |
  sed -n 's/^holding \/locks\/nightly, fencing token \([0-9]*\)$/\1/p')
[ $# = 2 ] && [ "$1" -lt "$2" ]
