#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The folders of src depend on each other without circles.

A folder depends on another one if one of its files includes a header there, or
if one of its .c files mentions a function that a .c file there defines. The
second kind finds functions that are declared in a header of a third folder. A
function that several files define (variants, of which a build has one) is left
out. Inside a folder, files may depend on each other as they like.
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

def folder_of(path):
    return str(path.parent.relative_to(SRC))


def read_files():
    """Returns {file: its text without comments and strings}, {file: headers it
    includes} and {function: files that define it}."""
    texts, included, definers = {}, {}, {}
    for path in sorted(SRC.rglob("*.[ch]")):
        text = path.read_text(encoding="utf-8")
        included[path] = {SRC / name for name in INCLUDE.findall(text)
                          if (SRC / name).is_file()}
        texts[path] = COMMENTS_AND_STRINGS.sub(" ", text)
        if path.suffix == ".c":
            for function in DEFINITION.findall(texts[path]):
                definers.setdefault(function, []).append(path)
    return texts, included, definers


def read_graph():
    """Returns {folder: {folder it depends on: an example}}."""
    texts, included, definers = read_files()
    # The expressions above have found the sources.
    if len(texts) < 100 or len(definers) < 500:
        sys.exit(f"only {len(texts)} files and {len(definers)} functions found")
    graph = {}
    for path, text in texts.items():
        others = graph.setdefault(folder_of(path), {})
        for header in included[path]:
            others[folder_of(header)] = f"{path.name} includes {header.name}"
        for word in set(NAME.findall(text)) if path.suffix == ".c" else ():
            files = definers.get(word, [])
            if len(files) == 1:
                others[folder_of(files[0])] = f"{path.name} calls {word}()"
        others.pop(folder_of(path), None)
    return graph


def find_circles(graph):
    """Returns the strongly connected components of more than one folder, by
    Tarjan's algorithm."""
    index, low, stack, circles = {}, {}, [], []

    def visit(folder):
        index[folder] = low[folder] = len(index)
        stack.append(folder)
        for other in graph[folder]:
            if other not in index:
                visit(other)
                low[folder] = min(low[folder], low[other])
            elif other in stack:
                low[folder] = min(low[folder], index[other])
        if low[folder] == index[folder]:
            start = stack.index(folder)
            if len(stack) - start > 1:
                circles.append(sorted(stack[start:]))
            del stack[start:]

    for folder in graph:
        if folder not in index:
            visit(folder)
    return circles


def print_circle(circle, graph):
    print(f"circle of {len(circle)} folders:")
    for folder in circle:
        for other, example in sorted(graph[folder].items()):
            if other in circle:
                print(f"  {folder} -> {other}: {example}")


def main():
    graph = read_graph()
    circles = find_circles(graph)
    for circle in circles:
        print_circle(circle, graph)
    return 1 if circles else 0


if __name__ == "__main__":
    sys.exit(main())
