# SPDX-License-Identifier: Apache-2.0
"""The tables of doc/servers.md: script/lib/servers.py [--check]

Writes the table of tested versions from the results of `script/test --servers` in
build/test/servers, if there are some, and the table of differences from
tests/support/server_differences.def. With --check it only compares the latter
with the page, and exits with 1 if they differ.
"""

import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.append(os.path.join(TOP, "tests", "live", "support"))

import differences

PAGE = os.path.join(TOP, "doc", "servers.md")
RESULTS = os.path.join(TOP, "build", "test", "servers")
TESTED = ("| version | test programs without a failure | tests that it cannot run | "
          "commit |",
          "| --- | --- | --- | --- |")
DIFFERENCES = ("| since | servers | latchkey | issue | test |",
               "| --- | --- | --- | --- | --- |")


def lines_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


def newest_results():
    """{version: (commit, path)} of the newest result of each version."""
    paths = [os.path.join(RESULTS, name) for name in os.listdir(RESULTS)
             if not name.endswith(".not") and "-changed" not in name]
    found = {}
    for path in sorted(paths, key=os.path.getmtime):
        version, commit = os.path.basename(path).split("-")
        found[version] = commit, path
    return found


def name_of(version):
    if version == "mixed":
        return "3.5.10, 3.9.6 and 3.5.10"
    if version.endswith("x3"):
        return name_of(version[:-2]) + ", three servers"
    return "Debian's 3.8.0" if version == "debian" else version


def version_key(item):
    name = item[0]
    return name == "mixed", [] if name == "mixed" else differences.numbers(
        name.replace("x3", "")), name


def tested_rows():
    for version, (commit, path) in sorted(newest_results().items(),
                                          key=version_key):
        missing = set(lines_of(path + ".not"))
        yield "| %s | %d | %d | %s |" % (
            name_of(version), len(set(lines_of(path))), len(missing), commit)


def difference_rows():
    for row in differences.DIFFERENCES.values():
        first = ", ".join(name_of(version) for version in row.first.split())
        issue = "[%s](https://issues.apache.org/jira/browse/%s)" % (
            row.issue, row.issue) if row.issue else "-"
        yield "| %s | %s | %s | %s | %s |" % (first, row.servers, row.latchkey,
                                              issue, row.test)


def replace_table(text, head, rows):
    """The text with other rows in the table that begins with `head`."""
    table = re.compile("".join(re.escape(line + "\n") for line in head) +
                       r"(?:\|.*\n)*")
    assert table.search(text), head[0]
    return table.sub(lambda _: "\n".join((*head, *rows)) + "\n", text)


def main():
    page = "\n".join(lines_of(PAGE)) + "\n"
    new = replace_table(page, DIFFERENCES, difference_rows())
    if "--check" in sys.argv:
        if new != page:
            print("doc/servers.md differs from tests/support/server_differences.def: "
                  "script/lib/servers.py writes it")
        return 1 if new != page else 0
    if os.path.isdir(RESULTS):
        new = replace_table(new, TESTED, tested_rows())
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(new)
    return 0


sys.exit(main())
