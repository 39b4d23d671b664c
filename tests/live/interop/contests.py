# SPDX-License-Identifier: Apache-2.0
"""The contenders of each recipe: functions of a run of pairings.py."""

import random
import threading

import kazoos
from contenders import Contender, Downgrader, ReadWriter, Revoker
from rivals import LatchkeyCandidate, Plain
from worker import KAZOO as KAZOO_ELECTION, LATCH, SELECTOR

LONG_HOLD_S = .08   # such holds keep most permits in use
KAZOO = 1           # the layout


def mutex(run):
    path = run.lock_path("mutex", "l", 1, persistent=True)
    for _ in range(3):
        run.join("mutex", Contender(run.latchkey_lock(
            "mutex", lambda c: c.lock(path)), {path: 1}))
        run.join("mutex", Contender(run.curator_lock(
            "mutex", "mutex", path), {path: 1}))
    run.join("mutex", Contender(kazoos.Kazoo(
        run.here, run.zk.connect, run.judge, path), {path: 1}))


def selector(run):
    """Leader selectors and mutexes on the same path."""
    path = run.lock_path("selector", "l", 1)
    run.join("selector", Contender(run.latchkey_lock(
        "selector", lambda c: c.lock(path)), {path: 1}))
    for _ in range(2):
        run.join("selector", Contender(run.latchkey_lock(
            "selector", lambda c: c.candidate(path, layout=SELECTOR),
            LatchkeyCandidate), {path: 1}))
        run.join("selector", Contender(run.curator_lock(
            "selector", "selector", path), {path: 1}))


def latch(run):
    """Candidates of leader latches, of which a leader soon resigns."""
    path = run.lock_path("latch", "l", 1)
    for _ in range(3):
        run.join("latch", Contender(run.latchkey_lock(
            "latch", lambda c: c.candidate(path, layout=LATCH),
            LatchkeyCandidate), {path: 1}))
        run.join("latch", Contender(run.curator_lock(
            "latch", "latch", path), {path: 1}))


def election(run):
    """Candidates of kazoo's elections."""
    path = run.lock_path("election", "l", 1, persistent=True)
    for _ in range(2):
        run.join("election", Contender(run.latchkey_lock(
            "election", lambda c: c.candidate(path, layout=KAZOO_ELECTION),
            LatchkeyCandidate), {path: 1}))
        run.join("election", Contender(kazoos.Kazoo(
            run.here, run.zk.connect, run.judge, path, kazoos.election),
            {path: 1}))


def kazoo(run):
    """kazoo is configured to wait for nodes with names like Curator's, and
    latchkey waits for nodes with names like kazoo's."""
    path = run.lock_path("kazoo", "l", 1, persistent=True)
    for _ in range(2):
        run.join("kazoo", Contender(run.latchkey_lock(
            "kazoo", lambda c: c.lock(path)), {path: 1}))
        run.join("kazoo", Contender(kazoos.Kazoo(
            run.here, run.zk.connect, run.judge, path,
            kazoos.waiting_for_curator_nodes),
            {path: 1}))


def rwlock(run):
    path = run.lock_path("rwlock", "l", ReadWriter.WRITER_WEIGHT)
    for _ in range(3):
        run.join("rwlock", ReadWriter(run.latchkey_lock(
            "rwlock", lambda c: c.rwlock(path)), path, downgrades=True))
        run.join("rwlock", ReadWriter(run.curator_lock(
            "rwlock", "rwlock", path), path))


def downgrade(run):
    path = run.lock_path("downgrade", "l", ReadWriter.WRITER_WEIGHT,
                         persistent=True)
    for _ in range(2):
        run.join("downgrade", ReadWriter(run.latchkey_lock(
            "downgrade", lambda c: c.rwlock(path)), path, downgrades=True))
        run.join("downgrade", Downgrader(run.curator_lock(
            "downgrade", "downgrader", path, rival=Plain), path))
    run.join("downgrade", ReadWriter(run.latchkey_lock(
        "downgrade", lambda c: c.rwlock(path)), path))
    run.join("downgrade", ReadWriter(run.curator_lock(
        "downgrade", "rwlock", path), path))


