# SPDX-License-Identifier: Apache-2.0
"""Locks, candidates and members of latchkey, of Curator, and of programs with
ZooKeeper's Java client, behind one interface; kazoos.py has those of kazoo:

    rival.open()        make a session and a lock, a candidate or a member
    rival.acquire(ms)   gives whether it holds, leads, or has joined
    rival.certain()     whether no event has reported it unsure or lost
    rival.release()     release, resign or leave
    rival.reports_held()    of a lock: whether its library says that it is held
    rival.choose(side)  of a read-write lock
    rival.participants()    of a candidate: "ID=leader" or "ID=candidate" of each
    rival.sees()        of a member: the data of all members, sorted

The methods raise Gone if the process has ended, and Broken after an error. The
`host` of a rival is its process, which can be ended, stopped and started again.
"""

import collections
import itertools
import threading
import time

import curator
import worker
from relay import UNPARSED, Relay

WAIT_S = 300        # for a lock
READ, WRITE = 0, 1  # the sides of a read-write lock


class Gone(Exception):
    """The process has ended."""


class Broken(Exception):
    """An error with which an acquire or a release completed."""


class Wire(Relay):
    """A relay in place of a process: its rivals, in this process, lose the server
    when it is killed or stopped."""

    def __init__(self, target):
        super().__init__(target, UNPARSED)
        self.kill = self.stop = self.freeze
        self.cont = self.thaw


class Host:
    """A process that has rivals. `make` starts one: Worker, Curator or Wire."""

    def __init__(self, make):
        self.make = make
        self.rivals = []
        self.up = threading.Event()     # set: the process was not killed
        self.generation = 0             # number of processes so far
        self.is_running = False         # and not stopped
        self.resumed_ms = 0             # time of the last SIGCONT
        self.start()

    def start(self):
        self.process = self.make()
        self.generation += 1
        self.is_running = True
        self.up.set()

    def abandon(self):
        """From now on no rival of the process counts as a holder."""
        self.is_running = False
        for rival in self.rivals:
            rival.doubt()

    def kill(self):
        self.up.clear()
        self.process.kill()
        self.abandon()

    def stop(self):
        """Stop the process. Its holders leave the judge's resources first, since
        another client can be granted when their leases have ended."""
        self.resumed_ms = float("inf")  # until then no grant counts
        self.abandon()
        self.process.stop()

    def cont(self):
        self.resumed_ms = worker.boottime()
        self.process.cont()
        self.is_running = True

    def close(self):
        self.process.close()


class Rival:
    numbers = itertools.count(1)

    def __init__(self, run, host):
        """`run`: a BaseRun of run.py."""
        self.name = "%s-%d" % (self.side, next(Rival.numbers))
        self.host, self.connect, self.judge = host, run.zk.connect, run.judge
        self.session_ms = run.session_ms
        self.opened = 0         # generation of the host when it was opened
        self.safe = False       # no event has reported it unsure or lost
        self.revoked = threading.Event()
        self.states = collections.Counter()  # of the connection, as reported
        host.rivals.append(self)

    def session(self):
        """The session id, for reports."""
        return None

    def is_open(self):
        return self.opened == self.host.generation

    def close(self):
        """Close the client, if it does not end with the host."""

    def doubt(self):
        """The lock is unsure or lost: leave the judge's resources."""
        self.safe = False
        self.judge.leave(self.name)

    def certain(self):
        return self.safe and self.host.is_running and self.is_open()

    def take(self, wait):
        """Call `wait()`, which acquires; gives whether the lock is held."""
        generation = self.host.generation
        self.safe = True
        holds = wait()
        if generation != self.host.generation:
            raise Gone
        return holds


class LatchkeyLock(Rival):
    side = "latchkey"

    def __init__(self, run, host, make):
        """`make(client)` makes the lock."""
        super().__init__(run, host)
        self.make = make

    def open(self):
        generation, self.process = self.host.generation, self.host.process
        try:
            self.client = self.process.client(self.connect,
                                              timeout=self.session_ms)
            self.locks = self.make(self.client)
        except (AssertionError, BrokenPipeError, ValueError):
            if self.process.is_alive():
                raise
            raise Gone from None
        if not isinstance(self.locks, list):
            self.locks = [self.locks]
        for lock in self.locks:
            lock.on_line = self.on_line
        self.lock = self.locks[0]
        self.opened = generation

    def session(self):
        return self.client.facts().session if self.is_open() else None

    def choose(self, side):
        self.lock = self.locks[side]

    def on_line(self, line):
        if line.what == "lock" and line.word in ("unsure", "lost"):
            self.doubt()
        if line.what == "lock" and line.word == "revoked":
            self.revoked.set()

    def has_ended(self, pending):
        return pending.is_done() or not self.process.is_alive()

    def result_of(self, pending):
        while not pending.is_done():
            try:
                pending.result(.5)
            except AssertionError:  # it has not completed in time
                if not self.process.is_alive():
                    raise Gone from None
        return pending.result()

    def submit(self, verb, **options):
        try:
            return self.lock.submit(verb, **options)
        except (BrokenPipeError, ValueError):  # the pipe is broken or closed
            raise Gone from None

    def begin(self, ms):
        self.revoked = threading.Event()
        return self.submit("acquire", wait=ms)

    def acquire(self, ms):
        return self.take(lambda: self.granted(self.begin(ms)))

    def granted(self, pending):
        line = self.result_of(pending)
        for lock in self.locks:
            lock.clear_lines()
        err = line.refused or line.err
        if err in ("BUSY", "DEADLINE"):
            return False
        if err != "0":
            raise Broken(err)
        # A grant from before the process was stopped does not count.
        self.safe = self.safe and line.at > self.host.resumed_ms
        return True

    def reports_held(self):
        return self.lock.inspect().ok == 1

    def acquire_read_side(self):
        """Acquire the read side as a writer, which does not wait."""
        self.choose(READ)
        line = self.result_of(self.submit("acquire", wait=-1))
        if (line.refused or line.err) != "0":
            raise Broken(line.text)

    def release(self):
        line = self.result_of(self.submit("release", wait=0))
        err = line.refused or line.err
        if err not in ("0", "LOST"):
            raise Broken(err)


