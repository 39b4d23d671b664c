#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doc/servers.md has the table of tests/support/server_differences.def, and the
test that a row names asks for this row."""

import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(os.environ.get("srcdir", "."))
ROW = re.compile(r'^DIFFERENCE\((\w+),.*?"([\w/.]+)"\)$', re.M | re.S)


def sources_of(test):
    """The files of a test: a script, or all files whose names begin with that of
    a program."""
    path = TOP / "tests/live" / test
    return [path] if path.suffix else path.parent.glob(path.name + "*.[ch]")


def asks_for(name, test):
    return any(re.search(r"\b(SERVER_)?%s\b" % name, path.read_text(encoding="utf-8"))
               for path in sources_of(test))


table = (TOP / "tests/support/server_differences.def").read_text(encoding="utf-8")
wrong = [row for row in ROW.findall(table) if not asks_for(*row)]
for row in wrong:
    print("%s: tests/live/%s does not ask for it" % row)
code = subprocess.call([sys.executable, "-B", TOP / "script/lib/servers.py", "--check"])
sys.exit(1 if wrong else code)
