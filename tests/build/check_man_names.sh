#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each exported function is in the section NAME of exactly one manual page, so
# that man finds the page by the name of the function. The pages name no
# function or constant that the headers do not declare. The section HISTORY of a
# page names each version that added one of its functions.

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

# Print the version that added a function: 0.1.
version_of() { # NAME
  awk -v name="  $1;" '/^LATCHKEY_/ { version = substr($1, 10) }
    $0 == name { print version }' src/*.map
}

for page in man/*.[13]; do
  sed -n '/^\.Sh HISTORY/,/^\.Sh /p' "$page" >"$work/history"
  grep -q 'latchkey [0-9]' "$work/history" ||
    complain "$page: HISTORY names no version"
  for name in $(sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \(lk_[^ ]*\).*/\1/p' "$page"); do
    version=$(version_of "$name")
    [ -z "$version" ] || grep -q "latchkey $version\." "$work/history" ||
      complain "$page: HISTORY does not say that $name is there since $version"
  done
done
exit $failed
