#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The shared library exports lk_ names and no other, the archive has lk_ and
# lk__ names and no other; the library calls nothing that prints, ends the
# process, blocks in the core, changes the process's state or keeps state
# itself; each function has a section of its own; and no other ZooKeeper client
# is linked in.

lib=${abs_top_builddir:-.}/.libs
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

checked=no
if [ -e "$lib/liblatchkey.so" ]; then
  checked=yes
  exported=$(nm -D --defined-only "$lib/liblatchkey.so" | names)
  expect_none "exported, but not lk_" "$(echo "$exported" | grep -vE '^lk_[a-z]')"
  echo "$exported" | grep -q '^lk_error_text$' ||
    complain "missing among the exported" lk_error_text
  expect_none "linked with" "$(ldd "$lib/liblatchkey.so" | grep -i zookeeper)"
fi
if [ -e "$lib/liblatchkey.a" ]; then
  checked=yes
  expect_none "neither lk_ nor lk__" \
    "$(nm -g --defined-only "$lib/liblatchkey.a" | grep -E ' [A-Z] ' | names | grep -vE '^lk__?[a-z]')"
  wanted=$(nm -g --undefined-only "$lib/liblatchkey.a" | grep -E ' [Uw] ' | names)
  # Only invariant checks may end the process.
  grep -qs 'define LK_DEBUG 1' "${abs_top_builddir:-.}/config.h" &&
    wanted=$(echo "$wanted" | grep -vxE 'abort|fprintf|__fprintf_chk|fwrite')
  expect_none "the library must not call" "$(echo "$wanted" | grep -xE \
    '_?exit|_Exit|quick_exit|abort|(f|d|v|vf|vd)?printf|__(f|v|vf)?printf_chk|f?puts|f?putc|putchar|fopen|fwrite|perror|syslog|signal|sigaction|setlocale|s?rand|s?random|setenv|putenv|sleep|usleep|nanosleep|gethostbyname|zoo_.*|zookeeper_.*')"
  if [ -z "$LK_SAN_FLAGS" ] && command -v objdump >/dev/null; then
    expect_none "variables that change" \
      "$(objdump -t "$lib/liblatchkey.a" | grep -E ' O +(\.data|\.bss|\*COM\*)(\.[^r][^ ]*)?[[:space:]]' |
        grep -v ' numbered_threads$')"
    expect_none "functions that --gc-sections cannot drop alone" \
      "$(objdump -t "$lib/liblatchkey.a" | grep -E ' F +\.text[[:space:]]')"
  fi
fi
[ $checked = yes ] || {
  echo "skipped: there is no library in $lib"
  exit 77
}
exit $failed
