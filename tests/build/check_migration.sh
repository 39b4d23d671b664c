#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# doc/migration.md names each function of libzookeeper, and nothing of latchkey
# that its headers do not declare. Its programs compile: those of libzookeeper
# where its header is installed.

doc=${srcdir:-.}/doc/migration.md
builddir=${abs_top_builddir:-.}
failed=0
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

complain() {
  echo "doc/migration.md: $1"
  failed=1
}

for name in $(grep -v '^#' "${srcdir:-.}/tests/build/libzookeeper.txt"); do
  grep -q "\`$name()\`" "$doc" || complain "$name() has no counterpart"
done
cat "${srcdir:-.}"/include/latchkey/*.h >"$work/headers"
for name in $(grep -oE '\b(lk|LK)_[A-Za-z0-9_]*[A-Za-z0-9]' "$doc" | sort -u); do
  [ -e "${srcdir:-.}/man/$name.3" ] ||
    grep -qE "\b${name}\b|X\(${name#LK_ERR_}," "$work/headers" ||
    complain "no header declares $name"
done

awk -v work="$work" '
  /^```c$/ { n++; inside = 1; next }
  /^```$/ { inside = 0 }
  inside { print > (work "/program" n ".c") }' "$doc"
[ -e "$work/program4.c" ] || complain "its four programs are missing"
for program in "$work"/program*.c; do
  if grep -q '<zookeeper/' "$program" &&
    ! echo '#include <zookeeper/zookeeper.h>' | ${CC:-cc} -E - >/dev/null 2>&1; then
    echo "not compiled, without libzookeeper: ${program##*/}"
    continue
  fi
  # shellcheck disable=SC2086 # a list of words
  ${CC:-cc} $CPPFLAGS -std=gnu11 -Wall -Wextra -Werror -I "$builddir/include" \
    -I "${srcdir:-.}/include" -fsyntax-only "$program" ||
    complain "${program##*/} does not compile"
done
exit $failed
