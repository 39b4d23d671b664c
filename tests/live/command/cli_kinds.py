# SPDX-License-Identifier: Apache-2.0
"""latchkey run with -s, -x, -l and -p: who holds with whom."""

import json
import os
import signal
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
import relay
from command import expect_exit, run, start

folder = tempfile.TemporaryDirectory()


def holding(*words):
    """A command that holds; ended by ending the block's process."""
    process = start("run", *words, "sleep", "600")
    return process


def wait_until_held(path, holders=1):
    live.eventually(lambda: len(command.status(path)["holders"]) == holders,
                    "%s is held by %d" % (path, holders))


def is_busy(*words):
    return run("run", "-n", *words, "true").code == 124


def end(*processes):
    for p in processes:
        p.terminate()
    for p in processes:
        p.finish()


def readers_share_and_writers_do_not():
    with holding("-s", "/rw") as a, holding("-s", "/rw") as b:
        wait_until_held("/rw", 2)
        assert is_busy("-x", "/rw")
        assert is_busy("/rw")  # as a mutex
        expect_exit(0, "run", "-n", "-s", "/rw", "true")
        end(a, b)
    with holding("-x", "/rw") as a:
        wait_until_held("/rw")
        assert is_busy("-s", "/rw") and is_busy("-x", "/rw")
        assert is_busy("/rw")
        end(a)
    with holding("/rw") as a:
        wait_until_held("/rw")
        assert is_busy("-s", "/rw") and is_busy("-x", "/rw")
        end(a)


def a_reader_behind_a_writer_waits_its_turn():
    with holding("-s", "/turn") as reader:
        wait_until_held("/turn")
        with start("run", "-x", "/turn", "sleep", "600") as writer:
            live.eventually(lambda: command.status("/turn")["waiters"])
            assert is_busy("-s", "/turn")
            end(reader)
            wait_until_held("/turn")
            assert not command.status("/turn")["waiters"]
            end(writer)


def the_mode_is_told():
    def mode(*words):
        return expect_exit(0, "run", *words, "sh", "-c",
                           "echo $LATCHKEY_MODE").out.strip()
    assert mode("/mode") == mode("-x", "/mode") == "exclusive"
    assert mode("-s", "/mode") == "shared"
    assert mode("-p", "2", "/perm") == "permits"
    assert mode("-p", "1", "/one") == "permits"


FACTS = ("echo $LATCHKEY_FENCING_TOKEN; echo $LATCHKEY_NODE; "
         "echo \"$LATCHKEY_FENCING_TOKENS\"; echo end; sleep 600")


def token_and_node_of_several_locks_are_those_of_the_first_operand():
    # /t/a is waited for, so that /t/b is queued for later.
    for lock, other in (("/t/a", "/t/b"), ("/t/b", "/t/a")):
        with holding("/t/a") as blocks:
            wait_until_held("/t/a")
            with start("run", "--json", "-l", other, lock, "sh", "-c",
                       FACTS) as a:
                live.eventually(lambda: command.status("/t/a")["waiters"])
                end(blocks)
                token, node, *lines = (
                    line.strip() for line in iter(a.stdout.readline, "end\n"))
                tokens = {path: command.status(path)["holders"][0]["token"]
                          for path in (lock, other)}
                assert token == tokens[lock], (token, tokens)
                assert node.startswith(lock + "/"), node
                assert lines == ["%s %s" % (tokens[p], p)
                                 for p in (lock, other)], (lines, tokens)
                a.terminate()
                events = [json.loads(line) for line in
                          a.finish().err.splitlines()]
        acquired = [e for e in events if e["event"] == "acquired"][0]
        assert (acquired["token"], acquired["node"]) == (token, node)
        # Otherwise nothing is shown.
        assert int(tokens["/t/a"]) < int(tokens["/t/b"]), tokens


def tokens_of_one_lock_are_one_line():
    for words in (("/t1",), ("-s", "/t1"), ("-p", "2", "/t2"),
                  ("-l", "/t1", "/t1")):
        done = expect_exit(0, "run", *words, "sh", "-c",
                           "echo $LATCHKEY_FENCING_TOKEN $LATCHKEY_LOCK; "
                           "echo \"$LATCHKEY_FENCING_TOKENS\"")
        first, *others = done.out.splitlines()
        assert others == [first] and first.split()[0].isdigit(), done


def several_are_taken_or_none():
    with holding("-l", "/l/b", "-l", "s:/l/c", "/l/a") as a:
        for path in ("/l/a", "/l/b", "/l/c"):
            wait_until_held(path)
        assert is_busy("/l/b")
        expect_exit(0, "run", "-n", "-s", "/l/c", "true")
        assert is_busy("-x", "/l/c")
        # Not all of them, so none.
        assert is_busy("-l", "/l/a", "/l/0")
        assert command.status("/l/0")["state"] == "free"
        end(a)
    for path in ("/l/a", "/l/b", "/l/c"):
        expect_exit(0, "run", "-n", path, "true")


