#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each file and each identifier of the library that doc/architecture.md names
# exists.

cd "${srcdir:-.}" || exit 99
page=doc/architecture.md
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

lines_of() { # TEXT: sorted, for comm
  echo "$1" | sort -u
}

# missing_in KNOWN NAMES: the lines of NAMES that KNOWN does not have.
missing_in() {
  lines_of "$1" >"$work/known"
  lines_of "$2" | comm -13 "$work/known" -
}

# Files are named with or without a folder.
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
