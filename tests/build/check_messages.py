#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doc/messages.md explains each message of the command, and no other.

A message is a string in src/cli of two words or more, outside tables of help
texts, or the text of an error code. In the page each one is an item of a list,
in backquotes, with "..." in place of what a conversion such as %s inserts.
"""

import os
import pathlib
import re
import sys

TOP = pathlib.Path(os.environ.get("srcdir", "."))
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
TEXT_MACRO = r"CLI_ADVICE_IDENTITY|CLI_OLDEST_VERSION|NOT_ZOOKEEPER"
MACRO = r"(?:PRI[dux](?:32|64)|%s)" % TEXT_MACRO
ADJACENT_LITERALS = re.compile(r"(?:%s|%s)(?:\s*(?:%s|%s))*" %
                     (LITERAL, MACRO, LITERAL, MACRO))
COMMENT = re.compile(r"/\*.*?\*/", re.S)
HELP_TABLE = re.compile(r"/\* clang-format off \*/\s*const cli_(?:option|command).*?"
                  r"/\* clang-format on \*/", re.S)
CONVERSION = re.compile(r"%[-0-9.*]*(?:[hlzj]*[dioux]|PRI|s|c|g|f|\.[0-9]f)")
TWO_WORDS = re.compile(r"[A-Za-z]{2,}[:,;]? \(?[a-z]{2,}")
ERROR_TEXT = re.compile(r'X\(\w+, -[0-9]+,\s*("(?:[^"\\]|\\.)*")\)')
# Texts that are no messages: the sources compare them with texts of servers or
# of the library, or never print them.
NO_MESSAGES = {
    "ClickHouse Keeper version:", "RaftKeeper version:", "TLS: cannot read",
    "Zookeeper version:", "connect to",
    "has no key that can be read", "has no private key",
    "is not executed because it is not in the whitelist",
    "a result is written in one piece",
    "not currently serving requests", "refuses the mechanism", "the node"}
MACROS = {}  # {name: text}, filled by messages_in_sources()


def message_text(run):
    """The text of adjacent string literals, with "..." for each conversion."""
    out = ""
    for part in re.findall(LITERAL + "|" + MACRO, run):
        if part[0] == '"':
            out += part[1:-1]
        elif part.startswith("PRI"):
            out += "d"
        else:
            out += MACROS[part]
    out = out.replace('\\"', '"').replace("\\n", "").replace("\\\\", "\\")
    return re.sub(r"\.{4,}", "...", CONVERSION.sub("...", out)).strip()


def messages_in_sources():
    """Returns {message: a file that has it}."""
    found = {}
    for path in sorted((TOP / "src/cli").rglob("*.[ch]")):
        source = path.read_text(encoding="utf-8")
        source = HELP_TABLE.sub("", source)
        for name, text in re.findall(
                "#define (" + TEXT_MACRO + r")[ \\\n]+((?:\s*"
                + LITERAL + r"(?:\s*\\\n)?)+)", source):
            MACROS[name] = "".join(
                p[1:-1] for p in re.findall(LITERAL, text))
    for path in sorted((TOP / "src/cli").rglob("*.c")):
        source = path.read_text(encoding="utf-8")
        if path.name == "command_table.c":  # only texts of the help
            continue
        source = COMMENT.sub("", HELP_TABLE.sub("", source))
        for run in ADJACENT_LITERALS.finditer(source):
            if '"' not in run[0]:  # a macro alone
                continue
            text = message_text(run[0])
            if TWO_WORDS.search(text) and text not in NO_MESSAGES:
                found[text] = str(path.relative_to(TOP))
    header = TOP / "include/latchkey/error.h"
    for text in ERROR_TEXT.findall(header.read_text(encoding="utf-8")):
        found[text[1:-1]] = "include/latchkey/error.h"
    return found


def messages_in_page():
    page = (TOP / "doc/messages.md").read_text(encoding="utf-8")
    found = set()
    for line in page.split("\n"):
        found.update(re.findall(r"^- `(.*)`$", line))
    return found


def main():
    sources, page = messages_in_sources(), messages_in_page()
    for text in sorted(set(sources) - page):
        print("doc/messages.md has no entry for a message of %s: %s" %
              (sources[text], text))
    for text in sorted(page - set(sources)):
        print("doc/messages.md: no source has this message: " + text)
    return 1 if set(sources) != page else 0


if "--list" in sys.argv:
    for message, file in messages_in_sources().items():
        print(file, "|", message)
else:
    sys.exit(main())
