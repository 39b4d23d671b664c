# SPDX-License-Identifier: Apache-2.0
"""What versions of ZooKeeper do: the rows of server_differences.def.

    differences.has("EXISTS_NEEDS_READ")        # the servers of this test
    differences.has("EXISTS_NEEDS_READ", "3.9.5")
    differences.need("PERSISTENT_WATCHES")      # the test needs such servers
"""

import collections
import os
import re

from live import NotTested

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                     "support", "server_differences.def")
_LITERAL = r'"((?:[^"\\]|\\.)*)"'
_ROW = re.compile(r"^DIFFERENCE\((\w+),((?:\s*%s\s*,?)+)\)" % _LITERAL, re.M)

# `first` has the first versions, as in "3.7.3 3.8.4 debian".
Difference = collections.namedtuple(
    "Difference", "name first issue servers latchkey test")

# The version of the servers of this test; "debian" is Debian's build of 3.8.0.
TESTED = os.environ.get("LATCHKEY_ZOOKEEPER") or "debian"


def _read_rows():
    """Returns {name: Difference}, in the order of the file."""
    with open(_FILE, encoding="utf-8") as f:
        text = f.read()
    rows = {}
    for match in _ROW.finditer(text):
        # A comma ends a field, which consists of adjacent literals.
        fields = ["".join(re.findall(_LITERAL, field))
                  for field in re.split(r'(?<="),', match[2])]
        rows[match[1]] = Difference(match[1], *fields)
    assert len(rows) == text.count("\nDIFFERENCE("), "a row cannot be read"
    return rows


DIFFERENCES = _read_rows()


def numbers(version):
    """(3, 8, 0) for "3.8.0" and for "debian"."""
    if version == "debian":
        version = "3.8.0"
    return tuple(int(n) for n in version.split("."))


def has(name, version=TESTED):
    """Whether servers of this version have the change."""
    words = DIFFERENCES[name].first.split()
    if version == "debian" and "debian" in words:
        return True
    firsts = [numbers(word) for word in words if word != "debian"]
    branch = numbers(version)[:2]
    for first in firsts:
        if first[:2] == branch:
            return numbers(version) >= first
    return branch > max(firsts)[:2]


def need(name):
    """End the test unless its servers have the change."""
    if not has(name):
        raise NotTested("ZooKeeper %s lacks %s" % (TESTED, name))
