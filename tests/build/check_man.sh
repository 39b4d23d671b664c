#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The manual pages are correct mdoc: mandoc prints no warning, and groff formats
# them for 80 columns without a warning.

cd "${srcdir:-.}" || exit 99
failed=0

complain() {
  echo "$1"
  failed=1
}

check_with_mandoc() {
  for page in man/*.[13]; do
    complaints=$(mandoc -T lint -W warning "$page" 2>&1)
    [ -z "$complaints" ] || complain "$complaints"
  done
}

check_with_groff() {
  for page in man/*.[13]; do
    complaints=$(groff -mdoc -ww -Tutf8 -rLL=78n "$page" 2>&1 >/dev/null)
    [ -z "$complaints" ] || complain "$page: $complaints"
  done
}

if ! command -v mandoc >/dev/null && ! command -v groff >/dev/null; then
  echo "skipped: needs mandoc or groff (Debian: packages mandoc, groff-base)"
  exit 77
fi
! command -v mandoc >/dev/null || check_with_mandoc
! command -v groff >/dev/null || check_with_groff
exit $failed
