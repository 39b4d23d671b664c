#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The simulation: nothing is broken in the first seeds, and a seed makes the
# same run whenever it is played, alone or after others.

simulate=$abs_top_builddir/tests/sim/simulate
stories=$(mktemp -d) || exit 99
trap 'rm -rf "$stories"' EXIT

"$simulate" --seeds 1:200 || exit 1
"$simulate" --scenario moves --seeds 1:30 || exit 1
"$simulate" --all-requests --seeds 1:20 || exit 1
"$simulate" --scenario slow --seeds 1:30 || exit 1

# A createSession takes longer than an attempt at one of six addresses.
"$simulate" --seed 11987 --scenario operator --locks multilock --style brief \
  --condition addresses --condition narrow >/dev/null || exit 1
# Servers are wiped, and a client has an unusual limit for its session.
"$simulate" --seed 327 --condition wipes --condition limits >/dev/null || exit 1

# Only what happened, not what is said about it.
story() { # OPTION...
  "$simulate" --trace "$@" >"$stories/all" || exit 1
  grep '^ *[0-9]*\.[0-9][0-9][0-9] ' "$stories/all"
}

for seed in 7 8 9; do
  story --seed $seed
done >"$stories/alone"
story --seeds 7:3 >"$stories/together"
[ -s "$stories/alone" ] || exit 1
cmp "$stories/alone" "$stories/together" || exit 1

"$simulate" --seeds 1 2>"$stories/usage"
[ $? = 2 ] || exit 1