class LatchkeyCandidate(LatchkeyLock):
    """A candidate, which holds while it leads."""

    def on_line(self, line):
        if line.what == "candidate" and line.word in ("unsure", "deposed"):
            self.doubt()

    def acquire(self, ms):
        self.result_of(self.submit("start"))
        return self.take(lambda: self.is_elected(ms))

    def is_elected(self, ms):
        try:
            line = self.lock.wait("candidate", "elected", ms / 1000)
        except AssertionError:  # not in time
            if not self.process.is_alive():
                raise Gone from None
            self.release()
            return False
        self.term = line.term
        # A term that began before the process was stopped does not count.
        self.safe = self.safe and line.at > self.host.resumed_ms
        return True

    def release(self):
        self.result_of(self.submit("resign"))
        self.lock.clear_lines()


class LatchkeyMember(LatchkeyLock):
    """A member, and a roster of its group; `make(client)` makes both."""

    def acquire(self, ms):
        self.result_of(self.submit("join"))
        return True

    def release(self):
        self.result_of(self.submit("leave"))

    def set_data(self, text):
        self.lock.do("data", data=text.encode())

    def sees(self):
        reports = [line for line in self.locks[1].lines_like("roster")
                   if line.err in ("0", "NO_NODE")]
        return sorted(bytes.fromhex(name.split(":")[1]).decode()
                      for line in reports[-1:] for name in line.names)


class CuratorLock(Rival):
    """A lock, a candidate or a member of Curator."""
    side = "curator"

    def __init__(self, run, host, kind, *words):
        super().__init__(run, host)
        self.kind, self.words = kind, words

    def open(self):
        generation = self.host.generation
        java = self.process = self.host.process
        self.connected = True
        try:
            client = java.client(self.connect, self.session_ms)
            self.client = client
            java.on_line[client] = self.on_line
            self.lock = self.locks = java.lock(self.kind, client, *self.words)
            java.on_line[self.lock] = self.on_line
        except curator.Gone:
            raise Gone from None
        except AssertionError as e:
            raise Broken(str(e)) from None
        self.opened = generation

    def session(self):
        return int(self.do("session", self.client), 16) if self.is_open() \
            else None

    def choose(self, side):
        self.lock = self.locks + {READ: ".read", WRITE: ".write"}[side]

    def on_line(self, word):
        self.states[word] += 1
        if word in ("suspended", "lost"):
            self.connected = False
            self.doubt()
        if word in ("connected", "reconnected"):
            self.connected = True
        if word == "revoked":
            self.revoked.set()
        if word == "notleader":
            self.doubt()

    def has_ended(self, pending):
        return pending.is_done()

    def result_of(self, pending):
        try:
            return pending.result(2 * WAIT_S)
        except curator.Gone:
            raise Gone from None

    def submit(self, *words):
        try:
            return self.process.submit(*words)
        except curator.Gone:
            raise Gone from None

    def do(self, *words):
        answer = self.result_of(self.submit(*words))
        if answer.startswith("failed"):
            raise Broken(answer)
        return answer

    def begin(self, ms):
        self.revoked = threading.Event()
        self.began_ms = worker.boottime()
        return self.submit("acquire", self.lock, ms)

    def acquire(self, ms):
        return self.take(lambda: self.granted(self.begin(ms)))

    def granted(self, pending):
        answer = self.result_of(pending)
        if answer.startswith("failed"):
            raise Broken(answer)
        # Curator does not notice that its process was stopped.
        self.safe = self.connected and self.began_ms > self.host.resumed_ms
        return answer == "held"

    def downgrade(self):
        self.do("downgrade", self.lock)

    def reports_held(self):
        return self.do("holds", self.lock) == "true"

    def participants(self):
        return self.do("nodes", self.lock).split(",")

    def sees(self):
        return sorted(entry.split("=")[1]
                      for entry in self.participants() if entry)

    def release(self):
        self.do("release", self.lock)


class Plain(CuratorLock):
    """A lock with ZooKeeper's Java client. It takes the same commands as a lock
    of Curator."""
    side = "plain"


class Trespasser(Rival):
    """Enters the judge's resources without a lock."""
    side = "trespasser"

    def open(self):
        self.opened = self.host.generation

    def acquire(self, ms):
        time.sleep(.02)
        self.safe = True
        return True

    def release(self):
        pass
