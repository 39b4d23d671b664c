#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs in README.md are examples/quickstart.c and examples/lock.c. They
# report errors and exit with 1; tests/live/examples/example.sh runs them with a
# server. The links of README.md lead to files.
cd "${srcdir:-.}" || exit 99
build=${abs_top_builddir:-.}
# shellcheck disable=SC2016 # a fence, not a command
readme=$(sed -n '/^```c$/,/^```$/{/^```/!p;}' README.md)
example=$(sed '/SPDX-License-Identifier/d' examples/quickstart.c examples/lock.c)
if [ -z "$readme" ] || [ "$readme" != "$example" ]; then
  echo "README.md and examples/quickstart.c, examples/lock.c differ"
  exit 1
fi
for link in $(grep -oE '\]\([^)]*\)' README.md | tr -d '])(' | sort -u); do
  [ -e "$link" ] || {
    echo "README.md: there is no $link"
    exit 1
  }
done

programs='quickstart lock'
if [ ! -e "$build/liblatchkey-ev.la" ]; then
  echo "not tested: examples/lock, without libev"
  programs=quickstart
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
failed=0

# refuses PROGRAM PATTERN ARG...: check that the program exits with 1, and that
# all its output is a message on standard error that matches PATTERN.
refuses() {
  program=$1 pattern=$2
  shift 2
  said=$("$build/examples/$program" "$@" 2>&1 >/dev/null)
  code=$?
  echo "$program $* ($code): $said"
  [ $code = 1 ] && echo "$said" | grep -q "$pattern" || failed=1
}

for program in $programs; do
  make -s -C "$build" "examples/$program" || exit 1
  refuses "$program" ': not a valid connect string' 127.0.0.1:x
  refuses "$program" \
    '^/locks/nightly: the deadline has passed.*127.0.0.1:1:.*refused$' \
    127.0.0.1:1 300
done
exit $failed
