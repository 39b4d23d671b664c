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

# Prints the lines of the trace, without the summary.
trace_of() { # OPTION...
  "$simulate" --trace "$@" >"$traces/all" || exit 1
  grep '^ *[0-9]*\.[0-9][0-9][0-9] ' "$traces/all"
}

# A createSession takes longer than an attempt at one of six addresses.
trace_of --seed 11987 --scenario operator --locks multilock --style brief \
  --condition addresses --condition narrow >"$traces/slow"
grep -q 'connected, but no answer within 378 ms' "$traces/slow" || exit 1
# Servers are wiped, and refuse a client until it gives up its session: after its
# limit of four session timeouts, 12,528 ms.
trace_of --seed 327 --condition wipes --condition limits >"$traces/wiped"
grep -q 'all servers are wiped' "$traces/wiped" || exit 1
awk '/ session state: suspended/ { since[$2] = $1 }
  / session state: expired/ && $1 - since[$2] > 12000 { found = 1 }
  END { exit !found }' "$traces/wiped" || exit 1

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
