# SPDX-License-Identifier: Apache-2.0
"""Threads that acquire and release a lock of latchkey or of another library
again and again."""

import collections
import random
import threading
import time

from rivals import READ, WAIT_S, WRITE, Broken, Gone

PAUSE_EVERY_S, PAUSE_S = 7, .8
NOT_REVOKED = "the holder was not revoked"  # an error


class Contender(threading.Thread):
    """Acquires, holds for a while, and releases, again and again."""

    def __init__(self, rival, claims, max_hold_s=.004):
        """`claims`: the holder's weight for each resource of the judge."""
        super().__init__(daemon=True)
        self.max_hold_s = max_hold_s
        self.rival, self.judge, self.claims = rival, rival.judge, claims
        self.random = random.Random(rival.name)
        self.over = threading.Event()   # set: the contender must end
        self.granted = self.missed = 0  # numbers of acquires
        self.interrupted = 0            # holds that became unsure or lost
        self.errors = collections.Counter()
        self.last_grant = time.monotonic()  # or its start
        self.longest_wait_s = 0             # between two grants

    def run(self):
        while not self.over.is_set():
            self.pause_with_all()
            try:
                if not self.rival.is_open():
                    self.rival.host.up.wait()
                    self.rival.open()
                    self.last_grant = time.monotonic()
                self.acquire_and_release()
            except Gone:
                self.judge.leave(self.rival.name)
                self.over.wait(.1)
            except Broken as e:
                self.judge.leave(self.rival.name)
                self.errors[str(e)[:120]] += 1
                self.over.wait(.1)

    def ways(self):
        """How it can hold: pairs of the side, or None, and the claims."""
        return [(None, self.claims)]

    def pause_with_all(self):
        """Pause at the same time as all other contenders, so that the queues
        become empty and the server deletes the containers."""
        since = time.monotonic() % PAUSE_EVERY_S
        if since < PAUSE_S:
            self.over.wait(PAUSE_S - since)

    def acquire_and_release(self):
        if self.acquire():
            self.hold(self.claims)
            self.rival.release()

    def acquire(self):
        """Acquire, mostly with a long timeout, and sometimes with a short one;
        gives whether the rival holds."""
        has_short_timeout = self.random.random() < .1
        ms = self.random.randrange(20) if has_short_timeout else WAIT_S * 1000
        holds = self.rival.acquire(ms)
        if holds:
            self.note_grant()
        else:
            self.missed += 1
        return holds

    def note_grant(self):
        now = time.monotonic()
        self.longest_wait_s = max(self.longest_wait_s, now - self.last_grant)
        self.last_grant = now
        self.granted += 1

    def hold(self, claims):
        """Be in the judge's resources for a while."""
        name = self.rival.name
        if self.judge.enter(name, claims, self.rival.certain):
            self.over.wait(self.random.random() * self.max_hold_s)
            if not self.judge.leave(name) and self.rival.is_open():
                self.interrupted += 1


class ReadWriter(Contender):
    """Acquires the read or the write side; as a writer it may downgrade."""
    WRITER_WEIGHT = 1000  # a reader has the weight 1

    def __init__(self, rival, path, downgrades=False):
        super().__init__(rival, claims=None)  # they depend on the side
        self.path, self.downgrades = path, downgrades
        self.reading, self.writing = {path: 1}, {path: self.WRITER_WEIGHT}

    def ways(self):
        return [(READ, self.reading), (WRITE, self.writing)]

    def acquire_and_release(self):
        side = self.random.choice((READ, WRITE))
        self.rival.choose(side)
        if not self.acquire():
            return
        if side == WRITE and self.downgrades and self.random.random() < .5:
            self.downgrade_and_release()
        else:
            self.hold(self.writing if side == WRITE else self.reading)
            self.rival.release()

    def downgrade_and_release(self):
        rival = self.rival
        inside = self.judge.enter(rival.name, self.writing, rival.certain)
        rival.acquire_read_side()
        self.judge.reduce(rival.name, self.reading)
        rival.choose(WRITE)
        rival.release()
        if inside:
            time.sleep(self.random.random() * .006)
        self.judge.leave(rival.name)
        rival.choose(READ)
        rival.release()


class Downgrader(Contender):
    """A writer of another library that downgrades to a reader."""

    def __init__(self, rival, path):
        super().__init__(rival, {path: ReadWriter.WRITER_WEIGHT})
        self.reading = {path: 1}

    def acquire_and_release(self):
        if not self.acquire():
            return
        rival = self.rival
        inside = self.judge.enter(rival.name, self.claims, rival.certain)
        if self.random.random() < .7:
            self.judge.reduce(rival.name, self.reading)
            rival.downgrade()
            if inside:
                time.sleep(self.random.random() * .006)
        self.judge.leave(rival.name)
        rival.release()


class Revoker(Contender):
    """A waiter revokes the lock; a holder releases only when revoked."""
    MAX_HOLD_S = 20  # by then the holder must have been revoked

    def __init__(self, rival, claims, direct, path, pairs):
        """`pairs` counts (library of the waiter, library of the holder that it
        has revoked)."""
        super().__init__(rival, claims)
        self.direct, self.path, self.pairs = direct, path, pairs

    # Shared by all Revokers: the newest holder, and the libraries of the waiters that
    # have revoked it.
    holder = None
    revoked_by = set()

    def acquire_and_release(self):
        pending = self.rival.begin(WAIT_S * 1000)
        holds = self.rival.take(lambda: self.revoke_until_granted(pending))
        if not holds:
            self.missed += 1
            return
        self.note_grant()
        Revoker.holder, Revoker.revoked_by = self, set()
        if self.judge.enter(self.rival.name, self.claims,
                            self.rival.certain):
            self.hold_until_revoked()
        self.judge.leave(self.rival.name)
        self.rival.release()

    def revoke_until_granted(self, pending):
        while not self.rival.has_ended(pending):
            self.over.wait(.005 + self.random.random() * .05)
            if not self.rival.has_ended(pending) and self.holder is not None:
                self.revoke_first()
        return self.rival.granted(pending)

    def revoke_first(self):
        """Revoke the first contender of the queue."""
        found = self.direct.submit("children", path=self.path).result(WAIT_S)
        if found.err != "0" or not found.names:
            return
        first = min(found.names, key=lambda name: name[-10:])  # the number
        Revoker.revoked_by = Revoker.revoked_by | {self.rival.side}
        self.revoke(self.path + "/" + first)

    def revoke(self, node):
        rival = self.rival
        if rival.side == "latchkey":
            self.direct.submit("set", path=node, data=b"__REVOKE__",
                               version=-1).result(WAIT_S)
        else:
            # Curator's client has a thread for this; the thread of the
            # contender in the Java process waits for the lock.
            rival.do("revoke", rival.client, node)

    def hold_until_revoked(self):
        end = time.monotonic() + self.MAX_HOLD_S
        while self.rival.certain() and not self.over.is_set():
            if self.rival.revoked.wait(.05):
                # Of several libraries any may have sent the revocation.
                if len(self.revoked_by) == 1:
                    (library,) = self.revoked_by
                    self.pairs[library, self.rival.side] += 1
                return
            if time.monotonic() > end:
                self.errors[NOT_REVOKED] += 1
                return
