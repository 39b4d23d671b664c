# SPDX-License-Identifier: Apache-2.0
"""Measures the table of README.md for the mutex of latchkey, Curator and kazoo:
the round trips of an acquire and of a handoff, and whether a holder that is
separated from the servers reports its lock as held after its session expired."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import curator
import live
import locks
import relay
from live import eventually
from worker import SEQUENTIAL, Worker
from relay import Relay

try:
    import kazoo.client
    import kazoo.recipe.lock
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")
import kazoos  # noqa: F401 - quiets kazoo's log

SESSION_MS = 4000


class Latchkey:
    name = "latchkey"

    def __init__(self, connect, directory):
        self.worker = Worker()
        self.client = self.worker.client(connect, timeout=SESSION_MS)
        self.client.wait_for_state("connected")
        self.lock = self.client.lock(directory)

    def acquire(self):
        self.lock.acquire()

    def begin_acquire(self):
        """Gives a function that waits for the grant."""
        return self.lock.submit("acquire").succeeds

    def release(self):
        self.lock.release()

    def reports_held(self):
        return self.lock.inspect().ok == 1

    def close(self):
        self.worker.close()


class Curator:
    name = "Curator"

    def __init__(self, connect, directory):
        self.process = curator.Curator()
        client = self.process.client(connect, SESSION_MS)
        self.lock = self.process.lock("mutex", client, directory)

    def acquire(self):
        assert self.process.do("acquire", self.lock, 20000) == "held"

    def begin_acquire(self):
        pending = self.process.submit("acquire", self.lock, 20000)
        return pending.result

    def release(self):
        assert self.process.do("release", self.lock) == "released"

    def reports_held(self):
        return self.process.do("holds", self.lock) == "true"

    def close(self):
        self.process.kill()


class Kazoo:
    name = "kazoo"

    def __init__(self, connect, directory):
        self.client = kazoo.client.KazooClient(connect,
                                               timeout=SESSION_MS / 1000)
        self.client.start(30)
        self.lock = kazoo.recipe.lock.Lock(self.client, directory)

    def acquire(self):
        assert self.lock.acquire(timeout=20)

    def begin_acquire(self):
        handler = self.client.handler
        pending = handler.spawn(self.lock.acquire, timeout=20)
        return pending.join

    def release(self):
        self.lock.release()

    def reports_held(self):
        return self.lock.is_acquired

    def close(self):
        self.client.stop()
        self.client.close()


def round_trips(frames):
    """The number of round trips: each begins with a request that was sent when
    no request was outstanding."""
    outstanding, trips = set(), 0
    for f in frames:
        if f.op in (relay.PING, relay.CONNECT, relay.EVENT):
            continue
        key = f.connection, f.xid
        if not f.up:
            outstanding.discard(key)
            continue
        if not outstanding:
            trips += 1
        outstanding.add(key)
    return trips


def has_watched(wire, path):
    """Whether a client has read the node at `path`, which sets the watch of a
    waiter, and has no request without a reply."""
    frames = wire.frames_since()
    replies = {(f.connection, f.xid) for f in frames if not f.up}
    requests = [f for f in frames if f.up]
    return any(f.op == relay.GET and f.path == path for f in requests) and all(
        (f.connection, f.xid) in replies for f in requests)


def measure(make, base):
    """(round trips of an acquire, round trips of a handoff)"""
    directory = base + "/" + make.name
    with Relay(server.connect) as wire, Relay(server.connect) as holder_wire:
        measured = make(wire.address, directory)
        holder = make(holder_wire.address, directory)
        try:
            measured.acquire()  # creates the directory
            measured.release()
            mark = wire.mark()
            measured.acquire()
            acquire_trips = round_trips(wire.frames_since(mark))
            measured.release()
            holder.acquire()
            (predecessor,) = names(directory)
            wait_for_grant = measured.begin_acquire()
            eventually(lambda: has_watched(wire, directory + "/" + predecessor))
            mark = wire.mark()
            holder.release()
            wait_for_grant()
            handoff_trips = round_trips(wire.frames_since(mark))
            measured.release()
        finally:
            measured.close()
            holder.close()
    return acquire_trips, handoff_trips


def names(directory):
    return locks.names(watcher, directory)


def round_trips_are_those_of_the_readme():
    base = watcher.create("/peers-", flags=SEQUENTIAL).path
    measured = {make.name: measure(make, base)
                for make in (Latchkey, Curator, Kazoo)}
    print(measured)
    assert measured == {"latchkey": (1, 0), "Curator": (2, 1),
                        "kazoo": (3, 1)}, measured


def separated_holder_reports_held(make, base):
    """Whether a holder that is separated from the server still reports the lock
    as held when the server has deleted its node."""
    directory = base + "/cut-" + make.name
    with Relay(server.connect) as wire:
        holder = make(wire.address, directory)
        try:
            holder.acquire()
            assert holder.reports_held()
            wire.freeze()
            eventually(lambda: not names(directory), "its session expires")
            return holder.reports_held()
        finally:
            wire.thaw()
            holder.close()


def only_latchkey_reports_that_it_does_not_hold_after_the_deadline():
    base = watcher.create("/peers-", flags=SEQUENTIAL).path
    reports = {make.name: separated_holder_reports_held(make, base)
               for make in (Latchkey, Curator, Kazoo)}
    print(reports)
    assert reports == {"latchkey": False, "Curator": True,
                       "kazoo": True}, reports


with locks.serve() as server, Worker() as worker:
    watcher = worker.client(server.connect, timeout=locks.LONG)
    live.run(round_trips_are_those_of_the_readme,
             only_latchkey_reports_that_it_does_not_hold_after_the_deadline)
sys.exit(0)
