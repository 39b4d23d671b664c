#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The package of `make dist` has each file that git tracks, except those below.
cd "${srcdir:-.}" || exit 99
if [ ! -e .git ] || ! tracked=$(git ls-files); then
  echo "this is no repository of git"
  exit 77
fi
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# What only a clone needs: the entry of the CI, and the rules of git.
not_shipped='\.ci/run|\.gitignore'

make -C "${abs_top_builddir:-.}" distdir distdir="$work/dist" >"$work/log" 2>&1 || {
  tail -n 20 "$work/log"
  exit 1
}
missing=$(echo "$tracked" | grep -vxE "$not_shipped" |
  while IFS= read -r file; do
    [ -e "$work/dist/$file" ] || echo "$file"
  done)
[ -z "$missing" ] || {
  echo "not in the package; Makefile.am or a sources.am must list them:"
  echo "$missing"
  exit 1
}
