# SPDX-License-Identifier: Apache-2.0
"""Clients and locks in a process of their own, which a test commands.

    worker = Worker()
    client = worker.client("127.1.2.3:2181", timeout=4000)
    client.wait_for_state("connected")
    client.create("/x", data=b"1")              # wait for the result; fail
                                                # unless the create succeeds
    lock = client.lock("/l")
    pending = lock.submit("acquire", wait=500)  # do not wait for the result
    pending.result().err == "DEADLINE"          # wait for the result

Times of events are in ms on CLOCK_BOOTTIME, as worker.c wrote them.
"""

import collections
import itertools
import os
import queue
import signal
import subprocess
import threading
import time

import tls

# The limit of every wait, in seconds.
SECONDS = float(os.environ.get("LATCHKEY_TEST_SECONDS", 40))

EPHEMERAL, SEQUENTIAL, EPHEMERAL_SEQUENTIAL = 1, 2, 3  # flags of create()


def program(name):
    """The path of a program of tests/live, such as "support/worker"."""
    return os.path.join(os.environ.get("abs_top_builddir", "."), "tests",
                        "live", name)


def boottime():
    """The time now, in ms on CLOCK_BOOTTIME."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


class Line:
    """A line of worker.c. `at` is its time; `what` and `word` are its first two
    words that are not KEY=VALUE, or None; every KEY=VALUE is an attribute."""

    def __init__(self, at, words):
        self.at = at
        self.text = " ".join(words)
        self.what = self.word = None
        self.refused = None
        for word in words:
            key, equals, value = word.partition("=")
            if equals:
                setattr(self, key, _value(key, value))
            elif self.what is None:
                self.what = word
            elif self.word is None:
                self.word = word

    def __repr__(self):
        return "%.3f %s" % (self.at, self.text)


def _value(key, value):
    """The Python value of KEY=VALUE."""
    if key in ("err", "refused", "path", "node", "server", "password"):
        return None if value in ("none", "null") else value
    if key == "data":
        return None if value == "null" else bytes.fromhex(value)
    if key == "names":
        return value.split(",") if value else []
    try:
        return int(value, 0)
    except ValueError:
        return value


def _option_text(value):
    """The text of the value of an option, as worker.c parses it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(int(value))
    return str(value)


class PendingCommand:
    """A command that was sent to the worker."""

    unanswered_closes = []  # those that succeeds() excused

    def __init__(self, tag, text):
        self.tag, self.text = tag, text
        self._received = queue.Queue()  # the line of the result, once
        self._line = None               # the result, after result()

    def complete(self, line):
        """Called with the line of the result."""
        self._received.put(line)

    def is_done(self):
        return self._line is not None or not self._received.empty()

    def result(self, seconds=SECONDS):
        """Wait for the Line with the result."""
        if self._line is None:
            try:
                self._line = self._received.get(timeout=seconds)
            except queue.Empty:
                raise AssertionError("no result within %g s: %s" %
                                     (seconds, self.text)) from None
        return self._line

    def succeeds(self, seconds=SECONDS):
        """Wait for the result, and check that it is no error. One close in a
        test program may get no reply: a leader of version 3.8.0 does not always
        send one (ZOOKEEPER-4537)."""
        line = self.result(seconds)
        excused = (self.text.split()[1] == "close" and line.err == "DEADLINE"
                   and not PendingCommand.unanswered_closes)
        if excused:
            PendingCommand.unanswered_closes.append(self)
        assert line.refused is None and (line.err == "0" or excused), (
            "%s: %s" % (self.text, line))
        return line

    def fails(self, *errors, seconds=SECONDS):
        """Wait for the result, and check that it is one of these errors, of the
        call itself or of its completion."""
        line = self.result(seconds)
        error = line.refused or line.err
        assert error in errors, "%s: %s, not %s" % (self.text, line, errors)
        return line


