# SPDX-License-Identifier: Apache-2.0
"""latchkey with --layout: run, status, wait and revoke in queues with node names
other than Curator's."""

import re
import subprocess
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live
from command import expect_exit, run, start

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
# Layouts, and the names of the nodes of a mutex.
MUTEX_NAMES = (
    ("curator", "_c_" + UUID + r"-lock-\d{10}"),
    ("kazoo", r"[0-9a-f]{32}__lock__\d{10}"),
    ("native", r"seq-\d{10}"),
    ("native:", r"\d{10}"),
    ("native:lock", r"lock\d{10}"),
    ("native-uuid", UUID + r"-seq-\d{10}"),
    ("native-uuid:job-", UUID + r"-job-\d{10}"),
    ("latch", "_c_" + UUID + r"-latch-\d{10}"))
# Layouts, and the names of the nodes of readers and of writers.
READER_AND_WRITER_NAMES = (
    ("kazoo", r"[0-9a-f]{32}__rlock__\d{10}", r"[0-9a-f]{32}__lock__\d{10}"),
    ("native", r"r-\d{10}", r"w-\d{10}"),
    ("native-uuid", UUID + r"-r-\d{10}", UUID + r"-w-\d{10}"))

# A shell script that prints "go" and runs until it gets TERM.
RUN_UNTIL_TERM = "trap 'exit 7' TERM; echo go; while :; do sleep 0.1; done"


def path_for(test, layout):
    return "/%s-%s" % (test, layout.replace(":", "_"))


def status(layout, path):
    done = run("status", "--json", "--layout", layout, path)
    assert done.code in (0, 1), done
    return done.json()[0]


def wait_until_held(layout, path, holders=1, waiters=0):
    """Wait until the lock has so many holders and waiters."""
    def is_held():
        now = status(layout, path)
        return len(now["holders"]) == holders and len(now["waiters"]) == waiters
    live.eventually(is_held, "%s is held by %d, with %d waiting" % (
        path, holders, waiters))


def locks_with_a_prefix_can_be_in_the_root():
    with start("run", "--layout", "native:job-", "/", "cat",
               stdin=subprocess.PIPE) as a:
        live.eventually(lambda: status("native:job-", "/")["holders"])
        done = run("run", "-n", "--layout", "native:job-", "/", "true")
        assert done.code == 124, done
        assert run("wait", "-w", "0", "--layout", "native:job-", "/").code == 1
        a.stdin.close()
        a.stdin = None
        assert a.finish().code == 0
    for layout in "curator", "kazoo", "latch", "native:":
        done = expect_exit(125, "run", "--layout", layout, "/", "true")
        assert 'the path must be below "/"' in done.err, done


def node_names_are_those_of_the_layout():
    for layout, pattern in MUTEX_NAMES:
        path = path_for("names", layout)
        with start("run", "--layout", layout, "--id", "me", path, "sleep",
                   "600") as a:
            wait_until_held(layout, path)
            (name,) = command.children(path)
            assert re.fullmatch(pattern, name), name
            label = status(layout, path)["holders"][0]["label"]
            # If the name does not contain an id, the node's data contains it.
            if layout.startswith("native:") or layout == "native":
                assert re.fullmatch("me " + UUID, label), label
            else:
                assert label == "me", label
            assert run("run", "-n", "--layout", layout, path, "true").code \
                == 124
            assert run("wait", "-w", "0", "--layout", layout,
                       path).code == 1
            a.terminate()
            a.finish()
        expect_exit(0, "run", "-n", "--layout", layout, path, "true")
        expect_exit(0, "status", "--layout", layout, path)


def readers_share_and_writers_do_not():
    for layout, reader_pattern, writer_pattern in READER_AND_WRITER_NAMES:
        path = path_for("sides", layout)
        read = ("run", "--layout", layout, "-s", path, "sleep", "600")
        with start(*read) as a, start(*read) as b:
            wait_until_held(layout, path, holders=2)
            for name in command.children(path):
                assert re.fullmatch(reader_pattern, name), name
            assert run("run", "-n", "--layout", layout, "-x", path,
                       "true").code == 124
            with start("run", "--layout", layout, "-x", path, "sleep",
                       "600") as c:
                wait_until_held(layout, path, holders=2, waiters=1)
                a.terminate()
                b.terminate()
                wait_until_held(layout, path)
                (name,) = command.children(path)
                assert re.fullmatch(writer_pattern, name), name
                assert run("run", "-n", "--layout", layout, "-s", path,
                           "true").code == 124
                c.terminate()
                c.finish()
        expect_exit(0, "wait", "--layout", layout, path)


def native_layouts_share_a_queue():
    with start("run", "--layout", "native", "/turns", "sleep", "600") as a:
        wait_until_held("native", "/turns")
        with start("run", "--layout", "native-uuid", "/turns", "echo",
                   "in") as b:
            wait_until_held("native", "/turns", waiters=1)
            with start("wait", "--layout", "native", "/turns") as c:
                assert b.poll() is None and c.poll() is None
                a.terminate()
                a.finish()
                assert b.finish().out == "in\n"
                assert c.finish().code == 0


