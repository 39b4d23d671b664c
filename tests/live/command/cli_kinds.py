# SPDX-License-Identifier: Apache-2.0
"""latchkey run with -s, -x, -l and -p: the tests show which locks can be held
at the same time."""

import json
import os
import signal
import sys
import tempfile

sys.path.append(sys.path[0] + "/../support")

import command
import live
import relay
from command import expect_exit, run, start

folder = tempfile.TemporaryDirectory()

# A shell script that prints "go" and runs until it gets TERM.
RUN_UNTIL_TERM = "trap 'exit 7' TERM; echo go; while :; do sleep 0.1; done"


def start_holder(*words):
    """`latchkey run WORDS sleep 600`; the caller ends it with end()."""
    return start("run", *words, "sleep", "600")


def wait_until_held(path, holders=1):
    live.eventually(lambda: len(command.status(path)["holders"]) == holders,
                    "%s is held by %d" % (path, holders))


def is_busy(*words):
    """Whether `latchkey run` cannot acquire the lock at once."""
    return run("run", "-n", *words, "true").code == 124


def end(*processes):
    """End the processes with TERM, all at the same time."""
    for p in processes:
        p.terminate()
    for p in processes:
        p.finish()


def readers_share_and_writers_do_not():
    with start_holder("-s", "/rw") as a, start_holder("-s", "/rw") as b:
        wait_until_held("/rw", 2)
        assert is_busy("-x", "/rw")
        assert is_busy("/rw")  # the mutex of the same path
        expect_exit(0, "run", "-n", "-s", "/rw", "true")
        end(a, b)
    with start_holder("-x", "/rw") as a:
        wait_until_held("/rw")
        assert is_busy("-s", "/rw") and is_busy("-x", "/rw")
        assert is_busy("/rw")
        end(a)
    with start_holder("/rw") as a:
        wait_until_held("/rw")
        assert is_busy("-s", "/rw") and is_busy("-x", "/rw")
        end(a)


def reader_behind_a_waiting_writer_waits():
    with start_holder("-s", "/turn") as reader:
        wait_until_held("/turn")
        with start("run", "-x", "/turn", "sleep", "600") as writer:
            live.eventually(lambda: command.status("/turn")["waiters"])
            assert is_busy("-s", "/turn")
            end(reader)
            wait_until_held("/turn")
            assert not command.status("/turn")["waiters"]
            end(writer)


def command_finds_the_mode_in_its_environment():
    def mode(*words):
        return expect_exit(0, "run", *words, "sh", "-c",
                           "echo $LATCHKEY_MODE").out.strip()
    assert mode("/mode") == mode("-x", "/mode") == "exclusive"
    assert mode("-s", "/mode") == "shared"
    assert mode("-p", "2", "/perm") == "permits"
    assert mode("-p", "1", "/one") == "permits"


def token_and_node_of_several_locks_are_those_of_the_operand():
    script = ("echo $LATCHKEY_FENCING_TOKEN; echo $LATCHKEY_NODE; "
              "echo \"$LATCHKEY_FENCING_TOKENS\"; echo end; sleep 600")
    for lock, option_l in (("/t/a", "/t/b"), ("/t/b", "/t/a")):
        with start_holder("/t/a") as first_holder:
            wait_until_held("/t/a")
            with start("run", "--json", "-l", option_l, lock, "sh", "-c",
                       script) as a:
                live.eventually(lambda: command.status("/t/a")["waiters"])
                end(first_holder)
                token, node, *lines = (
                    line.strip() for line in iter(a.stdout.readline, "end\n"))
                tokens = {path: command.status(path)["holders"][0]["token"]
                          for path in (lock, option_l)}
                assert token == tokens[lock], (token, tokens)
                assert node.startswith(lock + "/"), node
                assert lines == ["%s %s" % (tokens[path], path)
                                 for path in (lock, option_l)], (lines, tokens)
                a.terminate()
                events = [json.loads(line) for line in
                          a.finish().err.splitlines()]
        (acquired,) = [e for e in events if e["event"] == "acquired"]
        assert (acquired["token"], acquired["node"]) == (token, node)
        # The node in /t/b was always created later than that in /t/a. So the
        # operand's token was once the smaller one and once the larger one.
        assert int(tokens["/t/a"]) < int(tokens["/t/b"]), tokens


