#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each enumerator of the public headers has its number, so that an addition
changes no other one; and the comment of each enum says what happens with a value
that program or library does not know."""

import os
import pathlib
import re
import sys

TOP = pathlib.Path(os.environ.get("srcdir", "."))
ENUM = re.compile(r"(/\*\*(?:(?!\*/).)*\*/\n)?(?:typedef )?enum (\w+ )?\{(.*?)\}", re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def complaints_of(text):
    for match in ENUM.finditer(text):
        comment, name, body = match.groups()
        if "LK_ERRORS" not in body:
            for entry in COMMENT.sub("", body).split(","):
                if entry.strip() and "=" not in entry:
                    yield entry.strip() + " has no number"
        said = " ".join(re.sub(r"\n[ *]*", " ", comment or "").split())
        if name and not re.search("does not know|Other values are refused", said):
            yield name.strip() + ": what about other values?"


def main():
    headers = sorted((TOP / "include/latchkey").glob("*.h*"))
    complaints = ["%s: %s" % (header.name, complaint) for header in headers
                  for complaint in complaints_of(header.read_text())]
    print("\n".join(complaints))
    return 1 if complaints or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
