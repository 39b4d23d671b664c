# SPDX-License-Identifier: Apache-2.0
"""latchkey watch, acl."""

import array
import fcntl
import json
import os
import re
import signal
import sys
import tempfile
import termios
import time

sys.path.append(sys.path[0] + "/../support")

import command
import differences
from command import expect_exit, run, start
import live
import worker
import relay

zk = command.serve()
HASH = "fyVmFCwVbTJYrznoSu1koqYEYF0="  # base64 of the SHA-1 of bob:secret


def start_watch(*words, **options):
    """Start `latchkey watch` and wait until it has registered its watch."""
    if "--children" not in words:
        differences.need("PERSISTENT_WATCHES")
    process = start("watch", *words, **options)
    line = process.stdout.readline()
    assert line.startswith(("watching ", '{"event":"watching"')), (
        line, process.stderr.read() if not line else "")
    return process


def read_lines(process, count):
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


def read_line(process):
    return process.stdout.readline().rstrip("\n")


# ---- watch ---------------------------------------------------------------------------

def server_without_persistent_watches_is_too_old():
    done = expect_exit(125, "watch", "/old")
    assert done.err == ("latchkey: watch /old: the server does not support persistent "
                        "watches; ZooKeeper 3.6 or newer is needed\n"), done


def each_event_of_a_node_is_reported_in_a_line():
    with start_watch("/node") as process:
        expect_exit(0, "create", "/node", "x")
        expect_exit(0, "create", "/node/child")
        expect_exit(0, "set", "/node", "y")
        expect_exit(0, "set", "/node/child", "not reported")
        expect_exit(0, "delete", "/node/child")
        expect_exit(0, "delete", "/node")
        expect_exit(0, "create", "/node")
        assert read_lines(process, 6) == [
            "created /node", "children /node", "changed /node",
            "children /node", "deleted /node", "created /node"]
        process.terminate()
        assert process.finish().code == 0


def r_watches_all_descendants():
    with start_watch("-r", "/below") as process:
        expect_exit(0, "create", "-p", "/below/a/b")
        expect_exit(0, "set", "/below/a/b", "x")
        expect_exit(0, "create", "/belowx")
        expect_exit(0, "delete", "/below/a/b")
        assert read_lines(process, 5) == [
            "created /below", "created /below/a", "created /below/a/b",
            "changed /below/a/b", "deleted /below/a/b"]
        process.terminate()


def n_ends_watch_after_so_many_events():
    expect_exit(0, "create", "/n")
    with start_watch("-n", "2", "-z", zk.connect + "/n", "/x") as process:
        expect_exit(0, "create", "/n/x")
        expect_exit(0, "set", "/n/x", "y")
        done = process.finish()
        assert done.code == 0 and done.err == "", done
        assert done.out == "created /x\nchanged /x\n", done


def json_prints_one_object_in_a_line():
    with start_watch("--json", "-n", "1", "/json") as process:
        expect_exit(0, "create", "/json")
        done = process.finish()
        (event,) = done.json()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                            event.pop("time"))
        assert event == {"event": "created", "path": "/json"}, event


def signals_end_watch_with_0():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with start_watch("/signal") as process:
            process.send_signal(number)
            done = process.finish()
            assert (done.code, done.out, done.err) == (0, "", ""), done


def hup_that_nohup_ignores_does_not_end_watch():
    with start_watch("/nohup", preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN)) as process:
        process.send_signal(signal.SIGHUP)
        expect_exit(0, "create", "/nohup")
        assert read_line(process) == "created /nohup"
        process.terminate()


def reconnect_reports_missed_events():
    with relay.Relay(zk.connect) as proxy:
        with start_watch("-n", "2", "-z", proxy.address, "/lost") as process:
            for path in ("/lost", "/lost/child"):
                proxy.refuse()
                proxy.drop()
                expect_exit(0, "create", path)
                proxy.accept()
                assert read_line(process) == "missed /lost"
            # -n does not count lines about missed events.
            expect_exit(0, "set", "/lost", "x")
            expect_exit(0, "delete", "/lost/child")
            done = process.finish()
            assert done.code == 0, done
            assert done.out == "changed /lost\nchildren /lost\n", done


