# SPDX-License-Identifier: Apache-2.0
"""latchkey elect: exactly one COMMAND runs, and another candidate's starts when
that one ends, fails, is killed or loses its leadership."""

import json
import os
import signal
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
from command import expect_exit, run, start
from live import eventually

zk = command.serve("--tick", "200")  # no test stops or restarts this server
folder = tempfile.TemporaryDirectory()
TIMEOUT_S = "2"

# Appends a line "begin TOKEN" to the file $1, then runs until TERM.
LEAD = """
trap 'echo term >> "$0"; exit ${2:-0}' TERM
echo "begin $LATCHKEY_FENCING_TOKEN" >> "$0"
while :; do sleep 0.05; done
"""
# Appends a line to the file, and fails.
FAIL = 'echo "begin $LATCHKEY_FENCING_TOKEN" >> "$0"; exit ${1:-3}'


class Candidate:
    """`latchkey elect` with a shell script, which has a log file."""

    def __init__(self, path, script, *options, name="log", arguments=(),
                 **popen_options):
        self.log = os.path.join(folder.name,
                                path.strip("/").replace("/", "-") + "-" + name)
        open(self.log, "a").close()
        self.process = start("elect", "-T", TIMEOUT_S, *options, path, "sh",
                             "-c", script, self.log, *arguments,
                             **popen_options)

    def lines(self):
        with open(self.log) as f:
            return f.read().split("\n")[:-1]

    def terms(self):
        return [int(line.split()[1]) for line in self.lines()
                if line.startswith("begin")]

    def wait_for_terms(self, count):
        eventually(lambda: len(self.terms()) >= count,
                   "%d terms in %s" % (count, self.log))
        return self.terms()

    def finish(self):
        return self.process.finish()

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.__exit__(*what)


def next_candidate_leads_when_the_leader_is_killed():
    path = "/elect/kill"
    with Candidate(path, LEAD, name="a") as a:
        a.wait_for_terms(1)
        with Candidate(path, LEAD, name="b") as b:
            command.wait_until_queued(path, 2)
            assert all("latch-" in name for name in command.children(path))
            job = command.descendants_of(a.process.pid)
            a.process.kill()
            b.wait_for_terms(1)
            assert b.terms()[0] > a.terms()[0]
            assert not any(map(command.is_running, job)), job
            b.process.terminate()
            assert b.finish().code == 0


def leader_whose_command_succeeds_ends():
    path = "/elect/success"
    with Candidate(path, "echo begin 1 >> $0; sleep 1", name="a") as a:
        a.wait_for_terms(1)
        with Candidate(path, LEAD, name="b") as b:
            assert a.finish().code == 0
            b.wait_for_terms(1)
            b.process.terminate()
            assert b.finish().code == 0
    eventually(lambda: not command.children(path))


def failed_command_runs_again_after_a_pause():
    path = "/elect/failure"
    began = time.monotonic()
    with Candidate(path, FAIL, "--restarts", "1") as a:
        done = a.finish()
    assert done.code == 3, done
    assert len(a.terms()) == 2 and a.terms()[0] < a.terms()[1], a.lines()
    assert time.monotonic() - began >= 1
    assert "the term has ended with code 3; taking part again in 1." in done.err
    with Candidate(path, FAIL, "--restarts", "0", name="b",
                   arguments=("7",)) as b:
        assert b.finish().code == 7
    assert len(b.terms()) == 1


def other_candidates_lead_during_the_pause():
    path = "/elect/pause"
    with Candidate(path, LEAD, name="b") as b, \
            Candidate(path, FAIL, name="a") as a:
        eventually(lambda: len(command.children(path)) == 2 or b.terms())
        if not b.terms():  # `a` has led first
            a.wait_for_terms(1)
        b.wait_for_terms(1)
        b.process.terminate()
        assert b.finish().code == 0
        a.wait_for_terms(1)
        a.process.terminate()
        assert a.finish().code in (3, 128 + signal.SIGTERM)


