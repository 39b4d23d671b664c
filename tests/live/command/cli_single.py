# SPDX-License-Identifier: Apache-2.0
"""latchkey with --layout single: run, elect, status, wait and revoke with the
lock of a single node."""

import json
import re
import signal
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live
import relay
from command import expect_exit, run, start

zk = command.serve("--tick", "1000")  # no test stops or restarts this server
SINGLE = "--layout=single"
TIMEOUT_S = "4"  # of a session that is to expire

# A shell script that prints "go" and runs until it gets TERM.
RUN_UNTIL_TERM = "trap 'exit 7' TERM; echo go; while :; do sleep 0.1; done"
WARNING = ("latchkey: warning: %s is not ephemeral, so no session holds it: the "
           "lock is held until a client deletes the node\n")


def start_holder(lock, *words, job=("sleep", "600")):
    """Start a run with the label "holder"; returns when it holds the lock."""
    process = start("run", SINGLE, "-i", "holder", *words, lock, *job)
    live.eventually(lambda: is_held(lock), lock + " is held")
    return process


def start_waiter(lock, *words, job=("echo", "mine")):
    """Start a run that prints its messages; returns when it waits."""
    process = start("run", SINGLE, "-v", *words, lock, *job)
    for line in iter(process.stderr.readline, ""):
        if line == "latchkey: waiting for %s: held by holder\n" % lock:
            return process
    raise AssertionError("it does not wait for " + lock)


def status(lock):
    """What `latchkey status --json` prints for the lock."""
    done = run("status", SINGLE, "--json", lock)
    assert done.code in (0, 1), done
    (facts,) = done.json()
    assert done.code == (1 if facts["state"] == "held" else 0), done
    assert facts["waiters"] == [], facts
    return facts


def is_held(lock):
    return status(lock)["state"] == "held"


def stat(path):
    return expect_exit(0, "stat", "--json", path).json()[0]


def end(process):
    process.terminate()
    return process.finish()


# ---- run

def node_at_the_path_is_the_lock():
    lock = "/env/parent/lock"
    script = ('echo $LATCHKEY_NODE $LATCHKEY_LOCK $LATCHKEY_FENCING_TOKEN '
              '$LATCHKEY_SESSION $LATCHKEY_MODE; echo "$LATCHKEY_FENCING_TOKENS"; '
              '"$0" get "$LATCHKEY_LOCK"; echo; "$0" stat "$LATCHKEY_LOCK"')
    done = expect_exit(0, "run", SINGLE, "-i", "me", lock, "sh", "-c", script,
                       command.PROGRAM)
    first, tokens, data, *stat_lines = done.out.splitlines()
    facts = dict(line.split(" ", 1) for line in stat_lines)
    assert first.split() == [lock, lock, facts["czxid"],
                             facts["ephemeral_owner"], "exclusive"], done
    assert tokens == facts["czxid"] + " " + lock, done
    assert data == "me", done
    assert command.children("/env/parent") == []
    assert stat("/env/parent")["ephemeral_owner"] == "0x0"


def held_lock_is_busy():
    lock = "/busy"
    with start_holder(lock) as holder:
        for words in (("-n",), ("-w", "0")):
            done = run("run", SINGLE, *words, lock, "true")
            assert done.code == 124 and "is held by another client" in done.err, done
        done = run("run", SINGLE, "-w", "2", lock, "true")
        assert done.code == 124 and "is still held" in done.err, done
        assert run("run", SINGLE, "-n", "-E", "7", lock, "true").code == 7
        done = run("run", SINGLE, "-q", "-n", lock, "true")
        assert (done.code, done.err) == (124, ""), done
        end(holder)
    expect_exit(0, "run", SINGLE, "-n", lock, "true")


def waiter_holds_when_the_holder_ends():
    lock = "/turn"
    with start_holder(lock) as holder, start_waiter(lock) as waiter:
        assert waiter.poll() is None
        end(holder)
        done = waiter.finish()
        assert (done.code, done.out) == (0, "mine\n"), done
    assert not is_held(lock)


