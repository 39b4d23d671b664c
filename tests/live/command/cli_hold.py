# SPDX-License-Identifier: Apache-2.0
"""latchkey run: --min-hold and --max-hold."""

import json
import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
from command import eventually, expect_exit, is_running, start

zk = command.serve("--tick", "200")


def seconds_of(code, *words):
    """The duration of a command with this exit code, in seconds."""
    began = time.monotonic()
    expect_exit(code, *words)
    return time.monotonic() - began


def wait_for_min_hold(job):
    """Wait until latchkey -v prints that COMMAND has ended and the lock is
    kept."""
    assert any("--min-hold" in line for line in job.stderr)


# ---- --min-hold

def min_hold_keeps_the_lock_after_a_short_command():
    with start("run", "-v", "--min-hold", "600", "/skew", "sh", "-c",
               "exit 7") as job:
        wait_for_min_hold(job)
        expect_exit(124, "run", "-n", "/skew", "true")
        job.send_signal(signal.SIGINT)
        assert job.finish().code == 7
    expect_exit(0, "run", "-n", "/skew", "true")


def min_hold_is_counted_from_the_grant():
    assert 1 <= seconds_of(0, "run", "--min-hold", "1", "/long", "true") < 5
    # Counted from the end of COMMAND, this would take 8 s.
    assert 4 <= seconds_of(0, "run", "--min-hold", "4", "/long",
                           "sleep", "4") < 8


def signal_ends_min_hold():
    with start("run", "-v", "--min-hold", "600", "/cut", "true") as job:
        wait_for_min_hold(job)
        job.send_signal(signal.SIGTERM)
        assert job.finish().code == 0
    expect_exit(0, "run", "-n", "/cut", "true")


def min_hold_does_not_apply_to_a_command_that_cannot_be_executed():
    assert seconds_of(127, "run", "--min-hold", "600", "/none", "/no/such") < 20


def min_hold_may_equal_max_hold():
    assert seconds_of(123, "run", "--min-hold", "1", "--max-hold", "1", "/equal",
                      "sleep", "600") < 20


def lost_lock_ends_min_hold():
    with start("run", "-v", "--min-hold", "600", "/gone", "true") as job:
        wait_for_min_hold(job)
        node = command.status("/gone")["holders"][0]["node"]
        expect_exit(0, "delete", node)
        done = job.finish()
        assert done.code == 0 and "lost before" in done.err, done


# ---- --max-hold

def max_hold_ends_command_and_holds_the_lock_until_then():
    # After TERM, COMMAND waits for the end of its standard input.
    job = start("run", "--max-hold", "1", "--kill-after", "14", "/most", "sh",
                "-c", "trap 'echo TERM; read word; exit 0' TERM; echo begun; "
                "while :; do sleep 0.05; done", stdin=subprocess.PIPE)
    assert job.stdout.readline() == "begun\n"
    assert job.stdout.readline() == "TERM\n"
    expect_exit(124, "run", "-n", "/most", "true")
    done = job.finish()  # closes its standard input
    assert done.code == 123 and "--max-hold" in done.err, done
    expect_exit(0, "run", "-n", "/most", "true")


def json_says_why_command_was_ended():
    done = command.run("run", "--json", "--max-hold", "0.5", "--kill-after", "0.3",
                       "/why", "sh", "-c", "trap '' TERM; while :; do sleep 0.05; done")
    assert done.code == 123, done
    events = [json.loads(line) for line in done.err.splitlines()]
    assert [e["reason"] for e in events if e["event"] == "notice"] == [
        "/why: --max-hold is over: sent TERM",
        "/why: --max-hold is over: sent KILL"], events


def max_hold_kills_command_and_its_descendants():
    job = start("run", "--max-hold", "0.5", "--kill-after", "0.5", "/deaf",
                "sh", "-c", "trap '' TERM; setsid sleep 600 & echo $!; "
                "while :; do sleep 0.05; done")
    descendant = int(job.stdout.readline())
    assert job.finish().code == 123
    eventually(lambda: not is_running(descendant), "the descendant is gone")


def on_lost_kill_and_stop_do_not_wait_for_kill_after_at_max_hold():
    for how in ("kill", "stop"):
        assert seconds_of(123, "run", "--max-hold", "0.5", "--on-lost", how,
                          "--kill-after", "10", "/at-once", "sleep", "600") < 8


def max_hold_does_not_affect_a_shorter_command():
    expect_exit(5, "run", "--max-hold", "20", "/fine", "sh", "-c", "exit 5")


# ---- usage errors

def contradictory_options_are_usage_errors():
    for words, name in (
            (("--max-hold", "1", "--on-lost", "ignore"), "--on-lost"),
            (("--min-hold", "2", "--max-hold", "1"), "--min-hold"),
            (("--max-hold", "0"), "--max-hold"),
            (("--min-hold", "x"), "--min-hold")):
        done = expect_exit(125, "run", *words, "/l", "true")
        assert name in done.err, done


live.run(live.together(
    min_hold_keeps_the_lock_after_a_short_command,
    min_hold_is_counted_from_the_grant,
    signal_ends_min_hold,
    min_hold_does_not_apply_to_a_command_that_cannot_be_executed,
    min_hold_may_equal_max_hold,
    lost_lock_ends_min_hold,
    max_hold_ends_command_and_holds_the_lock_until_then,
    json_says_why_command_was_ended,
    max_hold_kills_command_and_its_descendants,
    on_lost_kill_and_stop_do_not_wait_for_kill_after_at_max_hold,
    max_hold_does_not_affect_a_shorter_command,
    contradictory_options_are_usage_errors))
