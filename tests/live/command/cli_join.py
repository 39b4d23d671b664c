# SPDX-License-Identifier: Apache-2.0
"""latchkey join: COMMAND runs as a member of a group, which is joined again
after an expiry or a deletion, and left when COMMAND ends."""

import json
import os
import re
import signal
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
from command import expect_exit, run, start
from live import eventually
from relay import Relay

zk = command.serve("--tick", "200")  # no test stops or restarts this server
SHOW = "echo $LATCHKEY_GROUP $LATCHKEY_NODE $LATCHKEY_SESSION"


def members(path):
    (shown,) = run("members", "--json", path).json()
    return shown["members"]


def wait_until_joined(path, count=1):
    eventually(lambda: len(members(path)) == count, path)
    return members(path)


class Joined:
    """`latchkey join` with its events on a pipe."""

    def __init__(self, path, *words, options=(), **popen):
        read, write = os.pipe()
        self.process = start("join", "-T", "3", "--events-fd", str(write),
                             *options, path, *(words or ("sleep", "600")),
                             pass_fds=[write], **popen)
        os.close(write)
        self.stream = os.fdopen(read)

    def next_event(self):
        return json.loads(self.stream.readline())

    def expect_event(self, name):
        event = self.next_event()
        assert event["event"] == name, event
        return event

    def end_command(self):
        """End a COMMAND that reads its standard input."""
        self.process.stdin.close()
        self.process.stdin = None

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.__exit__(*what)
        self.stream.close()


def member_is_listed_while_command_runs():
    path = "/join/listed"
    with Joined(path, "sh", "-c", SHOW + "; read x; exit 7",
                options=("--name", "web-1", "--data", "10.0.0.1:80"),
                stdin=-1) as joined:
        event = joined.expect_event("joined")
        (member,) = members(path)
        assert (member["name"], member["data"]) == ("web-1", "10.0.0.1:80")
        assert set(event) == {"event", "time", "group", "node", "session"}, event
        assert event["session"] == member["session"], (event, member)
        joined.end_command()
        done = joined.process.finish()
        # The node is gone before latchkey exits.
        assert members(path) == []
    assert (done.code, done.err) == (7, ""), done
    assert done.out.split() == [event["group"], event["node"],
                                event["session"]], (done, event)
    assert event["group"] == path and event["node"] == path + "/web-1", event


def name_and_data_have_defaults():
    path = "/join/defaults"
    with Joined(path) as joined:
        joined.expect_event("joined")
        (member,) = members(path)
        assert re.fullmatch("[0-9a-f]{32}__party__", member["name"]), member
        words = member["data"].split()
        assert words[0] == os.uname().nodename, member
        assert words[1] == str(joined.process.pid), member
    with Joined(path, options=("--data", "")) as joined:
        joined.expect_event("joined")
        assert "" in [m["data"] for m in members(path)]


def killed_member_is_gone_after_the_session_timeout():
    path = "/join/killed"
    with Joined(path) as joined:
        joined.expect_event("joined")
        eventually(lambda: command.descendants_of(joined.process.pid))
        job = command.descendants_of(joined.process.pid)
        joined.process.kill()
        eventually(lambda: not any(map(command.is_running, job)), str(job))
        eventually(lambda: members(path) == [], path)


def deleted_member_joins_again():
    path = "/join/deleted"
    with Joined(path, options=("--name", "a")) as joined:
        first = joined.expect_event("joined")
        expect_exit(0, "delete", path + "/a")
        left = joined.expect_event("left")
        assert left["reason"] == "another client deleted its node", left
        assert set(left) == {"event", "time", "group", "node", "reason"}, left
        again = joined.expect_event("joined")
        assert again["session"] == first["session"], (first, again)
        wait_until_joined(path)
        joined.process.terminate()
        done = joined.process.finish()
    assert done.code == 128 + signal.SIGTERM, done
    assert done.err.splitlines() == [
        "latchkey: %s: no longer a member: another client deleted its node" % path,
        "latchkey: %s: a member again" % path], done


def expired_member_joins_again_and_command_runs_on():
    path = "/join/expired"
    with Joined(path, options=("--name", "a")) as joined:
        first = joined.expect_event("joined")
        eventually(lambda: command.descendants_of(joined.process.pid))
        job = command.descendants_of(joined.process.pid)
        joined.process.send_signal(signal.SIGSTOP)
        eventually(lambda: members(path) == [], path)
        joined.process.send_signal(signal.SIGCONT)
        joined.expect_event("left")
        again = joined.expect_event("joined")
        assert again["session"] != first["session"], (first, again)
        assert all(map(command.is_running, job)), job
        wait_until_joined(path)


