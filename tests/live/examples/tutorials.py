# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say: the locks of the tutorials, what the naive
one costs, and the subscription."""

import os
import re
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live

BUILD = os.environ.get("abs_top_builddir") or os.getcwd()


def lines(name, *words):
    done = command.run(zk.connect, *words,
                       program=os.path.join(BUILD, "examples", name))
    assert done.code == 0 and done.err == "", done
    return done.out.splitlines()


def the_blocking_lock_counts_down():
    assert lines("blocking") == [str(n) for n in range(499, 489, -1)]


def the_lock_of_one_node_counts_down():
    assert lines("exclusive") == [str(n) for n in range(499, 489, -1)]


def the_lock_in_callbacks_is_held_by_one_at_a_time():
    *turns, last = lines("callbacks")
    assert last == "10 workers, at most 1 at a time", last
    held = [re.fullmatch(r"(worker \d) holds /tasks/lock(\d{10})", line)
            for line in turns]
    assert all(held), turns
    assert sorted(m[1] for m in held) == ["worker %d" % n for n in range(10)]
    # Who came first is served first.
    assert [int(m[2]) for m in held] == list(range(10)), turns


def readers_share_and_writers_do_not():
    said = lines("shared")
    assert sorted(said[:2]) == ["reader 1 holds", "reader 2 holds"], said
    assert sorted(said[2:4]) == ["reader 1 lets go", "reader 2 lets go"], said
    assert said[4:] == ["writer 1 holds", "writer 1 lets go",
                        "reader 3 holds", "reader 3 lets go",
                        "writer 2 holds", "writer 2 lets go"], said


def the_subscriber_is_told_what_is_published():
    told = [line.replace("weather sport", "sport weather")  # in no order
            for line in lines("subscribe")]
    assert told == [
        "/news: no such node", "/news has no topics", "/news has sport",
        "/news has sport weather", "/news has weather",
        "/news has no topics", "/news: no such node"], told


def the_herd_is_seen():
    """In the naive lock each change wakes all n writers; in ours one."""
    n = 30
    naive, ours = lines("herd", str(n))
    m = re.fullmatch(r"naive: 30 writers, (\d+) replies, (\d+) lists with "
                     r"(\d+) names", naive)
    assert m, naive
    replies, lists, names = map(int, m.groups())
    # Each release is noticed by all remaining writers.
    assert lists >= n * (n - 1) // 2 / 2, naive
    assert names >= lists * n // 8, naive
    m = re.fullmatch(r"ours: 30 writers, (\d+) replies", ours)
    assert m, ours
    # Create, list, the reads of the own node and the predecessor, the check
    # that leaves with the grant, the delete, closeSession, and the evidence of
    # the lease; directories.
    assert int(m[1]) <= 10 * n + 20, ours
    assert int(m[1]) < replies / 1.5, (naive, ours)
    print(naive, ours, sep="\n")


with command.serve() as zk:
    live.run(live.together(
        the_blocking_lock_counts_down,
        the_lock_of_one_node_counts_down,
        the_lock_in_callbacks_is_held_by_one_at_a_time,
        readers_share_and_writers_do_not,
        the_subscriber_is_told_what_is_published),
        the_herd_is_seen)
