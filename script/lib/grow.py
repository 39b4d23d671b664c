#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make sources of a later version, for script/abi.

grow.py TOP changes the sources below TOP: each struct that may grow has another
member, each enum another enumerator, there is another error and another
function, and the version is 0.2.0. What may grow: doc/abi.md.
"""

import re
import sys
from pathlib import Path

MADE_BY_LIBRARY = {
    'lk_candidate_event', 'lk_event', 'lk_lock_event', 'lk_membership_event',
    'lk_reply', 'lk_sasl_facts', 'lk_sync_result', 'lk_transport',
    'lk_transport_type', 'lk_want',
}
MEMBER = '  void *grown[3];\n'
STRUCT = re.compile(r'(typedef struct (\w+) \{\n(.*?))(\} \2;)', re.S)
ENUM = re.compile(r'((?:typedef )?enum (\w+) \{)')


def change(path, pattern, replacement, count=1):
    text = path.read_text(encoding='utf-8')
    text, changes = re.subn(pattern, replacement, text, flags=re.S)
    if changes != count:
        sys.exit(f'{path}: {changes} places instead of {count}: {pattern}')
    path.write_text(text, encoding='utf-8')


def has_size(body):
    first = re.sub(r'/\*.*?\*/', '', body, flags=re.S).strip()
    return first.startswith('size_t size;')


def grow_header(path, grown):
    def grow_struct(found):
        head, name, body, end = found.groups()
        if not has_size(body) and name not in MADE_BY_LIBRARY:
            return found[0]
        grown.add(name)
        return head + MEMBER + end

    def grow_enum(found):
        grown.add(found[2])
        return f'{found[1]}\n  LK_GROWN_{found[2]} = 9999,'

    text = path.read_text(encoding='utf-8')
    text = STRUCT.sub(grow_struct, text)
    path.write_text(ENUM.sub(grow_enum, text), encoding='utf-8')


def main():
    top = Path(sys.argv[1])
    headers = top / 'include/latchkey'
    grown = set()
    for path in sorted(headers.glob('*.h')) + [headers / 'version.h.in']:
        grow_header(path, grown)
    missing = MADE_BY_LIBRARY - grown
    if missing or not {'lk_call', 'lk_state', 'lk_feature'} <= grown:
        sys.exit(f'not found in the headers: {missing}')
    sizes = top / 'src/base/sized_struct.h'
    ends = len(re.findall(r'#define LK_ENDS_', sizes.read_text('utf-8')))
    change(sizes, r'(#define LK_ENDS_\w+ +\w+), \w+', r'\1, grown', ends)
    change(top / 'src/proto/engine/sasl.c',
           r'LK_NO_PADDING_BEHIND\(lk_sasl_facts, \w+\)',
           'LK_NO_PADDING_BEHIND(lk_sasl_facts, grown)')
    change(headers / 'error.h', r'\n  X\(SYSTEM,',
           r'\n  X(GROWN, -1999, "grown") \\\n  X(SYSTEM,')
    change(headers / 'version.h.in', r'LK_API unsigned lk_features\(void\);',
           'LK_API unsigned lk_features(void);\nLK_API int lk_grown(void);')
    with open(top / 'src/net/version.c', 'a', encoding='utf-8') as file:
        file.write('\nint lk_grown(void)\n{\n  return LK_ERR_GROWN;\n}\n')
    with open(top / 'src/latchkey.map', 'a', encoding='utf-8') as file:
        file.write('\nLATCHKEY_0.2 {\nglobal:\n  lk_grown;\n} LATCHKEY_0.1;\n')
    change(top / 'configure.ac', r'AC_INIT\(\[latchkey\], \[[0-9.]+\]\)',
           'AC_INIT([latchkey], [0.2.0])')
    change(top / 'Makefile.am',
           r'(liblatchkey_la_LDFLAGS = .*?-version-info) 0:0:0', r'\1 1:0:1')


if __name__ == '__main__':
    main()