def watch_is_registered_again_if_the_connection_breaks_before_the_reply():
    add_watch = 106  # its opcode
    with relay.Relay(zk.connect) as proxy:
        trap = proxy.at_frame("cut", up=False, op=add_watch)
        with start_watch("-n", "1", "-z", proxy.address, "/first") as process:
            trap.wait()
            expect_exit(0, "create", "/first")
            assert process.finish().out.endswith("created /first\n")


def expired_session_is_reported_and_replaced():
    with relay.Relay(zk.connect) as proxy:
        with start_watch("-T", "1", "-n", "2", "-z", proxy.address,
                         "/over") as process:
            proxy.freeze()
            expect_exit(0, "create", "/over")
            # The client takes the session for expired without a reply.
            assert read_line(process) == "expired /over"
            proxy.drop()
            proxy.thaw()
            assert read_line(process) == "watching /over"
            expect_exit(0, "set", "/over", "x")
            expect_exit(0, "delete", "/over")
            done = process.finish()
            assert done.code == 0, done
            assert done.out == "changed /over\ndeleted /over\n", done


def closed_reader_ends_watch():
    """watch ends at once, not at the next event."""
    for ignores_sigpipe in (False, True):  # Python ignores SIGPIPE
        with start_watch("/reader",
                         restore_signals=not ignores_sigpipe) as process:
            process.stdout.close()
            code = process.wait(command.SECONDS)
            err = process.stderr.read()
            if ignores_sigpipe:
                assert code == 125 and "closed by its reader" in err, (code, err)
            else:
                assert code == -signal.SIGPIPE and err == "", (code, err)
            process.stdout = None


def output_that_cannot_be_written_ends_watch():
    differences.need("PERSISTENT_WATCHES")
    with start("watch", "/unwritten", stdout=open("/dev/full", "w")) as process:
        assert process.finish().code != 0


def output_that_latchkey_can_also_read_does_not_end_watch():
    differences.need("PERSISTENT_WATCHES")
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "fifo")
        os.mkfifo(name)
        with open(os.open(name, os.O_RDWR), "r+b", buffering=0) as fifo:
            with start("watch", "/fifo", stdout=fifo) as process:
                live.eventually(lambda: bytes_in(fifo) > 0)
                size = bytes_in(fifo)
                expect_exit(0, "create", "/fifo")
                live.eventually(lambda: bytes_in(fifo) > size)
                process.terminate()
                assert process.finish().code == 0


def bytes_in(pipe):
    """The number of bytes in a pipe."""
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def slow_reader_gets_a_missed_line():
    """The events are longer than the pipe and the buffer of latchkey."""
    client_process = worker.Worker()
    client = client_process.client(zk.connect)
    client.create("/slow")
    paths = ["/slow/%03d%s" % (i, "x" * 30000) for i in range(50)]
    with start_watch("-r", "/slow") as process:
        for path in paths:
            client.create(path)
        expect_exit(0, "set", "/slow", "full")
        time.sleep(.2)
        created = []
        while (line := read_line(process)) != "missed /slow":
            assert line, "watch has ended"
            created.append(line)
        assert created == ["created " + path for path in paths[:len(created)]], [
            line[:20] for line in created]
        assert 10 < len(created) < 50, len(created)
        # After the missed line, events are reported again.
        expect_exit(0, "set", "/slow", "x")
        assert read_line(process) == "changed /slow"
        process.terminate()
        assert process.finish().code == 0
    client_process.close()


# ---- watch --children ----------------------------------------------------------------

def read_report(process):
    """The names up to the empty line."""
    names = []
    while name := read_line(process):
        names.append(name)
    return names