class RemoteObject:
    """A client, a lock or another object of the worker. submit() and do() send
    commands for it, and `lines` records the lines that the worker prints for
    it."""

    def __init__(self, worker, name):
        self.worker, self.name = worker, name
        self.lines = []
        self.on_line = None     # a function to call with each new line, or None
        self._lines_read = 0    # by wait()
        self._line_added = threading.Condition()
        worker.objects[name] = self

    def submit(self, verb, **options):
        """Send a command; gives its PendingCommand."""
        return self.worker.submit(verb, self.name, **options)

    def do(self, verb, **options):
        """Send a command and wait until it succeeds."""
        return self.submit(verb, **options).succeeds()

    def add_line(self, line):
        with self._line_added:
            self.lines.append(line)
            self._line_added.notify_all()
        if self.on_line is not None:
            self.on_line(line)

    def wait(self, what, word=None, seconds=SECONDS, **values):
        """Wait for the next line with this `what`, `word` and values. Lines
        before it are skipped, and no later wait() finds them."""
        end = time.monotonic() + seconds
        with self._line_added:
            while True:
                while self._lines_read < len(self.lines):
                    line = self.lines[self._lines_read]
                    self._lines_read += 1
                    if _matches(line, what, word, values):
                        return line
                seconds_left = end - time.monotonic()
                if seconds_left <= 0 or not self.worker.is_alive():
                    raise AssertionError(
                        "%s: no %s %s %s within %g s; lines:\n  %s" % (
                            self.name, what, word or "", values or "",
                            seconds, "\n  ".join(map(str, self.lines))))
                self._line_added.wait(min(seconds_left, 1))

    def lines_like(self, what, word=None, since=0.0):
        """All lines with this `what` and `word` from the time `since` (ms) on,
        whether wait() has read them or not."""
        with self._line_added:
            return [line for line in self.lines if line.at >= since and
                    _matches(line, what, word, {})]

    def clear_lines(self):
        """Forget all lines, to save memory."""
        with self._line_added:
            self.lines.clear()
            self._lines_read = 0

    def free(self):
        return self.do("free")


def _matches(line, what, word, values):
    return (line.what == what and (word is None or line.word == word) and
            all(getattr(line, key, None) == value
                for key, value in values.items()))


class Client(RemoteObject):
    """An lk_client of the worker. `options` are those of the command, as
    worker_client.c, worker_lock.c and the other files of the worker read them."""

    def wait_for_state(self, word, seconds=SECONDS):
        """Wait until the client reports the state `word`, as "connected"."""
        return self.wait("state", word, seconds)

    def wait_for_event(self, pending=None, seconds=SECONDS, **values):
        """Wait for the next event of a watch. `pending` is the request that has
        set the watch; None: of any watch."""
        if pending is not None:
            values["tag"] = pending.tag
        return self.wait("event", None, seconds, **values)

    def create(self, path, data=b"", **options):
        return self.do("create", path=path, data=data, **options)

    def get(self, path, **options):
        return self.do("get", path=path, **options)

    def children(self, path, **options):
        return self.do("children", path=path, **options)

    def facts(self):
        return self.do("facts")

    def _new_lock(self, verb, **options):
        lock = Lock(self.worker, self.worker.new_name(verb))
        lock.do(verb, client=self.name, **options)
        return lock

    def lock(self, path, **options):
        return self._new_lock("lock", path=path, **options)

    def semaphore(self, path, **options):
        return self._new_lock("semaphore", path=path, **options)

    def single(self, path, **options):
        """A single-node lock."""
        return self._new_lock("single", path=path, **options)

    def multilock(self, *members, **options):
        """A multi-lock of members "x:PATH" (mutex), "r:PATH" or "w:PATH" (sides of
        a read-write lock)."""
        return self._new_lock("multilock", members=",".join(members), **options)

    def candidate(self, path, **options):
        """A candidate of the election at `path`, with layout=LATCH, SELECTOR or
        KAZOO."""
        candidate = Candidate(self.worker, self.worker.new_name("candidate"))
        candidate.do("candidate", client=self.name, path=path, **options)
        return candidate

    def member(self, path, **options):
        """A member of the group at `path`."""
        member = Member(self.worker, self.worker.new_name("member"))
        member.do("member", client=self.name, path=path, **options)
        return member

    def roster(self, path, **options):
        """The roster of a group; with layout=N of an election."""
        roster = Roster(self.worker, self.worker.new_name("roster"))
        roster.do("roster", client=self.name, path=path, **options)
        return roster

    def subscribe(self, path, **options):
        """A subscription to the children of a node; with data=1, to its data."""
        subscription = Subscription(self.worker,
                                    self.worker.new_name("subscription"))
        subscription.do("subscribe", client=self.name, path=path, **options)
        return subscription

    def rwlock(self, path, **options):
        """The two sides of a new read-write lock: [read, write]."""
        name = self.worker.new_name("rwlock")
        sides = [Lock(self.worker, name + side)
                 for side in (".read", ".write")]
        self.worker.submit("rwlock", name, client=self.name, path=path,
                           **options).succeeds()
        return sides


NO_LIMIT = -1  # as `wait`, a time in ms


class Lock(RemoteObject):
    """A lock of any kind."""

    def acquire(self, wait=NO_LIMIT):
        return self.do("acquire", wait=wait)

    def release(self):
        return self.do("release")

    def inspect(self):
        return self.do("inspect")

    def wait_for_event(self, word, seconds=SECONDS, **values):
        """Wait for the next event `word` of the lock, as "waiting"."""
        return self.wait("lock", word, seconds, **values)

    def wait_until_queued(self, seconds=SECONDS):
        """Wait until the lock knows its position in the queue."""
        return self.wait_for_event("waiting", seconds)


