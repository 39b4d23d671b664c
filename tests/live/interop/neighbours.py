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
from worker import EPHEMERAL_SEQUENTIAL, Worker
from kazoos import Lock as KazooLock  # first: it skips the test without kazoo
import kazoo.client
import kazoo.security

CHILDREN_CHANGED = 4  # the type of an event

# The critical section: it writes to the file "overlaps" if another process is
# in it, increments a number in the file "count", and appends its library's name
# to the file "holders".
CRITICAL_SECTION = """
import os, sys, time
def enter_and_leave(folder, library):
    def path(name):
        return os.path.join(folder, name)
    try:
        os.mkdir(path("inside"))
    except FileExistsError:
        with open(path("overlaps"), "a") as f:
            f.write("overlap seen by %s\\n" % library)
    with open(path("count")) as f:
        count = int(f.read())
    time.sleep(.002)
    with open(path("count"), "w") as f:
        f.write("%d\\n" % (count + 1))
    with open(path("holders"), "a") as f:
        f.write(library + "\\n")
    try:
        os.rmdir(path("inside"))
    except FileNotFoundError:
        pass
"""
exec(CRITICAL_SECTION)


# ---- Curator

class Mutex:
    """Curator's mutex with a client of its own."""

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
        assert curator.acquire(5000).result() == "held"
        nodes = java.do("nodes", curator.lock)
        assert nodes.startswith("/curator/both/_c_"), nodes
        done = command.run("run", "-n", lock, "--", "true")
        assert done.code == 124, done
        done = command.run("run", "-w", "3", lock, "--", "true")
        assert done.code == 124, done
        assert command.status(lock)["state"] == "held"
        with command.start("run", "-w", "30", lock, "--", "echo",
                           "in") as waiter:
            command.wait_until_queued(lock, 2)
            assert waiter.poll() is None
            curator.release()
            done = waiter.finish()
            assert (done.code, done.out) == (0, "in\n"), done
        # latchkey holds until its COMMAND reads the end of its input.
        with command.start("run", lock, "--", "cat",
                           stdin=subprocess.PIPE) as holder:
            command.wait_until_held(lock)
            assert curator.acquire(300).result() == "missed"
            pending = curator.acquire(30000)
            command.wait_until_queued(lock, 2)
            done = command.run("run", "-n", lock, "--", "true")
            assert done.code == 124, done
            holder.stdin.close()
            holder.stdin = None
            assert holder.finish().code == 0
            assert pending.result() == "held"
        curator.release()
        eventually(lambda: not command.children(lock))


def curator_and_latchkey_read_null_and_empty_data_of_each_other():
    with Curator() as java, Worker() as worker:
        curator_client = java.client(zk.connect)
        client = worker.client(zk.connect)
        for text, data in (("null", None), ("empty", b""),
                           ("text", b"text")):
            java.do("put", curator_client, "/by-curator-" + text, text)
            assert client.get("/by-curator-" + text).data == data
            client.create("/by-latchkey-" + text, data=data)
            assert java.do("get", curator_client,
                           "/by-latchkey-" + text) == text
        client.do("close")


# Tests of kazoo and of latchkey's library: `kz` is a client of kazoo, `client`
# one of latchkey.

def with_kazoo(test):
    def with_clients():
        with Kazoo(zk.connect) as kz, Worker() as worker:
            client = worker.client(zk.connect)
            test(kz, client, worker)
            client.do("close")
    with_clients.__name__ = test.__name__
    return with_clients


@with_kazoo
def kazoo_and_latchkey_read_data_of_each_other(kz, client, worker):
    for name, data in (("null", None), ("empty", b""),
                       ("bytes", bytes(range(256)) * 8)):
        created = client.create("/by-latchkey-for-kazoo-" + name, data=data)
        read, stat = kz.get("/by-latchkey-for-kazoo-" + name)
        assert read == data, (name, read)
        assert stat.czxid == created.czxid and stat.version == 0
        kz.create("/by-kazoo-" + name, data)
        node = client.get("/by-kazoo-" + name)
        assert node.data == data, (name, node)
        assert node.czxid == kz.exists("/by-kazoo-" + name).czxid


@with_kazoo
def kazoo_and_latchkey_compare_the_same_versions(kz, client, worker):
    kz.create("/version", b"0")
    client.do("set", path="/version", data=b"1", version=0)
    assert kz.set("/version", b"2", version=1).version == 2
    client.submit("set", path="/version", data=b"3",
                  version=1).fails("BAD_VERSION")
    assert client.get("/version").data == b"2"


@with_kazoo
def kazoo_and_latchkey_use_access_lists_of_each_other(kz, client, worker):
    digest = kazoo.security.make_digest_acl("bob", "secret", all=True)
    world_reads = kazoo.security.make_acl("world", "anyone", read=True)
    kz.add_auth("digest", "bob:secret")
    client.do("auth", scheme="digest", auth=b"bob:secret")
    client.create("/acl-by-latchkey", acl="creator")
    acls, _ = kz.get_acls("/acl-by-latchkey")
    assert acls == [digest], acls
    kz.create("/acl-by-kazoo", b"", acl=[digest, world_reads])
    client.get("/acl-by-kazoo")
    client.do("set", path="/acl-by-kazoo", data=b"x")
    without_identity = worker.client(zk.connect)
    without_identity.get("/acl-by-kazoo")
    without_identity.submit("set", path="/acl-by-kazoo",
                            data=b"x").fails("NO_AUTH")
    client.create("/acl-read", acl="read")
    assert kz.get_acls("/acl-read")[0] == [world_reads]
    without_identity.do("close")