def opposite_orders_do_not_block():
    """Loops that add to a number that two locks protect."""
    number = os.path.join(folder.name, "number")
    with open(number, "w") as f:
        f.write("0")
    add = "n=$(cat %s); sleep 0.01; echo $((n+1)) > %s" % (number, number)
    loops = [("/o/a", "/o/b"), ("/o/b", "/o/a")] * 2
    script = 'for i in 1 2 3 4 5; do "$0" run -l %s %s sh -c \'' + add + \
        "' || exit 1; done"
    jobs = [start("-c", script % (one, two), command.PROGRAM, program="sh")
            for one, two in loops]
    for job in jobs:
        assert job.finish().code == 0
    assert open(number).read() == "20\n"


def so_many_permits_and_no_more():
    with holding("-p", "2", "/p") as a, holding("-p", "2", "/p") as b:
        wait_until_held("/p", 2)
        assert is_busy("-p", "2", "/p")
        with start("run", "--json", "-p", "2", "/p", "sleep", "600") as c:
            # Permits are what it waits for, and no node of another.
            waits = json.loads(c.stderr.readline())
            assert waits["event"] == "waiting" and waits["position"] == 1, waits
            assert "holder" not in waits, waits
            live.eventually(lambda: command.status("/p")["waiters"])
            assert len(command.status("/p")["holders"]) == 2
            end(a)
            live.eventually(lambda: not command.status("/p")["waiters"])
            wait_until_held("/p", 2)
            end(c)
        end(b)
    assert expect_exit(0, "status", "/p").out.startswith("/p: free")
    with holding("-p", "3", "--take", "2", "/k") as a:
        wait_until_held("/k", 2)
        assert is_busy("-p", "3", "--take", "2", "/k")
        expect_exit(0, "run", "-n", "-p", "3", "/k", "true")
        end(a)


def who_holds_is_asked_to_let_go():
    assert run("revoke", "/r").code == 1
    with start("run", "/r", "sh", "-c",
               "trap 'exit 7' TERM; echo go; while :; do sleep 0.1; done"
               ) as a:
        assert a.stdout.readline() == "go\n"
        with start("run", "/r", "true") as b:
            live.eventually(lambda: command.status("/r")["waiters"])
            expect_exit(0, "revoke", "/r")
            done = a.finish()
            assert done.code == 7 and "another client asked for the lock" in done.err, done
            assert b.finish().code == 0


def revoke_shows_the_label_that_it_replaces():
    with start("run", "-i", "host 1", "/label", "sh", "-c",
               "trap '' TERM; echo go; while :; do sleep 0.1; done") as a:
        assert a.stdout.readline() == "go\n"
        (holder,) = command.status("/label")["holders"]
        name = holder["node"].rpartition("/")[2]
        assert expect_exit(0, "revoke", "/label").out == (
            "asked  host 1  %s\n" % name)
        # It does not comply: its label is gone, and not taken for one.
        line = expect_exit(1, "status", "/label").out.splitlines()[1]
        assert line.startswith("holds  (asked to release)  age "), line
        (holder,) = command.status("/label")["holders"]
        assert holder["asked_to_release"] is True, holder
        assert "label" not in holder, holder
        assert expect_exit(0, "revoke", "--json", "/label").json() == [{
            "lock": "/label", "asked": [{"node": holder["node"],
                                         "asked_to_release": True}]}]
        done = run("run", "-v", "-w", "2", "/label", "true")
        assert "place 1, held by another client\n" in done.err, done
        a.kill()
    with start("run", "-i", "host 2", "/label2", "sleep", "600") as a:
        command.wait_until_held("/label2")
        (asked,) = expect_exit(0, "revoke", "--json", "/label2").json()
        assert [h["label"] for h in asked["asked"]] == ["host 2"], asked
        assert a.finish().code == 143


def who_waits_for_permits_is_not_asked():
    until = "trap 'exit 7' TERM; echo go; while :; do sleep 0.1; done"
    with start("run", "-p", "1", "/rp", "sh", "-c", until) as a:
        assert a.stdout.readline() == "go\n"
        with start("run", "-p", "1", "/rp", "sh", "-c", "echo in") as b:
            # The first who waits has a permit there as well.
            live.eventually(lambda: len(command.children("/rp/leases")) == 2)
            expect_exit(0, "revoke", "/rp")
            done = a.finish()
            assert done.code == 7 and "another client asked for the lock" in done.err, done
            done = b.finish()
            assert (done.code, done.out) == (0, "in\n"), done


