# SPDX-License-Identifier: Apache-2.0
"""Curator's mutex and kazoo with `latchkey run` on the same nodes: they exclude
each other, and each reads the data and access lists of the other."""

import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
from curator import Curator
from live import eventually
from worker import Worker

# The critical section: fails if another process is in it, and increments a
# number in a file.
JUDGE = """
import os, sys, time
folder, name = sys.argv[1:3]
def enter_and_leave():
    def file(name):
        return os.path.join(folder, name)
    try:
        os.mkdir(file("inside"))
    except FileExistsError:
        with open(file("overlaps"), "a") as f:
            f.write("overlap seen by %s\\n" % name)
    with open(file("count")) as f:
        count = int(f.read())
    time.sleep(.002)
    with open(file("count"), "w") as f:
        f.write("%d\\n" % (count + 1))
    with open(file("turns"), "a") as f:
        f.write(name + "\\n")
    try:
        os.rmdir(file("inside"))
    except FileNotFoundError:
        pass
"""


try:
    import kazoo.client
    import kazoo.security
    from kazoos import Lock as KazooLock
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")


# ---- Curator

class Mutex:
    """Curator's mutex on a path."""

    def __init__(self, java, path):
        self.java, self.client = java, java.client(zk.connect)
        self.lock = java.lock("mutex", self.client, path)

    def acquire(self, ms):
        return self.java.submit("acquire", self.lock, ms)

    def release(self):
        assert self.java.do("release", self.lock) == "released"


# ---- kazoo

class Kazoo(kazoo.client.KazooClient):
    def __enter__(self):
        self.start(30)
        return self

    def __exit__(self, *_):
        self.stop()
        self.close()


# ---- tests

def curator_and_run_exclude_each_other():
    lock = "/curator/both"
    with Curator() as java:
        curator = Mutex(java, lock)
        # Curator holds.
        assert curator.acquire(5000).result() == "held"
        nodes = java.do("nodes", curator.lock)
        assert nodes.startswith("/curator/both/_c_"), nodes
        done = command.run("run", "-n", lock, "--", "true")
        assert done.code == 124, done
        done = command.run("run", "-w", ".5", lock, "--", "true")
        assert done.code == 124, done
        assert command.status(lock)["state"] == "held"
        with command.start("run", "-w", "30", lock, "--", "echo",
                           "in") as waits:
            command.wait_until_queued(lock, 2)
            assert waits.poll() is None
            curator.release()
            done = waits.finish()
            assert (done.code, done.out) == (0, "in\n"), done
        # latchkey holds.
        with command.start("run", lock, "--", "cat",
                           stdin=subprocess.PIPE) as holds:
            command.wait_until_held(lock)
            assert curator.acquire(300).result() == "missed"
            pending = curator.acquire(30000)
            command.wait_until_queued(lock, 2)
            done = command.run("run", "-n", lock, "--", "true")
            assert done.code == 124, done
            holds.stdin.close()
            holds.stdin = None
            assert holds.finish().code == 0
            assert pending.result() == "held"
        curator.release()
        eventually(lambda: not command.children(lock))


def curator_reads_null_and_empty_and_back():
    with Curator() as java, Worker() as worker:
        theirs = java.client(zk.connect)
        client = worker.client(zk.connect)
        for text, data in (("null", None), ("empty", b""),
                           ("text", b"text")):
            java.do("put", theirs, "/by-curator-" + text, text)
            assert client.get("/by-curator-" + text).data == data
            client.create("/by-latchkey-" + text, data=data)
            assert java.do("get", theirs, "/by-latchkey-" + text) == text
        client.do("close")


def kazoo_reads_what_latchkey_writes_and_back():
    digest = kazoo.security.make_digest_acl("bob", "secret", all=True)
    reading = kazoo.security.make_acl("world", "anyone", read=True)
    with Kazoo(zk.connect) as kz, Worker() as worker:
        kz.add_auth("digest", "bob:secret")
        client = worker.client(zk.connect)
        client.do("auth", scheme="digest", auth=b"bob:secret")
        for name, data in (("null", None), ("empty", b""),
                           ("bytes", bytes(range(256)) * 8)):
            ours = client.create("/k-ours-" + name, data=data)
            found, stat = kz.get("/k-ours-" + name)
            assert found == data or (not data and not found), (name, found)
            assert stat.czxid == ours.czxid and stat.version == 0
            assert (found is None) == (data is None), (name, found)
            kz.create("/k-theirs-" + name, data)
            got = client.get("/k-theirs-" + name)
            assert got.data == data, (name, got)
            assert got.czxid == kz.exists("/k-theirs-" + name).czxid
        # Versions, in both directions.
        client.do("set", path="/k-theirs-bytes", data=b"1", version=0)
        assert kz.set("/k-theirs-bytes", b"2", version=1).version == 2
        client.submit("set", path="/k-theirs-bytes", data=b"3",
                      version=1).fails("BAD_VERSION")
        assert client.get("/k-theirs-bytes").data == b"2"
        # Access lists.
        client.create("/k-acl-ours", acl="creator")
        acls, _ = kz.get_acls("/k-acl-ours")
        assert acls == [digest], acls
        kz.create("/k-acl-theirs", b"", acl=[digest, reading])
        client.get("/k-acl-theirs")
        client.do("set", path="/k-acl-theirs", data=b"x")
        other = worker.client(zk.connect)
        other.get("/k-acl-theirs")
        other.submit("set", path="/k-acl-theirs", data=b"x").fails("NO_AUTH")
        client.create("/k-acl-read", acl="read")
        assert kz.get_acls("/k-acl-read")[0] == [reading]
        # Children, ephemeral and sequential nodes.
        client.create("/k-dir")
        for n in range(20):
            (kz if n % 2 else client).create("/k-dir/é%d" % n, b"")
        names = sorted("é%d" % n for n in range(20))
        assert sorted(kz.get_children("/k-dir")) == names
        assert sorted(client.children("/k-dir").names) == names
        mine = client.create("/k-dir/s-", flags=3)
        theirs = kz.create("/k-dir/s-", b"", ephemeral=True, sequence=True)
        assert mine.path == "/k-dir/s-0000000020"
        assert theirs == "/k-dir/s-0000000021"
        assert kz.exists(mine.path).ephemeralOwner == mine.owner
        assert client.get(theirs).owner == kz.client_id[0]
        # Watches, in both directions.
        told = threading.Event()
        kz.get("/k-dir", watch=lambda event: told.set())
        client.do("set", path="/k-dir", data=b"new")
        assert told.wait(20)
        watch = client.submit("children", path="/k-dir", watch=1)
        watch.succeeds()
        kz.delete(theirs)
        client.event(watch, type=4)
        client.do("close")
        other.do("close")