def children_of_other_names_are_no_contenders():
    expect_exit(0, "create", "/others")
    for name in ("seq-1", "x-seq-0000000001", "lock-0000000001", "config"):
        expect_exit(0, "create", "/others/" + name)
    expect_exit(0, "status", "--layout", "native", "/others")
    # Curator's layout, the default, has nodes named lock- and a number.
    expect_exit(1, "status", "/others")
    expect_exit(0, "run", "-n", "--layout", "native", "/others", "true")
    assert len(command.children("/others")) == 4


def lock_directories_of_other_layouts_are_persistent():
    for layout in ("kazoo", "native"):
        path = path_for("stay", layout)
        expect_exit(0, "run", "--layout", layout, path, "true")
        done = expect_exit(0, "stat", path)
        # A container would have another number than 0.
        assert "ephemeral_owner 0x0\n" in done.out, done


def revoke_ends_the_holder():
    for layout in ("kazoo", "native", "native-uuid"):
        path = path_for("revoke", layout)
        expect_exit(1, "revoke", "--layout", layout, path)
        with start("run", "--layout", layout, path, "sh", "-c",
                   RUN_UNTIL_TERM) as a:
            assert a.stdout.readline() == "go\n"
            expect_exit(0, "revoke", "--layout", layout, path)
            done = a.finish()
            assert done.code == 7 and "another client asked for the lock" in done.err, done
        live.eventually(lambda: not command.children(path))


def revoke_ends_all_holders_of_kazoo_permits():
    path = "/revoke-permits"
    run_script = ("run", "--layout", "kazoo", "-p", "2", path, "sh", "-c")
    expect_exit(1, "revoke", "--layout", "kazoo", path)
    with start(*run_script, RUN_UNTIL_TERM) as a, \
            start(*run_script, RUN_UNTIL_TERM) as b:
        for holder in (a, b):
            assert holder.stdout.readline() == "go\n"
        with start(*run_script, "echo in") as c:
            wait_until_held("kazoo", path, holders=2, waiters=1)
            expect_exit(0, "revoke", "--layout", "kazoo", path)
            for holder in (a, b):
                done = holder.finish()
                assert done.code == 7 and "another client asked for the lock" in done.err, done
            # The waiter is not revoked.
            done = c.finish()
            assert (done.code, done.out) == (0, "in\n"), done
    live.eventually(lambda: not command.children(path))
    expect_exit(1, "revoke", "--layout", "kazoo", path)


def several_native_locks_are_acquired_together():
    with start("run", "--layout", "native", "-l", "s:/m/b", "-l", "/m/c",
               "/m/a", "sleep", "600") as a:
        wait_until_held("native", "/m/a")
        wait_until_held("native", "/m/c")
        assert re.fullmatch(r"r-\d{10}", command.children("/m/b")[0])
        assert run("run", "-n", "--layout", "native", "/m/c",
                   "true").code == 124
        a.terminate()
        a.finish()


def kazoo_permits_are_granted_in_queue_order():
    path = "/permits"
    hold = ("run", "--layout", "kazoo", "-p", "2", path, "sleep", "600")
    with start(*hold) as a, start(*hold) as b:
        wait_until_held("kazoo", path, holders=2)
        # Without --layout the permits are not shown, but not ignored either.
        done = run("status", path)
        assert done.code == 0 and "not shown are the nodes of another" in done.err, done
        names = command.children(path)
        assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names), names
        assert expect_exit(0, "get", path).out == "2"
        with start(*hold) as c:
            wait_until_held("kazoo", path, holders=2, waiters=1)
            (waiter,) = status("kazoo", path)["waiters"]
            assert re.fullmatch(path + r"-__lock__/[0-9a-f]{32}__lock__\d{10}",
                                waiter["node"]), waiter
            done = run("run", "-n", "--layout", "kazoo", "-p", "3", path,
                       "true")
            assert done.code == 125 and "number of permits" in done.err, done
            a.terminate()
            b.terminate()
            wait_until_held("kazoo", path)
            c.terminate()
            c.finish()
    expect_exit(0, "status", "--layout", "kazoo", path)


def contradictory_options_are_refused():
    for words, text in (
            (("--layout", "zookeeper", "/x", "true"), "none of curator"),
            (("--layout", "kazoo:x", "/x", "true"), "prefix"),
            (("--layout", "native:a/b", "/x", "true"), "prefix"),
            (("--layout", "native:w-", "/x", "true"), "prefix"),
            (("--layout", "native:x", "-s", "/x", "true"),
             "exclude a prefix"),
            (("--layout", "native", "-p", "2", "/x", "true"), "-p needs")):
        done = expect_exit(125, "run", *words)
        assert text in done.err, (words, done)


with command.serve():
    live.run(live.together(
        locks_with_a_prefix_can_be_in_the_root,
        node_names_are_those_of_the_layout,
        readers_share_and_writers_do_not,
        native_layouts_share_a_queue,
        children_of_other_names_are_no_contenders,
        lock_directories_of_other_layouts_are_persistent,
        revoke_ends_the_holder,
        several_native_locks_are_acquired_together,
        kazoo_permits_are_granted_in_queue_order,
        revoke_ends_all_holders_of_kazoo_permits,
        contradictory_options_are_refused))
