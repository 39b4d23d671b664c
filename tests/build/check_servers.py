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
sys.path.append(str(TOP / "tests/live/support"))

import differences


def sources_of(test):
    """The files of a test: a script, or all files whose names begin with that of
    a program."""
    path = TOP / "tests/live" / test
    return [path] if path.suffix else path.parent.glob(path.name + "*.[ch]")


def asks_for(row):
    return any(re.search(r"\b(SERVER_)?%s\b" % row.name,
                         path.read_text(encoding="utf-8"))
               for path in sources_of(row.test))


wrong = [row for row in differences.DIFFERENCES.values() if not asks_for(row)]
for row in wrong:
    print("%s: tests/live/%s does not ask for it" % (row.name, row.test))
code = subprocess.call([sys.executable, "-B", TOP / "script/lib/servers.py", "--check"])
sys.exit(1 if wrong else code)