def waiter_holds_when_the_session_of_a_killed_holder_has_expired():
    lock = "/killed"
    with start_holder(lock, "-T", TIMEOUT_S) as holder, \
            start_waiter(lock) as waiter:
        job = command.descendants_of(holder.pid)
        token = int(status(lock)["holders"][0]["token"])
        holder.kill()
        holder.finish()
        done = waiter.finish()
        assert (done.code, done.out) == (0, "mine\n"), done
        assert not any(map(command.is_running, job)), job
    with start_holder(lock) as holder:
        assert int(status(lock)["holders"][0]["token"]) > token
        end(holder)


def signal_ends_the_wait():
    lock = "/signal"
    with start_holder(lock) as holder, start_waiter(lock) as waiter:
        done = end(waiter)
        assert done.code == 128 + signal.SIGTERM, done
        assert status(lock)["holders"][0]["label"] == "holder"
        end(holder)


def deleted_node_is_a_lost_lock():
    lock = "/lost"
    with start_holder(lock, job=("sh", "-c", RUN_UNTIL_TERM)) as holder, \
            start_waiter(lock) as waiter:
        assert holder.stdout.readline() == "go\n"
        expect_exit(0, "delete", lock)
        done = holder.finish()
        assert done.code == 123, done
        assert "the lock is lost while COMMAND runs: another client deleted " \
            "its node" in done.err, done
        assert "sent TERM" in done.err, done
        assert waiter.finish().code == 0


def lock_is_kept_for_min_hold():
    lock = "/kept"
    with start("run", SINGLE, "--min-hold", "600", lock, "echo", "done") as a:
        assert a.stdout.readline() == "done\n"
        live.eventually(lambda: not command.children_of(a.pid))
        assert is_held(lock)
        assert end(a).code == 0
    assert not is_held(lock)


def node_deleted_before_the_grant_is_created_again():
    lock = "/again"
    with relay.Relay(zk.connect) as proxy:
        # The create and a read of the node leave together.
        trap = proxy.at_frame(
            lambda: live.eventually(lambda: run("delete", lock).code == 0),
            op=relay.GET)
        with start("run", SINGLE, "-z", proxy.address, lock, "echo",
                   "in") as process:
            trap.wait()
            done = process.finish()
    assert (done.code, done.out) == (0, "in\n"), done
    assert done.err == ("latchkey: the own node is gone (no such node); trying "
                        "again\n"), done


# ---- events

def events_have_no_position():
    lock = "/events"
    with start_holder(lock) as holder:
        with start("run", SINGLE, "--json", lock, "sh", "-c",
                   "echo $LATCHKEY_NODE $LATCHKEY_FENCING_TOKEN "
                   "$LATCHKEY_SESSION") as waiter:
            lines = [waiter.stderr.readline()]
            end(holder)
            done = waiter.finish()
    lines += done.err.splitlines()
    waiting, acquired, released = map(json.loads, lines)
    assert set(waiting) == {"event", "time", "lock", "holder"}, waiting
    assert (waiting["event"], waiting["holder"]) == ("waiting", "holder")
    for event, name in ((acquired, "acquired"), (released, "released")):
        assert (event["event"], event["lock"]) == (name, lock), event
        assert [event["node"], event["token"], event["session"]] == \
            done.out.split(), (event, done)
        assert event["node"] == lock, event


def open_parent_is_mentioned():
    done = expect_exit(0, "run", SINGLE, "-v", "/mentioned/lock", "true")
    assert "if this run creates the parent of the lock's node, every client " \
        "may create and delete in it" in done.err, done


# ---- status and wait

