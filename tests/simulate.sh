#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The simulation: nothing is broken in the first seeds, and a seed makes the
# same run whenever it is played.

simulate=$abs_top_builddir/tests/simulate
stories=$(mktemp -d) || exit 99
trap 'rm -rf "$stories"' EXIT

"$simulate" --seeds 1:200 || exit 1

for scenario in storm late-writes crashes; do
  for time in 1 2; do
    "$simulate" --seed 7 --scenario "$scenario" --trace >"$stories/$time" ||
      exit 1
  done
  cmp "$stories/1" "$stories/2" || exit 1
done

"$simulate" --seeds 1 2>"$stories/usage"
[ $? = 2 ] || exit 1