def kazoo_and_run_exclude_each_other():
    lock = "/kazoo/both"
    with Kazoo(zk.connect) as kz:
        kz.ensure_path(lock)  # persistent: kazoo expects no deletion of it
        theirs = KazooLock(kz, lock, "kazoo")
        assert theirs.acquire(timeout=20)
        done = command.run("run", "-n", lock, "--", "true")
        assert done.code == 124, done
        assert command.queue(lock)[0] == ["kazoo"]
        with command.start("run", "-w", "30", lock, "--", "echo",
                           "in") as waits:
            command.wait_until_queued(lock, 2)
            theirs.release()
            done = waits.finish()
            assert (done.code, done.out) == (0, "in\n"), done
        with command.start("run", "-i", "latchkey", lock, "--", "cat",
                           stdin=subprocess.PIPE) as holds:
            command.wait_until_held(lock)
            assert not theirs.acquire(blocking=False)
            told = kz.Lock(lock, extra_lock_patterns=["-lock-"])
            assert not told.acquire(blocking=False)
            told.release()
            assert theirs.contenders()[0] == "latchkey"
            holds.stdin.close()
            holds.stdin = None
            assert theirs.acquire(timeout=20)
            assert holds.finish().code == 0
        theirs.release()
        # A node with kazoo's own mark: latchkey waits for it and warns.
        plain = kz.Lock(lock, "plain")
        assert plain.acquire(timeout=20)
        done = command.run("run", "-n", lock, "--", "true")
        assert done.code == 124, done
        plain.release()
        eventually(lambda: not command.children(lock))


def three_libraries_take_turns():
    """Three kinds of clients contend at once: no overlap, no lost turn."""
    lock, each = "/three", 40
    with tempfile.TemporaryDirectory() as folder, Kazoo(zk.connect) as kz, \
            Curator() as java:
        def file(name):
            return os.path.join(folder, name)

        kz.ensure_path(lock)
        with open(file("count"), "w") as f:
            f.write("0\n")
        with open(file("judge.py"), "w") as f:
            f.write(JUDGE + "enter_and_leave()\n")
        judge = {"folder": folder, "name": "kazoo", "os": os, "time": time}
        exec(JUDGE[JUDGE.index("def enter"):], judge)

        def curator_turns():
            mutex = Mutex(java, lock)
            mine = dict(judge, name="curator")
            exec(JUDGE[JUDGE.index("def enter"):], mine)
            for _ in range(each):
                assert mutex.acquire(100000).result(120) == "held"
                mine["enter_and_leave"]()
                mutex.release()

        def kazoo_turns():
            for _ in range(each):
                with KazooLock(kz, lock):
                    judge["enter_and_leave"]()

        runs = each // 2
        shell = "for i in $(seq %d); do %s run %s -- %s %s %s latchkey || " \
            "exit 1; done" % (runs, command.PROGRAM, lock, sys.executable,
                              file("judge.py"), folder)
        threads = [threading.Thread(target=turns)
                   for turns in 2 * [kazoo_turns, curator_turns]]
        loops = [command.start("-c", shell, program="sh") for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive(), "they do not come to an end"
        for loop in loops:
            done = loop.finish()
            assert done.code == 0, done
        with open(file("turns")) as f:
            turns = f.read().split()
        want = {"curator": 2 * each, "kazoo": 2 * each, "latchkey": 2 * runs}
        assert not os.path.exists(file("overlaps")), open(
            file("overlaps")).read()
        assert {name: turns.count(name) for name in want} == want, turns
        assert command.wait_for_number(file("count")) == sum(want.values())
        # The library of the holder has changed often, so they have waited for
        # each
    # other.
        changes = sum(a != b for a, b in zip(turns, turns[1:]))
        assert changes > sum(want.values()) / 4, turns
        eventually(lambda: not command.children(lock))


with command.serve("--tick", "500") as zk:
    live.run(
        kazoo_reads_what_latchkey_writes_and_back,
        curator_reads_null_and_empty_and_back,
        curator_and_run_exclude_each_other,
        kazoo_and_run_exclude_each_other,
        three_libraries_take_turns,
    )
