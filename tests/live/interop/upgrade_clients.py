# SPDX-License-Identifier: Apache-2.0
"""The clients of upgrade.py, which recipes make: held_locks, contended_locks,
elections and group; and the faults that the clients meet."""

import collections
import time

import curator
from contenders import Contender
from faults import Faults
from rivals import (CuratorLock, Host, LatchkeyCandidate, LatchkeyLock,
                    LatchkeyMember, Trespasser)
from run import BaseRun
from worker import LATCH, NO_LIMIT, Worker

CLIENTS_OF_A_PROCESS = 50
CONTENDERS_OF_A_LOCK = 2    # of each library
CANDIDATES_OF_AN_ELECTION = 5
LOCK_HOLD_S, LEADER_HOLD_S = 1, 5   # at most
CURATOR_PROCESSES = 2
MOVED_PART = 5  # a move concerns one of so many clients


# ---- rivals of latchkey that record what they lose

class Recorded:
    """Records in the run each event by which a holder becomes unsure or loses
    its lock, and each token. The `path` is the resource of the judge."""
    EVENTS = {("lock", "unsure"): "unsure", ("lock", "lost"): "lost",
              ("candidate", "unsure"): "unsure",
              ("candidate", "deposed"): "lost", ("member", "left"): "left"}

    def __init__(self, run, host, path, make):
        super().__init__(run, host, make)
        self.path, self.losses = path, run.losses
        self.lost = False   # since the last grant

    def on_line(self, line):
        super().on_line(line)
        word = self.EVENTS.get((line.what, line.word))
        resigned = line.word in ("deposed", "left") and line.err == "0"
        if word is not None and not resigned:
            self.lost = self.lost or word == "lost"
            self.losses.append(Loss(self, word, line))

    def take(self, wait):
        self.lost = False
        return super().take(wait)


class Loss:
    """What a client of latchkey has lost: the facts to look for in transaction
    logs."""

    def __init__(self, rival, word, line):
        self.word = word
        sessions = rival.client.lines_like("state")
        self.text = "%s %s %s, session %s: %s" % (
            time.strftime("%H:%M:%S"), rival.name, rival.path,
            "%#x" % sessions[-1].session if sessions else "none", line.text)


class Lock(Recorded, LatchkeyLock):
    def __init__(self, run, host, path):
        super().__init__(run, host, path, lambda client: client.lock(path))

    def on_line(self, line):
        super().on_line(line)
        if line.what == "lock" and line.word == "held":
            self.safe = True    # it was unsure

    def granted(self, pending):
        holds = super().granted(pending)
        if holds:
            self.judge.note_token(self.path, self.name, pending.result().token)
        return holds


class Candidate(Recorded, LatchkeyCandidate):
    def __init__(self, run, host, path):
        super().__init__(run, host, path,
                         lambda client: client.candidate(path, layout=LATCH))

    def is_elected(self, ms):
        leads = super().is_elected(ms)
        if leads:
            self.judge.note_token(self.path, self.name, self.term)
        return leads


class Member(Recorded, LatchkeyMember):
    def __init__(self, run, host, path, name):
        super().__init__(run, host, path,
                         lambda client: client.member(path, id=name))


# ---- contenders that hold or wait during the whole run

class Holder(Contender):
    """Holds a lock, or is a member, until the run ends or the lock is lost."""

    def acquire_and_release(self):
        self.rival.acquire(NO_LIMIT)
        self.note_grant()
        self.hold_until_lost()
        self.judge.leave(self.rival.name)
        self.rival.release()

    def hold_until_lost(self):
        while self.rival.is_open() and not self.rival.lost:
            # Enters again, too, after it was unsure.
            self.judge.enter(self.rival.name, self.claims, self.rival.certain)
            if self.over.wait(1):
                return


class Waiter(Contender):
    """Waits for the lock of a Holder, and releases it at once."""

    def acquire_and_release(self):
        self.rival.acquire(NO_LIMIT)
        self.note_grant()
        self.hold(self.claims)
        self.rival.release()

    def is_queued(self):
        return self.rival.is_open() and bool(
            self.rival.lock.lines_like("lock", "waiting"))


# ---- recipes

def held_locks(run):
    """Locks that a client of latchkey holds, and for which another one waits."""
    for number in range(run.sizes.holders):
        path = run.path(str(number), 1, persistent=True)
        run.holders.append(Holder(
            Lock(run, run.next_host(run.holder_hosts), path), {path: 1}))
        run.waiters.append(Waiter(
            Lock(run, run.next_host(run.latchkey_hosts), path), {path: 1}, 0))
    run.join(*run.holders, *run.waiters)