def tokens_of_one_lock_are_one_line():
    for words in (("/t1",), ("-s", "/t1"), ("-p", "2", "/t2"),
                  ("-l", "/t1", "/t1")):
        done = expect_exit(0, "run", *words, "sh", "-c",
                           "echo $LATCHKEY_FENCING_TOKEN $LATCHKEY_LOCK; "
                           "echo \"$LATCHKEY_FENCING_TOKENS\"")
        token_and_lock, tokens = done.out.splitlines()
        assert tokens == token_and_lock, done
        assert tokens.split()[0].isdigit(), done


def all_locks_are_acquired_or_none():
    with start_holder("-l", "/l/b", "-l", "s:/l/c", "/l/a") as a:
        for path in ("/l/a", "/l/b", "/l/c"):
            wait_until_held(path)
        assert is_busy("/l/b")
        expect_exit(0, "run", "-n", "-s", "/l/c", "true")
        assert is_busy("-x", "/l/c")
        # /l/a is held, so /l/0 is not acquired either.
        assert is_busy("-l", "/l/a", "/l/0")
        assert command.status("/l/0")["state"] == "free"
        # The message names the lock that is held.
        done = run("-v", "-w", "0.3", "-l", "/l/b", "/l/0", "true")
        assert "waiting for /l/b: position 1, held by " in done.err, done
        assert done.err.endswith(
            "latchkey: /l/b: is still held by another client\n"), done
        done = run("--json", "-w", "0.3", "-l", "/l/b", "/l/0", "true")
        waiting = json.loads(done.err.splitlines()[0])
        assert (waiting["lock"], waiting["waits_for"]) == ("/l/0", "/l/b"), done
        end(a)
    for path in ("/l/a", "/l/b", "/l/c"):
        expect_exit(0, "run", "-n", path, "true")


def opposite_orders_do_not_deadlock():
    """Four loops increment a number under two locks, which they name in
    different orders."""
    number = os.path.join(folder.name, "number")
    with open(number, "w") as f:
        f.write("0")
    increment = "n=$(cat %s); sleep 0.01; echo $((n+1)) > %s" % (number, number)
    loop = ('for i in 1 2 3 4 5; do "$0" run -l "$1" "$2" sh -c "$3" '
            "|| exit 1; done")
    jobs = [start("-c", loop, command.PROGRAM, lock, other_lock, increment,
                  program="sh")
            for lock, other_lock in [("/o/a", "/o/b"), ("/o/b", "/o/a")] * 2]
    for job in jobs:
        assert job.finish().code == 0
    assert open(number).read() == "20\n"  # 4 loops with 5 increments each


def semaphore_grants_as_many_permits_as_it_has():
    with start_holder("-p", "2", "/p") as a, start_holder("-p", "2", "/p") as b:
        wait_until_held("/p", 2)
        assert is_busy("-p", "2", "/p")
        with start("run", "--json", "-p", "2", "/p", "sleep", "600") as c:
            # c waits for permits, not for one node, so no holder is named.
            event = json.loads(c.stderr.readline())
            assert event["event"] == "waiting" and event["position"] == 1, event
            assert "holder" not in event, event
            live.eventually(lambda: command.status("/p")["waiters"])
            assert len(command.status("/p")["holders"]) == 2
            end(a)
            live.eventually(lambda: not command.status("/p")["waiters"])
            wait_until_held("/p", 2)
            end(c)
        end(b)
    assert expect_exit(0, "status", "/p").out.startswith("/p: free")


def take_acquires_several_permits():
    with start_holder("-p", "3", "--take", "2", "/k") as a:
        wait_until_held("/k", 2)
        assert is_busy("-p", "3", "--take", "2", "/k")
        expect_exit(0, "run", "-n", "-p", "3", "/k", "true")
        end(a)


