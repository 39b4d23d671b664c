# SPDX-License-Identifier: Apache-2.0
"""latchkey ls, get, set, create, delete, stat, status."""

import base64
import json
import os
import re
import signal
import struct
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run, start
import live
import relay

zk = command.serve()

THROTTLED = -127  # the error of a request that an overloaded server refuses


def run_with_bytes(*words, input=b""):
    """Run the command with `input`, bytes; gives its standard output as
    bytes."""
    done = subprocess.run([command.PROGRAM, *words], input=input,
                          stdout=subprocess.PIPE)
    assert done.returncode == 0, (words, done)
    return done.stdout


def expect_failure(*words, hint):
    """Run the command, and check that it exits with 1 and prints one line that
    contains `hint`."""
    done = run(*words)
    assert done.code == 1 and done.out == "", done
    assert hint in done.err and len(done.err.splitlines()) == 1, done


# ---- create ---------------------------------------------------------------------

def create_prints_the_name():
    assert expect_exit(0, "create", "/made").out == "/made\n"
    assert expect_exit(0, "create", "-s", "/made/s-").out == "/made/s-0000000000\n"
    assert expect_exit(0, "create", "-s", "--json", "/made/s-").json() == [
        {"path": "/made/s-0000000001"}]
    expect_failure("create", "/made", hint="exists already")
    expect_failure("create", "/nowhere/x", hint="-p creates missing parents")


def create_takes_data_from_a_word_or_standard_input():
    expect_exit(0, "create", "/word", "some data")
    assert run_with_bytes("get", "/word") == b"some data"
    blob = bytes(range(256)) * 3000
    run_with_bytes("create", "/blob", "-", input=blob)
    assert run_with_bytes("get", "/blob") == blob
    expect_exit(0, "create", "/empty")
    assert run_with_bytes("get", "/empty") == b""
    assert expect_exit(0, "get", "--json", "/empty").json()[0]["data"] == ""


def p_creates_missing_parents():
    assert expect_exit(0, "create", "-p", "/p/a/b/c", "x").out == "/p/a/b/c\n"
    assert run_with_bytes("get", "/p/a/b/c") == b"x"
    assert expect_exit(0, "create", "-p", "-s", "/p/a/n-").out == "/p/a/n-0000000001\n"
    expect_failure("create", "-p", "/p/a/b", hint="exists already")


def ephemeral_node_is_deleted_when_a_signal_ends_create_e():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with start("create", "-e", "-s", "/eph-", "data") as process:
            path = process.stdout.readline().strip()
            facts = expect_exit(0, "stat", "--json", path).json()[0]
            assert facts["ephemeral_owner"] != "0x0", facts
            process.send_signal(number)
            assert process.finish().code == 0
        expect_failure("stat", path, hint="no such node")


def no_node_is_left_by_a_signal_behind_the_path():
    expect_exit(0, "create", "/early")
    for n in range(20):
        with start("create", "-e", "/early/%d" % n) as process:
            assert process.stdout.readline() == "/early/%d\n" % n
            process.terminate()
            assert process.finish().code == 0
    assert command.children("/early") == []


def output_goes_on_when_a_non_blocking_pipe_is_full():
    data = b"d" * 300000  # more than a pipe has room for
    run_with_bytes("create", "/nonblocking", "-", input=data)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with subprocess.Popen([command.PROGRAM, "get", "/nonblocking"],
                          stdout=write) as process:
        os.close(write)
        time.sleep(0.3)
        with os.fdopen(read, "rb") as reader:
            assert reader.read() == data
        assert process.wait(command.SECONDS) == 0


def ephemeral_node_cannot_have_children():
    with start("create", "-e", "/eph") as process:
        process.stdout.readline()
        expect_failure("create", "/eph/child", hint="cannot have children")
        process.terminate()


def create_e_ends_when_its_node_is_deleted():
    with start("create", "-e", "-s", "/deleted-") as process:
        path = process.stdout.readline().strip()
        for n in range(3):
            expect_exit(0, "set", path, str(n))
        expect_exit(0, "delete", path)
        done = process.finish()
    assert done.code == 1 and done.err == (
        "latchkey: create %s: another client deleted the node\n" % path), done