@with_kazoo
def kazoo_and_latchkey_list_children_of_each_other(kz, client, worker):
    client.create("/children")
    names = sorted("é%d" % n for n in range(20))
    for n, name in enumerate(names):
        (kz if n % 2 else client).create("/children/" + name, b"")
    assert sorted(kz.get_children("/children")) == names
    assert sorted(client.children("/children").names) == names


@with_kazoo
def kazoo_and_latchkey_create_ephemeral_sequential_nodes(kz, client, worker):
    client.create("/sequence")
    ours = client.create("/sequence/s-", flags=EPHEMERAL_SEQUENTIAL)
    theirs = kz.create("/sequence/s-", b"", ephemeral=True, sequence=True)
    assert ours.path == "/sequence/s-0000000000"
    assert theirs == "/sequence/s-0000000001"
    assert kz.exists(ours.path).ephemeralOwner == ours.owner
    assert client.get(theirs).owner == kz.client_id[0]


@with_kazoo
def kazoo_and_latchkey_watch_changes_of_each_other(kz, client, worker):
    client.create("/watched")
    notified = threading.Event()
    kz.get("/watched", watch=lambda event: notified.set())
    client.do("set", path="/watched", data=b"new")
    assert notified.wait(20)
    watch = client.submit("children", path="/watched", watch=1)
    watch.succeeds()
    kz.create("/watched/child", b"")
    client.wait_for_event(watch, type=CHILDREN_CHANGED)


def kazoo_and_run_exclude_each_other():
    lock = "/kazoo/both"
    with Kazoo(zk.connect) as kz:
        # Persistent, since kazoo does not expect that the directory is deleted.
        kz.ensure_path(lock)
        theirs = KazooLock(kz, lock, "kazoo")
        assert theirs.acquire(timeout=20)
        done = command.run("run", "-n", lock, "--", "true")
        assert done.code == 124, done
        assert command.queue(lock)[0] == ["kazoo"]
        with command.start("run", "-w", "30", lock, "--", "echo",
                           "in") as waiter:
            command.wait_until_queued(lock, 2)
            theirs.release()
            done = waiter.finish()
            assert (done.code, done.out) == (0, "in\n"), done
        with command.start("run", "-i", "latchkey", lock, "--", "cat",
                           stdin=subprocess.PIPE) as holder:
            command.wait_until_held(lock)
            assert not theirs.acquire(blocking=False)
            # kazoo's own mutex, which waiter for nodes with names like ours.
            configured = kz.Lock(lock, extra_lock_patterns=["-lock-"])
            assert not configured.acquire(blocking=False)
            configured.release()
            assert theirs.contenders()[0] == "latchkey"
            holder.stdin.close()
            holder.stdin = None
            assert theirs.acquire(timeout=20)
            assert holder.finish().code == 0
        theirs.release()
        # latchkey also waiter for a node with the name that kazoo's mutex uses.
        plain = kz.Lock(lock, "plain")
        assert plain.acquire(timeout=20)
        done = command.run("run", "-n", lock, "--", "true")
        assert done.code == 124, done
        plain.release()
        eventually(lambda: not command.children(lock))


def three_libraries_contend_without_overlap_or_lost_grant():
    lock, grants, runs = "/three", 40, 20  # of each loop
    with tempfile.TemporaryDirectory() as folder, Kazoo(zk.connect) as kz, \
            Curator() as java:
        def path(name):
            return os.path.join(folder, name)

        kz.ensure_path(lock)
        with open(path("count"), "w") as f:
            f.write("0\n")
        with open(path("critical.py"), "w") as f:
            f.write(CRITICAL_SECTION + "enter_and_leave(*sys.argv[1:])\n")

        def loop_of_curator():
            mutex = Mutex(java, lock)
            for _ in range(grants):
                assert mutex.acquire(100000).result(120) == "held"
                enter_and_leave(folder, "curator")
                mutex.release()

        def loop_of_kazoo():
            for _ in range(grants):
                with KazooLock(kz, lock):
                    enter_and_leave(folder, "kazoo")

        shell_loop = "for i in $(seq %d); do %s run %s -- %s %s %s latchkey " \
            "|| exit 1; done" % (runs, command.PROGRAM, lock, sys.executable,
                                 path("critical.py"), folder)
        threads = [threading.Thread(target=loop)
                   for loop in 2 * [loop_of_kazoo, loop_of_curator]]
        shells = [command.start("-c", shell_loop, program="sh")
                  for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive(), "a loop does not end"
        for shell in shells:
            done = shell.finish()
            assert done.code == 0, done
        with open(path("holders")) as f:
            holders = f.read().split()
        wanted = {"curator": 2 * grants, "kazoo": 2 * grants,
                  "latchkey": 2 * runs}
        assert not os.path.exists(path("overlaps")), open(
            path("overlaps")).read()
        assert {name: holders.count(name) for name in wanted} == wanted, holders
        assert command.wait_for_number(path("count")) == sum(wanted.values())
        # The library of the holder has changed often, so the libraries have
        # waited for each other.
        changes = sum(a != b for a, b in zip(holders, holders[1:]))
        assert changes > len(holders) / 4, holders
        eventually(lambda: not command.children(lock))


with command.serve("--tick", "500") as zk:
    live.run(
        kazoo_and_latchkey_read_data_of_each_other,
        kazoo_and_latchkey_compare_the_same_versions,
        kazoo_and_latchkey_use_access_lists_of_each_other,
        kazoo_and_latchkey_list_children_of_each_other,
        kazoo_and_latchkey_create_ephemeral_sequential_nodes,
        kazoo_and_latchkey_watch_changes_of_each_other,
        curator_and_latchkey_read_null_and_empty_data_of_each_other,
        curator_and_run_exclude_each_other,
        kazoo_and_run_exclude_each_other,
        three_libraries_contend_without_overlap_or_lost_grant,
    )