def revoke_ends_the_holder():
    assert run("revoke", "/r").code == 1  # there is no holder
    with start("run", "/r", "sh", "-c", RUN_UNTIL_TERM) as a:
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
        # The holder does not release. The revocation has replaced the label in
        # its node, and must not be shown as a label.
        line = expect_exit(1, "status", "/label").out.splitlines()[1]
        assert line.startswith("holds  (asked to release)  age "), line
        (holder,) = command.status("/label")["holders"]
        assert holder["asked_to_release"] is True, holder
        assert "label" not in holder, holder
        assert expect_exit(0, "revoke", "--json", "/label").json() == [{
            "lock": "/label", "asked": [{"node": holder["node"],
                                         "asked_to_release": True}]}]
        done = run("run", "-v", "-w", "2", "/label", "true")
        assert "position 1, held by another client\n" in done.err, done
        a.kill()
    with start("run", "-i", "host 2", "/label2", "sleep", "600") as a:
        command.wait_until_held("/label2")
        (asked,) = expect_exit(0, "revoke", "--json", "/label2").json()
        assert [h["label"] for h in asked["asked"]] == ["host 2"], asked
        assert a.finish().code == 128 + signal.SIGTERM


def revoke_of_permits_does_not_end_waiters():
    with start("run", "-p", "1", "/rp", "sh", "-c", RUN_UNTIL_TERM) as a:
        assert a.stdout.readline() == "go\n"
        with start("run", "-p", "1", "/rp", "sh", "-c", "echo in") as b:
            # The first waiter has created its node in leases already.
            live.eventually(lambda: len(command.children("/rp/leases")) == 2)
            expect_exit(0, "revoke", "/rp")
            done = a.finish()
            assert done.code == 7 and "another client asked for the lock" in done.err, done
            done = b.finish()
            assert (done.code, done.out) == (0, "in\n"), done


def mutex_beside_nodes_named_as_those_of_a_semaphore_is_held():
    for name in "locks", "leases":
        expect_exit(0, "create", "-p", "/mutex/" + name)
    with start_holder("/mutex") as a:
        wait_until_held("/mutex")
        assert expect_exit(1, "status", "/mutex").out.startswith(
            "/mutex: held, 0 waiting\n")
        assert run("wait", "-w", "0", "/mutex").code == 1
        end(a)
    assert expect_exit(0, "status", "/mutex").out.startswith("/mutex: free")


def status_tells_the_holder_of_a_permit_from_the_waiters():
    """The holder's node in leases is younger than the queue nodes of the
    waiters, and it is still reported as the holder."""
    jobs = [start("run", "-i", str(n), "-p", "1", "/four", "sh", "-c",
                  RUN_UNTIL_TERM) for n in range(4)]
    live.eventually(lambda: len(command.status("/four")["waiters"]) == 3)
    for waiting in (3, 2, 1, 0):
        # leases has the holder's node, and that of the first waiter if any.
        permits = 2 if waiting > 0 else 1
        live.eventually(
            lambda: len(command.children("/four/leases")) == permits)
        assert expect_exit(1, "status", "/four").out.startswith(
            "/four: held, %d waiting\n" % waiting)
        (holder,), waiters = command.queue("/four")
        assert len(waiters) == waiting and holder not in waiters, (
            holder, waiters)
        job = jobs[int(holder)]
        assert job.stdout.readline() == "go\n"
        assert run("wait", "-w", "0", "/four").code == 1
        expect_exit(0, "revoke", "/four")
        assert job.finish().code == 7
        if waiting > 0:
            live.eventually(lambda: command.status("/four")["holders"])
    assert run("revoke", "/four").code == 1


def nodes_of_another_lock_kind_are_reported():
    """Another kind of lock is recognised by the names of its nodes."""
    foreign_permit = "leases/0123456789abcdef0123456789abcdef"
    for number, (node, options, reported) in enumerate((
            ("seq-0000000007", (), "seq-0000000007"),
            ("x-latch-0000000000", ("-s",), "x-latch-0000000000"),
            ("leases/x", (), "leases"),
            ("_c_0-lock-0000000000", ("--layout", "native"),
             "_c_0-lock-0000000000"),
            ("_c_0-lock-0000000000", ("-p", "2"), "_c_0-lock-0000000000"),
            (foreign_permit, ("-p", "2"), foreign_permit))):
        lock = "/beside%d" % number
        expect_exit(0, "create", "-p", lock + "/" + node)
        done = expect_exit(0, "run", *options, lock, "true")
        assert done.err == (
            "latchkey: warning: %s belongs to another kind of lock or "
            "another --layout, and perhaps does not wait for this lock; "
            "use the same options everywhere, or another path\n" %
            (lock + "/" + reported)), done
        done = expect_exit(0, "run", "-q", *options, lock, "true")
        assert not done.err, done


