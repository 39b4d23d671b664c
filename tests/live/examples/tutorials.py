# SPDX-License-Identifier: Apache-2.0
"""The output of examples: the locks of the tutorials, the cost of the naive
lock, and the subscription."""

import os
import re
import signal
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live

BUILD = os.environ.get("abs_top_builddir") or os.getcwd()


def started(name, *words):
    return command.start(zk.connect, *words,
                         program=os.path.join(BUILD, "examples", name))


def lines(name, *words):
    done = command.run(zk.connect, *words,
                       program=os.path.join(BUILD, "examples", name))
    assert done.code == 0 and done.err == "", done
    return done.out.splitlines()


def blocking_example_counts_down():
    assert lines("blocking") == [str(n) for n in range(499, 489, -1)]


def exclusive_example_counts_down():
    assert lines("exclusive") == [str(n) for n in range(499, 489, -1)]


def callbacks_example_has_one_holder_at_a_time():
    *turns, last = lines("callbacks")
    assert last == "10 workers, at most 1 at a time", last
    held = [re.fullmatch(r"(worker \d) holds /tasks/lock(\d{10})", line)
            for line in turns]
    assert all(held), turns
    assert sorted(m[1] for m in held) == ["worker %d" % n for n in range(10)]
    # Locks are granted in the order of the queue.
    assert [int(m[2]) for m in held] == list(range(10)), turns


def readers_share_and_writers_do_not():
    said = lines("shared")
    assert sorted(said[:2]) == ["reader 1 holds", "reader 2 holds"], said
    assert sorted(said[2:4]) == ["reader 1 releases", "reader 2 releases"], said
    assert said[4:] == ["writer 1 holds", "writer 1 releases",
                        "reader 3 holds", "reader 3 releases",
                        "writer 2 holds", "writer 2 releases"], said


def hold_example_works_while_it_holds():
    assert re.fullmatch(r"(working, token \d+\n)\1{9}",
                        "".join(line + "\n" for line in lines("hold")))
    with started("hold", "100000") as process:
        command.wait_until_held("/locks/hold")
        (holder,) = command.status("/locks/hold")["holders"]
        command.expect_exit(0, "delete", holder["node"])
        done = process.finish()
    assert done.code == 1, done
    assert done.out.splitlines()[-1] == "/locks/hold: lost", done
    with command.start("run", "/locks/hold", "sleep", "600"):
        command.wait_until_held("/locks/hold")
        with started("hold") as process:
            command.wait_until_queued("/locks/hold", 2)
            process.send_signal(signal.SIGINT)
            done = process.finish()
    assert done.code == 1, done
    assert done.err == "/locks/hold: the client is closed\n", done
    assert done.out == "/locks/hold: waiting\n", done


def subscribe_example_prints_changes():
    told = [line.replace("weather sport", "sport weather")  # names are unordered
            for line in lines("subscribe")]
    assert told == [
        "/news: no such node", "/news has no topics", "/news has sport",
        "/news has sport weather", "/news has weather",
        "/news has no topics", "/news: no such node"], told


def herd_example_shows_the_herd_effect():
    """In the naive lock each change notifies all waiting writers; in
    latchkey's it notifies one."""
    n = 30
    naive, ours = lines("herd", str(n))
    m = re.fullmatch(r"naive: 30 writers, (\d+) replies, (\d+) lists with "
                     r"(\d+) names", naive)
    assert m, naive
    replies, lists, names = map(int, m.groups())
    # Each release notifies all remaining writers.
    assert lists >= n * (n - 1) // 2 / 2, naive
    assert names >= lists * n // 8, naive
    m = re.fullmatch(r"ours: 30 writers, (\d+) replies", ours)
    assert m, ours
    # For each writer: create, list, reads of the own node and of the
    # predecessor, the check after the grant, delete, closeSession, heartbeats.
    # In addition, the creates of directories.
    assert int(m[1]) <= 10 * n + 20, ours
    assert int(m[1]) < replies / 1.5, (naive, ours)
    print(naive, ours, sep="\n")


with command.serve() as zk:
    live.run(live.together(
        blocking_example_counts_down,
        exclusive_example_counts_down,
        callbacks_example_has_one_holder_at_a_time,
        readers_share_and_writers_do_not,
        subscribe_example_prints_changes,
        hold_example_works_while_it_holds),
        herd_example_shows_the_herd_effect)
