#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The library and the command compile without names that headers of Linux 4.18,
# glibc 2.28 or musl 1.1.24 may lack.

failed=0
srcdir=${srcdir:-.}
builddir=${abs_top_builddir:-.}
names='MADV_WIPEONFORK SYS_clone3'
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wundef -Werror'
header=$(mktemp) || exit 99
trap 'rm -f "$header"' EXIT

{
  printf '#include <%s>\n' config.h sys/mman.h sys/syscall.h
  # shellcheck disable=SC2086 # a list of words
  printf '#undef %s\n' $names
} >"$header"
for name in $names; do
  files=$(grep -rlw --include='*.c' "$name" "$srcdir/src")
  [ -n "$files" ] || {
    echo "nothing uses $name any more"
    failed=1
  }
  for file in $files; do
    # shellcheck disable=SC2086 # lists of words
    ${CC:-cc} $CPPFLAGS $warnings -I "$builddir" -I "$builddir/include" \
      -I "$srcdir/include" -I "$srcdir/src" -include "$header" \
      -fsyntax-only "$file" || {
      echo "$file does not compile without $name"
      failed=1
    }
  done
done
exit $failed
