# SPDX-License-Identifier: Apache-2.0
"""Threads that acquire and release a lock of latchkey or of another library
again and again."""

import collections
import random
import threading
import time

from rivals import WAIT_S, Broken, Gone

RESTS_EVERY, RESTS = 7, .8      # seconds


class Contender(threading.Thread):
    """Acquires, holds for a while, releases."""

    def __init__(self, rival, claims, seconds=.004):
        """Each hold takes at most `seconds`."""
        super().__init__(daemon=True)
        self.seconds = seconds
        self.rival, self.judge, self.claims = rival, rival.judge, claims
        self.random = random.Random(rival.name)
        self.over = threading.Event()
        self.granted = self.missed = 0
        self.broken = collections.Counter()
        self.moved = time.monotonic()   # time of its start or last grant
        self.worst = 0                  # the longest time between grants

    def run(self):
        while not self.over.is_set():
            self.rest()
            try:
                if not self.rival.is_open():
                    self.rival.host.up.wait()
                    self.rival.open()
                    self.moved = time.monotonic()
                self.turn()
            except Gone:
                self.judge.leave(self.rival.name)
                self.over.wait(.1)
            except Broken as e:
                self.judge.leave(self.rival.name)
                self.broken[str(e)[:120]] += 1
                self.over.wait(.1)

    def rest(self):
        """Pause at the same time as all other contenders, so that the queues
        become empty and the server deletes the containers."""
        since = time.monotonic() % RESTS_EVERY
        if since < RESTS:
            self.over.wait(RESTS - since)

    def turn(self):
        if self.acquire():
            self.be_inside(self.claims)
            self.rival.release()

    def acquire(self):
        """Acquire, mostly without a timeout, and sometimes with a short one."""
        brief = self.random.random() < .1
        ms = self.random.randrange(20) if brief else WAIT_S * 1000
        got = self.rival.acquire(ms)
        if got:
            self.note_grant()
        else:
            self.missed += 1
        return got

    def note_grant(self):
        now = time.monotonic()
        self.worst = max(self.worst, now - self.moved)
        self.moved = now
        self.granted += 1

    def be_inside(self, claims):
        name = self.rival.name
        if self.judge.enter(name, claims, self.rival.certain):
            time.sleep(self.random.random() * self.seconds)
            self.judge.leave(name)


class ReadWriter(Contender):
    """Acquires the read or the write side; as a writer it may downgrade."""
    ALL = 1000  # the weight of a writer; a reader has 1

    def __init__(self, rival, path, downgrades=False):
        super().__init__(rival, None)
        self.path, self.downgrades = path, downgrades
        self.reading, self.writing = {path: 1}, {path: self.ALL}

    def turn(self):
        side = self.random.randrange(2)
        self.rival.choose(side)
        if not self.acquire():
            return
        if side == 1 and self.downgrades and self.random.random() < .5:
            self.go_on_reading()
        else:
            self.be_inside(self.writing if side == 1 else self.reading)
            self.rival.release()

    def go_on_reading(self):
        rival = self.rival
        inside = self.judge.enter(rival.name, self.writing, rival.certain)
        rival.read_too()
        self.judge.become(rival.name, self.reading)
        rival.choose(1)
        rival.release()
        if inside:
            time.sleep(self.random.random() * .006)
        self.judge.leave(rival.name)
        rival.choose(0)
        rival.release()


class Downgrader(Contender):
    """A writer of another library that downgrades to a reader."""

    def __init__(self, rival, path):
        super().__init__(rival, {path: ReadWriter.ALL})
        self.reading = {path: 1}

    def turn(self):
        if not self.acquire():
            return
        rival = self.rival
        inside = self.judge.enter(rival.name, self.claims, rival.certain)
        if self.random.random() < .7:
            self.judge.become(rival.name, self.reading)
            rival.downgrade()
            if inside:
                time.sleep(self.random.random() * .006)
        self.judge.leave(rival.name)
        rival.release()


class Revoker(Contender):
    """A waiter revokes the lock; a holder releases only when revoked."""
    PATIENCE = 20  # seconds until a revoked holder must have released

    def __init__(self, rival, claims, direct, path, pairs):
        super().__init__(rival, claims)
        self.direct, self.path, self.pairs = direct, path, pairs

    # Shared by all Revokers: the holder, and the libraries of those that have
    # asked the holder to release.
    holder = None
    askers = set()

    def turn(self):
        pending = self.rival.begin(WAIT_S * 1000)
        got = self.rival.take(lambda: self.grant(pending))
        if not got:
            self.missed += 1
            return
        self.note_grant()
        Revoker.holder, Revoker.askers = self, set()
        if self.judge.enter(self.rival.name, self.claims,
                            self.rival.certain):
            self.wait_for_word()
        self.judge.leave(self.rival.name)
        self.rival.release()

    def grant(self, pending):
        while not self.rival.has_ended(pending):
            self.over.wait(.005 + self.random.random() * .05)
            if not self.rival.has_ended(pending) and self.holder is not None:
                self.ask_holder()
        return self.rival.granted(pending)

    def ask_holder(self):
        found = self.direct.submit("children", path=self.path).result(WAIT_S)
        if found.err != "0" or not found.names:
            return
        first = min(found.names, key=lambda name: name[-10:])
        Revoker.askers = Revoker.askers | {self.rival.side}
        self.revoke(self.path + "/" + first)

    def revoke(self, node):
        rival = self.rival
        if rival.side == "latchkey":
            self.direct.submit("set", path=node, data=b"__REVOKE__",
                               version=-1).result(WAIT_S)
        else:
            # The client's thread does it, since the contender's own thread
            # waits for the lock.
            rival.do("revoke", rival.client, node)

    def wait_for_word(self):
        end = time.monotonic() + self.PATIENCE
        while self.rival.certain() and not self.over.is_set():
            if self.rival.revoked.wait(.05):
                if len(self.askers) == 1:
                    self.pairs[min(self.askers), self.rival.side] += 1
                return
            if time.monotonic() > end:
                self.broken["was not asked to let go"] += 1
                return