def another_number_of_permits_is_reported():
    with start_holder("-p", "3", "/many") as a, start_holder("-p", "3", "/many") as b, \
            start_holder("-p", "3", "/many") as c:
        wait_until_held("/many", 3)
        with start("run", "-p", "1", "/many", "true") as waiter:
            assert waiter.stderr.readline() == (
                "latchkey: warning: /many: other clients hold 3 permits, but "
                "-p says 1; all clients must use the same number\n")
            end(a, b, c)
            done = waiter.finish()
            assert (done.code, done.err) == (0, ""), done
    # With the same number there is no warning.
    with start_holder("-p", "1", "/few") as a:
        wait_until_held("/few")
        done = run("run", "-p", "1", "-w", "3", "/few", "true")
        assert done.code == 124 and "warning" not in done.err, done
        end(a)


def signal_ends_a_run_whose_permit_check_is_unanswered():
    """While a run waits for permits, it checks the holders' number of permits."""
    with start_holder("-p", "1", "/asked") as a, \
            relay.Relay(os.environ["LATCHKEY_ZK"]) as proxy:
        wait_until_held("/asked")
        # The waiter lists the queue and the permits, and a second later the
        # permits again.
        check = proxy.at_frame("freeze", op=relay.CHILDREN, count=3)
        with start("run", "-p", "1", "-z", proxy.address, "/asked",
                   "true") as waiter:
            check.wait()
            assert command.status("/asked")["waiters"]
            waiter.terminate()
            done = waiter.finish()
            assert done.code == 128 + signal.SIGTERM, done
        end(a)


def wait_returns_when_the_lock_is_free():
    expect_exit(0, "wait", "/w")
    with start_holder("/w") as a:
        wait_until_held("/w")
        expect_exit(1, "wait", "-w", "1", "/w")
        with start_holder("/w") as b, start("wait", "/w") as waiter:
            live.eventually(lambda: command.status("/w")["waiters"])
            end(a)
            wait_until_held("/w")  # by b
            assert waiter.poll() is None
            end(b)
            assert waiter.finish().code == 0


def contradictory_options_are_refused():
    for words, text in (
            (("--take", "2", "/x", "true"), "--take needs -p"),
            (("-p", "2", "--take", "3", "/x", "true"), "more permits than"),
            (("-p", "2", "-s", "/x", "true"), "-p excludes"),
            (("-p", "2", "-l", "/y", "/x", "true"), "-p excludes"),
            (("-p", "0", "/x", "true"), "number of permits"),
            (("-l", "y", "/x", "true"), "not a path"),
            (("-l", "s:/x", "/x", "true"), "two sides")):
        done = run("run", *words)
        assert done.code == 125 and text in done.err, (words, done)


with command.serve():
    live.run(
        live.together(
            readers_share_and_writers_do_not,
            reader_behind_a_waiting_writer_waits,
            command_finds_the_mode_in_its_environment,
            token_and_node_of_several_locks_are_those_of_the_operand,
            tokens_of_one_lock_are_one_line,
            all_locks_are_acquired_or_none,
            semaphore_grants_as_many_permits_as_it_has,
            take_acquires_several_permits,
            revoke_ends_the_holder,
            revoke_shows_the_label_that_it_replaces,
            revoke_of_permits_does_not_end_waiters,
            status_tells_the_holder_of_a_permit_from_the_waiters,
            mutex_beside_nodes_named_as_those_of_a_semaphore_is_held,
            nodes_of_another_lock_kind_are_reported,
            another_number_of_permits_is_reported,
            signal_ends_a_run_whose_permit_check_is_unanswered,
            wait_returns_when_the_lock_is_free,
            contradictory_options_are_refused),
        opposite_orders_do_not_deadlock)
