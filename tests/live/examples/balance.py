# SPDX-License-Identifier: Apache-2.0
"""examples/balance.c: each partition has one owner, and never two at a time,
while workers join, leave and crash."""

import contextlib
import re
import signal
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
import tls
from example import Example
from live import eventually

MEMBERS = "/balance/members"
PARTITIONS = 12
ALL = set(range(PARTITIONS))
SESSION_S = 4  # which the server grants at most
HANDOVER_S = 2  # a handover by events takes less, and an expiry more

LINE = re.compile(r"(?P<time>\d+) (?P<name>\S+) (?:"
                  r"owns (?P<owned>nothing|\d+(?: \d+)*)|"
                  r"leaves after (?P<steps>\d+) steps|"
                  r"/balance/members/\S+ (?:joined|left: .*|name taken)|"
                  r"/balance/partitions/\d+ deposed: .*)")


def clock_ms():
    """The clock of the library."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


class Worker(Example):
    """A worker. `crashed_ms` is the time at which it was killed, or None."""

    def __init__(self, name, *words):
        super().__init__("balance", tls.secure(zk.connect), name, *words)
        self.name, self.crashed_ms = name, None

    def matches(self):
        """The parsed lines, all of which must be valid."""
        found = [LINE.fullmatch(line.text) for line in self.lines]
        assert None not in found and all(m["name"] == self.name
                                         for m in found), self
        return found

    def changes(self):
        """What it has owned: pairs of a time and a set of partitions."""
        return [(int(m["time"]), set() if m["owned"] == "nothing" else
                 set(map(int, m["owned"].split())))
                for m in self.matches() if m["owned"]]

    def owned(self):
        changes = self.changes()
        return changes[-1][1] if changes else set()

    def periods(self, partition):
        """The times from which and until which it has owned the partition."""
        found, began = [], None
        for at, owned in self.changes():
            if partition in owned and began is None:
                began = at
            elif partition not in owned and began is not None:
                found.append((began, at))
                began = None
        if began is not None:
            found.append((began, self.crashed_ms or float("inf")))
        return found

    def crash(self):
        self.crashed_ms = clock_ms()
        self.kill(signal.SIGKILL)
        self.finish()

    def leave(self, number=signal.SIGTERM):
        """Send the signal, and check that the worker leaves."""
        self.kill(number)
        assert self.finish() == 0, self
        assert self.owned() == set(), self
        assert self.matches()[-1]["steps"], self


def weight(name, partition):
    """The hash of balance.c, by which the partition is assigned."""
    basis, prime, bits = 14695981039346656037, 1099511628211, 2 ** 64 - 1
    value = basis
    for byte in name.encode():
        value = (value ^ byte) * prime & bits
    for _ in range(2):
        value = (value ^ partition) * basis & bits
        value ^= value >> 32
    return value


def assigned(name, names):
    """The partitions that this one of the members is to own."""
    return {n for n in ALL if name == max(names, key=lambda x: weight(x, n))}


def wait_until_shared(*workers):
    """Wait until each partition is owned by the worker that is to own it."""
    names = [worker.name for worker in workers]
    eventually(lambda: all(worker.owned() == assigned(worker.name, names)
                           for worker in workers), workers)


def check_exclusion(workers):
    for partition in ALL:
        periods = sorted((began, ended, worker.name) for worker in workers
                         for began, ended in worker.periods(partition))
        for (_, ended, _), (began, _, _) in zip(periods, periods[1:]):
            assert ended <= began, (partition, periods, workers)


@contextlib.contextmanager
def group(*names):
    """A list of workers with these names, which have shared the partitions. At
    the end those that run leave, and no two may have owned a partition at a
    time."""
    with contextlib.ExitStack() as stack:
        workers = []

        def add(name):
            workers.append(stack.enter_context(Worker(name)))
            return workers[-1]

        started = [add(name) for name in names]
        wait_until_shared(*started)
        yield (*started, add)
        for worker in workers:
            if worker.process.poll() is None:
                worker.leave()
        check_exclusion(workers)
        assert command.children(MEMBERS) == []


def each_partition_has_one_owner():
    with group("a", "b", "c") as (a, b, c, _):
        assert all(each.owned() for each in (a, b, c)), (a, b, c)
        assert sorted(command.children(MEMBERS)) == ["a", "b", "c"]
        (holder,) = command.status("/balance/partitions/3")["holders"]
        (owner,) = [each for each in (a, b, c) if 3 in each.owned()]
        assert holder["label"] == owner.name, holder


def partitions_of_a_crashed_worker_move_after_its_expiry():
    with group("a", "b", "c") as (a, b, c, add):
        before = a.owned(), b.owned()
        crashed = time.monotonic()
        c.crash()
        wait_until_shared(a, b)
        assert HANDOVER_S < time.monotonic() - crashed < SESSION_S + 6
        # The partitions of the others have not moved.
        for each, owned in zip((a, b), before):
            assert all(owned <= now for at, now in each.changes()
                       if at >= c.crashed_ms), (owned, each)
        wait_until_shared(a, b, add("c"))


def partitions_of_a_worker_that_leaves_move_at_once():
    with group("a", "b", "c") as (a, b, c, _):
        for leaving, staying, number in ((c, (a, b), signal.SIGTERM),
                                         (b, (a,), signal.SIGINT)):
            time.sleep(0.3)  # it makes a step every 0.1 s
            began = time.monotonic()
            leaving.leave(number)
            wait_until_shared(*staying)
            assert time.monotonic() - began < HANDOVER_S, staying
            assert int(leaving.matches()[-1]["steps"]) > 0, leaving


def worker_with_an_older_roster_keeps_its_partitions():
    with group("a") as (a, add):
        a.kill(signal.SIGSTOP)
        b = add("b")
        eventually(lambda: sorted(command.children(MEMBERS)) == ["a", "b"])
        time.sleep(1)  # b has read the roster
        assert b.owned() == set(), b
        a.kill(signal.SIGCONT)
        wait_until_shared(a, b)
        assert a.owned() and b.owned(), (a, b)


def partitions_are_given_up_before_the_leases_end():
    with group("a", "b") as (a, b, _):
        zk.stop()
        latest_deadline = clock_ms() + SESSION_S * 1000
        eventually(lambda: not a.owned() and not b.owned(), (a, b))
        for each in a, b:
            given_up, _ = each.changes()[-1]
            assert given_up < latest_deadline, (latest_deadline, each)
        zk.cont()
        wait_until_shared(a, b)


def lost_lock_is_acquired_again():
    with group("a") as (a, _):
        (holder,) = command.status("/balance/partitions/3")["holders"]
        command.expect_exit(0, "delete", holder["node"])
        eventually(lambda: any(owned == ALL - {3} for _, owned in a.changes()),
                   a)
        wait_until_shared(a)
        assert any("/balance/partitions/3 deposed: " in line.text
                   for line in a.lines), a


def worker_of_the_same_name_waits_for_the_first():
    with group("a") as (a, add):
        second = add("a")
        eventually(lambda: "name taken" in str(second.lines), second)
        time.sleep(0.5)
        assert second.owned() == set(), second
        a.leave()
        wait_until_shared(second)


def invalid_arguments_are_errors():
    for words, message in ((("127.0.0.1:port",), "cannot begin: "),
                           ((zk.connect, "a/b"), "cannot begin: "),
                           ((zk.connect, "a", "0"), "1 to 1000 partitions")):
        with Example("balance", *words) as example:
            assert example.finish() == 1, example
            (line,) = example.lines
            assert line.text.startswith(message), example


with command.serve("--tick", "200", "--max-timeout", "4000") as zk:
    live.run(each_partition_has_one_owner,
             partitions_of_a_crashed_worker_move_after_its_expiry,
             partitions_of_a_worker_that_leaves_move_at_once,
             worker_with_an_older_roster_keeps_its_partitions,
             partitions_are_given_up_before_the_leases_end,
             lost_lock_is_acquired_again,
             worker_of_the_same_name_waits_for_the_first,
             invalid_arguments_are_errors)
