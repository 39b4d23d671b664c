#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each shared library exports the functions that its headers declare, with the
# versions of its version script, and nothing else. The archives have lk_ and
# lk__ names and no other. The libraries call nothing that prints, ends the
# process, blocks in the core, changes the process's state or keeps state
# itself; each function has a section of its own; and no other ZooKeeper client
# is linked in. liblatchkey does not need libev. Neither library can be unloaded
# while a lookup of its driver hangs (check_unload.sh shows why).

lib=${abs_top_builddir:-.}/.libs
top=${srcdir:-.}
failed=0

complain() {
  echo "$1:"
  echo "$2" | sed 's/^/  /'
  failed=1
}

expect_none() {
  [ -z "$2" ] || complain "$1" "$2"
}

command -v nm >/dev/null || {
  echo "skipped: there is no nm"
  exit 77
}

# The names in the output of nm, without those that a sanitizer adds.
names() {
  sed 's/.* //' | grep -vE '^(__(asan|ubsan|tsan|msan|odr_asan|sanitizer|sancov|start___|stop___)|_init$|_fini$)' |
    sort -u
}

# The lines of one list that the other lacks.
differences() { # LIST LIST
  printf '%s\n' "$1" "$2" | sort | uniq -u
}

# Print the functions that headers declare.
declared() { # HEADER...
  cat "$@" | tr '\n;' ' \n' |
    sed -n 's/.*LK_API [^(]*[ *]\(lk_[a-z0-9_]*\)(.*/\1/p' | sort
}

# Print the symbols of a version script as nm does: NAME@@VERSION.
scripted() { # MAP
  sed -n 's/^\(LATCHKEY_[0-9.]*\) {$/v \1/p; s/^  \(lk_[a-z0-9_]*\);$/\1/p' "$1" |
    awk '$1 == "v" { version = $2; next } { print $1 "@@" version }' | sort
}

check_shared() { # NAME MAP HEADER...
  so=$lib/$1.so map=$2
  shift 2
  [ -e "$so" ] || return
  checked=yes
  expect_none "declared, or in $map, but not both" \
    "$(differences "$(declared "$@")" "$(scripted "$map" | sed 's/@@.*//')")"
  expect_none "exported, or in $map, but not both" \
    "$(differences "$(nm -D --defined-only "$so" | grep -v ' A ' | names)" \
      "$(scripted "$map")")"
  expect_none "linked with" "$(ldd "$so" | grep -i zookeeper)"
  ! command -v readelf >/dev/null || readelf -d "$so" | grep -q NODELETE ||
    complain "not linked with -z nodelete" "$so"
}

check_archive() { # NAME
  archive=$lib/$1.a
  [ -e "$archive" ] || return
  checked=yes
  expect_none "neither lk_ nor lk__" \
    "$(nm -g --defined-only "$archive" | grep -E ' [A-Z] ' | names | grep -vE '^lk__?[a-z]')"
  wanted=$(nm -g --undefined-only "$archive" | grep -E ' [Uw] ' | names)
  # Only invariant checks may end the process.
  grep -qs 'define LK_DEBUG 1' "${abs_top_builddir:-.}/config.h" &&
    wanted=$(echo "$wanted" | grep -vxE 'abort|fprintf|__fprintf_chk|fwrite')
  expect_none "the library must not call" "$(echo "$wanted" | grep -xE \
    '_?exit|_Exit|quick_exit|abort|(f|d|v|vf|vd)?printf|__(f|v|vf)?printf_chk|f?puts|f?putc|putchar|fopen|fwrite|perror|syslog|signal|sigaction|setlocale|s?rand|s?random|setenv|putenv|sleep|usleep|nanosleep|gethostbyname|zoo_.*|zookeeper_.*')"
  if [ -z "$LK_SAN_FLAGS" ] && command -v objdump >/dev/null; then
    expect_none "variables that change" \
      "$(objdump -t "$archive" | grep -E ' O +(\.data|\.bss|\*COM\*)(\.[^r][^ ]*)?[[:space:]]' |
        grep -v ' numbered_threads$')"
    expect_none "functions that --gc-sections cannot drop alone" \
      "$(objdump -t "$archive" | grep -E ' F +\.text[[:space:]]')"
  fi
}

checked=no
ev=$top/include/latchkey/ev.h
# shellcheck disable=SC2046 # a list of headers
check_shared liblatchkey "$top/src/latchkey.map" \
  $(ls "$top"/include/latchkey/*.h | grep -vxF "$ev") \
  "${abs_top_builddir:-.}/include/latchkey/version.h"
check_archive liblatchkey
check_shared liblatchkey-ev "$top/src/latchkey-ev.map" "$ev"
check_archive liblatchkey-ev
[ -e "$lib/liblatchkey.so" ] &&
  expect_none "liblatchkey is linked with" \
    "$(ldd "$lib/liblatchkey.so" | grep -E 'libev\.|libm\.')"
[ $checked = yes ] || {
  echo "skipped: there is no library in $lib"
  exit 77
}
exit $failed
