#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The simulation: no seed violates an invariant, and a seed makes the same run
# alone and after others.

simulate=$abs_top_builddir/tests/sim/simulate
traces=$(mktemp -d) || exit 99
trap 'rm -rf "$traces"' EXIT

"$simulate" --seeds 1:200 || exit 1
"$simulate" --scenario moves --seeds 1:30 || exit 1
"$simulate" --all-requests --seeds 1:20 || exit 1
"$simulate" --scenario slow --seeds 1:30 || exit 1
"$simulate" --servers 1 --seeds 1:60 || exit 1

# A createSession takes longer than an attempt at one of six addresses.
"$simulate" --seed 11987 --scenario operator --locks multilock --style brief \
  --condition addresses --condition narrow >/dev/null || exit 1
# Servers are wiped, and a client has a limit for giving up its session.
"$simulate" --seed 327 --condition wipes --condition limits >/dev/null || exit 1

# Prints the lines of the trace, without the summary.
trace_of() { # OPTION...
  "$simulate" --trace "$@" >"$traces/all" || exit 1
  grep '^ *[0-9]*\.[0-9][0-9][0-9] ' "$traces/all"
}

for seed in 7 8 9; do
  trace_of --seed $seed
done >"$traces/alone"
trace_of --seeds 7:3 >"$traces/together"
[ -s "$traces/alone" ] || exit 1
cmp "$traces/alone" "$traces/together" || exit 1

for wrong in '--seeds 1' '--seed 1 --servers 0' '--seed 1 --servers 6'; do
  # shellcheck disable=SC2086 # options
  "$simulate" $wrong 2>"$traces/usage"
  [ $? = 2 ] || exit 1
done