def semaphore(run):
    """Some contenders take two permits. Only one of them is Curator's: it keeps
    its first permit while it waits for the second, so two could wait for each
    other."""
    path = run.lock_path("semaphore", "l", 3, "/locks", "/leases")

    def ours(take):
        run.join("semaphore", Contender(run.latchkey_lock(
            "semaphore", lambda c: c.semaphore(path, permits=3, take=take)),
            {path: take}, LONG_HOLD_S))

    def theirs(take):
        run.join("semaphore", Contender(run.curator_lock(
            "semaphore", "semaphore", path, 3, take), {path: take}, LONG_HOLD_S))
    for take in (1, 1, 2):
        ours(take)
        theirs(take)


def kazoosemaphore(run):
    """kazoo's layout; some of latchkey's contenders take two permits."""
    path = run.lock_path("kazoosemaphore", "l", 3, "", "-__lock__")
    for take in (1, 2):
        run.join("kazoosemaphore", Contender(run.latchkey_lock(
            "kazoosemaphore", lambda c, take=take: c.semaphore(
                path, permits=3, take=take, layout=KAZOO)), {path: take}, LONG_HOLD_S))
    for _ in range(3):
        run.join("kazoosemaphore", Contender(kazoos.Kazoo(
            run.here, run.zk.connect, run.judge, path, kazoos.permit),
            {path: 1}, LONG_HOLD_S))


def count(run):
    """A semaphore whose number of permits changes."""
    path = run.lock_path("count", "l", 1, "/locks", "/leases")
    limit = "/count/limit"
    run.direct.create(limit, data=b"\0\0\0\1")
    for _ in range(3):
        run.join("count", Contender(run.latchkey_lock(
            "count", lambda c: c.semaphore(path, permits=1, limit=limit)),
            {path: 1}, LONG_HOLD_S))
        run.join("count", Contender(run.curator_lock(
            "count", "semaphore", path, limit, 1), {path: 1}, LONG_HOLD_S))

    def change():
        rng, permits = random.Random("count"), 1
        while not run.over.wait(3):
            old = permits
            permits = rng.choice([n for n in (1, 2, 3) if n != old])
            # A smaller number takes effect when earlier holders have left.
            run.judge.set_limit(path, permits,
                                grace_s=2 if permits < old else 0)
            run.direct.submit("set", path=limit,
                              data=permits.to_bytes(4, "big"),
                              version=-1).result()
    threading.Thread(target=change, daemon=True).start()


def semaphoremutex(run):
    path = run.lock_path("semaphoremutex", "l", 1, "/locks", "/leases")
    for _ in range(3):
        run.join("semaphoremutex", Contender(run.latchkey_lock(
            "semaphoremutex", lambda c: c.semaphore(path, permits=1)),
            {path: 1}))
        run.join("semaphoremutex", Contender(run.curator_lock(
            "semaphoremutex", "semaphoremutex", path), {path: 1}))


def multilock(run):
    """Multi-locks, and single locks that are acquired in the same order."""
    path_of = {name: run.lock_path("multilock", name, 1) for name in "abc"}

    def paths(letters):
        return [path_of[letter] for letter in letters]

    def ours(letters):
        run.join("multilock", Contender(run.latchkey_lock(
            "multilock", lambda c: c.multilock(
                *("x:" + path for path in paths(letters)))),
            dict.fromkeys(paths(letters), 1)))

    def theirs(kind, letters):
        run.join("multilock", Contender(run.curator_lock(
            "multilock", kind, ",".join(paths(letters))),
            dict.fromkeys(paths(letters), 1)))
    ours("cab")
    theirs("multilock", "abc")
    ours("ca")
    theirs("nested", "bc")
    ours("b")
    theirs("multilock", "ac")
    ours("bc")
    theirs("mutex", "b")


def revoke(run):
    path = run.lock_path("revoke", "l", 1)
    for _ in range(2):
        run.join("revoke", Revoker(run.latchkey_lock(
            "revoke", lambda c: c.lock(path, revocable=True)), {path: 1},
            run.direct, path, run.pairs))
        run.join("revoke", Revoker(run.curator_lock(
            "revoke", "revocable", path), {path: 1}, run.direct, path,
            run.pairs))


ALL = (mutex, selector, latch, election, kazoo, rwlock, downgrade, semaphore,
       kazoosemaphore, count, semaphoremutex, multilock, revoke)
