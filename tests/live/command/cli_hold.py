# SPDX-License-Identifier: Apache-2.0
"""latchkey run: --min-hold and --max-hold."""

import signal
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
from command import eventually, expect_exit, is_running, start

zk = command.serve("--tick", "200")


def took(code, *words):
    """How long it took, in seconds."""
    began = time.monotonic()
    expect_exit(code, *words)
    return time.monotonic() - began


def wait_until_kept(job):
    """Until it says that the command has ended and the lock is kept."""
    assert any("--min-hold" in line for line in job.stderr)


# ---- at least

def a_short_job_keeps_others_out_for_the_whole_time():
    with start("run", "-v", "--min-hold", "600", "/skew", "sh", "-c",
               "exit 7") as job:
        wait_until_kept(job)
        expect_exit(124, "run", "-n", "/skew", "true")
        job.send_signal(signal.SIGINT)
        assert job.finish().code == 7
    expect_exit(0, "run", "-n", "/skew", "true")


def it_begins_with_the_lock_and_is_over_for_a_long_job():
    assert 1 <= took(0, "run", "--min-hold", "1", "/long", "true") < 5
    assert took(0, "run", "--min-hold", "0.5", "/long", "sleep", "1") < 4


def a_signal_ends_it():
    with start("run", "-v", "--min-hold", "600", "/cut", "true") as job:
        wait_until_kept(job)
        job.send_signal(signal.SIGTERM)
        assert job.finish().code == 0
    expect_exit(0, "run", "-n", "/cut", "true")


def it_is_not_for_what_never_ran_or_was_ended():
    assert took(127, "run", "--min-hold", "600", "/none", "/no/such") < 20
    assert took(123, "run", "--min-hold", "1", "--max-hold", "1", "/none",
                "sleep", "600") < 20


def a_lock_that_is_lost_meanwhile_is_not_kept():
    with start("run", "-v", "--min-hold", "600", "/gone", "true") as job:
        wait_until_kept(job)
        node = command.status("/gone")["holders"][0]["node"]
        expect_exit(0, "delete", node)
        done = job.finish()
        assert done.code == 0 and "lost before" in done.err, done


# ---- at most

def a_runaway_is_ended_and_the_lock_is_held_until_then():
    job = start("run", "--max-hold", "1", "--kill-after", "14", "/most", "sh",
                "-c", "trap 'echo TERM; read word; exit 0' TERM; echo begun; "
                "while :; do sleep 0.05; done", stdin=subprocess.PIPE)
    assert job.stdout.readline() == "begun\n"
    assert job.stdout.readline() == "TERM\n"
    expect_exit(124, "run", "-n", "/most", "true")
    done = job.finish()
    assert done.code == 123 and "--max-hold" in done.err, done
    expect_exit(0, "run", "-n", "/most", "true")


def who_does_not_obey_is_killed_with_its_descendants():
    job = start("run", "--max-hold", "0.5", "--kill-after", "0.5", "/deaf",
                "sh", "-c", "trap '' TERM; setsid sleep 600 & echo $!; "
                "while :; do sleep 0.05; done")
    descendant = int(job.stdout.readline())
    assert job.finish().code == 123
    eventually(lambda: not is_running(descendant), "the descendant is gone")


def kill_and_stop_kill_at_once():
    for how in ("kill", "stop"):
        assert took(123, "run", "--max-hold", "0.5", "--on-lost", how,
                    "--kill-after", "10", "/at-once", "sleep", "600") < 8


def who_ends_in_time_is_not_disturbed():
    expect_exit(5, "run", "--max-hold", "20", "/fine", "sh", "-c", "exit 5")


# ---- what makes no sense

def contradictions_are_usage_errors():
    for words, name in (
            (("--max-hold", "1", "--on-lost", "ignore"), "--on-lost"),
            (("--min-hold", "2", "--max-hold", "1"), "--min-hold"),
            (("--max-hold", "0"), "--max-hold"),
            (("--min-hold", "x"), "--min-hold")):
        done = expect_exit(125, "run", *words, "/l", "true")
        assert name in done.err, done


live.run(live.together(
    a_short_job_keeps_others_out_for_the_whole_time,
    it_begins_with_the_lock_and_is_over_for_a_long_job,
    a_signal_ends_it,
    it_is_not_for_what_never_ran_or_was_ended,
    a_lock_that_is_lost_meanwhile_is_not_kept,
    a_runaway_is_ended_and_the_lock_is_held_until_then,
    who_does_not_obey_is_killed_with_its_descendants,
    kill_and_stop_kill_at_once,
    who_ends_in_time_is_not_disturbed,
    contradictions_are_usage_errors))