def children_are_reported_now_and_after_each_change():
    with start("watch", "--children", "/list") as process:
        assert read_report(process) == []
        expect_exit(0, "create", "/list", "data")
        assert read_report(process) == []
        for name, names in (("b", ["b"]), ("a", ["a", "b"]),
                            ("a-", ["a", "a-", "b"])):
            expect_exit(0, "create", "/list/" + name)
            assert read_report(process) == names, (name, names)
            expect_exit(0, "set", "/list/" + name, "is not reported")
        expect_exit(0, "delete", "/list/a")
        assert read_report(process) == ["a-", "b"]
        expect_exit(0, "delete", "-r", "/list")
        while (names := read_report(process)):
            assert names in (["a-"], ["b"]), names
        process.terminate()
        done = process.finish()
        assert done.code == 0 and done.err == "", done


def children_are_reported_as_objects():
    with start("watch", "--children", "--json", "-n", "3", "/object") as process:
        reports = [json.loads(read_line(process))]
        expect_exit(0, "create", "/object")
        reports.append(json.loads(read_line(process)))
        expect_exit(0, "create", "/object/x")
        done = process.finish()
        assert done.code == 0, done
        reports += done.json()
        for report in reports:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                                report.pop("time"))
        assert reports == [
            {"path": "/object", "missing": missing, "children": names}
            for missing, names in ((True, []), (False, []), (False, ["x"]))]


def changes_of_the_list_without_a_connection_are_reported():
    expect_exit(0, "create", "/away")
    with relay.Relay(zk.connect) as proxy:
        with start("watch", "--children", "-z", proxy.address,
                   "/away") as process:
            assert read_report(process) == []
            proxy.refuse()
            proxy.drop()
            expect_exit(0, "create", "/away/x")
            proxy.accept()
            assert read_report(process) == ["x"]
            process.terminate()
            assert process.finish().code == 0


def slow_reader_gets_the_newest_list():
    client_process = worker.Worker()
    client = client_process.client(zk.connect)
    client.create("/names")
    for i in range(20):  # longer than the pipe and the buffer of latchkey
        client.create("/names/%02d%s" % (i, "x" * 30000))
    with start("watch", "--children", "/names") as process:
        assert process.stdout.read(1) == "0"
        for i in range(10):
            client.create("/names/new%d" % i)
            time.sleep(.02)
        counts = [len(read_report(process))]
        while counts[-1] < 30:
            counts.append(len(read_report(process)))
        # Newer lists have replaced some that waited for the reader.
        assert counts[0] == 20 and len(counts) < 11, counts
        client.create("/names/last")
        assert read_report(process)[-11] == "last"
        process.terminate()
        assert process.finish().code == 0
    client_process.close()


def list_that_may_not_be_read_ends_watch():
    expect_exit(0, "create", "--acl", "world:anyone:c", "/hidden")
    done = expect_exit(125, "watch", "--children", "/hidden")
    assert "watch /hidden: not allowed" in done.err, done


def usage_errors_of_watch_are_125():
    assert "usage: latchkey watch" in expect_exit(0, "watch", "--help").out
    assert "must begin with" in expect_exit(125, "watch", "x").err
    assert 'must not contain "//"' in expect_exit(125, "watch", "/x//y").err
    assert "-r and --children exclude" in expect_exit(
        125, "watch", "-r", "--children", "/x").err
    assert "1 or more" in expect_exit(125, "watch", "-n", "0", "/x").err
    assert "1 or more" in expect_exit(125, "watch", "-n", "x", "/x").err
    assert "cannot connect" in expect_exit(
        125, "watch", "-z", "127.0.0.1:1", "--connect-timeout", ".3",
        "/x").err


# ---- acl -----------------------------------------------------------------------------

def acl_prints_one_entry_in_a_line():
    expect_exit(0, "create", "/acl")
    assert expect_exit(0, "acl", "/acl").out == "world:anyone:cdrwa\n"
    expect_exit(0, "create", "--acl", "world:anyone:ra,ip:127.0.0.0/8:cd",
                "/acl/two")
    assert expect_exit(0, "acl", "/acl/two").out.splitlines() == [
        "world:anyone:ra", "ip:127.0.0.0/8:cd"]
    assert expect_exit(0, "acl", "--json", "/acl/two").json() == [{
        "path": "/acl/two", "aversion": 0, "acl": [
            {"scheme": "world", "id": "anyone", "perms": "ra"},
            {"scheme": "ip", "id": "127.0.0.0/8", "perms": "cd"}]}]
    done = run("acl", "/acl/none")
    assert done.code == 1 and "no such node" in done.err, done


