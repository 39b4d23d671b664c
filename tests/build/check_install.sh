#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What `make install` installs can be used: <latchkey/latchkey.h> compiles, and
# the library has every function that an installed header declares. `make
# uninstall` leaves no file and no folder.

root=$(mktemp -d) || exit 99
trap 'rm -rf "$root"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES DESTDIR
failed=0

complain() {
  echo "$1"
  failed=1
}

# in_build TARGET: call make as the user of a package would.
in_build() {
  make -C "${abs_top_builddir:-.}" "$1" DESTDIR="$root" >"$root.log" 2>&1 || {
    cat "$root.log"
    exit 1
  }
  rm "$root.log"
}

installed() { # NAME
  find "$root" -name "$1" -type f | head -n 1
}

# both_or_neither FILE FILE: complain unless both are installed or none.
both_or_neither() {
  [ -n "$(installed "$1")" ] && [ -n "$(installed "$2")" ] && return
  [ -z "$(installed "$1")$(installed "$2")" ] ||
    complain "of $1 and $2 only one is installed"
}

# Whether an example needs libev, without which the library was built.
needs_libev() { # NAME
  [ -z "$(installed ev.h)" ] &&
    grep -q '^#include <ev.h>' "${srcdir:-.}/examples/$1"
}

# Print each example that includes a header which is not installed. One that
# includes libev's ev.h needs ours, too.
check_examples() {
  find "$root" -path '*/examples/*.c' | while IFS= read -r example; do
    sed -n 's,^#include <latchkey/\(.*\)>,\1,p; s,^#include <\(ev\.h\)>,\1,p' \
      "$example" | sort -u |
      while IFS= read -r header; do
        [ -n "$(installed "$header")" ] ||
          echo "${example##*/} includes $header, which is not installed"
      done
  done
}

# Print a program that takes the address of each function, so that it links only
# if the library has all of them.
program() {
  headers=$(dirname "$(installed latchkey.h)")

  echo '#include <latchkey/latchkey.h>'
  for h in "$headers"/*.h; do
    echo "#include <latchkey/${h##*/}>"
  done
  echo 'typedef void (*function)(void);'
  echo 'function functions[] = {'
  cat "$headers"/*.h | tr '\n;' ' \n' |
    sed -n 's/.*LK_API [^(]*[ *]\(lk_[a-z0-9_]*\)(.*/(function)\1,/p'
  echo '};'
  echo 'int main(void) { return functions[0] == 0; }'
}

in_build install
both_or_neither latchkey latchkey.1
both_or_neither ev.h lk_ev.3
both_or_neither ev.h latchkey-ev.pc
missing=$(check_examples)
[ -z "$missing" ] || complain "$missing"
for file in latchkey poll.h sync.h lk_poll.3 lk_sync.3 migration.md; do
  [ -n "$(installed "$file")" ] || complain "$file is not installed"
done
for example in $(find "$root" -name '*.[13]' -type f -exec \
    sed -n 's/^\.Pa examples\/\([a-z_]*\.c\).*/\1/p' {} + | sort -u); do
  [ -n "$(installed "$example")" ] || needs_libev "$example" ||
    complain "a manual page names examples/$example, which is not installed"
done
program >"$root/program.c"
[ "$(grep -c '^(function)lk_' "$root/program.c")" -gt 100 ] ||
  complain "the headers declare too few functions"
if command -v pkg-config >/dev/null; then
  pc=$(installed latchkey.pc)
  [ -z "$(installed ev.h)" ] && modules=latchkey || modules=latchkey-ev
  flags=$(PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$root \
    pkg-config --static --cflags --libs $modules) || failed=1
  # shellcheck disable=SC2086 # lists of words
  ${CC:-cc} $CPPFLAGS $CFLAGS $LK_SAN_FLAGS -o "$root/program" \
    "$root/program.c" $flags || complain "what is installed does not link"
else
  echo "there is no pkg-config: not linked"
fi
rm -f "$root/program.c" "$root/program"

in_build uninstall
left=$(cd "$root" && find . -mindepth 1)
[ -z "$left" ] || complain "make uninstall leaves:
$left"
exit $failed
