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
ALL = 1000  # the weight of a writer; a reader has 1
TURNS = 40


def compile_peer():
    """Compile articles/Peer.java; gives the command line."""
    path = [os.path.join(curator.JAVA, jar + ".jar") for jar in curator.JARS]
    for jar in path:
        if not os.path.exists(jar):
            live.missing("there is no %s (Debian: libzookeeper-java)" % jar)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    try:
        done = subprocess.run(
            ["java", "-XX:-UsePerfData", "-m",
             "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-d", folder,
             "-cp", ":".join(path), SOURCE],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError:  # also PermissionError, for a folder in PATH
        live.missing("there is no java (Debian: default-jdk-headless)")
    if "jdk.compiler not found" in done.stdout:
        live.missing("there is no javac (Debian: default-jdk-headless)")
    assert done.returncode == 0, done.stdout
    return ["java", "-XX:-UsePerfData", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp",
            ":".join([folder, *path]), "Peer"]


# ---- contenders: acquire(side, ms) returns whether it holds; release()

class Peer:
    name = "java"

    def __init__(self, directory, kind, prefix=""):
        self.process = subprocess.Popen(
            [*peer_words, zk.connect, directory, kind, prefix],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.shared = kind == "shared"

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().strip()

    def acquire(self, side, ms):
        self.say("%s %d" % (side if self.shared else "acquire", ms))
        answer = self.answer()
        assert answer == "missed" or answer.startswith("held "), answer
        return answer != "missed"

    def release(self):
        self.say("release")
        assert self.answer() == "released"

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Ours:
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
    those behind it, which wait for the reader. Its timeout ends this
    deadlock."""
    name = "kazoo"

    def __init__(self, directory, kinds):
        """`kinds`: the class of each side."""
        self.client = kazoo.client.KazooClient(zk.connect, timeout=8)
        self.client.start(30)
        self.kinds, self.directory, self.held = kinds, directory, None

    def acquire(self, side, ms):
        self.held = self.kinds[side](self.client, self.directory)
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

def each_waits_for_the_other(directory, one, two, sides=("write",) * 2):
    """In both directions: while one holds, the other's try fails, and its wait
    ends with the release."""
    for first, second, (a, b) in ((one, two, sides), (two, one, sides[::-1])):
        assert first.acquire(a, 20000)
        assert not second.acquire(b, 50), "%s did not wait for %s" % (
            second.name, first.name)
        got = []
        waits = threading.Thread(
            target=lambda: got.append(second.acquire(b, 30000)))
        waits.start()
        eventually(lambda: len(command.children(directory)) == 2)
        assert not got
        first.release()
        waits.join(60)
        assert got == [True], got
        second.release()
        eventually(lambda: not command.children(directory))


class Loop(threading.Thread):
    """Acquires and releases TURNS times; with `shared` every third time as a
    reader. A contender whose wait times out tries again."""

    def __init__(self, judge, contender, number, shared):
        super().__init__(daemon=True)
        self.judge, self.contender = judge, contender
        self.who = "%s %d" % (contender.name, number)
        self.shared, self.turns, self.failed = shared, [], None

    def run(self):
        try:
            for n in range(TURNS):
                self.turn("read" if self.shared and n % 3 else "write")
        except Exception as e:
            self.failed = e

    def turn(self, side):
        end = time.monotonic() + 100
        # A short timeout, for kazoo's readers.
        while not self.contender.acquire(side, 200 if side == "read" else 3000):
            assert time.monotonic() < end, "%s waits for ever" % self.who
        self.turns.append(time.monotonic())
        self.judge.enter(self.who, {"": 1 if side == "read" else ALL})
        time.sleep(.002)
        self.judge.leave(self.who)
        self.contender.release()


def take_turns(directory, contenders, shared=False):
    """Run a Loop for each contender at the same time; gives the Judge."""
    judge = Judge()
    judge.room("", ALL)
    loops = [Loop(judge, c, i, shared) for i, c in enumerate(contenders)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(180)
        assert not loop.is_alive(), "%s does not come to an end" % loop.who
        if loop.failed is not None:
            raise loop.failed
        assert len(loop.turns) == TURNS
    # The holder has changed often, so the contenders have waited for each
    # other.
    order = [who for _, who in sorted(
        (t, loop.who) for loop in loops for t in loop.turns)]
    changes = sum(a != b for a, b in zip(order, order[1:]))
    assert changes > len(order) / 4, order
    eventually(lambda: not command.children(directory))
    return judge


def meet(directory, ours, theirs, shared=False):
    """Contention of two contenders of `ours()` and two of `theirs()`."""
    with closing(ours(), ours(), theirs(), theirs()) as (a, b, c, d):
        each_waits_for_the_other(directory, a, c)
        if shared:
            each_waits_for_the_other(directory, a, c, ("read", "write"))
            each_waits_for_the_other(directory, a, c, ("write", "read"))
            assert a.acquire("read", 20000) and c.acquire("read", 20000)
            a.release()
            c.release()
            eventually(lambda: not command.children(directory))
        judge = take_turns(directory, (a, b, c, d), shared)
        assert not judge.overlaps, judge.overlaps[:5]
        if shared:
            assert judge.most[""] > 1, "readers were never together"


# ---- tests

def native_blocking_locks():
    with Worker() as worker:
        meet("/locks", lambda: Ours(worker, "/locks", NATIVE),
             lambda: Peer("/locks", "lock", "seq-"))


def native_locks_of_digits_alone():
    with Worker() as worker:
        meet("/lock", lambda: Ours(worker, "/lock", NATIVE, ""),
             lambda: Peer("/lock", "lock", ""))


def native_locks_in_callbacks():
    with Worker() as worker:
        meet("/async", lambda: Ours(worker, "/async", NATIVE, "lock"),
             lambda: Peer("/async", "async", "lock"))


def shared_locks():
    with Worker() as worker:
        command.expect_exit(0, "create", "/zk-book")
        path = "/zk-book/shared_lock"
        meet(path, lambda: Ours(worker, path, NATIVE, shared=True),
             lambda: Peer(path, "shared"), shared=True)


def kazoos_mutex():
    with Worker() as worker:
        meet("/kazoo", lambda: Ours(worker, "/kazoo", KAZOO),
             lambda: Kazoo("/kazoo", {"write": kazoo.recipe.lock.Lock}))


def kazoos_writers_and_our_mutex():
    with Worker() as worker:
        meet("/kazoo-w", lambda: Ours(worker, "/kazoo-w", KAZOO),
             lambda: Kazoo("/kazoo-w",
                           {"write": kazoo.recipe.lock.WriteLock}))


def kazoos_readers_and_writers():
    with Worker() as worker:
        meet("/kazoo-rw", lambda: Ours(worker, "/kazoo-rw", KAZOO,
                                       shared=True),
             lambda: Kazoo("/kazoo-rw",
                           {"read": kazoo.recipe.lock.ReadLock,
                            "write": kazoo.recipe.lock.WriteLock}),
             shared=True)


def ours_with_and_without_a_uuid():
    with Worker() as worker:
        meet("/both", lambda: Ours(worker, "/both", NATIVE),
             lambda: Ours(worker, "/both", NATIVE_UUID))


def the_judge_notices_two_layouts():
    """The Judge finds the overlap of contenders with different layouts."""
    with Worker() as worker, closing(
            Ours(worker, "/wrong", NATIVE),
            Ours(worker, "/wrong", CURATOR)) as (a, b):
        assert take_turns("/wrong", (a, b)).overlaps


peer_words = compile_peer()

with command.serve("--tick", "500") as zk:
    live.run(
        native_blocking_locks,
        native_locks_of_digits_alone,
        native_locks_in_callbacks,
        shared_locks,
        kazoos_mutex,
        kazoos_writers_and_our_mutex,
        kazoos_readers_and_writers,
        ours_with_and_without_a_uuid,
        the_judge_notices_two_layouts,
    )
