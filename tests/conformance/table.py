#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the table of scenarios and kinds of locks in tests/README.md is
up to date. With --write, run in the build folder, it writes the table anew."""

import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
README = TOP / "tests" / "README.md"
BEGIN = "<!-- begin of the table -->\n"
END = "<!-- end of the table -->\n"

# The programs that list their cells with --cells. In the table M stands for a
# test with the model server, R for one with a real server.
MODEL = [os.path.join(os.environ.get("abs_top_builddir", "."),
                     "tests/conformance/check_conformance"), "--cells"]
REAL = [sys.executable, str(TOP / "tests/live/locks/conformance.py"), "--cells"]
COMMANDS = {"M": MODEL, "R": REAL}


def read_cells():
    """Returns {scenario: {kind: {letter: reason}}} and the kinds. The reason says
    why the program of this letter skips the scenario for the kind; '' if it
    does not skip it."""
    table, kinds = {}, {}
    for letter, command in COMMANDS.items():
        listed = subprocess.run(command, check=True, text=True,
                                stdout=subprocess.PIPE).stdout
        for line in listed.splitlines():
            scenario, kind, reason = line.split("\t")
            kinds[kind] = None
            table.setdefault(scenario, {}).setdefault(kind, {})[letter] = reason
    return table, list(kinds)


def letters_of(cell):
    """The letters of the tests that run this cell, or '-'."""
    return "".join(letter for letter, reason in cell.items()
                   if not reason) or "-"


def render(table, kinds):
    lines = ["", "| scenario | " + " | ".join(kinds) + " |",
             "| --- |" + " --- |" * len(kinds)]
    reasons = []
    for scenario, row in table.items():
        lines.append("| `%s` | %s |" % (scenario, " | ".join(
            letters_of(row.get(kind, {})) for kind in kinds)))
        for kind, cell in row.items():
            reasons += ["- `%s`, %s, %s: %s" % (scenario, kind, letter, reason)
                        for letter, reason in cell.items() if reason]
    return "\n".join(lines + ["", "Not tested, and why:", ""] + reasons) + "\n\n"


def main():
    if not os.path.exists(MODEL[0]):
        print("skipped: there is no", MODEL[0])
        sys.exit(77)
    text = README.read_text()
    before_table, rest = text.split(BEGIN)
    found, after_table = rest.split(END)
    wanted = render(*read_cells())
    if sys.argv[1:] == ["--write"]:
        README.write_text(before_table + BEGIN + wanted + END + after_table)
    elif found != wanted:
        print("tests/README.md shows another table; in the build folder, run\n"
              "    python3 %s --write" % os.path.relpath(__file__))
        sys.exit(1)


main()
