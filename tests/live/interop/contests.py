# SPDX-License-Identifier: Apache-2.0
"""Locks, candidates and members of several libraries on the same nodes: the tables
LOCKS, LAYOUTS, ELECTIONS and GROUPS. Each recipe is a function that makes the
rivals for a run of driver.py."""

import random
import threading

import differences
import kazoos
from contenders import Contender, Downgrader, ReadWriter, Revoker
from rivals import LatchkeyCandidate, LatchkeyMember, Plain, Trespasser
from worker import KAZOO as KAZOO_ELECTION, LATCH, SELECTOR

LONG_HOLD_S = .08   # such holds keep most permits in use
CURATOR, KAZOO, NATIVE, NATIVE_UUID = range(4)  # lk_layout


# ---- locks and leaders: contenders

def mutex(run):
    path = run.path("l", 1, persistent=True)
    for _ in range(3):
        run.join(Contender(run.latchkey(lambda c: c.lock(path)), {path: 1}),
                 Contender(run.curator("mutex", path), {path: 1}))
    run.join(Contender(run.kazoo(path, kazoos.Lock), {path: 1}))


def selector(run):
    """Leader selectors and mutexes on the same path."""
    path = run.path("l", 1)
    run.join(Contender(run.latchkey(lambda c: c.lock(path)), {path: 1}))
    join_candidates(run, path, 2)


def latch(run):
    """Candidates of leader latches, of which a leader soon resigns."""
    join_candidates(run, run.path("l", 1), 3)


def election(run):
    """Candidates of kazoo's elections."""
    join_candidates(run, run.path("l", 1, persistent=True), 2)


def join_candidates(run, path, count):
    for _ in range(count):
        run.join(*(Contender(rival, {path: 1})
                   for rival in candidates(run, path)))


def candidates(run, path, *their_id, **our_options):
    """A candidate of latchkey, and one of the library with such an election."""
    layout = ELECTIONS[run.recipe]
    return (run.latchkey(lambda c: c.candidate(path, layout=layout,
                                               **our_options),
                         LatchkeyCandidate),
            run.kazoo(path, kazoos.election(*their_id))
            if layout == KAZOO_ELECTION
            else run.curator(run.recipe, path, *their_id))


def kazoo(run):
    """kazoo is configured to wait for nodes with names like Curator's, and
    latchkey waits for nodes with names like kazoo's."""
    path = run.path("l", 1, persistent=True)
    for _ in range(2):
        run.join(Contender(run.latchkey(lambda c: c.lock(path)), {path: 1}),
                 Contender(run.kazoo(path, kazoos.waiting_for_curator_nodes),
                           {path: 1}))


def rwlock(run):
    path = run.path("l", ReadWriter.WRITER_WEIGHT)
    for _ in range(3):
        run.join(ReadWriter(run.latchkey(lambda c: c.rwlock(path)), path,
                            downgrades=True),
                 ReadWriter(run.curator("rwlock", path), path))


def downgrade(run):
    path = run.path("l", ReadWriter.WRITER_WEIGHT, persistent=True)
    for _ in range(2):
        run.join(ReadWriter(run.latchkey(lambda c: c.rwlock(path)), path,
                            downgrades=True),
                 Downgrader(run.curator("downgrader", path, rival=Plain), path))
    run.join(ReadWriter(run.latchkey(lambda c: c.rwlock(path)), path),
             ReadWriter(run.curator("rwlock", path), path))


def semaphore(run):
    """Some contenders take two permits. Only one of them is Curator's: it keeps
    its first permit while it waits for the second, so two could wait for each
    other."""
    path = run.path("l", 3, "/locks", "/leases")
    for take in (1, 1, 2):
        run.join(Contender(run.latchkey(
            lambda c, take=take: c.semaphore(path, permits=3, take=take)),
            {path: take}, LONG_HOLD_S))
        run.join(Contender(run.curator("semaphore", path, 3, take),
                           {path: take}, LONG_HOLD_S))


def kazoosemaphore(run):
    """kazoo's layout; some of latchkey's contenders take two permits."""
    path = run.path("l", 3, "", "-__lock__")
    for take in (1, 2):
        run.join(Contender(run.latchkey(
            lambda c, take=take: c.semaphore(path, permits=3, take=take,
                                             layout=KAZOO)),
            {path: take}, LONG_HOLD_S))
    for _ in range(3):
        run.join(Contender(run.kazoo(path, kazoos.permit), {path: 1},
                           LONG_HOLD_S))


def count(run):
    """A semaphore whose number of permits changes."""
    path = run.path("l", 1, "/locks", "/leases")
    limit = run.base + "/limit"
    run.direct.create(limit, data=b"\0\0\0\1")
    for _ in range(3):
        run.join(Contender(run.latchkey(
            lambda c: c.semaphore(path, permits=1, limit=limit)), {path: 1},
            LONG_HOLD_S))
        run.join(Contender(run.curator("semaphore", path, limit, 1), {path: 1},
                           LONG_HOLD_S))

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
    run.others.append(threading.Thread(target=change, daemon=True))


