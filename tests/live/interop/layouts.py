# SPDX-License-Identifier: Apache-2.0
"""latchkey's locks in other layouts: they exclude the locks of tutorials for
ZooKeeper's Java client (articles/Peer.java), and kazoo's Lock, ReadLock and
WriteLock."""

import atexit
import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(sys.path[0] + "/../support")

import command
import curator
import live
from judge import Judge
from live import eventually
from worker import Worker

try:
    import kazoo.client
    import kazoo.exceptions
    import kazoo.recipe.lock
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")

logging.getLogger("kazoo").setLevel(logging.CRITICAL)

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "articles",
                      "Peer.java")
CURATOR, KAZOO, NATIVE, NATIVE_UUID = range(4)  # lk_layout
WRITER_WEIGHT = 1000  # a reader has the weight 1
TURNS = 40


def compile_peer():
    """Compile articles/Peer.java; gives the command line."""
    jars = [os.path.join(curator.JAVA, jar + ".jar") for jar in curator.JARS]
    for jar in jars:
        if not os.path.exists(jar):
            live.missing("there is no %s (Debian: libzookeeper-java)" % jar)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    try:
        done = subprocess.run(
            ["java", "-XX:-UsePerfData", "-m",
             "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-d", folder,
             "-cp", ":".join(jars), SOURCE],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError:  # also PermissionError, for a folder in PATH
        live.missing("there is no java (Debian: default-jdk-headless)")
    if "jdk.compiler not found" in done.stdout:
        live.missing("there is no javac (Debian: default-jdk-headless)")
    assert done.returncode == 0, done.stdout
    return ["java", "-XX:-UsePerfData", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp",
            ":".join([folder, *jars]), "Peer"]


# ---- contenders: acquire(side, ms) returns whether it holds; release()

class Peer:
    """A lock of a tutorial, in a Java process. articles/Peer.java lists the
    kinds."""
    name = "java"

    def __init__(self, directory, kind, prefix=""):
        self.process = subprocess.Popen(
            [*peer_words, zk.connect, directory, kind, prefix],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.has_sides = kind == "shared"

    def do(self, words):
        """Send a command; gives the line with its result."""
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def acquire(self, side, ms):
        result = self.do("%s %d" % (side if self.has_sides else "acquire", ms))
        assert result == "missed" or result.startswith("held "), result
        return result != "missed"

    def release(self):
        assert self.do("release") == "released"

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Latchkey:
    name = "latchkey"

    def __init__(self, worker, directory, layout, prefix=None, shared=False):
        self.client = worker.client(zk.connect)
        options = {"layout": layout}
        if prefix is not None:
            options["prefix"] = prefix
        if shared:
            self.read, self.write = self.client.rwlock(directory, **options)
        else:
            self.write = self.client.lock(directory, **options)
        self.held = None

    def acquire(self, side, ms):
        lock = self.read if side == "read" else self.write
        done = lock.submit("acquire", wait=ms).result()
        assert done.err in ("0", "DEADLINE", "BUSY"), done
        self.held = lock
        return done.err == "0"

    def release(self):
        self.held.release()

    def close(self):
        self.client.do("close")


class Kazoo:
    """kazoo's locks. A ReadLock of kazoo 2.8 waits for all writers, even for
    those behind it, which wait for the reader. The timeout of acquire()
    ends this deadlock."""
    name = "kazoo"

    def __init__(self, directory, classes):
        """`classes`: kazoo's class for each side."""
        self.client = kazoo.client.KazooClient(zk.connect, timeout=8)
        self.client.start(30)
        self.classes, self.directory, self.held = classes, directory, None

    def acquire(self, side, ms):
        self.held = self.classes[side](self.client, self.directory)
        try:
            return self.held.acquire(blocking=ms > 0, timeout=ms / 1000)
        except kazoo.exceptions.LockTimeout:
            return False

    def release(self):
        self.held.release()

    def close(self):
        self.client.stop()
        self.client.close()


@contextlib.contextmanager
def closing(*contenders):
    try:
        yield contenders
    finally:
        for c in contenders:
            c.close()


# ---- contention

RESOURCE = "lock"  # the only resource of a Judge

def check_exclusion(directory, one, two, one_side="write", two_side="write"):
    """Check that these sides of two contenders exclude each other, in both
    directions."""
    check_waiting(directory, one, one_side, two, two_side)
    check_waiting(directory, two, two_side, one, one_side)


def check_waiting(directory, holder, holder_side, waiter, waiter_side):
    """Check that the waiter waits until the holder releases."""
    assert holder.acquire(holder_side, 20000)
    assert not waiter.acquire(waiter_side, 50), "%s did not wait for %s" % (
        waiter.name, holder.name)
    results = []
    wait = threading.Thread(
        target=lambda: results.append(waiter.acquire(waiter_side, 30000)))
    wait.start()
    eventually(lambda: len(command.children(directory)) == 2)
    assert not results
    holder.release()
    wait.join(60)
    assert results == [True], results
    waiter.release()
    eventually(lambda: not command.children(directory))


class Loop(threading.Thread):
    """Acquires and releases TURNS times; with `shared` two of three times as a
    reader. A contender whose wait times out tries again."""

    def __init__(self, judge, contender, number, shared):
        super().__init__(daemon=True)
        self.judge, self.contender = judge, contender
        self.loop_name = "%s %d" % (contender.name, number)
        self.shared = shared
        self.grants = []        # the time of each grant
        self.failure = None     # an exception

    def run(self):
        try:
            for n in range(TURNS):
                self.acquire_and_release(
                    "read" if self.shared and n % 3 else "write")
        except Exception as e:
            self.failure = e

    def acquire_and_release(self, side):
        end = time.monotonic() + 100
        # A short timeout, for kazoo's readers.
        while not self.contender.acquire(side, 200 if side == "read" else 3000):
            assert time.monotonic() < end, (
                "%s waits for ever" % self.loop_name)
        self.grants.append(time.monotonic())
        self.judge.enter(self.loop_name,
                         {RESOURCE: 1 if side == "read" else WRITER_WEIGHT})
        time.sleep(.002)
        self.judge.leave(self.loop_name)
        self.contender.release()


def run_loops(directory, contenders, shared=False):
    """Run a Loop for each contender at the same time; gives the Judge."""
    judge = Judge()
    judge.set_limit(RESOURCE, WRITER_WEIGHT)
    loops = [Loop(judge, c, i, shared) for i, c in enumerate(contenders)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(180)
        assert not loop.is_alive(), "%s does not end" % loop.loop_name
        if loop.failure is not None:
            raise loop.failure
        assert len(loop.grants) == TURNS
    # The holder has changed often, so the contenders have waited for each
    # other.
    holders = [name for _, name in sorted(
        (granted, loop.loop_name)
        for loop in loops for granted in loop.grants)]
    changes = sum(a != b for a, b in zip(holders, holders[1:]))
    assert changes > len(holders) / 4, holders
    eventually(lambda: not command.children(directory))
    return judge


def contend(directory, ours, theirs, shared=False):
    """Contention of two contenders of `ours()` and two of `theirs()`; `shared`:
    they are read-write locks."""
    with closing(ours(), ours(), theirs(), theirs()) as (
            our1, our2, their1, their2):
        check_exclusion(directory, our1, their1)
        if shared:
            check_exclusion(directory, our1, their1, "read", "write")
            check_exclusion(directory, our1, their1, "write", "read")
            assert our1.acquire("read", 20000)
            assert their1.acquire("read", 20000)
            our1.release()
            their1.release()
            eventually(lambda: not command.children(directory))
        judge = run_loops(directory, (our1, our2, their1, their2), shared)
        assert not judge.overlaps, judge.overlaps[:5]
        if shared:
            assert judge.most_holders[RESOURCE] > 1, \
                "readers were never together"


# ---- tests: latchkey and a lock of a tutorial, or of kazoo, exclude each other

def native_locks_that_block():
    with Worker() as worker:
        contend("/locks", lambda: Latchkey(worker, "/locks", NATIVE),
             lambda: Peer("/locks", "lock", "seq-"))


def native_locks_with_an_empty_prefix():
    with Worker() as worker:
        contend("/lock", lambda: Latchkey(worker, "/lock", NATIVE, ""),
             lambda: Peer("/lock", "lock", ""))


def native_locks_in_callbacks():
    with Worker() as worker:
        contend("/async", lambda: Latchkey(worker, "/async", NATIVE, "lock"),
             lambda: Peer("/async", "async", "lock"))


def shared_locks():
    with Worker() as worker:
        command.expect_exit(0, "create", "/zk-book")
        path = "/zk-book/shared_lock"
        contend(path, lambda: Latchkey(worker, path, NATIVE, shared=True),
             lambda: Peer(path, "shared"), shared=True)


def kazoo_mutexes():
    with Worker() as worker:
        contend("/kazoo", lambda: Latchkey(worker, "/kazoo", KAZOO),
             lambda: Kazoo("/kazoo", {"write": kazoo.recipe.lock.Lock}))


def kazoo_writers_and_a_mutex_of_latchkey():
    with Worker() as worker:
        contend("/kazoo-w", lambda: Latchkey(worker, "/kazoo-w", KAZOO),
             lambda: Kazoo("/kazoo-w",
                           {"write": kazoo.recipe.lock.WriteLock}))


def kazoo_readers_and_writers():
    with Worker() as worker:
        contend("/kazoo-rw", lambda: Latchkey(worker, "/kazoo-rw", KAZOO,
                                       shared=True),
             lambda: Kazoo("/kazoo-rw",
                           {"read": kazoo.recipe.lock.ReadLock,
                            "write": kazoo.recipe.lock.WriteLock}),
             shared=True)


def native_locks_with_and_without_a_uuid():
    with Worker() as worker:
        contend("/both", lambda: Latchkey(worker, "/both", NATIVE),
             lambda: Latchkey(worker, "/both", NATIVE_UUID))


def judge_finds_overlaps_of_different_layouts():
    with Worker() as worker, closing(
            Latchkey(worker, "/wrong", NATIVE),
            Latchkey(worker, "/wrong", CURATOR)) as (a, b):
        assert run_loops("/wrong", (a, b)).overlaps


peer_words = compile_peer()

with command.serve("--tick", "500") as zk:
    live.run(
        native_locks_that_block,
        native_locks_with_an_empty_prefix,
        native_locks_in_callbacks,
        shared_locks,
        kazoo_mutexes,
        kazoo_writers_and_a_mutex_of_latchkey,
        kazoo_readers_and_writers,
        native_locks_with_and_without_a_uuid,
        judge_finds_overlaps_of_different_layouts,
    )
