# SPDX-License-Identifier: Apache-2.0
"""examples/leader.c: at most one process leads, and the next one leads after a
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
from live import eventually

ELECTION = "/services/example"
SESSION_S = 4  # which the server grants at most
HANDOVER_S = 2  # a handover by events takes less, and an expiry more


def candidate(*words):
    return Example("leader", tls.secure(zk.connect), *words)


def term_of(line):
    return int(re.search(r", term (\d+)", line.text)[1])


def terms_of(example):
    return [term_of(line) for line in example.lines
            if line.text.startswith("elected")]


def check_terms(example):
    """Check that the example has worked only while it led, in its own term."""
    term = None  # while it may work
    for line in example.lines:
        match = re.fullmatch(r"(elected|renewed|working|unsure|deposed), "
                             r"term (\d+)(: .*)?", line.text)
        assert match, (line, example)
        what = match[1]
        if what in ("elected", "renewed"):
            assert term is None, (line, example)
            term = match[2]
        assert term == match[2] or what == "deposed", (line, example)
        if what in ("unsure", "deposed"):
            term = None


def expect_end(example, number):
    """Send the signal, and check that the example resigns."""
    example.kill(number)
    assert example.finish() == 0, example
    check_terms(example)
    return example.lines[-1] if example.lines else None


def only_one_candidate_works():
    with candidate() as first:
        first.wait_for("elected")
        with candidate() as second:
            command.wait_until_queued(ELECTION, 2)
            steps = len(first.lines)
            eventually(lambda: len(first.lines) > steps + 10)
            assert second.lines == [], second
            assert expect_end(second, signal.SIGINT) is None, second
        assert expect_end(first, signal.SIGINT).text.startswith("deposed"), first


def next_candidate_leads_at_once_after_a_signal():
    with candidate() as first:
        term = term_of(first.wait_for("elected"))
        with candidate() as second:
            command.wait_until_queued(ELECTION, 2)
            began = time.monotonic()
            last = expect_end(first, signal.SIGTERM)
            assert last.text == "deposed, term %d" % term, last
            elected = second.wait_for("elected")
            assert elected.at - began < HANDOVER_S, (began, second)
            assert term_of(elected) > term, (first, second)
            expect_end(second, signal.SIGTERM)


def next_candidate_leads_when_a_crashed_leader_has_expired():
    with candidate() as first:
        term = term_of(first.wait_for("elected"))
        with candidate() as second:
            command.wait_until_queued(ELECTION, 2)
            crashed = time.monotonic()
            first.kill(signal.SIGKILL)
            elected = second.wait_for("elected")
            assert HANDOVER_S < elected.at - crashed < SESSION_S + 6, (
                crashed, second)
            assert term_of(elected) > term, (first, second)
            expect_end(second, signal.SIGTERM)


def candidates_lead_in_turns():
    with candidate("2") as first:
        first.wait_for("elected")
        first.kill(signal.SIGSTOP)
        with candidate("2") as second:
            command.wait_until_queued(ELECTION, 2)
            first.kill(signal.SIGCONT)
            for each in first, second:
                assert each.finish() == 0, each
                check_terms(each)
                for term in terms_of(each):
                    steps = [line for line in each.lines
                             if line.text == "working, term %d" % term]
                    assert len(steps) == 10, each
            a, b = terms_of(first), terms_of(second)
            assert len(a) == len(b) == 2, (first, second)
            assert a[0] < b[0] < a[1] < b[1], (first, second)


def leader_stops_working_before_its_lease_ends():
    with candidate() as example:
        example.wait_for("working")
        zk.stop()
        example.wait_for("unsure")
        silent = len(example.lines)
        time.sleep(0.5)
        assert len(example.lines) == silent, example
        zk.cont()
        # The session may have expired while the server was stopped.
        eventually(lambda: example.find("renewed", silent) or
                   example.find("elected", silent), example)
        example.wait_for("working", silent)
        expect_end(example, signal.SIGTERM)


def paused_leader_does_not_work_after_its_lease_has_ended():
    with candidate() as first:
        first.wait_for("working")
        with candidate() as second:
            command.wait_until_queued(ELECTION, 2)
            first.kill(signal.SIGSTOP)
            second.wait_for("elected")
            time.sleep(0.2)  # all that was printed before the stop is read
            paused = len(first.lines)
            first.kill(signal.SIGCONT)
            first.wait_for("deposed", paused)
            assert first.find("working", paused) is None, first
            expect_end(second, signal.SIGTERM)
            first.wait_for("elected", paused)
            expect_end(first, signal.SIGTERM)


def signal_ends_a_candidate_without_a_server():
    with Example("leader", "127.0.0.1:1") as example:
        time.sleep(0.2)
        began = time.monotonic()
        assert expect_end(example, signal.SIGTERM) is None, example
        assert time.monotonic() - began < HANDOVER_S, example


def invalid_servers_are_an_error():
    with Example("leader", "127.0.0.1:port") as example:
        assert example.finish() == 1, example
        (line,) = example.lines
        assert line.text.startswith("127.0.0.1:port: "), example


with command.serve("--tick", "200", "--max-timeout", "4000") as zk:
    live.run(only_one_candidate_works,
             next_candidate_leads_at_once_after_a_signal,
             next_candidate_leads_when_a_crashed_leader_has_expired,
             candidates_lead_in_turns,
             leader_stops_working_before_its_lease_ends,
             paused_leader_does_not_work_after_its_lease_has_ended,
             signal_ends_a_candidate_without_a_server,
             invalid_servers_are_an_error)