def semaphoremutex(run):
    path = run.path("l", 1, "/locks", "/leases")
    for _ in range(3):
        run.join(Contender(run.latchkey(lambda c: c.semaphore(path, permits=1)),
                           {path: 1}),
                 Contender(run.curator("semaphoremutex", path), {path: 1}))


def multilock(run):
    """Multi-locks, and single locks that are acquired in the same order."""
    path_of = {name: run.path(name, 1) for name in "abc"}

    def paths(letters):
        return [path_of[letter] for letter in letters]

    def ours(letters):
        run.join(Contender(run.latchkey(lambda c: c.multilock(
            *("x:" + path for path in paths(letters)))),
            dict.fromkeys(paths(letters), 1)))

    def theirs(kind, letters):
        run.join(Contender(run.curator(kind, ",".join(paths(letters))),
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
    path = run.path("l", 1)
    for rival in 2 * [lambda: run.latchkey(lambda c: c.lock(path,
                                                            revocable=True)),
                      lambda: run.curator("revocable", path)]:
        run.join(Revoker(rival(), {path: 1}, run.direct, path, run.pairs))


# ---- locks in other layouts: contenders

def join_mutexes(run, layout, theirs, **options):
    """Two mutexes of latchkey and two others; `theirs(path)` makes one."""
    path = run.path("l", 1, persistent=True)
    for _ in range(2):
        run.join(Contender(run.latchkey(
            lambda c: c.lock(path, layout=layout, **options)), {path: 1}),
            Contender(theirs(path), {path: 1}))


def join_rwlocks(run, layout, theirs):
    path = run.path("l", ReadWriter.WRITER_WEIGHT, persistent=True)
    for _ in range(2):
        run.join(ReadWriter(run.latchkey(
            lambda c: c.rwlock(path, layout=layout)), path),
            ReadWriter(theirs(path), path))


def tutorial(run):
    """Native locks that block."""
    join_mutexes(run, NATIVE, lambda path: run.curator(
        "tutorial", path, "seq-", rival=Plain))


def tutorial_digits(run):
    """Native locks with an empty prefix."""
    join_mutexes(run, NATIVE, lambda path: run.curator(
        "tutorial", path, "", rival=Plain), prefix="")


def tutorial_async(run):
    """Native locks in callbacks."""
    join_mutexes(run, NATIVE, lambda path: run.curator(
        "tutorial-async", path, "lock", rival=Plain), prefix="lock")


def tutorial_rwlock(run):
    join_rwlocks(run, NATIVE, lambda path: run.curator(
        "tutorial-rwlock", path, rival=Plain))


def kazoo_mutex(run):
    join_mutexes(run, KAZOO, lambda path: run.kazoo(path, kazoos.mutex))


def kazoo_writer(run):
    """kazoo's writers and mutexes of latchkey."""
    join_mutexes(run, KAZOO, lambda path: run.kazoo(path, kazoos.writer))


def kazoo_rwlock(run):
    join_rwlocks(run, KAZOO, lambda path: run.kazoo(path, kazoos.sides))


def native_uuid(run):
    """Native locks with and without a UUID."""
    join_mutexes(run, NATIVE, lambda path: run.latchkey(
        lambda c: c.lock(path, layout=NATIVE_UUID)))


# ---- contenders that do not exclude each other, which the judge must find

def trespasser(run):
    """One is without a lock."""
    mutex(run)
    (path,) = run.queues[run.recipe]
    run.join(Contender(Trespasser(run, run.wires), {path: 1}))


def mixed_layouts(run):
    join_mutexes(run, NATIVE, lambda path: run.latchkey(
        lambda c: c.lock(path, layout=CURATOR)))


# ---- groups: members by their data

def our_members(run, path, suffix="", **options):
    return {name: run.latchkey(lambda c, name=name: [
        c.member(path, id=name + suffix, data=name.encode(), **options),
        c.roster(path)], LatchkeyMember)
        for name in ("latchkey-a", "latchkey-b")}


def group(run):
    path = run.path("l", 0)
    members = our_members(run, path)
    if differences.has("PERSISTENT_WATCHES"):  # Curator's GroupMember needs them
        members["curator"] = run.curator("member", path, "curator", "curator")
    return members


def party(run):
    """kazoo sees only members with names like those of its Party."""
    path = run.path("l", 0, persistent=True)
    return {**our_members(run, path, "__party__", persistent=True),
            "kazoo": run.kazoo(path, "kazoo", rival=kazoos.Member)}


ELECTIONS = {"latch": LATCH, "selector": SELECTOR, "election": KAZOO_ELECTION}
LOCKS = (mutex, selector, latch, election, kazoo, rwlock, downgrade,
         semaphore, kazoosemaphore, count, semaphoremutex, multilock, revoke)
LAYOUTS = (tutorial, tutorial_digits, tutorial_async, tutorial_rwlock,
           kazoo_mutex, kazoo_writer, kazoo_rwlock, native_uuid)
GROUPS = (group, party)
