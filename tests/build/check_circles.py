#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of src depend on each other without circles.

A .c file and the header of its name are one unit. A unit depends on another one
if it includes its header, or if its .c file mentions a function that the other
one's .c file defines. The second kind finds functions that are declared in the
header of a third file. A function that several files define (variants, of which
a build has one) is left out.

Circles of calls fail the check. Circles of calls and headers together that are
known to be left stand in KNOWN: such a circle fails the check if it has a file
that is not in the same entry of KNOWN. An entry is removed when its circle is:
it is reported then.
"""

import os
import pathlib
import re
import sys

TOP = pathlib.Path(os.environ.get("srcdir", "."))
SRC = TOP / "src"
COMMENTS_AND_STRINGS = re.compile(r"/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", re.S)
INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.M)
# The definition of a function begins in the first column and ends with a line
# that consists of "}".
DEFINITION = re.compile(r"^(?!static\b)[a-z][\w *]*?\b(\w+)\([^;{}]*\)\n\{$",
                        re.M)
# Each function that is not static begins with one of these.
NAME = re.compile(r"\b(?:lk|cli)_\w+")

KNOWN = [
    # A watch and its handle end together.
    """proto/engine/watch_handles proto/engine/watch_table""",
    # The parts of a client take the whole client, whose header has their structs.
    """proto/engine/auth proto/engine/call_nesting proto/engine/calls
       proto/engine/client proto/engine/client_close
       proto/engine/connect_timeout
       proto/engine/invariants proto/engine/lease_slot
       proto/engine/listeners proto/engine/log proto/engine/pings
       proto/engine/quorum_probe proto/engine/rejected_request
       proto/engine/request_completion proto/engine/request_deadlines
       proto/engine/request_encoding proto/engine/request_outcomes
       proto/engine/request_queue proto/engine/set_watches_retry
       proto/engine/sasl proto/engine/sasl_config
       proto/engine/server_move proto/engine/server_support
       proto/engine/session
       proto/engine/session_end proto/engine/session_handshake
       proto/engine/silent_server
       proto/engine/watch_calls proto/engine/watch_events""",
]


def unit_of(path):
    return str(path.relative_to(SRC).with_suffix(""))


def read_units():
    """Returns {unit: text of its .c file}, {unit: units included} and
    {function: units that define it}."""
    texts, included, definers = {}, {}, {}
    for path in sorted(SRC.rglob("*.[ch]")):
        unit = unit_of(path)
        text = path.read_text(encoding="utf-8")
        names = included.setdefault(unit, set())
        for name in INCLUDE.findall(text):
            if (SRC / name).is_file():
                names.add(unit_of(SRC / name))
        plain = COMMENTS_AND_STRINGS.sub(" ", text)
        texts.setdefault(unit, "")
        if path.suffix == ".c":
            texts[unit] = plain
            for function in DEFINITION.findall(plain):
                definers.setdefault(function, set()).add(unit)
    return texts, included, definers


def find_calls(unit, text, definers):
    """Returns {unit whose function is mentioned: that function}."""
    calls = {}
    for word in sorted(set(NAME.findall(text))):
        definers_of_word = definers.get(word, set())
        if len(definers_of_word) == 1 and unit not in definers_of_word:
            calls[next(iter(definers_of_word))] = word
    return calls


def read_graphs():
    """Two graphs {unit: {unit it depends on: a name that shows it}}: of calls,
    and of calls and headers."""
    texts, included, definers = read_units()
    calls, graph = {}, {}
    for unit, text in texts.items():
        calls[unit] = find_calls(unit, text, definers)
        graph[unit] = {other: "its header" for other in included[unit]}
        graph[unit].update(calls[unit])
        graph[unit].pop(unit, None)
    # The expressions above have found the sources.
    if len(graph) < 100 or len(definers) < 500:
        sys.exit(f"only {len(graph)} units and {len(definers)} functions found")
    return calls, graph


def find_circles(graph):
    """Returns the strongly connected components of more than one unit, by
    Tarjan's algorithm."""
    index, low, stack, circles = {}, {}, [], []

    def visit(unit):
        index[unit] = low[unit] = len(index)
        stack.append(unit)
        for other in graph[unit]:
            if other not in index:
                visit(other)
                low[unit] = min(low[unit], low[other])
            elif other in stack:
                low[unit] = min(low[unit], index[other])
        if low[unit] == index[unit]:
            start = stack.index(unit)
            if len(stack) - start > 1:
                circles.append(sorted(stack[start:]))
            del stack[start:]

    for unit in graph:
        if unit not in index:
            visit(unit)
    return circles


def print_circle(circle, graph, what):
    print(f"circle of {what}, {len(circle)} files:")
    for unit in circle:
        for other, name in sorted(graph[unit].items()):
            if other in circle:
                print(f"  {unit} -> {other}: {name}")


def main():
    sys.setrecursionlimit(10000)
    calls, graph = read_graphs()
    failed = False
    not_found = list(KNOWN)
    for circle in find_circles(calls):
        failed = True
        print_circle(circle, calls, "calls")
    for circle in find_circles(graph):
        entries = [k for k in KNOWN if set(circle) <= set(k.split())]
        if entries:
            print(f"known circle of {len(circle)} files: {circle[0]} ...")
            not_found = [k for k in not_found if k not in entries]
            continue
        failed = True
        print_circle(circle, graph, "calls and headers")
    for known in not_found:
        print(f"no circle any more, remove it from KNOWN: {known.split()[0]} ...")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
