# SPDX-License-Identifier: Apache-2.0
"""The contenders of each recipe: functions of a run of pairings.py."""

import random
import threading

import kazoos
from contenders import Contender, Downgrader, ReadWriter, Revoker
from rivals import Plain

FULL = .08          # holds of so many seconds keep most permits in use


def mutex(run):
    path = run.place("mutex", "l", 1, stays=True)
    for _ in range(3):
        run.join("mutex", Contender(run.ours_do(
            "mutex", lambda c: c.lock(path)), {path: 1}))
        run.join("mutex", Contender(run.theirs_do(
            "mutex", "mutex", path), {path: 1}))
    run.join("mutex", Contender(kazoos.Kazoo(
        run.here, run.zk.connect, run.judge, path), {path: 1}))


def selector(run):
    """Leader selectors and mutexes on the same path."""
    path = run.place("selector", "l", 1)
    for _ in range(2):
        run.join("selector", Contender(run.ours_do(
            "selector", lambda c: c.lock(path)), {path: 1}))
        run.join("selector", Contender(run.theirs_do(
            "selector", "selector", path), {path: 1}))


def kazoo(run):
    """kazoo also waits for nodes with Curator's mark, and latchkey for nodes
    with kazoo's."""
    path = run.place("kazoo", "l", 1, stays=True)
    for _ in range(2):
        run.join("kazoo", Contender(run.ours_do(
            "kazoo", lambda c: c.lock(path)), {path: 1}))
        run.join("kazoo", Contender(kazoos.Kazoo(
            run.here, run.zk.connect, run.judge, path, kazoos.told),
            {path: 1}))


def rwlock(run):
    path = run.place("rwlock", "l", ReadWriter.ALL)
    for _ in range(3):
        run.join("rwlock", ReadWriter(run.ours_do(
            "rwlock", lambda c: c.rwlock(path)), path, downgrades=True))
        run.join("rwlock", ReadWriter(run.theirs_do(
            "rwlock", "rwlock", path), path))


def downgrade(run):
    path = run.place("downgrade", "l", ReadWriter.ALL, stays=True)
    for _ in range(2):
        run.join("downgrade", ReadWriter(run.ours_do(
            "downgrade", lambda c: c.rwlock(path)), path, downgrades=True))
        run.join("downgrade", Downgrader(run.theirs_do(
            "downgrade", "downgrader", path, of=Plain), path))
    run.join("downgrade", ReadWriter(run.ours_do(
        "downgrade", lambda c: c.rwlock(path)), path))
    run.join("downgrade", ReadWriter(run.theirs_do(
        "downgrade", "rwlock", path), path))


def semaphore(run):
    """Some contenders take two permits. Only one of them is Curator's: it keeps
    its first permit while it waits for the second, so two could wait for each
    other."""
    path = run.place("semaphore", "l", 3, "/locks", "/leases")

    def ours(take):
        run.join("semaphore", Contender(run.ours_do(
            "semaphore", lambda c: c.semaphore(path, permits=3, take=take)),
            {path: take}, FULL))

    def theirs(take):
        run.join("semaphore", Contender(run.theirs_do(
            "semaphore", "semaphore", path, 3, take), {path: take}, FULL))
    for take in (1, 1, 2):
        ours(take)
        theirs(take)


def kazoosemaphore(run):
    """kazoo's layout; some of latchkey's contenders take two permits."""
    path = run.place("kazoosemaphore", "l", 3, "", "-__lock__")
    for take in (1, 2):
        run.join("kazoosemaphore", Contender(run.ours_do(
            "kazoosemaphore", lambda c, take=take: c.semaphore(
                path, permits=3, take=take, layout=1)), {path: take}, FULL))
    for _ in range(3):
        run.join("kazoosemaphore", Contender(kazoos.Kazoo(
            run.here, run.zk.connect, run.judge, path, kazoos.permit),
            {path: 1}, FULL))


def count(run):
    """A semaphore whose number of permits changes."""
    path = run.place("count", "l", 1, "/locks", "/leases")
    limit = "/count/limit"
    run.direct.create(limit, data=b"\0\0\0\1")
    for _ in range(3):
        run.join("count", Contender(run.ours_do(
            "count", lambda c: c.semaphore(path, permits=1, limit=limit)),
            {path: 1}, FULL))
        run.join("count", Contender(run.theirs_do(
            "count", "semaphore", path, limit, 1), {path: 1}, FULL))

    def change():
        number, now = random.Random("count"), 1
        while not run.over.wait(3):
            new = number.choice([n for n in (1, 2, 3) if n != now])
            run.judge.room(path, new, grace=0 if new > now else 2)
            run.direct.submit("set", path=limit, data=new.to_bytes(4, "big"),
                              version=-1).result()
            now = new
    threading.Thread(target=change, daemon=True).start()


def semaphoremutex(run):
    path = run.place("semaphoremutex", "l", 1, "/locks", "/leases")
    for _ in range(3):
        run.join("semaphoremutex", Contender(run.ours_do(
            "semaphoremutex", lambda c: c.semaphore(path, permits=1)),
            {path: 1}))
        run.join("semaphoremutex", Contender(run.theirs_do(
            "semaphoremutex", "semaphoremutex", path), {path: 1}))


def multilock(run):
    """Multi-locks, and single locks that are acquired in the same order."""
    places = {name: run.place("multilock", name, 1) for name in "abc"}

    def paths(letters):
        return [places[letter] for letter in letters]

    def ours(letters):
        run.join("multilock", Contender(run.ours_do(
            "multilock", lambda c: c.multilock(
                *("x:" + path for path in paths(letters)))),
            dict.fromkeys(paths(letters), 1)))

    def theirs(kind, letters):
        run.join("multilock", Contender(run.theirs_do(
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
    path = run.place("revoke", "l", 1)
    for _ in range(2):
        run.join("revoke", Revoker(run.ours_do(
            "revoke", lambda c: c.lock(path, revocable=True)), {path: 1},
            run.direct, path, run.pairs))
        run.join("revoke", Revoker(run.theirs_do(
            "revoke", "revocable", path), {path: 1}, run.direct, path,
            run.pairs))


ALL = (mutex, selector, kazoo, rwlock, downgrade, semaphore, kazoosemaphore,
       count, semaphoremutex, multilock, revoke)
