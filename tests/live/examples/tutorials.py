# SPDX-License-Identifier: Apache-2.0
"""The output of examples: the locks of the tutorials, the cost of the naive
lock, the subscription, and what examples on libev do if they are refused."""

import os
import re
import signal
import sys
import tempfile

sys.path.append(sys.path[0] + "/../support")

import command
import live
import zkserver

BUILD = os.environ.get("abs_top_builddir") or os.getcwd()


def start_example(name, *words):
    return command.start(zk.connect, *words,
                         program=os.path.join(BUILD, "examples", name))


def output_lines(name, *words):
    """Run the example, and check that it succeeds; gives its output."""
    done = command.run(zk.connect, *words,
                       program=os.path.join(BUILD, "examples", name))
    assert done.code == 0 and done.err == "", done
    return done.out.splitlines()


def blocking_example_counts_down():
    assert output_lines("blocking") == [str(n) for n in range(499, 489, -1)]


def exclusive_example_counts_down():
    assert output_lines("exclusive") == [str(n) for n in range(499, 489, -1)]


def callbacks_example_has_one_holder_at_a_time():
    *grants, summary = output_lines("callbacks")
    assert summary == "10 workers, at most 1 at a time", summary
    matches = [re.fullmatch(r"(worker \d) holds /tasks/lock(\d{10})", line)
               for line in grants]
    assert all(matches), grants
    assert sorted(m[1] for m in matches) == ["worker %d" % n for n in range(10)]
    # Locks are granted in the order of the queue.
    assert [int(m[2]) for m in matches] == list(range(10)), grants


def shared_example_lets_readers_share():
    lines = output_lines("shared")
    assert sorted(lines[:2]) == ["reader 1 holds", "reader 2 holds"], lines
    assert sorted(lines[2:4]) == ["reader 1 releases", "reader 2 releases"], lines
    assert lines[4:] == ["writer 1 holds", "writer 1 releases",
                         "reader 3 holds", "reader 3 releases",
                         "writer 2 holds", "writer 2 releases"], lines


def hold_example_works_while_it_holds():
    lines = output_lines("hold")
    # Ten times the same line.
    assert len(lines) == 10 and len(set(lines)) == 1, lines
    assert re.fullmatch(r"working, token \d+", lines[0]), lines


def hold_example_stops_when_its_lock_is_lost():
    with start_example("hold", "100000") as process:
        command.wait_until_held("/locks/hold")
        (holder,) = command.status("/locks/hold")["holders"]
        command.expect_exit(0, "delete", holder["node"])
        done = process.finish()
    assert done.code == 1, done
    assert done.out.splitlines()[-1] == "/locks/hold: lost", done


def interrupt_ends_the_wait_of_the_hold_example():
    with command.start("run", "/locks/hold", "sleep", "600"):
        command.wait_until_held("/locks/hold")
        with start_example("hold") as process:
            command.wait_until_queued("/locks/hold", 2)
            process.send_signal(signal.SIGINT)
            done = process.finish()
    assert done.code == 1, done
    assert done.err == "/locks/hold: the client is closed\n", done
    assert done.out == "/locks/hold: waiting\n", done


def subscribe_example_prints_changes():
    # The names of children have no order.
    lines = [line.replace("weather sport", "sport weather")
             for line in output_lines("subscribe")]
    assert lines == [
        "/news: no such node", "/news has no topics", "/news has sport",
        "/news has sport weather", "/news has weather",
        "/news has no topics", "/news: no such node"], lines


def herd_example_shows_the_herd_effect():
    """In the naive lock each change notifies all waiting writers; in
    latchkey's it notifies one."""
    writers = 30
    naive, ours = output_lines("herd", str(writers))
    match = re.fullmatch(r"naive: 30 writers, (\d+) replies, (\d+) lists with "
                         r"(\d+) names", naive)
    assert match, naive
    naive_replies, lists, names = map(int, match.groups())
    # Each release notifies all remaining writers, which list the queue: 29 of
    # them, then 28, and so on. Events that arrive together take one list, so
    # half of these lists is enough. On average, a list has an eighth of the names.
    all_lists = writers * (writers - 1) // 2
    assert lists >= all_lists / 2, naive
    assert names >= lists * writers // 8, naive
    match = re.fullmatch(r"ours: 30 writers, (\d+) replies", ours)
    assert match, ours
    our_replies = int(match[1])
    # For each writer: create, list, reads of the own node and of the
    # predecessor, the check after the grant, delete, closeSession, heartbeats.
    # In addition, the creates of directories.
    assert our_replies <= 10 * writers + 20, ours
    assert our_replies < naive_replies / 1.5, (naive, ours)
    print(naive, ours, sep="\n")


def examples_end_if_the_server_refuses_them():
    with tempfile.NamedTemporaryFile("w") as jaas:
        jaas.write("Server {\n  org.apache.zookeeper.server.auth."
                   "DigestLoginModule required\n    user_bob=\"secret\";\n};\n")
        jaas.flush()
        with zkserver.Server("--sasl", jaas.name, "--config",
                             "sessionRequireClientSASLAuth=true") as server:
            for name in "lock", "hold", "leader", "balance":
                done = command.run(server.connect, program=os.path.join(
                    BUILD, "examples", name))
                assert done.code == 1, (name, done)
                assert "the server refuses the credentials" in done.err, (
                    name, done)


with command.serve() as zk:
    live.run(live.together(
        blocking_example_counts_down,
        exclusive_example_counts_down,
        callbacks_example_has_one_holder_at_a_time,
        shared_example_lets_readers_share,
        subscribe_example_prints_changes),
        hold_example_works_while_it_holds,
        hold_example_stops_when_its_lock_is_lost,
        interrupt_ends_the_wait_of_the_hold_example,
        herd_example_shows_the_herd_effect,
        examples_end_if_the_server_refuses_them)
