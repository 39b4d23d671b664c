#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each public header compiles alone and twice, as C11 and as C++, without a
# warning. libev is not needed, since <latchkey/ev.h> only declares the type of
# its loop. LK_DEPRECATED makes the compiler warn, with its text.

failed=0
srcdir=${srcdir:-.}
builddir=${abs_top_builddir:-.}
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wundef -Werror'

# compile LANGUAGE STANDARD: compile the source on standard input.
compile() {
  # shellcheck disable=SC2086 # lists of words
  $CC $CPPFLAGS $warnings -I "$builddir/include" -I "$srcdir/include" \
    -x "$1" "-std=$2" -fsyntax-only -
}

check_all() {
  for h in "$srcdir"/include/latchkey/*.h "$builddir"/include/latchkey/*.h; do
    h=latchkey/${h##*/}
    printf '#include <%s>\n#include <%s>\nextern int x;\n' "$h" "$h" | compile "$1" "$2" || {
      echo "$h does not compile alone as $2"
      failed=1
    }
  done
}

CC=${CC:-cc}
check_all c c11
if echo 'int x;' | compile c++ c++11 2>/dev/null; then
  check_all c++ c++11
else
  echo "there is no C++ compiler: C only"
fi

# The use of a function with LK_DEPRECATED, as C and as C++.
check_deprecated() { # LANGUAGE STANDARD
  said=$(printf '%s\n' '#include <latchkey/error.h>' \
    'LK_API LK_DEPRECATED("use lk_new()") int lk_old(void);' \
    'int f(void); int f(void) { return lk_old(); }' | compile "$1" "$2" 2>&1)
  case $said in
  *'use lk_new()'*) ;;
  *)
    echo "as $2, LK_DEPRECATED gives no warning: $said"
    failed=1
    ;;
  esac
}

check_deprecated c c11
! echo 'int x;' | compile c++ c++11 2>/dev/null || check_deprecated c++ c++11
exit $failed