def create_e_finds_a_deletion_after_a_reconnect():
    """create -e also recognises that another client has created a new node with
    the same name."""
    for created_again in (False, True):
        with relay.Relay(zk.connect) as proxy:
            with start("create", "-e", "-z", proxy.address, "/cut") as process:
                process.stdout.readline()
                proxy.freeze()
                proxy.drop()
                expect_exit(0, "delete", "/cut")
                if created_again:
                    expect_exit(0, "create", "/cut")
                proxy.thaw()
                done = process.finish()
        assert done.code == 1, done
        lines = done.err.splitlines()
        assert lines[0] == (
            "latchkey: warning: connection to %s lost: the server closed the "
            "connection; reconnecting: after 30 s without a server the servers "
            "delete /cut"
            % proxy.address), done
        assert lines[-1] == (
            "latchkey: create /cut: another client deleted the node"), done
    expect_exit(0, "delete", "/cut")


# The body of a reply is xid, zxid and error.
def throttled_reply(xid):
    return struct.pack(">iiqi", 16, xid, 0, THROTTLED)


def create_e_sets_its_watch_again_after_an_error():
    """The server is overloaded when the watch is requested."""
    for is_watched_again in (True, False):
        with relay.Relay(zk.connect) as proxy:
            words = ("create", "-e", "-z", proxy.address, "/throttled")
            mark = proxy.mark()
            with start(*words) as process:  # to know the xid of the request
                process.stdout.readline()
                (asked,) = live.eventually(lambda: [
                    f for f in proxy.frames_since(mark)
                    if f.op == relay.CHILDREN and f.path == "/throttled"])
                process.terminate()
                done = process.finish()
                assert done.code == 0, done
            mark = proxy.mark()
            trap = proxy.at_frame(throttled_reply(asked.xid), up=False,
                                  op=relay.CHILDREN)
            with start(*words) as process:
                process.stdout.readline()
                trap.wait()
                if is_watched_again:
                    live.eventually(lambda: len([
                        f for f in proxy.frames_since(mark)
                        if f.op == relay.CHILDREN and f.err == 0]) == 2)
                expect_exit(0, "delete", "/throttled")
                done = process.finish()
        assert done.code == 1 and done.err == (
            "latchkey: warning: /throttled: its deletion would not be noticed: "
            "the server is overloaded and did not execute this; trying again\n"
            "latchkey: create /throttled: another client deleted the node\n"
            ), done


def create_e_notices_the_deletion_of_a_node_that_it_may_not_read():
    """Servers withhold the event then (ZOOKEEPER-4799)."""
    with start("create", "-e", "--acl", "world:anyone:cdwa", "/hidden",
               "data") as process:
        process.stdout.readline()
        expect_exit(0, "delete", "/hidden")
        done = process.finish()
    assert done.code == 1 and done.err == (
        "latchkey: warning: /hidden: without the permission to read it, its "
        "deletion is noticed 5 s late\n"
        "latchkey: create /hidden: another client deleted the node\n"), done


def expired_session_of_create_e_is_reported():
    with relay.Relay(zk.connect) as proxy:
        with start("create", "-e", "-T", "3", "-z", proxy.address,
                   "/over") as process:
            process.stdout.readline()
            proxy.drop()
            live.eventually(lambda: proxy.accepted == 2)  # it reconnects
            proxy.freeze()
            done = process.finish()
            assert done.code == 125, done
            assert "deleted: the session has expired" in done.err, done
    live.eventually(lambda: run("stat", "/over").code == 1)


def container_is_deleted_after_its_last_child():
    with command.zkserver.Server("--container-check", "200") as server:
        where = ("-z", server.connect)
        expect_exit(0, "create", "-c", *where, "/container")
        expect_exit(0, "create", *where, "/container/child")
        expect_exit(0, "delete", *where, "/container/child")
        live.eventually(lambda: run("stat", *where, "/container").code == 1)
    done = expect_exit(125, "create", "-c", "-e", "/container")
    assert "-c" in done.err, done


MAX_TTL = "1099511627775"  # ms


def node_with_a_ttl_is_deleted_after_it():
    with command.zkserver.Server("--container-check", "200") as server:
        where = ("-z", server.connect)
        done = expect_exit(0, "create", "-t", "300", "-p", "-s", *where, "/a/b/t-", "x")
        assert done.out == "/a/b/t-0000000000\n", done
        done = expect_exit(0, "create", "-t", "300", "-p", "-s", *where, "/a/b/t-")
        assert done.out == "/a/b/t-0000000001\n", done
        expect_exit(0, "create", "-t", MAX_TTL, *where, "/t")
        live.eventually(
            lambda: run("stat", *where, "/a/b/t-0000000001").code == 1)
        expect_exit(0, "stat", *where, "/a/b")  # the parent has no TTL
        expect_exit(0, "stat", *where, "/t")
        expect_failure("create", "-t", MAX_TTL, *where, "/t", hint="exists already")
        expect_exit(0, "create", "-p", "-t", MAX_TTL, *where, "/u")