def status_shows_the_holder():
    lock = "/status/lock"
    for words in ((lock,), (lock, "--json")):
        expect_exit(0, "status", SINGLE, *words)
    assert expect_exit(0, "status", SINGLE, lock).out == lock + ": free\n"
    assert status(lock) == {"lock": lock, "state": "free", "missing": True,
                            "holders": [], "waiters": []}
    with start_holder(lock) as holder:
        facts = stat(lock)
        now = status(lock)
        (shown,) = now.pop("holders")
        assert now == {"lock": lock, "state": "held", "missing": False,
                       "waiters": []}, now
        age_ms = shown.pop("age_ms")
        assert 0 <= age_ms < command.SECONDS * 1000, age_ms
        assert shown == {"node": lock, "token": facts["czxid"],
                         "session": facts["ephemeral_owner"],
                         "label": "holder"}, shown
        head, line = expect_exit(1, "status", SINGLE, lock).out.splitlines()
        assert head == lock + ": held", head
        assert re.fullmatch(
            r"holds  holder  age \d+\.\d s  token %s  session %s  lock" % (
                facts["czxid"], facts["ephemeral_owner"]), line), line
        end(holder)


def wait_ends_when_the_node_is_gone():
    lock = "/wait"
    done = expect_exit(0, "wait", SINGLE, lock)
    assert (done.out, done.err) == ("", ""), done
    with start_holder(lock) as holder:
        for seconds in "0", "1":
            done = expect_exit(1, "wait", SINGLE, "-w", seconds, lock)
            assert done.err == "", done
        with start("wait", SINGLE, lock) as waiter:
            expect_exit(1, "wait", SINGLE, "-w", "0.5", lock)
            # A change of the data is no release.
            expect_exit(0, "set", lock, "other")
            expect_exit(1, "wait", SINGLE, "-w", "0.5", lock)
            assert waiter.poll() is None
            end(holder)
            assert waiter.finish().code == 0


def node_of_another_program_is_a_holder():
    lock = "/foreign"
    with start("create", "-e", lock, "other program") as other:
        assert other.stdout.readline() == lock + "\n"
        assert status(lock)["holders"][0]["label"] == "other program"
        assert run("run", SINGLE, "-n", lock, "true").code == 124
        with start("run", SINGLE, lock, "echo", "in") as waiter, \
                start("wait", SINGLE, lock) as other_waiter:
            assert waiter.poll() is None
            end(other)
            assert waiter.finish().out == "in\n"
            assert other_waiter.finish().code == 0


def node_that_cannot_be_read_is_reported():
    lock = "/hidden"
    with start("create", "-e", "--acl", "world:anyone:cdwa", lock) as other:
        assert other.stdout.readline() == lock + "\n"
        done = expect_exit(1, "status", SINGLE, lock)
        assert done.out == lock + ": held\nholds  (not readable)  hidden\n", done
        assert status(lock)["holders"] == [{"node": lock}]
        done = expect_exit(125, "run", SINGLE, lock, "true")
        assert "does not permit READ" in done.err, done
        expect_exit(125, "wait", SINGLE, lock)
        end(other)


def node_that_is_not_ephemeral_holds_until_it_is_deleted():
    lock = "/stays"
    expect_exit(0, "create", lock, "settings")
    head, line = expect_exit(1, "status", SINGLE, lock).out.splitlines()
    assert head == lock + ": held", head
    assert "  session none: not ephemeral  stays" in line, line
    (holder,) = status(lock)["holders"]
    assert holder["ephemeral"] is False and holder["session"] == "0x0", holder
    done = expect_exit(1, "wait", SINGLE, "-w", "1", lock)
    assert done.err == WARNING % lock, done
    done = expect_exit(125, "revoke", SINGLE, lock)
    assert done.err == (
        "latchkey: revoke %s: the node is not ephemeral, so no client of the "
        "lock has created it; latchkey delete deletes it\n" % lock), done
    assert (done.out, expect_exit(0, "get", lock).out) == ("", "settings"), done
    done = expect_exit(124, "run", SINGLE, "-n", lock, "true")
    assert done.err == (WARNING % lock + "latchkey: %s: is held by another "
                        "client\n" % lock), done
    done = run("run", SINGLE, "-w", "1", "-q", lock, "true")
    assert (done.code, done.err) == (124, ""), done
    with start("run", SINGLE, lock, "echo", "in") as waiter:
        assert waiter.stderr.readline() == WARNING % lock
        expect_exit(0, "delete", lock)
        done = waiter.finish()
        assert (done.code, done.out, done.err) == (0, "in\n", ""), done