def acl_replaces_the_access_list():
    expect_exit(0, "create", "/set", "x")
    done = expect_exit(0, "acl", "/set", "world:anyone:ra")
    assert (done.out, done.err) == ("", ""), done
    assert expect_exit(0, "acl", "/set").out == "world:anyone:ra\n"
    assert "access list" in expect_exit(125, "set", "/set", "y").err
    assert "version 2" in expect_exit(0, "acl", "-v", "/set", "open").err
    expect_exit(0, "set", "/set", "y")
    assert expect_exit(0, "acl", "--json", "/set").json()[0]["aversion"] == 2
    done = run("acl", "/set/none", "open")
    assert done.code == 1 and "no such node" in done.err, done


def acl_escapes_control_characters():
    expect_exit(0, "create", "/escape")
    expect_exit(0, "acl", "/escape",
                "digest:b\x1b[2J:%s:r,world:anyone:cdrwa" % HASH)
    assert "digest:b\\x1b[2J:%s:r\n" % HASH in expect_exit(0, "acl", "/escape").out


def acl_accepts_the_entries_that_it_prints():
    expect_exit(0, "create", "--acl", "world:anyone:ra,ip:127.0.0.1:cdrwa",
                "/again")
    printed = expect_exit(0, "acl", "/again").out.split()
    expect_exit(0, "acl", "/again", ",".join(printed))
    assert expect_exit(0, "acl", "/again").out.split() == printed


def acl_uses_identities():
    with tempfile.NamedTemporaryFile("w", suffix=".auth") as file:
        file.write("digest:bob:secret\n")
        file.flush()
        identity = ("--auth-file", file.name)
        expect_exit(0, "create", "/own")
        assert "refuses the access list" in expect_exit(125, "acl", "/own", "creator").err
        expect_exit(0, "acl", *identity, "/own", "creator")
        assert expect_exit(0, "acl", *identity, "/own").out == (
            "digest:bob:%s:cdrwa\n" % HASH)
        assert "--auth-file" in expect_exit(125, "acl", "/own").err
        assert "--auth-file" in expect_exit(125, "acl", "/own", "open").err


def usage_errors_of_acl_are_125():
    assert "usage: latchkey acl" in expect_exit(0, "acl", "--help").out
    assert "must begin with" in expect_exit(125, "acl", "x").err
    for spec in ("", "closed", "world:anyone", "world:anyone:x"):
        done = expect_exit(125, "acl", "/x", spec)
        assert done.err.startswith("latchkey: acl: "), done
        assert "letters cdrwa" in done.err, done
    assert "too many" in expect_exit(125, "acl", "/x", "open", "y").err


if not differences.has("PERSISTENT_WATCHES"):
    live.run(server_without_persistent_watches_is_too_old)
live.run(live.together(
    each_event_of_a_node_is_reported_in_a_line,
    r_watches_all_descendants,
    n_ends_watch_after_so_many_events,
    json_prints_one_object_in_a_line,
    signals_end_watch_with_0,
    hup_that_nohup_ignores_does_not_end_watch,
    reconnect_reports_missed_events,
    watch_is_registered_again_if_the_connection_breaks_before_the_reply,
    expired_session_is_reported_and_replaced,
    closed_reader_ends_watch,
    output_that_cannot_be_written_ends_watch,
    output_that_latchkey_can_also_read_does_not_end_watch,
    slow_reader_gets_a_missed_line,
    children_are_reported_now_and_after_each_change,
    children_are_reported_as_objects,
    changes_of_the_list_without_a_connection_are_reported,
    slow_reader_gets_the_newest_list,
    list_that_may_not_be_read_ends_watch,
    usage_errors_of_watch_are_125,
    acl_prints_one_entry_in_a_line,
    acl_replaces_the_access_list,
    acl_escapes_control_characters,
    acl_accepts_the_entries_that_it_prints,
    acl_uses_identities,
    usage_errors_of_acl_are_125))
