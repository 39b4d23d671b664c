#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each mutant of tests/mutation fits a place in the sources, and random mutants
# are made as tests/mutation/edits.py describes. script/test --all also checks
# that each compiles, and that the tests that must find it exist.
cd "${srcdir:-.}" || exit 99
if ! command -v python3 >/dev/null; then
  echo "there is no python3"
  exit 77
fi
script/mutants --check || exit 1

# An example of what script/mutants --random can change in a function. It must
# not drop the comment, the string, the initializer or the last return, since
# these are no statements that can be missing.
edits=$(python3 tests/mutation/edits.py <<'END'
#define TWO 2
static int f(struct s *s) /* x = 1; */
{
  struct s t = {.size = 1};
  if (s->n < 7 && g("a < b;"))
    return 0;
  for (;;)
    h(&(struct s){.name = "x"});
  return s->n == t.n;
}
END
)
if [ "$edits" != '4 dropped: struct s t = {.size = 1}; -> ;
4 constant: 1 -> 0
4 constant: 1 -> 2
5 always: s->n < 7 && g("a < b;") -> (s->n < 7 && g("a < b;")) || 1
5 negated: s->n < 7 && g("a < b;") -> !(s->n < 7 && g("a < b;"))
5 never: s->n < 7 && g("a < b;") -> (s->n < 7 && g("a < b;")) && 0
5 comparison: < -> <=
5 constant: 7 -> 6
5 constant: 7 -> 8
5 connective: && -> ||
6 dropped: return 0; -> ;
6 constant: 0 -> 1
8 dropped: h(&(struct s){.name = "x"}); -> ;
9 negated: == -> !=' ]; then
  echo "tests/mutation/edits.py finds other edits:"
  echo "$edits"
  exit 1
fi