def contended_locks(run):
    """Locks that clients of all libraries acquire and release."""
    for number in range(run.sizes.peers):
        if number % CONTENDERS_OF_A_LOCK == 0:
            path = run.path(str(number), 1, persistent=True)
        rivals = [Lock(run, run.next_host(run.latchkey_hosts), path)]
        if run.curator_hosts:
            rivals.append(CuratorLock(run, run.next_host(run.curator_hosts),
                                      "mutex", path))
        if run.kazoos is not None:
            rivals.append(run.kazoos.Kazoo(run, run.kazoo_host, path,
                                           run.kazoos.Lock))
        run.join(*(Contender(rival, {path: 1}, LOCK_HOLD_S)
                   for rival in rivals))


def elections(run):
    """Candidates of latchkey, of which a leader soon resigns."""
    for number in range(run.sizes.candidates):
        if number % CANDIDATES_OF_AN_ELECTION == 0:
            path = run.path(str(number), 1, persistent=True)
        run.join(Contender(
            Candidate(run, run.next_host(run.latchkey_hosts), path),
            {path: 1}, LEADER_HOLD_S))


def group(run):
    path = run.path("members", 0, persistent=True)
    for number in range(run.sizes.members):
        run.join(Holder(Member(run, run.next_host(run.latchkey_hosts), path,
                               "member-%d" % number), {}))


RECIPES = (held_locks, contended_locks, elections, group)


def trespasser(run):
    """Enters the resource of a lock that is held, which the judge must find."""
    path = run.holders[0].rival.path
    run.join(Contender(Trespasser(run, run.kazoo_host), {path: 1}))


# ---- the run

class Addresses:
    """The servers' addresses in place of the relay of kazoo's rivals."""

    def __init__(self, address):
        self.address = address

    def close(self):
        """There is nothing to close."""


class UpgradeRun(BaseRun):
    """`sizes`: the numbers of clients, as options of upgrade.py; `kazoos`: the
    module, or None without kazoo."""

    def __init__(self, zk, session_ms, sizes, has_curator, kazoos):
        clients = (sizes.holders + sizes.peers + sizes.candidates +
                   sizes.members)
        super().__init__(zk, session_ms,
                         latchkey_hosts=2 + clients // CLIENTS_OF_A_PROCESS)
        self.sizes, self.kazoos = sizes, kazoos
        # No fault kills the processes of holders.
        self.holder_hosts = [Host(Worker) for _ in range(
            1 + sizes.holders // CLIENTS_OF_A_PROCESS)]
        self.curator_hosts = [Host(curator.Curator) for _ in range(
            CURATOR_PROCESSES if has_curator else 0)]
        self.kazoo_host = Host(lambda: Addresses(zk.connect))
        self.losses = []    # of latchkey
        self.holders, self.waiters = [], []

    def mortal_hosts(self):
        return self.latchkey_hosts + self.curator_hosts

    def hosts(self):
        return self.holder_hosts + self.mortal_hosts() + [self.kazoo_host]

    def count_losses(self):
        """A Counter with "unsure", "lost" and, for members, "left"."""
        return collections.Counter(loss.word for loss in list(self.losses))

    def contenders_of(self, side):
        return [c for c in self.all_contenders() if c.rival.side == side]

    def close(self):
        for rival in self.kazoo_host.rivals:
            rival.close()
        super().close()


class UpgradeFaults(Faults):
    """By turns, a process of clients is killed, and clients of latchkey are moved
    to another server."""
    LASTING = ("move",)

    def __init__(self, run, seed, every_s):
        super().__init__(run, seed, run.mortal_hosts(), every_s)
        self.moved = []

    def kinds(self):
        kills = self.counts["kill"] <= self.counts["move"]
        return (self.kill,) if kills else (self.move,)

    def move(self):
        rivals = [rival for host in self.run.holder_hosts +
                  self.run.latchkey_hosts for rival in host.rivals
                  if rival.is_open()]
        self.moved = self.random.sample(rivals, len(rivals) // MOVED_PART)
        for rival in self.moved:
            server = rival.client.facts().server
            self.set_servers(rival, [address for address in self.run.zk.addresses
                                     if address != server])
        self.end = self.allow_all_servers

    def allow_all_servers(self):
        for rival in self.moved:
            if rival.is_open():
                self.set_servers(rival, self.run.zk.addresses)

    @staticmethod
    def set_servers(rival, addresses):
        rival.client.do("hosts", hosts=",".join(addresses))