def term_resigns():
    path = "/elect/term"
    with Candidate(path, LEAD, arguments=("", "5")) as a:
        a.wait_for_terms(1)
        with Candidate(path, LEAD, name="b") as waiting:
            command.wait_until_queued(path, 2)
            waiting.process.terminate()
            done = waiting.finish()
            assert done.code == 128 + signal.SIGTERM, done
            assert not waiting.terms()
        a.process.terminate()
        assert a.finish().code == 5
    assert a.lines()[1:] == ["term"], a.lines()
    eventually(lambda: not command.children(path))


def check_signal_in_the_pause(number, code):
    """A signal ends the pause as it ends the wait for the lock."""
    path = "/elect/pause-%d" % number
    with Candidate(path, FAIL) as a:
        a.wait_for_terms(1)
        eventually(lambda: not command.children(path))
        time.sleep(.2)
        a.process.send_signal(number)
        began = time.monotonic()
        done = a.finish()
        assert done.code == code and "while waiting" in done.err, done
        assert time.monotonic() - began < .7
    assert len(a.terms()) == 1


def full_pipe_on_standard_error_delays_no_term():
    path = "/elect/full"
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"x")
    except BlockingIOError:
        os.set_blocking(write, True)
    with Candidate(path, FAIL, stderr=write) as a:
        os.close(write)
        a.wait_for_terms(2)
        a.process.terminate()
        # COMMAND exits with 3; TERM may come while it runs.
        assert a.process.wait(command.SECONDS) in (3, 128 + signal.SIGTERM)
    os.close(read)


def term_ends_the_pause():
    check_signal_in_the_pause(signal.SIGTERM, 128 + signal.SIGTERM)


def latchkey_dies_of_int_in_the_pause():
    check_signal_in_the_pause(signal.SIGINT, -signal.SIGINT)


def leader_that_is_deposed_takes_part_again():
    path = "/elect/deposed"
    with Candidate(path, LEAD) as a:
        for count in 1, 2:
            a.wait_for_terms(count)
            (node,) = command.children(path)
            expect_exit(0, "delete", path + "/" + node)
        first, second, third = a.wait_for_terms(3)
        assert first < second < third
        assert "term" in a.lines()
        a.process.terminate()
        done = a.finish()
        assert done.code == 0
    # Losses do not lengthen the pauses.
    assert done.err.count("ended with code 123; taking part again in 1.") == 2, done


def revoked_leader_takes_part_again():
    """Also if COMMAND exits with 0 after TERM."""
    path = "/elect/revoked"
    for code in 4, 0:
        name = "exit-%d" % code
        with Candidate(path, LEAD, "--restarts", "0", name=name,
                       arguments=("", str(code))) as a:
            a.wait_for_terms(1)
            expect_exit(0, "revoke", "--layout", "latch", path)
            a.wait_for_terms(2)
            a.process.terminate()
            assert a.finish().code == code


def verbs_find_the_layout_of_the_election():
    path = "/elect/layout"
    expect_exit(0, "status", path)
    with Candidate(path, LEAD, "-i", "first", arguments=("", "1")) as a:
        a.wait_for_terms(1)
        done = run("status", path)
        assert (done.code, done.err) == (1, "") and "first" in done.out, done
        assert run("status", "--layout", "latch", path).code == 1
        assert run("wait", "-w", "0.5", path).code == 1
        done = run("revoke", path)
        assert (done.code, done.err) == (0, "") and "first" in done.out, done
        a.wait_for_terms(2)
        # Another layout was asked for.
        for verb, code in ("status", 0), ("wait", 0), ("revoke", 1):
            done = run(verb, "--layout", "curator", path)
            assert done.code == code and done.err.startswith(
                "latchkey: warning: %s %s: not shown are the nodes of another "
                "kind of lock or another --layout: 1\n" % (verb, path)), done
        with start("wait", path) as waiter:
            a.process.terminate()
            assert a.finish().code == 1
            assert waiter.finish().code == 0
    # A wait for a mutex is none for an election with the same path.
    with start("run", path, "sleep", "600") as holder:
        command.wait_until_held(path)
        with start("wait", "-v", path) as waiter, \
                Candidate(path, LEAD, name="b") as b:
            assert "session" in waiter.stderr.readline()
            b.wait_for_terms(1)
            time.sleep(0.5)  # it has listed the nodes
            holder.terminate()
            holder.finish()
            assert waiter.finish().code == 0
            assert run("status", path).code == 1


