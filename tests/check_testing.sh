#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The table of planted bugs in doc/testing.md is what script/mutants prints.
cd "${srcdir:-.}" || exit 99
if ! command -v python3 >/dev/null; then
  echo "there is no python3"
  exit 77
fi
table=$(script/mutants --table) || exit 1 # after an empty line
if [ "$table" != "$(printf '\n' && sed -n '/^### Bytes and memory$/,$p' doc/testing.md)" ]; then
  echo "doc/testing.md: the table is not that of script/mutants --table"
  exit 1
fi
