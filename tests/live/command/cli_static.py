# SPDX-License-Identifier: Apache-2.0
"""The static command of script/static in an empty root: without /proc, /dev and
/etc, without a shared library, and as PID 1 of a container.

The command under test is that of $LATCHKEY. The test is skipped for one that
needs shared libraries, as that of an ordinary build does."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/../support")

import command
from command import run
import live
import tls
import zkserver


def needs_shared_libraries(path):
    """Whether the file names an interpreter, the dynamic linker."""
    out = subprocess.run(["readelf", "--wide", "--program-headers", path],
                         stdout=subprocess.PIPE, text=True, check=True).stdout
    return " INTERP " in out


def may_make_roots():
    """Whether this process may call chroot() in namespaces of its own."""
    return subprocess.run([*NAMESPACES, "chroot", "/", "true"],
                          stderr=subprocess.DEVNULL).returncode == 0


# Without root's rights, a user namespace gives them inside.
USER = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
NAMESPACES = ["unshare", *USER, "--mount"]


def make_root(*files):
    """A root folder with the command and these files, and nothing else."""
    root = tempfile.mkdtemp(dir=WORK)
    shutil.copy(command.PROGRAM, os.path.join(root, "latchkey"))
    for path in files:
        shutil.copy(path, root)
    return root


def run_in_root(root, *words, namespaces=(), **options):
    """Run the command in the root, where it is /latchkey."""
    return run(*NAMESPACES[1:], *namespaces, "chroot", root, "/latchkey", *words,
               program=NAMESPACES[0], env={"PATH": os.environ["PATH"]},
               **options)


def holder_of(lock, namespaces=(), connection=(), root=None):
    """Hold the lock in an empty root while a second command there, `latchkey
    status`, shows who holds it; gives what the second one has printed. Its exit
    code, 1 for a lock that is held, is that of the first one, too."""
    connection = connection or ("-z", zk.connect)
    done = run_in_root(
        root or make_root(), "run", *connection, "--id", "the holder", lock, "--",
        "/latchkey", "status", *connection, "--json", lock,
        namespaces=namespaces)
    assert done.code == 1 and done.err == "", done
    return done.out


def expect_free(lock):
    """Check that nothing is left of the lock's queue."""
    done = run("status", "-z", zk.connect, lock)
    assert done.code == 0, done


def command_runs_under_a_lock_in_an_empty_root():
    out = holder_of("/locks/empty-root")
    assert "the holder" in out, out
    expect_free("/locks/empty-root")


def command_runs_under_a_lock_as_pid_1():
    out = holder_of("/locks/pid-1", namespaces=("--pid", "--fork"))
    assert "the holder" in out, out
    expect_free("/locks/pid-1")


def exit_code_of_a_missing_command_in_an_empty_root_is_127():
    done = run_in_root(make_root(), "run", "-z", zk.connect, "/locks/missing",
                       "--", "/missing")
    assert done.code == 127 and "/missing" in done.err, done


def localhost_is_found_at_once_in_an_empty_root():
    """Nothing listens at port 1. A lookup would take longer than the limit."""
    done = run_in_root(make_root(), "status", "-z", "localhost:1",
                       "--connect-timeout", "2", "/x")
    assert done.code == 125 and "Connection refused" in done.err, done


def hold_by_tls(namespaces=()):
    if " tls" not in run("--version").out:
        raise live.NotTested("the command is built without TLS")
    with zkserver.Server("--tls") as server:
        out = holder_of(
            "/locks/tls", root=make_root(server.certificate("ca.crt")),
            namespaces=namespaces, connection=(
                "-z", "tls://" + server.tls_addresses[0], "--cacert", "/ca.crt"))
    assert "the holder" in out, out


def command_connects_by_tls_in_an_empty_root():
    hold_by_tls()


def command_connects_by_tls_as_pid_1():
    hold_by_tls(namespaces=("--pid", "--fork"))


if needs_shared_libraries(command.PROGRAM):
    print("skipped: %s needs shared libraries; script/static makes a command "
          "without" % command.PROGRAM)
    sys.exit(77)
if not may_make_roots():
    print("skipped: namespaces and chroot() are not permitted here")
    sys.exit(77)
WORK = tempfile.mkdtemp()
try:
    with zkserver.Server() as zk:
        live.run(command_runs_under_a_lock_in_an_empty_root,
                 command_runs_under_a_lock_as_pid_1,
                 exit_code_of_a_missing_command_in_an_empty_root_is_127,
                 localhost_is_found_at_once_in_an_empty_root,
                 command_connects_by_tls_in_an_empty_root,
                 command_connects_by_tls_as_pid_1)
finally:
    shutil.rmtree(WORK)
