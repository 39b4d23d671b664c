#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program in README.md is examples/lock.c, which is compiled and run.
cd "${srcdir:-.}" || exit 99
# shellcheck disable=SC2016 # a fence, not a command
readme=$(sed -n '/^```c$/,/^```$/{/^```/!p;}' README.md)
example=$(sed '/SPDX-License-Identifier/d' examples/lock.c)
if [ -z "$readme" ] || [ "$readme" != "$example" ]; then
  echo "README.md and examples/lock.c differ"
  exit 1
fi
