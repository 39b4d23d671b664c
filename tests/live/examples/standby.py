# SPDX-License-Identifier: Apache-2.0
"""examples/standby.c: the leader counts, and the next one goes on, after a
resignation, a crash and a lost lease."""

import re
import signal
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
import tls
from example import Example

ELECTION = "/standby/leader"
MEMBERS = "/standby/members"


def standby(*words):
    return Example("standby", tls.secure(zk.connect), *words)


def numbers_of(example):
    """Pairs of number and term, in the order of their lines. All other lines
    name members."""
    matches = [re.fullmatch(r"(\d+), term (\d+)|member .*", line.text)
               for line in example.lines]
    assert all(matches), example
    return [(int(m[1]), int(m[2])) for m in matches if m[1]]


def check_count(*examples):
    """Check that no number was written twice, and that terms grow with them."""
    found = sorted(pair for each in examples for pair in numbers_of(each))
    numbers = [number for number, _ in found]
    assert len(set(numbers)) == len(numbers), found
    assert [term for _, term in found] == sorted(t for _, t in found), found


def wait_for_numbers(example, count):
    live.eventually(lambda: len(numbers_of(example)) >= count, example)


def expect_end(example):
    example.kill(signal.SIGTERM)
    assert example.finish() == 0, example


def count_ends_the_example():
    with standby("3") as example:
        assert example.finish() == 0, example
        assert len(numbers_of(example)) == 3, example
        assert example.lines[0].text.startswith("member "), example
    assert command.children(ELECTION) == command.children(MEMBERS) == []


def next_leader_goes_on(number):
    """After this signal to the leader."""
    with standby() as first, standby() as second:
        live.eventually(lambda: numbers_of(first) or numbers_of(second))
        leader, other = first, second
        if numbers_of(second):
            leader, other = second, first
        command.wait_until_queued(ELECTION, 2)
        leader.kill(number)
        wait_for_numbers(other, 3)
        check_count(first, second)
        expect_end(other)


def next_leader_goes_on_after_a_signal():
    next_leader_goes_on(signal.SIGTERM)


def next_leader_goes_on_after_a_crash():
    next_leader_goes_on(signal.SIGKILL)


def stopped_leader_writes_nothing_when_it_runs_again():
    with standby() as first:
        wait_for_numbers(first, 1)
        with standby() as second:
            command.wait_until_queued(ELECTION, 2)
            first.kill(signal.SIGSTOP)
            wait_for_numbers(second, 2)
            first.kill(signal.SIGCONT)
            command.wait_until_queued(ELECTION, 2)
            expect_end(second)
            wait_for_numbers(first, len(numbers_of(first)) + 2)
            check_count(first, second)
            expect_end(first)


def leader_counts_again_after_a_pause_of_the_server():
    with standby() as example:
        wait_for_numbers(example, 1)
        zk.stop()
        count = len(numbers_of(example))
        time.sleep(3)  # the lease is over, and the session is not
        zk.cont()
        wait_for_numbers(example, count + 3)
        check_count(example)
        expect_end(example)


with command.serve("--tick", "200", "--max-timeout", "4000") as zk:
    live.run(count_ends_the_example, next_leader_goes_on_after_a_signal,
             next_leader_goes_on_after_a_crash,
             stopped_leader_writes_nothing_when_it_runs_again,
             leader_counts_again_after_a_pause_of_the_server)
