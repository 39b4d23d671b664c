#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program in README.md is examples/lock.c. It reports errors and exits
# non-zero; tests/live/examples/example.sh runs it with a server.
cd "${srcdir:-.}" || exit 99
build=${abs_top_builddir:-.}
# shellcheck disable=SC2016 # a fence, not a command
readme=$(sed -n '/^```c$/,/^```$/{/^```/!p;}' README.md)
example=$(sed '/SPDX-License-Identifier/d' examples/lock.c)
if [ -z "$readme" ] || [ "$readme" != "$example" ]; then
  echo "README.md and examples/lock.c differ"
  exit 1
fi

if ! grep -q 'LK_WITH_LIBEV 1' "$build/include/latchkey/version.h"; then
  echo "not tested: the program, without libev"
  exit 0
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
make -s -C "$build" examples/lock || exit 1
failed=0

# refuses PATTERN ARG...: exits with 1, says only what fits on standard error.
refuses() {
  pattern=$1
  shift
  said=$("$build/examples/lock" "$@" 2>&1 >/dev/null)
  code=$?
  echo "$* ($code): $said"
  [ $code = 1 ] && echo "$said" | grep -q "$pattern" || failed=1
}

refuses '^127.0.0.1:x: not a valid connect string$' 127.0.0.1:x
refuses '^/locks/nightly: the deadline has passed.*127.0.0.1:1:.*refused$' \
  127.0.0.1:1 300
exit $failed
