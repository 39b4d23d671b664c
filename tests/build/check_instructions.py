#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The instructions of an operation are those of instructions.txt, or fewer.

The bench of this build runs under callgrind against canned replies. Counted are
the instructions of the measured region in the bench itself, which contains the
library. Those in other objects are left out: the C library, for example,
chooses its functions by the processor. A count may be 3 % larger than its
figure. If it is smaller, the test says that the figure can be lowered.

The figures are valid for one compiler, C library, processor and set of flags. A
build for which there are none is skipped. With --print, the line of this build
for instructions.txt is printed.
"""

import os
import re
import select
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

BUILD = Path(os.environ.get('abs_top_builddir', '.'))
FIGURES = Path(__file__).with_name('instructions.txt')
BENCH = BUILD / 'bench' / 'latchkey-bench'
TOLERANCE = 0.03
NOISE = 0.005  # counts of one program differ by less
NAMES = 10000
# For each figure: the workload, its N, and the number of operations of each N.
WORKLOADS = {'get': ('get-pipelined', 5000, 1),
             'get-alone': ('get-seq', 100, 1),
             'create-delete': ('create-delete', 5000, 1),
             'name': ('children', 10, NAMES)}
# Flags that do not change the code.
NO_CODE = re.compile(r'-(g|W|f(file|debug|macro)-prefix-map=)')

# Opcodes of requests.
CREATE, GET_DATA, GET_CHILDREN2, CREATE_CONTAINER = 1, 4, 12, 19


def skip(why):
    print('skipped: ' + why)
    sys.exit(77)


# ---- canned replies --------------------------------------------------------

def text(value):
    return struct.pack('>i', len(value)) + value


def frame(body):
    return struct.pack('>i', len(body)) + body


# czxid and mzxid are 1; data of 100 bytes.
STAT = struct.pack('>4q3iq2iq', 1, 1, 0, 0, 0, 0, 0, 0, 100, 0, 1)
DATA = text(b'x' * 100) + STAT
LIST = (struct.pack('>i', NAMES) +
        b''.join(text(b'n%059d' % i) for i in range(NAMES)) + STAT)
# Protocol 0, the timeout, the session id, the password, not read-only.
WELCOME = frame(struct.pack('>iiq', 0, 30000, 1) + text(bytes(16)) + b'\0')


class Server(threading.Thread):
    """One connection at a time. A reply has the form that the request wants,
    and nothing is kept. All replies are sent when no request has come for a
    while. So the client gets many in one piece, however busy the machine is,
    and the number of its turns hardly changes."""

    PAUSE = 0.02  # seconds

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        self.zxid = 1

    def run(self):
        while True:
            with self.listener.accept()[0] as connection:
                try:
                    self.serve(connection)
                except ConnectionError:
                    pass

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received, replies, is_new = b'', [], True
        while True:
            timeout = self.PAUSE if replies else None
            if not select.select([connection], [], [], timeout)[0]:
                connection.sendall(b''.join(replies))
                replies = []
                continue
            some = connection.recv(1 << 20)
            if not some:
                return
            received += some
            at = 0
            while len(received) - at >= 4:
                end = at + 4 + struct.unpack_from('>i', received, at)[0]
                if end > len(received):
                    break
                replies.append(WELCOME if is_new else
                               self.reply(received[at + 4:end]))
                is_new = False
                at = end
            received = received[at:]

    def reply(self, request):
        xid, op = struct.unpack_from('>ii', request)
        body = b''
        if op in (CREATE, CREATE_CONTAINER):
            self.zxid += 1
            end = 12 + struct.unpack_from('>i', request, 8)[0]
            path = request[12:end]
            if struct.unpack('>i', request[-4:])[0] & 2:  # sequential
                path += b'%010d' % self.zxid
            body = text(path) + (STAT if op == CREATE_CONTAINER else b'')
        elif op == GET_DATA:
            body = DATA
        elif op == GET_CHILDREN2:
            body = LIST
        return frame(struct.pack('>iqi', xid, self.zxid, 0) + body)


# ---- counts ----------------------------------------------------------------

def instructions_of(profile, program):
    """The instructions in the object `program`, from a file of callgrind."""
    names, counted, total, is_of_callee = {}, False, 0, False
    for line in profile.read_text(encoding='utf-8').splitlines():
        found = re.match(r'(c?ob)=\((\d+)\)(?: (.*))?$', line)
        if found:
            kind, number, name = found.groups()
            if name is not None:
                names[number] = name
            if kind == 'ob':
                counted = Path(names[number]).name == program.name
        elif line.startswith('calls='):
            is_of_callee = True
        elif re.match(r'[0-9+*-]', line):
            if counted and not is_of_callee:
                total += int(line.split()[1])
            is_of_callee = False
    return total


def count(name, port, folder):
    workload, n, each = WORKLOADS[name]
    profile = Path(folder) / name
    done = subprocess.run(
        ['valgrind', '-q', '--tool=callgrind',
         '--toggle-collect=bench_measured',
         f'--callgrind-out-file={profile}', str(BENCH), workload,
         f'127.0.0.1:{port}', str(n)],
        capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        sys.exit(f'{workload}: exit code {done.returncode}: {done.stderr}')
    return instructions_of(profile, BENCH) / n / each


def count_all():
    server = Server()
    server.start()
    with tempfile.TemporaryDirectory() as folder:
        return {name: count(name, server.port, folder) for name in WORKLOADS}


# ---- figures ---------------------------------------------------------------

def macros_of(compiler):
    """{name: value} of the macros that the compiler and the C library set."""
    done = subprocess.run([*compiler, '-dM', '-E', '-'], text=True, check=True,
                          input='#include <features.h>\n', capture_output=True)
    return dict(re.findall(r'#define (\w+) (.*)', done.stdout))


def key_of_build():
    """The compiler, the C library, the processor and the flags."""
    compiler = shlex.split(os.environ.get('CC', 'cc'))
    macros = macros_of(compiler)
    name = 'gcc ' + macros.get('__GNUC__', '?')
    if '__clang__' in macros:
        name = 'clang ' + macros['__clang_major__']
    libc = 'another libc'
    if '__GLIBC__' in macros:
        libc = f'glibc {macros["__GLIBC__"]}.{macros["__GLIBC_MINOR__"]}'
    flags = [*compiler[1:], *shlex.split(os.environ.get('CPPFLAGS', '')),
             *shlex.split(os.environ.get('CFLAGS', ''))]
    used = [flag for flag in flags if not NO_CODE.match(flag)]
    return ', '.join([name, libc, os.uname().machine, ' '.join(used)])


def figures_of(key):
    """{name: figure} of the line with this key."""
    for line in FIGURES.read_text(encoding='utf-8').splitlines():
        line_key, colon, values = line.rpartition(': ')
        if colon and line_key == key:
            return {name: float(figure) for name, figure in
                    (value.split('=') for value in values.split())}
    return {}


def check_build():
    if os.environ.get('LK_SAN_FLAGS'):
        skip('a build with sanitizers')
    config = (BUILD / 'config.h').read_text(encoding='utf-8')
    if '#define LK_DEBUG 1' in config:
        skip('a build that checks invariants')
    if not BENCH.exists():
        skip('there is no bench: it needs libev')
    if shutil.which('valgrind') is None:
        skip('there is no valgrind')


def compare(counts, figures):
    """Print a line for each count. Returns whether one is too large."""
    failed = False
    for name, counted in counts.items():
        figure = figures[name]
        line = f'{name}: {counted:.1f} instructions, the figure is {figure:.1f}'
        if counted > figure * (1 + TOLERANCE):
            line += (f': more than {TOLERANCE:.0%} above it. If they are needed,'
                     f' raise it in {FIGURES.name}, and say in the commit what'
                     ' they are spent on')
            failed = True
        elif counted < figure * (1 - NOISE):
            line += f': it can be lowered in {FIGURES.name}'
        print(line)
    return failed


def main():
    check_build()
    key = key_of_build()
    if '--print' in sys.argv:
        print(key + ':', *(f'{name}={value:.1f}'
                           for name, value in count_all().items()))
        return 0
    figures = figures_of(key)
    if not figures:
        skip(f'{FIGURES.name} has no figure for "{key}"')
    return compare(count_all(), figures)


sys.exit(main())