def invalid_ttl_is_refused():
    for ttl in ("0", "-1", "1099511627776", "x"):
        assert "-t" in expect_exit(125, "create", "-t", ttl, "/ttl").err
    for option in ("-e", "-c"):
        assert "-t" in expect_exit(125, "create", "-t", "1", option, "/ttl").err
    expect_failure("stat", "/ttl", hint="no such node")


def create_sets_access_lists():
    expect_exit(0, "create", "--acl", "world:anyone:r", "/read-only", "x")
    assert run_with_bytes("get", "/read-only") == b"x"
    assert "access list" in expect_exit(125, "set", "/read-only", "y").err
    assert "--acl" in expect_exit(125, "create", "--acl", "x", "/acl").err


def missing_parents_get_the_access_list_of_the_node():
    acl = "world:anyone:cra"
    for top, options in (("/closed", ()), ("/closed-ttl", ("-t", MAX_TTL))):
        expect_exit(0, "create", "-p", *options, "--acl", acl, top + "/a/b")
        for path in (top, top + "/a", top + "/a/b"):
            assert expect_exit(0, "acl", path).out == acl + "\n", path


# ---- get, set, delete -------------------------------------------------------------

def get_writes_the_data_unchanged():
    blob = b"\x00\xff\n\r\n" + os.urandom(1000)
    run_with_bytes("create", "/bytes", "-", input=blob)
    assert run_with_bytes("get", "/bytes") == blob
    expect_failure("get", "/not-there", hint="no such node")


def get_with_json_shows_data_that_is_not_utf8_in_base64():
    blob = b"\x00\xff\n\r\n" + os.urandom(1000)
    run_with_bytes("create", "/json", "-", input=blob)
    (facts,) = expect_exit(0, "get", "--json", "/json").json()
    assert base64.b64decode(facts["data_base64"]) == blob, facts
    expect_exit(0, "set", "/json", "t\u00e4xt\n")
    assert expect_exit(0, "get", "--json", "/json").json() == [
        {"path": "/json", "data": "t\u00e4xt\n", "version": 1}]


def set_and_delete_compare_the_version():
    expect_exit(0, "create", "/version", "0")
    expect_failure("set", "-V", "1", "/version", "x", hint="another version")
    expect_exit(0, "set", "-V", "0", "/version", "1")
    done = expect_exit(0, "set", "/version", "2")
    assert (done.out, done.err) == ("", ""), done
    run_with_bytes("set", "/version", "-", input=b"3")
    assert run_with_bytes("get", "/version") == b"3"
    expect_failure("delete", "-V", "2", "/version", hint="another version")
    done = expect_exit(0, "delete", "-V", "3", "/version")
    assert (done.out, done.err) == ("", ""), done
    expect_failure("delete", "/version", hint="no such node")
    expect_failure("set", "/version", "x", hint="no such node")


def delete_refuses_a_node_with_children():
    expect_exit(0, "create", "-p", "/tree/child")
    expect_failure("delete", "/tree", hint="delete its children first")
    expect_exit(0, "delete", "/tree/child")
    expect_exit(0, "delete", "/tree")


def r_deletes_all_descendants():
    for path in ("/r/a/b/c", "/r/a/d", "/r/e", "/r/f/g/h/i", "/rest"):
        expect_exit(0, "create", "-p", path, "x")
    done = expect_exit(0, "delete", "-v", "-r", "/r")
    # /r and its 9 descendants
    assert done.out == "" and "10 nodes deleted" in done.err, done
    expect_failure("stat", "/r", hint="no such node")
    expect_exit(0, "delete", "-r", "/rest")
    expect_failure("delete", "-r", "/rest", hint="no such node")
    for path in ("/", "/zookeeper", "/zookeeper/quota"):
        assert "cannot be deleted" in expect_exit(125, "delete", "-r", path).err
    assert "-V" in expect_exit(125, "delete", "-r", "-V", "0", "/x").err


def data_above_the_limit_is_refused():
    done = run("set", "/word", "-", input="x" * 1100000)
    assert done.code == 125 and "1 MiB" in done.err, done


# ---- ls, stat ----------------------------------------------------------------------