def semaphore_is_held_while_others_queue():
    """A permit that is younger than the places of those who wait."""
    words = ("-p", "1", "/four", "sh", "-c",
             "trap 'exit 7' TERM; echo in; while :; do sleep 0.1; done")
    jobs = [start("run", "-i", str(n), *words) for n in range(4)]
    live.eventually(lambda: len(command.status("/four")["waiters"]) == 3)
    for left in (3, 2, 1, 0):
        # The next has a permit that waits, or is about to get one.
        live.eventually(lambda: len(command.children("/four/leases"))
                        == min(left + 1, 2))
        assert expect_exit(1, "status", "/four").out.startswith(
            "/four: held, %d waiting\n" % left)
        holders, waiters = command.queue("/four")
        assert len(holders) == 1 and len(waiters) == left, (holders, waiters)
        assert holders[0] not in waiters, (holders, waiters)
        holder = jobs[int(holders[0])]
        assert holder.stdout.readline() == "in\n"
        assert run("wait", "-w", "0", "/four").code == 1
        expect_exit(0, "revoke", "/four")
        assert holder.finish().code == 7
        live.eventually(lambda: command.status("/four")["holders"] or
                        left == 0)
    assert run("revoke", "/four").code == 1


def other_locks_beside_ours_are_told():
    """One line that says what to do, once."""
    for number, (theirs, ours) in enumerate((
            ("seq-0000000007", ()),
            ("x-latch-0000000000", ("-s",)),
            ("leases/x", ()),
            ("_c_0-lock-0000000000", ("--layout", "native")),
            ("leases/0123456789abcdef0123456789abcdef", ("-p", "2")))):
        lock = "/beside%d" % number
        expect_exit(0, "create", "-p", lock + "/" + theirs)
        done = expect_exit(0, "run", *ours, lock, "true")
        node = lock + "/" + (theirs if "-p" in ours else theirs.split("/")[0])
        assert done.err == (
            "latchkey: warning: %s belongs to another kind of lock or "
            "another --layout, and perhaps does not wait for this lock; "
            "use the same options everywhere, or another path\n" % node), done
        done = expect_exit(0, "run", "-q", *ours, lock, "true")
        assert not done.err, done


def another_number_of_permits_is_told():
    with holding("-p", "3", "/many") as a, holding("-p", "3", "/many") as b, \
            holding("-p", "3", "/many") as c:
        wait_until_held("/many", 3)
        with start("run", "-p", "1", "/many", "true") as waits:
            assert waits.stderr.readline() == (
                "latchkey: warning: /many: other clients hold 3 permits, but "
                "-p says 1; all clients must use the same number\n")
            end(a, b, c)
            done = waits.finish()
            assert (done.code, done.err) == (0, ""), done
    # The same number: nothing is told.
    with holding("-p", "1", "/few") as a:
        wait_until_held("/few")
        done = run("run", "-p", "1", "-w", "3", "/few", "true")
        assert done.code == 124 and "warning" not in done.err, done
        end(a)


def number_of_permits_is_looked_at_until_the_end():
    """It ends while that is asked, and the answer never comes."""
    with holding("-p", "1", "/asked") as a, \
            relay.Relay(os.environ["LATCHKEY_ZK"]) as way:
        wait_until_held("/asked")
        with start("run", "-p", "1", "-z", way.address, "/asked",
                   "true") as waits:
            live.eventually(lambda: command.status("/asked")["waiters"])
            way.freeze()
            time.sleep(1.5)
            waits.terminate()
            done = waits.finish()
            assert done.code == 128 + signal.SIGTERM, done
        end(a)


def wait_waits_until_nobody_holds():
    expect_exit(0, "wait", "/w")
    with holding("/w") as a:
        wait_until_held("/w")
        expect_exit(1, "wait", "-w", "1", "/w")  # connecting counts
        with holding("/w") as b, start("wait", "/w") as waits:
            live.eventually(lambda: command.status("/w")["waiters"])
            end(a)
            wait_until_held("/w")
            assert waits.poll() is None
            end(b)
            assert waits.finish().code == 0


def what_does_not_go_together_is_refused():
    for words, text in (
            (("--take", "2", "/x", "true"), "--take needs -p"),
            (("-p", "2", "--take", "3", "/x", "true"), "more permits than"),
            (("-p", "2", "-s", "/x", "true"), "-p excludes"),
            (("-p", "2", "-l", "/y", "/x", "true"), "-p excludes"),
            (("-p", "0", "/x", "true"), "number of permits"),
            (("-l", "y", "/x", "true"), "not a path"),
            (("-l", "s:/x", "/x", "true"), "/x")):
        done = run("run", *words)
        assert done.code == 125 and text in done.err, (words, done)


with command.serve():
    live.run(
        live.together(
            readers_share_and_writers_do_not,
            a_reader_behind_a_writer_waits_its_turn,
            the_mode_is_told,
            token_and_node_of_several_locks_are_those_of_the_first_operand,
            tokens_of_one_lock_are_one_line,
            several_are_taken_or_none,
            so_many_permits_and_no_more,
            who_holds_is_asked_to_let_go,
            revoke_shows_the_label_that_it_replaces,
            who_waits_for_permits_is_not_asked,
            semaphore_is_held_while_others_queue,
            other_locks_beside_ours_are_told,
            another_number_of_permits_is_told,
            number_of_permits_is_looked_at_until_the_end,
            wait_waits_until_nobody_holds,
            what_does_not_go_together_is_refused),
        opposite_orders_do_not_block)
