#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A saved schedule repeats its run, and --shrink shortens a run with a bug.

simulate=$abs_top_builddir/tests/sim/simulate
planted=$abs_top_builddir/tests/sim/simulate_planted
folder=$(mktemp -d) || exit 99
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 99

fail() {
  echo "FAILED: $1"
  exit 1
}

# Prints the lines of the trace. Names of writes have a count of jobs, among them
# those of faults that were not possible, which no schedule lists.
trace_of() { # PROGRAM OPTION...
  "$@" --trace | grep '^ *[0-9]*\.[0-9][0-9][0-9] ' | sed 's/\.g[0-9]*$//'
}

# Listed faults are those that the seed chooses, with and without faults of
# conditions. With 21 the last fault is due when the phase with faults ends.
# shellcheck disable=SC2086 # a seed and options
for seed in 3 8 11 21 28 '6 --servers 1' 173; do
  "$simulate" --seed $seed --save saved >/dev/null || fail "seed $seed"
  trace_of "$simulate" --seed $seed >random
  trace_of "$simulate" --schedule saved >listed
  cmp random listed || fail "seed $seed is not repeated from its schedule"
done

# Those that are left out do not change the others.
trace_of "$simulate" --schedule saved --faults 1-4 | grep ' fault ' >some
trace_of "$simulate" --seed 173 --faults 1,2,3-4 | grep ' fault ' >same
cmp some same || fail "--faults differs between a seed and its schedule"
[ "$(trace_of "$simulate" --seed 173 --faults none --until 30000 |
  grep -c ' fault ')" = 0 ] || fail "--faults none leaves faults"

# Of the program with a bug, the first broken seed that has some faults.
with_bug() { # OPTION...
  "$planted" "$@" 2>&1
}
with_bug --seeds 1:40 --locks mutex --condition none >many &&
  fail "the planted bug is not found"
broken='^broken: seed \([0-9]*\),.*: \([A-Z-]*\)$'
faults=0
for seed in $(sed -n "s/$broken/\1/p" many); do
  faults=$(with_bug --seed "$seed" --locks mutex --condition none |
    sed -n 's/^seed .* \([0-9]*\) faults,.*/\1/p')
  [ "$faults" -ge 5 ] && break
done
[ "$faults" -ge 5 ] || fail "no seed is broken"
invariant=$(sed -n "s/$broken/\1 \2/p" many | sed -n "s/^$seed //p")
with_bug --seed "$seed" --locks mutex --condition none --shrink \
  --save shrunk >shrink && fail "the shrunk run is not broken"
grep "^shrunk" shrink
figures=$(sed -n 's/^shrunk in \([0-9]*\) runs: \([0-9]*\) ms and \([0-9]*\) faults, from \([0-9]*\) ms and \([0-9]*\) faults$/\1 \2 \3 \4 \5/p' shrink)
# shellcheck disable=SC2086 # five numbers
set -- $figures
[ $# = 5 ] || fail "no figures"
[ "$1" -le 1000 ] || fail "$1 runs"
[ "$2" -lt "$4" ] || fail "the time is not shorter: $2 ms"
[ "$3" -le 3 ] && [ "$3" -lt "$5" ] || fail "the faults are not fewer: $3"
grep -q "^BROKEN $invariant: " shrink || fail "another invariant is broken"

# The printed command and the saved schedule are broken alike, and neither is
# without the bug.
command=$(sed -n 's/^replay: simulate //p' shrink)
# shellcheck disable=SC2086 # options
with_bug $command | grep -q "^BROKEN $invariant: " ||
  fail "the printed command is not broken: $command"
with_bug --schedule shrunk | grep -q "^BROKEN $invariant: " ||
  fail "the saved schedule is not broken"
"$simulate" --schedule shrunk >/dev/null || fail "it is broken without the bug"

# What is malformed is refused.
for wrong in '--seed 1 --faults 0' '--seed 1 --faults 3-2' \
  '--seed 1 --faults 1,' '--seeds 1:2 --shrink' '--schedule missing'; do
  # shellcheck disable=SC2086 # options
  "$simulate" $wrong >/dev/null 2>&1
  [ $? = 2 ] || fail "$wrong is accepted"
done
echo '--fault 1:flood:2' >bad
"$simulate" --schedule bad 2>/dev/null
[ $? = 2 ] || fail "a fault of no known kind is accepted"
exit 0
