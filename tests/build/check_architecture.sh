#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# doc/architecture.md has a table for each folder of src ("### `src/FOLDER`",
# then rows "| `file.c`, `other.c` | what it keeps |"). Each .c and .def file,
# and each .h file without a .c file of its name, is in exactly one row, and
# each file in a row exists.

cd "${srcdir:-.}" || exit 99
page=doc/architecture.md

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
for f in $expected; do
  echo "$listed" | grep -qxF "$f" && continue
  echo "$f is in no table of $page"
  failed=1
done
for f in $listed; do
  [ -f "$f" ] && continue
  echo "$page names $f, which does not exist"
  failed=1
done
exit ${failed:-0}
