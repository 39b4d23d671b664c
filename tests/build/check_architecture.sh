#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# doc/architecture.md has a table for each folder of src ("### `src/FOLDER`",
# then rows "| `file.c`, `other.c` | what it keeps |"). Each .c and .def file,
# and each .h file without a .c file of its name, is in exactly one row, and
# each file in a row exists. Each other file and each identifier of the library
# that the page names exists, too.

cd "${srcdir:-.}" || exit 99
page=doc/architecture.md
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

listed=$(awk '
  /^#/ { folder = "" }
  /^### `src\/[a-z\/]*`$/ { folder = $2; gsub(/`/, "", folder) }
  folder != "" && /^\| `/ {
    n = split(substr($0, 2, index(substr($0, 2), "|") - 1), part, "`")
    for (i = 2; i <= n; i += 2)
      print folder "/" part[i]
  }' $page | sort)

expected=$(find src -name '*.c' -o -name '*.def' -o -name '*.h' |
  while read -r f; do
    [ "$f" = "${f%.h}.h" ] && [ -f "${f%.h}.c" ] || echo "$f"
  done | sort)

if [ -z "$listed" ] || [ -z "$expected" ]; then
  echo "$page has no tables of files, or src has none"
  exit 1
fi

echo "$listed" | uniq -d | sed "s|\$| is in $page twice|" | grep . && failed=1
lines_of() { # TEXT: sorted, for comm
  echo "$1" | sort -u
}

# missing_in KNOWN NAMES: the lines of NAMES that KNOWN does not have.
missing_in() {
  lines_of "$1" >"$work/known"
  lines_of "$2" | comm -13 "$work/known" -
}

for f in $(missing_in "$listed" "$expected"); do
  echo "$f is in no table of $page"
  failed=1
done
for f in $listed; do
  [ -f "$f" ] && continue
  echo "$page names $f, which does not exist"
  failed=1
done
# Files that the page names outside of the tables, with or without a folder.
files=$(find src include -type f; find tests doc -type f ! -name '*.[ch]')
# shellcheck disable=SC2016 # quotes of the page, not a command
for f in $(grep -oE '`[a-z_/]+\.(c|h|def|md|pml|py|sh|svg)`' $page |
  tr -d '`' | sort -u); do
  echo "$files" | grep -qE "(^|/)$f\$" && continue
  echo "$page names $f, which does not exist"
  failed=1
done
identifiers() {
  grep -ohrE '\b(lk_|LK_)[A-Za-z0-9_]+' "$@" | sort -u
}
known=$(identifiers src include)
for name in $(missing_in "$known" "$(identifiers $page)"); do
  echo "$page names $name, which does not exist"
  failed=1
done
exit "${failed:-0}"
