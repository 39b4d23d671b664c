#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each exported function is in the section NAME of exactly one manual page, so
# that man finds the page by the name of the function. The pages name no
# function or constant that the headers do not declare.

cd "${srcdir:-.}" || exit 99
failed=0

complain() {
  echo "$1"
  failed=1
}

exported=$(awk 'BEGIN { RS = ";" }
  /LK_API/ {
    gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "")
    sub(/.*LK_API/, "")
    if (match($0, /lk_[a-z0-9_]+ *\(/)) {
      name = substr($0, RSTART, RLENGTH)
      sub(/ *\(/, "", name)
      print name
    } else if ($0 ~ /extern/ && match($0, /lk_[a-z0-9_]+ *$/)) {
      name = substr($0, RSTART, RLENGTH)
      sub(/ *$/, "", name)
      print name
    }
  }' include/latchkey/*.h* | sort -u)
described=$(sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' man/*.3 | sort)

[ -n "$exported" ] || complain "no exported function was found"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
echo "$exported" >"$work/exported"
echo "$described" | uniq >"$work/described"

for name in $(comm -23 "$work/exported" "$work/described"); do
  complain "$name stands under NAME of no manual page"
done
for name in $(echo "$described" | uniq -d); do
  complain "$name stands under NAME of several manual pages"
done
for name in $(comm -13 "$work/exported" "$work/described"); do
  [ -e "man/$name.3" ] || grep -qw "$name" include/latchkey/*.h* ||
    complain "man/: $name is in no header"
done
exit $failed
