# SPDX-License-Identifier: Apache-2.0
"""latchkey members: who is in a group, now and after each change."""

import json
import os
import signal
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live
from command import expect_exit, run, start
from live import eventually
from worker import Worker

zk = command.serve("--tick", "200")  # no test stops or restarts this server


def make_members(path, **data):
    for name, text in data.items():
        expect_exit(0, "create", "-p", path + "/" + name, text)


def members_are_shown_in_the_order_of_their_names():
    make_members("/shown", b="two words", a="1", c="")
    done = expect_exit(0, "members", "/shown")
    assert done.out == "a 1\nb two words\nc\n", done
    (shown,) = run("members", "--json", "/shown").json()
    assert shown["path"] == "/shown" and not shown["missing"]
    assert [(m["name"], m["data"]) for m in shown["members"]] == [
        ("a", "1"), ("b", "two words"), ("c", "")], shown
    assert all(m["since"] and m["session"] == "0x0" for m in shown["members"])


def group_without_a_directory_has_no_members():
    done = expect_exit(0, "members", "/nowhere/group")
    assert (done.out, done.err) == ("", "latchkey: members /nowhere/group: no "
                                    "such node, so the group has no members\n")
    (shown,) = run("members", "--json", "/nowhere/group").json()
    assert shown["missing"] and shown["members"] == [], shown


def members_of_the_library_are_shown_with_their_session():
    with Worker() as worker:
        client = worker.client(zk.connect, timeout=4000)
        member = client.member("/library", id="m", data=b"data")
        member.join()
        member.wait_for_event("joined")
        (shown,) = run("members", "--json", "/library").json()
        (m,) = shown["members"]
        assert int(m["session"], 16) == client.facts().session, m


def read_report(process):
    """The lines up to the empty one."""
    lines = []
    while line := process.stdout.readline().rstrip("\n"):
        lines.append(line)
    return lines


def each_change_is_shown_until_interrupted():
    with start("members", "-w", "/changes") as process:
        assert read_report(process) == []
        expect_exit(0, "create", "/changes")
        assert read_report(process) == []
        expect_exit(0, "create", "/changes/x", "1")
        assert read_report(process) == ["x 1"]
        expect_exit(0, "set", "/changes/x", "2")
        assert read_report(process) == ["x 2"]
        expect_exit(0, "create", "/changes/a", "3")
        assert read_report(process) == ["a 3", "x 2"]
        expect_exit(0, "delete", "/changes/x")
        assert read_report(process) == ["a 3"]
        process.send_signal(signal.SIGINT)
        done = process.finish()
        assert done.code in (0, -signal.SIGINT), done
    with start("members", "-w", "--json", "/changes") as process:
        shown = json.loads(process.stdout.readline())
        assert [m["name"] for m in shown["members"]] == ["a"]
        expect_exit(0, "delete", "/changes/a")
        shown = json.loads(process.stdout.readline())
        assert shown["members"] == [] and not shown["missing"]
        process.terminate()
        assert process.finish().code == 0


def slow_reader_gets_the_newest_state():
    path = "/slow"
    big = "x" * 60000
    make_members(path, **{"m%d" % i: big for i in range(6)})
    read, write = os.pipe()
    with start("members", "-w", path, stdout=write) as process:
        os.close(write)
        os.read(read, 1)  # the first report has begun
        for i in range(12):
            expect_exit(0, "set", path + "/m0", big[:-1] + "%x" % i)
        expect_exit(0, "set", path + "/m0", "last")
        seen = b""
        while not seen.endswith(b"\n\n") or b"m0 last" not in seen:
            seen = (seen + os.read(read, 1 << 20))[-700000:]
        process.terminate()
        assert process.finish().code == 0
    os.close(read)


def unreadable_group_is_an_error():
    expect_exit(0, "create", "/secret")
    expect_exit(0, "acl", "/secret", "world:anyone:w")
    for options in (), ("-w",):
        done = expect_exit(125, "members", *options, "/secret")
        assert "/secret" in done.err, done


live.run(live.together(
    members_are_shown_in_the_order_of_their_names,
    group_without_a_directory_has_no_members,
    members_of_the_library_are_shown_with_their_session,
    each_change_is_shown_until_interrupted,
    slow_reader_gets_the_newest_state,
    unreadable_group_is_an_error))