# ---- revoke and elect

def revoke_ends_the_holder():
    lock = "/revoke"
    done = expect_exit(1, "revoke", SINGLE, lock)
    assert done.err == "latchkey: revoke %s: the lock is free\n" % lock, done
    with start_holder(lock, job=("sh", "-c", RUN_UNTIL_TERM)) as holder, \
            start_waiter(lock) as waiter:
        assert holder.stdout.readline() == "go\n"
        done = expect_exit(0, "revoke", SINGLE, lock)
        assert done.out == "asked  holder  revoke\n", done
        done = holder.finish()
        assert done.code == 7, done
        assert "another client asked for the lock" in done.err, done
        assert waiter.finish().out == "mine\n"


def status_shows_that_a_holder_was_asked_to_release():
    lock = "/asked"
    with start_holder(lock, job=("sh", "-c", "trap '' TERM; echo go; sleep 600",
                                 )) as holder:
        assert holder.stdout.readline() == "go\n"
        assert expect_exit(0, "revoke", SINGLE, "--json", lock).json() == [{
            "lock": lock, "asked": [{"node": lock, "label": "holder"}]}]
        (shown,) = status(lock)["holders"]
        assert shown["asked_to_release"] is True and "label" not in shown, shown
        holder.kill()


def next_candidate_leads_when_the_leader_is_killed():
    path = "/elect"
    words = ("elect", SINGLE, "-T", TIMEOUT_S, path, "sh", "-c",
             "echo $LATCHKEY_FENCING_TOKEN; " + RUN_UNTIL_TERM)
    with start(*words) as leader:
        term = int(leader.stdout.readline())
        assert status(path)["holders"][0]["token"] == str(term)
        with start(*words) as candidate:
            leader.kill()
            assert int(candidate.stdout.readline()) > term
            assert candidate.stdout.readline() == "go\n"
            assert end(candidate).code == 7
    assert not is_held(path)


# ---- usage

def options_that_need_a_queue_are_refused():
    for words in (("-s",), ("-x",), ("-p", "2"), ("-p", "2", "--take", "1"),
                  ("--take", "1"), ("-l", "/y")):
        done = expect_exit(125, "run", SINGLE, *words, "/x", "true")
        assert done.err == (
            "latchkey: run: --layout single excludes -s, -x, -p, --take and -l; "
            "latchkey run --help shows the usage\n"), (words, done)
    for verb in ("run", "elect", "status", "wait", "revoke"):
        operands = ("/x", "true") if verb in ("run", "elect") else ("/x",)
        done = expect_exit(125, verb, SINGLE + ":prefix", *operands)
        assert "is followed by a prefix" in done.err, done
    done = expect_exit(125, "run", SINGLE, "/", "true")
    assert 'the path must be below "/"' in done.err, done


live.run(live.together(
    node_at_the_path_is_the_lock,
    held_lock_is_busy,
    waiter_holds_when_the_holder_ends,
    waiter_holds_when_the_session_of_a_killed_holder_has_expired,
    signal_ends_the_wait,
    deleted_node_is_a_lost_lock,
    lock_is_kept_for_min_hold,
    node_deleted_before_the_grant_is_created_again,
    events_have_no_position,
    open_parent_is_mentioned,
    status_shows_the_holder,
    wait_ends_when_the_node_is_gone,
    node_of_another_program_is_a_holder,
    node_that_cannot_be_read_is_reported,
    node_that_is_not_ephemeral_holds_until_it_is_deleted,
    revoke_ends_the_holder,
    status_shows_that_a_holder_was_asked_to_release,
    next_candidate_leads_when_the_leader_is_killed,
    options_that_need_a_queue_are_refused))