SELECTOR, KAZOO, LATCH = 0, 1, 4  # lk_layout, of an election


class Candidate(RemoteObject):
    """A candidate of an election."""

    def start(self):
        return self.do("start")

    def resign(self):
        return self.do("resign")

    def facts(self):
        return self.do("candidacy")

    def wait_for_event(self, word, seconds=SECONDS, **values):
        """Wait for the next event `word`, as "elected"."""
        return self.wait("candidate", word, seconds, **values)


class Member(RemoteObject):
    """A member of a group."""

    def join(self):
        return self.do("join")

    def leave(self):
        return self.do("leave")

    def wait_for_event(self, word, seconds=SECONDS, **values):
        """Wait for the next event `word`, as "joined"."""
        return self.wait("member", word, seconds, **values)


class Roster(RemoteObject):
    """The members of a group, or the candidates of an election."""

    def wait_for(self, expected, seconds=SECONDS):
        """Wait until the roster is this list of (name, data)."""
        names = ["%s:%s" % (name, data.hex()) for name, data in expected]
        return self.wait("roster", seconds=seconds, names=names)


class Subscription(RemoteObject):
    """A subscription to the children or to the data of a node."""

    def expect_notified(self, err="0", **values):
        """Wait for the next notification, and check its error and values."""
        line = self.wait("notified")
        assert line.err == err, line
        for key, expected in values.items():
            value = getattr(line, key)
            if key == "names":
                value = sorted(value)
            assert value == expected, "%s, not %s" % (line, expected)
        return line

    def expect_missing(self):
        """Wait for the next notification, and check that the node is missing."""
        return self.expect_notified("NO_NODE")

    def latest(self):
        """The last notification, or None."""
        lines = self.lines_like("notified")
        return lines[-1] if lines else None

    def is_silent(self):
        """Whether there is no notification that expect_notified() has not
        read."""
        with self._line_added:
            return self._lines_read == len(self.lines)


class Worker:
    """The process of worker.c."""

    # When a test fails, live.run() prints the last lines of each.
    not_closed = []

    def __init__(self):
        self.objects = {}   # RemoteObjects, by name
        self.pending = {}   # PendingCommands without a result, by tag
        self.last_lines = collections.deque(maxlen=1000)  # to it and from it
        self._numbers = itertools.count(1)  # of tags and of new names
        self._lock = threading.Lock()       # of writes to the worker
        self.process = subprocess.Popen(
            [program("support/worker")], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)
        threading.Thread(target=self._listen, daemon=True).start()
        Worker.not_closed.append(self)

    def new_name(self, kind):
        return "%s-%d" % (kind, next(self._numbers))

    def _listen(self):
        """Hand each line of the worker to its object or its command."""
        for text in self.process.stdout:
            at, name, *words = text.split()  # `name`: of an object, or a tag
            line = Line(float(at), words)
            self.last_lines.append(text)
            if name in self.objects:
                self.objects[name].add_line(line)
            elif name in self.pending:
                self.pending.pop(name).complete(line)

    def submit(self, verb, name, **options):
        """Send a command for the object `name`; gives its PendingCommand."""
        tag = str(next(self._numbers))
        if "hosts" in options:
            options["hosts"] = tls.secure(options["hosts"])
        text = " ".join([tag, verb, name] + [
            "%s=%s" % (key, _option_text(value)) for key, value in options.items()
            if value is not None])
        pending = PendingCommand(int(tag), text[:200])
        self.pending[tag] = pending
        with self._lock:
            self.last_lines.append("> %s\n" % text[:200])
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        return pending

    def client(self, hosts, **options):
        client = Client(self, self.new_name("client"))
        client.do("client", hosts=hosts, **options)
        return client

    def sends(self):
        """The number of send() calls of the worker so far."""
        return self.submit("sends", "-").succeeds().sends

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def cont(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        """Close the worker's input, so that the worker exits, and check that it
        exits with 0: its sanitizers then have found nothing. A killed worker is
        accepted, too."""
        if self.process.poll() is None:
            self.process.stdin.close()
        code = self.process.wait(SECONDS)
        if self in Worker.not_closed:
            Worker.not_closed.remove(self)
        assert code in (0, -signal.SIGKILL), "the worker ended with %d" % code
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        elif self.is_alive():
            # The test has failed: end the worker, and check nothing.
            self.cont()
            self.process.stdin.close()
