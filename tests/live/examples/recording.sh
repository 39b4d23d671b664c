#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# doc/demo.svg shows the current output of the command: script/record --check.

: "${abs_top_srcdir:=.}" "${abs_top_builddir:=.}"
export LATCHKEY_BUILD="$abs_top_builddir"
"$abs_top_srcdir/script/server" check || exit
exec "$abs_top_srcdir/script/record" --check