def ls_prints_sorted_names_one_in_a_line():
    names = ["b", "a", "B", "10", "9", "\u00fc", "a-b", "a b"]
    for name in names:
        expect_exit(0, "create", "-p", "/ls/" + name)
    lines = expect_exit(0, "ls", "/ls").out.splitlines()
    assert lines == sorted(names, key=str.encode), lines
    assert expect_exit(0, "ls", "--json", "/ls").json() == [
        {"path": "/ls", "children": lines}]
    assert expect_exit(0, "ls", "/ls/a").out == ""
    assert "zookeeper" in expect_exit(0, "ls", "/").out.split()
    expect_failure("ls", "/ls/none", hint="no such node")


def stat_prints_one_field_in_a_line():
    expect_exit(0, "create", "/stat", "12345")
    expect_exit(0, "set", "/stat", "1234567")
    expect_exit(0, "create", "/stat/child")
    lines = expect_exit(0, "stat", "/stat").out.splitlines()
    fields = dict(line.split(" ", 1) for line in lines)
    facts = expect_exit(0, "stat", "--json", "/stat").json()[0]
    assert facts.pop("path") == "/stat"
    assert {k: str(v) for k, v in facts.items()} == fields, (facts, fields)
    assert list(fields) == [
        "czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion",
        "aversion", "ephemeral_owner", "data_length", "num_children"], fields
    assert facts["version"] == 1 and facts["num_children"] == 1
    assert facts["data_length"] == 7 and facts["ephemeral_owner"] == "0x0"
    assert int(facts["czxid"]) < int(facts["mzxid"]) < int(facts["pzxid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                        facts["ctime"])
    expect_failure("stat", "/stat/none", hint="no such node")


# ---- status --------------------------------------------------------------------------

def status_of_a_free_lock_is_0():
    expect_exit(0, "create", "/never")
    assert expect_exit(0, "status", "/never").out == "/never: free\n"
    assert expect_exit(0, "status", "--json", "/never").json() == [
        {"lock": "/never", "state": "free", "missing": False, "holders": [],
         "waiters": []}]
    # Children with other names are no contenders.
    for name in ("place-0000000001", "lease-0000000001", "readme", "lock-x"):
        expect_exit(0, "create", "-p", "/never/" + name)
    expect_exit(0, "status", "/never")


def status_shows_holder_and_waiters_in_order():
    with start("run", "-i", "one", "/st", "sh", "-c",
               "echo $LATCHKEY_NODE $LATCHKEY_FENCING_TOKEN $LATCHKEY_SESSION;"
               "exec sleep 600") as holder:
        node, token, session = holder.stdout.readline().split()
        waiters = []
        for n, label in enumerate(("two", "three")):
            waiters.append(start("run", "-i", label, "/st", "true"))
            command.wait_until_queued("/st", n + 2)
        done = run("status", "/st")
        assert done.code == 1 and done.err == "", done
        lines = done.out.splitlines()
        assert lines[0] == "/st: held, 2 waiting", lines
        for line, begin in zip(
                lines[1:], ("holds  one  ", "waits  two  ", "waits  three  "),
                strict=True):
            assert re.fullmatch(
                begin + r"age \d+\.\d s  token \d+  "
                r"session 0x[0-9a-f]+  _c_[0-9a-f-]{36}-lock-\d{10}",
                line), line
        facts = command.status("/st")
        assert set(facts) == {"lock", "state", "missing", "holders",
                              "waiters"}
        assert facts["lock"] == "/st" and facts["state"] == "held"
        (first,) = facts["holders"]
        age = first.pop("age_ms")
        assert isinstance(age, int) and 0 <= age < 600000
        assert first == {"node": node, "token": token, "session": session,
                         "label": "one"}, first
        assert command.queue("/st") == (["one"], ["two", "three"])
        for process in [holder, *waiters]:
            process.terminate()
            process.finish()
    expect_exit(0, "status", "/st")


def status_shows_host_process_and_start_by_default():
    with start("run", "/who", "sleep", "600") as holder:
        command.wait_until_held("/who")
        (label,), _ = command.queue("/who")
        host, pid, since = label.split()
        assert host == os.uname().nodename, label
        assert int(pid) == holder.pid, label
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", since), label
        holder.terminate()


def status_reads_nodes_of_other_libraries():
    for name, data in (
            ("0000-__READ__0000000004", "reader"),
            ("0000-__READ__0000000005", "reader"),
            ("abcd__lock__0000000006", "kazoo"),
            ("0000-__READ__0000000007", "replaced below"),
            ("0000-lock-0000000008", "\x1b[31m")):
        expect_exit(0, "create", "-p", "/mixed/" + name, data)
    # Data that is not UTF-8 is no label.
    run_with_bytes("set", "/mixed/0000-__READ__0000000007", "-", input=b"\xff\x00")
    assert command.queue("/mixed") == (["reader", "reader"],
                                       ["kazoo", None, "\x1b[31m"])
    assert command.status("/mixed")["waiters"][1]["data_base64"] == "/wA="
    out = run("status", "/mixed").out
    assert "\\x1b[31m" in out and "\x1b" not in out, out
    assert "\\xff\\x00" in out, out


def status_reports_nodes_it_may_not_read():
    expect_exit(0, "create", "/hid")
    expect_exit(0, "create", "--acl", "world:anyone:d", "/hid/lock-0000000001")
    done = run("status", "/hid")
    assert done.code == 1 and "not readable" in done.out, done
    assert command.status("/hid")["holders"] == [
        {"node": "/hid/lock-0000000001"}]


def status_of_a_long_queue_is_complete():
    nodes = ["/long/lock-%010d" % n for n in range(280)]
    expect_exit(0, "create", "/long")
    subprocess.run(["xargs", "-P", "8", "-n", "1", command.PROGRAM, "create"],
                   input="\n".join(nodes), text=True, check=True,
                   stdout=subprocess.DEVNULL)
    facts = command.status("/long")
    assert [c["node"] for c in facts["holders"] + facts["waiters"]] == nodes


def verbs_have_the_options_of_a_session():
    done = expect_exit(0, "get", "-v", "-T", "500", "/zookeeper")
    assert "60000 ms" in done.err, done  # the largest timeout of the server
    expect_exit(0, "get", "-z", zk.connect + "/zookeeper", "/config",
                env=dict(os.environ, LATCHKEY_ZK="127.0.0.1:1"))


def verbs_report_usage_errors_and_unknown_hosts():
    for verb in ("ls", "tree", "get", "stat", "set", "create", "delete",
                 "watch", "acl", "status", "wait", "revoke"):
        data = ("data",) if verb == "set" else ()
        assert "usage: latchkey " + verb in expect_exit(0, verb, "--help").out
        assert "must begin with" in expect_exit(125, verb, "x", *data).err
        assert "missing" in expect_exit(125, verb).err
        if verb != "watch":  # further operands of watch are COMMAND
            assert "too many" in expect_exit(125, verb, "/x", "y", "z").err
        assert "unknown option" in expect_exit(125, verb, "-Q", "/x", *data).err
        assert "no-such-host" in expect_exit(
            125, verb, "--connect-timeout", "0.3", "-z",
            "no-such-host.invalid", "/x", *data).err


live.run(live.together(
    create_prints_the_name,
    create_takes_data_from_a_word_or_standard_input,
    p_creates_missing_parents,
    ephemeral_node_is_deleted_when_a_signal_ends_create_e,
    no_node_is_left_by_a_signal_behind_the_path,
    output_goes_on_when_a_non_blocking_pipe_is_full,
    ephemeral_node_cannot_have_children,
    create_e_ends_when_its_node_is_deleted,
    create_e_finds_a_deletion_after_a_reconnect,
    create_e_notices_the_deletion_of_a_node_that_it_may_not_read,
    create_e_sets_its_watch_again_after_an_error,
    expired_session_of_create_e_is_reported,
    container_is_deleted_after_its_last_child,
    node_with_a_ttl_is_deleted_after_it,
    invalid_ttl_is_refused,
    create_sets_access_lists,
    missing_parents_get_the_access_list_of_the_node,
    get_writes_the_data_unchanged,
    get_with_json_shows_data_that_is_not_utf8_in_base64,
    set_and_delete_compare_the_version,
    delete_refuses_a_node_with_children,
    r_deletes_all_descendants,
    ls_prints_sorted_names_one_in_a_line,
    stat_prints_one_field_in_a_line,
    status_of_a_free_lock_is_0,
    status_shows_holder_and_waiters_in_order,
    status_shows_host_process_and_start_by_default,
    status_reads_nodes_of_other_libraries,
    status_reports_nodes_it_may_not_read,
    verbs_have_the_options_of_a_session,
    verbs_report_usage_errors_and_unknown_hosts),
    data_above_the_limit_is_refused,
    status_of_a_long_queue_is_complete)
