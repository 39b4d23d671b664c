# SPDX-License-Identifier: Apache-2.0
"""Used by compare_locks.py and compare_leases.py: the program to be measured,
its servers, and the page that gets the tables."""

import os

import support

# Servers in production have a large heap. With the small one of script/server
# a collection of 1 to 2 ms stops the server every 70 turns or so, and the 99th
# percentile is that pause.
SERVER_OPTIONS = "-Xms512m -Xmx512m -Xmn256m"


class Missing(Exception):
    """Something that the comparison needs is missing on this machine."""


def bench_program(build):
    program = os.path.join(build, "bench", "latchkey-bench")
    if not os.path.exists(program):
        raise Missing(f"{program}: configure and make first")
    return program


def start_servers(*options, count=1):
    os.environ.setdefault("LATCHKEY_SERVER_JAVA_OPTIONS", SERVER_OPTIONS)
    return support.zkserver.Server(*options, servers=count)


def write_section(name, lines):
    """Put the lines between the marks of this name in doc/performance.md."""
    begin, end = f"<!-- {name} -->\n", "<!-- end -->\n"
    page = os.path.join(support.TOP, "doc", "performance.md")
    with open(page, encoding="utf-8") as file:
        before, rest = file.read().split(begin)
    after = rest.split(end, 1)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + begin + "\n".join([*lines, ""]) + end + after)
