# SPDX-License-Identifier: Apache-2.0
"""Measures the table of README.md for the mutex of latchkey, Curator and kazoo:
the round trips of an acquire and of a handoff, and whether a holder that is
separated from the servers reports its lock as held after its session expired."""

import sys
from concurrent import futures

sys.path.append(sys.path[0] + "/../support")

import driver
import kazoos
import live
import locks
import relay
from live import eventually
from relay import Relay
from rivals import CuratorLock, Host, LatchkeyLock

WAIT_MS = 20000
LIBRARIES = {
    "latchkey": lambda wire, path: LatchkeyLock(
        run, run.latchkey_hosts[0], lambda c: c.lock(path)),
    "Curator": lambda wire, path: CuratorLock(
        run, run.curator_hosts[0], "mutex", path),
    "kazoo": lambda wire, path: kazoos.Kazoo(
        run, Host(lambda: wire), path, kazoos.mutex)}


def mutex(library, wire, path):
    """A mutex of this library, whose client connects through the relay."""
    rival = LIBRARIES[library](wire, path)
    rival.connect = wire.address
    rival.open()
    return rival


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


def has_reply_to(wire, op, path):
    """Whether a client has sent a request of type `op` about the node at
    `path`, and has no request without a reply."""
    frames = wire.frames_since()
    replies = {(f.connection, f.xid) for f in frames if not f.up}
    requests = [f for f in frames if f.up]
    return any(f.op == op and f.path == path for f in requests) and all(
        (f.connection, f.xid) in replies for f in requests)


def measure(library, base):
    """(round trips of an acquire, round trips of a handoff)"""
    directory = base + "/" + library
    with Relay(zk.connect) as wire, Relay(zk.connect) as holder_wire, \
            futures.ThreadPoolExecutor() as pool:
        measured = mutex(library, wire, directory)
        holder = mutex(library, holder_wire, directory)
        assert measured.acquire(WAIT_MS)  # creates the directory
        (node,) = locks.names(run.direct, directory)
        measured.release()
        # A release of latchkey returns before its request is sent.
        eventually(lambda: has_reply_to(wire, relay.DELETE,
                                        directory + "/" + node))
        mark = wire.mark()
        assert measured.acquire(WAIT_MS)
        acquire_trips = round_trips(wire.frames_since(mark))
        measured.release()
        assert holder.acquire(WAIT_MS)
        (predecessor,) = locks.names(run.direct, directory)
        holds = pool.submit(measured.acquire, WAIT_MS)
        # The read sets the watch of the waiter.
        eventually(lambda: has_reply_to(wire, relay.GET,
                                        directory + "/" + predecessor))
        mark = wire.mark()
        holder.release()
        assert holds.result()
        handoff_trips = round_trips(wire.frames_since(mark))
        measured.release()
        measured.close()
        holder.close()
    return acquire_trips, handoff_trips


def round_trips_are_those_of_the_readme():
    measured = {library: measure(library, "/peers") for library in LIBRARIES}
    print(measured)
    assert measured == {"latchkey": (1, 0), "Curator": (2, 1),
                        "kazoo": (3, 1)}, measured


def separated_holder_reports_held(library, base):
    """Whether a holder that is separated from the server still reports the lock
    as held when the server has deleted its node."""
    with Relay(zk.connect) as wire:
        holder = mutex(library, wire, base + "/" + library)
        assert holder.acquire(WAIT_MS)
        assert holder.reports_held()
        wire.freeze()
        eventually(lambda: not locks.names(run.direct, base + "/" + library),
                   "its session expires")
        reports_held = holder.reports_held()
        wire.thaw()
        holder.close()
        return reports_held


def only_latchkey_reports_that_it_does_not_hold_after_the_deadline():
    reports = {library: separated_holder_reports_held(library, "/cut")
               for library in LIBRARIES}
    print(reports)
    assert reports == {"latchkey": False, "Curator": True,
                       "kazoo": True}, reports


with live.zkserver.Server() as zk:
    run = driver.Run(zk, session_ms=4000)
    live.run(round_trips_are_those_of_the_readme,
             only_latchkey_reports_that_it_does_not_hold_after_the_deadline)
    run.close()
sys.exit(0)