def each_term_has_the_signals_and_descriptors_of_the_first():
    path = "/elect/signals"
    script = """
        grep -E '^Sig(Blk|Ign)' /proc/self/status >> "$0"
        ls -l /proc/self/fd | grep -c socket >> "$0"
        echo "begin $LATCHKEY_FENCING_TOKEN" >> "$0"; exit 1"""
    with Candidate(path, script, "--restarts", "2") as a:
        assert a.finish().code == 1
    lines = [line for line in a.lines() if not line.startswith("begin")]
    assert len(lines) == 9 and lines[:3] == lines[3:6] == lines[6:], lines


def events_of_all_terms_go_to_one_descriptor():
    # COMMAND writes how many descriptors latchkey has, the parent of its
    # supervisor.
    script = """
        latchkey=$(cut -d" " -f4 /proc/$PPID/stat)
        ls /proc/$latchkey/fd | wc -l >> "$0"
        exit 1"""
    log = os.path.join(folder.name, "descriptors")
    done = run("elect", "-T", TIMEOUT_S, "--restarts", "3", "--events-fd", "1",
               "/elect/events", "sh", "-c", script, log)
    assert done.code == 1, done
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [e["event"] for e in events] == ["acquired", "released"] * 4, events
    tokens = [int(e["token"]) for e in events]
    assert tokens[::2] == tokens[1::2] == sorted(set(tokens)), events
    with open(log) as f:
        counts = f.read().split()
    # The first message opens standard error once more.
    assert len(counts) == 4 and len(set(counts[1:])) == 1, counts


def identities_of_a_pipe_are_those_of_each_term():
    done = run("elect", "-T", TIMEOUT_S, "--restarts", "1", "--acl", "creator",
               "--auth-file", "/dev/stdin", "/elect/pipe", "sh", "-c",
               "echo term; exit 1", input="digest:user:password\n")
    assert done.code == 1 and done.out == "term\nterm\n", done


def command_that_does_not_exist_ends_the_candidate():
    expect_exit(127, "elect", "/elect/none", "/nonexistent")
    expect_exit(126, "elect", "/elect/none", "/etc/passwd")
    eventually(lambda: not command.children("/elect/none"))


def usage_errors_are_reported():
    for text, *words in (
            ("elect: COMMAND is missing", "/x"),
            ('elect: --restarts: "x" is not a whole number', "--restarts", "x",
             "/x", "true"),
            ("elect: unknown option -w", "-w", "3", "/x", "true"),
            ("elect: cannot use /zookeeper/x", "/zookeeper/x", "true"),
            ("elect: PATH is missing",)):
        done = expect_exit(125, "elect", *words)
        assert text in done.err, done


def leader_and_candidates_are_shown():
    path = "/elect/shown"
    with Candidate(path, LEAD, "--id", "first", name="a") as a:
        a.wait_for_terms(1)
        with Candidate(path, LEAD, "--id", "second", name="b") as b:
            command.wait_until_queued(path, 2)
            facts = run("status", "--json", "--layout", "latch",
                        path).json()[0]
            assert facts["state"] == "held"
            assert [c["label"] for c in facts["holders"]] == ["first"]
            assert [c["label"] for c in facts["waiters"]] == ["second"]
            for c in b, a:
                c.process.terminate()
                c.finish()


live.run(live.together(
    next_candidate_leads_when_the_leader_is_killed,
    leader_whose_command_succeeds_ends,
    failed_command_runs_again_after_a_pause,
    other_candidates_lead_during_the_pause,
    term_resigns,
    full_pipe_on_standard_error_delays_no_term,
    term_ends_the_pause,
    latchkey_dies_of_int_in_the_pause,
    leader_that_is_deposed_takes_part_again,
    revoked_leader_takes_part_again,
    verbs_find_the_layout_of_the_election,
    each_term_has_the_signals_and_descriptors_of_the_first,
    events_of_all_terms_go_to_one_descriptor,
    identities_of_a_pipe_are_those_of_each_term,
    command_that_does_not_exist_ends_the_candidate,
    leader_and_candidates_are_shown,
    usage_errors_are_reported))