def name_that_is_taken_is_awaited():
    path = "/join/taken"
    with Joined(path, options=("--name", "a")) as first:
        first.expect_event("joined")
        with start("join", "--name", "a", path, "echo", "runs") as second:
            line = second.stderr.readline()
            assert line == ("latchkey: %s/a exists already: joining when it is "
                            "gone, at the end of its session or by a delete\n"
                            % path), line
            first.process.terminate()
            first.process.finish()
            done = second.finish()
    assert (done.code, done.out) == (0, "runs\n"), done


def signal_while_joining_ends_the_wait():
    path = "/join/signal"
    with Joined(path, options=("--name", "a")) as first:
        first.expect_event("joined")
        with start("join", "--name", "a", path, "true") as second:
            second.stderr.readline()
            second.terminate()
            done = second.finish()
        assert done.code == 128 + signal.SIGTERM, done
        assert len(members(path)) == 1


def refused_member_runs_no_command():
    expect_exit(0, "create", "--acl", "world:anyone:r", "/join-refused")
    done = expect_exit(125, "join", "/join-refused/group", "echo", "runs")
    assert done.out == "", done
    assert done.err.startswith(
        "latchkey: /join-refused/group: cannot join: "), done
    done = expect_exit(125, "join", "/", "true")
    assert 'the path must be below "/"' in done.err, done
    for name in "", "a/b", "..", ".", "a\x01":
        done = expect_exit(125, "join", "--name", name, "/join/x", "true")
        assert "is not the name of a node" in done.err, done
    done = run("join", "-z", zk.connect + "/join-no-chroot", "/x", "true")
    assert "the chroot /join-no-chroot does not exist" in done.err, done
    done = run("join", "--json", "/zookeeper/x", "true")
    failed = json.loads(done.err)
    assert failed["group"] == "/zookeeper/x" and failed["code"] == 125, done


def command_that_cannot_be_executed_leaves_no_node():
    path = "/join/missing"
    done = run("join", path, "/nowhere/command")
    assert done.code == 127 and members(path) == [], done
    done = run("join", path, "/dev/null")
    assert done.code == 126 and members(path) == [], done


def node_is_deleted_on_the_next_connection():
    """COMMAND ends without a connection."""
    path = "/join/cut"
    with Relay(zk.connect) as wire:
        with Joined(path, "sh", "-c", "read x; true", options=("-z", wire.address),
                    stdin=-1) as joined:
            joined.expect_event("joined")
            wire.refuse()
            wire.drop()
            joined.end_command()
            time.sleep(2)  # more than the 1.5 s that a close waits
            assert joined.process.poll() is None
            assert len(members(path)) == 1
            wire.accept()
            done = joined.process.finish()
            assert done.code == 0 and members(path) == [], done


def check_warning(path, cut):
    """`cut` a relay before COMMAND ends."""
    with Relay(zk.connect) as wire:
        with Joined(path, "sh", "-c", "read x; true",
                    options=("-z", wire.address), stdin=-1) as joined:
            joined.expect_event("joined")
            cut(wire)
            joined.end_command()
            done = joined.process.finish()
        warnings = [line for line in done.err.splitlines() if "warning" in line]
        assert done.code == 0 and warnings == [
            "latchkey: warning: %s: no server is reachable to leave the group; "
            "the member is gone once the servers have had a quorum for one "
            "session timeout" % path], done
        wire.thaw()
    eventually(lambda: members(path) == [], path)


def silent_server_is_warned_of():
    """The connection stays open, and nothing arrives."""
    check_warning("/join/silent", Relay.freeze)


def unreachable_server_is_warned_of():
    def cut(wire):
        wire.refuse()
        wire.drop()
    check_warning("/join/unreachable", cut)


def member_without_a_node_ends_at_once():
    """There is no node to delete, so no server is awaited."""
    with command.zkserver.Server("--tick", "200") as other:
        with start("join", "-T", "3", "-z", other.connect, "/join/none",
                   "sleep", "600") as process:
            eventually(lambda: run("ls", "-z", other.connect,
                                   "/join/none").out)
            other.kill()
            for line in process.stderr:
                if "no longer a member" in line:
                    break
            began = time.monotonic()
            process.terminate()
            assert process.wait(command.SECONDS) == 128 + signal.SIGTERM
            assert time.monotonic() - began < 1.5


live.run(live.together(
    member_is_listed_while_command_runs,
    name_and_data_have_defaults,
    killed_member_is_gone_after_the_session_timeout,
    deleted_member_joins_again,
    expired_member_joins_again_and_command_runs_on,
    name_that_is_taken_is_awaited,
    signal_while_joining_ends_the_wait,
    refused_member_runs_no_command,
    command_that_cannot_be_executed_leaves_no_node,
    node_is_deleted_on_the_next_connection,
    silent_server_is_warned_of,
    unreachable_server_is_warned_of,
    member_without_a_node_ends_at_once))
