# SPDX-License-Identifier: Apache-2.0
"""latchkey watch, acl."""

import array
import fcntl
import os
import re
import signal
import subprocess
import sys
import tempfile
import termios
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run, start
import live
import worker
import relay

zk = command.serve()
HASH = "fyVmFCwVbTJYrznoSu1koqYEYF0="  # of bob:secret


def start_watch(*words, **options):
    """Start `latchkey watch` and wait until it has registered its watch."""
    process = start("watch", *words, **options)
    line = process.stdout.readline()
    assert line.startswith(("watching ", '{"event":"watching"')), (
        line, process.stderr.read() if not line else "")
    return process


def lines(process, count):
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


# ---- watch ---------------------------------------------------------------------------

def each_event_of_a_node_is_a_line():
    with start_watch("/node") as process:
        expect_exit(0, "create", "/node", "x")
        expect_exit(0, "create", "/node/child")
        expect_exit(0, "set", "/node", "y")
        expect_exit(0, "set", "/node/child", "not told")
        expect_exit(0, "delete", "/node/child")
        expect_exit(0, "delete", "/node")
        expect_exit(0, "create", "/node")
        assert lines(process, 6) == [
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
        assert lines(process, 5) == [
            "created /below", "created /below/a", "created /below/a/b",
            "changed /below/a/b", "deleted /below/a/b"]
        process.terminate()


def n_counts_events():
    expect_exit(0, "create", "/n")
    with start_watch("-n", "2", "-z", zk.connect + "/n", "/x",
                     stdout=subprocess.PIPE) as process:
        expect_exit(0, "create", "/n/x")
        expect_exit(0, "set", "/n/x", "y")
        done = process.finish()
        assert done.code == 0 and done.err == "", done
        assert done.out == "created /x\nchanged /x\n", done


def json_is_an_object_a_line():
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


def nohup_is_respected():
    with start_watch("/nohup", preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN)) as process:
        process.send_signal(signal.SIGHUP)
        expect_exit(0, "create", "/nohup")
        assert lines(process, 1) == ["created /nohup"]
        process.terminate()


def reconnect_reports_missed_events():
    with relay.Relay(zk.connect) as proxy:
        with start_watch("-n", "2", "-z", proxy.address, "/lost") as process:
            for back in ("/lost", "/lost/again"):
                proxy.refuse()
                proxy.drop()
                expect_exit(0, "create", back)
                proxy.accept()
                assert lines(process, 1) == ["missed /lost"]
            # -n does not count lines about missed events.
            expect_exit(0, "set", "/lost", "x")
            expect_exit(0, "delete", "/lost/again")
            done = process.finish()
            assert done.code == 0, done
            assert done.out == "changed /lost\nchildren /lost\n", done


def connection_that_breaks_at_once_is_retried():
    with relay.Relay(zk.connect) as proxy:
        trap = proxy.trap("cut", up=False, op=106)
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
            assert lines(process, 1) == ["expired /over"]
            proxy.drop()
            proxy.thaw()
            assert lines(process, 1) == ["watching /over"]
            expect_exit(0, "set", "/over", "x")
            expect_exit(0, "delete", "/over")
            done = process.finish()
            assert done.code == 0, done
            assert done.out == "changed /over\ndeleted /over\n", done


def closed_reader_ends_watch():
    """watch ends at once, not at the next event."""
    for ignored in (False, True):
        with start_watch("/reader", restore_signals=not ignored) as process:
            process.stdout.close()
            assert process.wait(command.SECONDS) == (
                125 if ignored else -signal.SIGPIPE)
            err = process.stderr.read()
            assert ("closed by its reader" in err) == ignored, err
            process.stdout = None
    with start("watch", "/reader", stdout=open("/dev/full", "w")) as process:
        assert process.finish().code != 0


def output_opened_for_reading_does_not_end_watch():
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "fifo")
        os.mkfifo(name)
        with open(os.open(name, os.O_RDWR), "r+b", buffering=0) as fifo:
            with start("watch", "/fifo", stdout=fifo) as process:
                live.eventually(lambda: pending(fifo) > 0)
                size = pending(fifo)
                expect_exit(0, "create", "/fifo")
                live.eventually(lambda: pending(fifo) > size)
                process.terminate()
                assert process.finish().code == 0


def pending(pipe):
    """The number of bytes in a pipe."""
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def slow_reader_gets_a_missed_line():
    crowd = worker.Worker()
    client = crowd.client(zk.connect)
    client.create("/slow")
    paths = ["/slow/%03d%s" % (i, "x" * 30000) for i in range(50)]
    with start_watch("-r", "/slow") as process:
        for path in paths:
            client.create(path)
        expect_exit(0, "set", "/slow", "full")
        time.sleep(.2)
        found = []
        while not found or not found[-1].startswith("missed"):
            found += lines(process, 1)
        count = len(found) - 1
        assert found == ["created " + p for p in paths[:count]] + [
            "missed /slow"], [line[:20] for line in found]
        assert 10 < count < 50, count
        expect_exit(0, "set", "/slow", "taken")
        assert lines(process, 1) == ["changed /slow"]
        process.terminate()
        assert process.finish().code == 0
    crowd.close()


def usage_of_watch_is_125():
    assert "usage: latchkey watch" in expect_exit(0, "watch", "--help").out
    assert "must begin with" in expect_exit(125, "watch", "x").err
    assert 'must not contain "//"' in expect_exit(125, "watch", "/x//y").err
    assert "1 or more" in expect_exit(125, "watch", "-n", "0", "/x").err
    assert "1 or more" in expect_exit(125, "watch", "-n", "x", "/x").err
    assert "cannot connect" in expect_exit(
        125, "watch", "-z", "127.0.0.1:1", "--connect-timeout", ".3",
        "/x").err


# ---- acl -----------------------------------------------------------------------------

def acl_prints_an_entry_a_line():
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
    # Control characters are escaped.
    expect_exit(0, "acl", "/set", "digest:b\x1b[2J:%s:r,world:anyone:cdrwa" % HASH)
    assert "digest:b\\x1b[2J:%s:r\n" % HASH in expect_exit(0, "acl", "/set").out
    # The output of acl is valid input.
    expect_exit(0, "acl", "/set", "world:anyone:ra,ip:127.0.0.1:cdrwa")
    printed = expect_exit(0, "acl", "/set").out.split()
    expect_exit(0, "acl", "/set", ",".join(printed))
    assert expect_exit(0, "acl", "/set").out.split() == printed
    done = run("acl", "/set/none", "open")
    assert done.code == 1 and "no such node" in done.err, done


def acl_uses_identities():
    with tempfile.NamedTemporaryFile("w", suffix=".auth") as file:
        file.write("digest:bob:secret\n")
        file.flush()
        me = ("--auth-file", file.name)
        expect_exit(0, "create", "/own")
        assert "refuses the access list" in expect_exit(125, "acl", "/own", "creator").err
        expect_exit(0, "acl", *me, "/own", "creator")
        assert expect_exit(0, "acl", *me, "/own").out == (
            "digest:bob:fyVmFCwVbTJYrznoSu1koqYEYF0=:cdrwa\n")
        assert "--auth-file" in expect_exit(125, "acl", "/own").err
        assert "--auth-file" in expect_exit(125, "acl", "/own", "open").err


def usage_of_acl_is_125():
    assert "usage: latchkey acl" in expect_exit(0, "acl", "--help").out
    assert "must begin with" in expect_exit(125, "acl", "x").err
    for spec in ("", "closed", "world:anyone", "world:anyone:x"):
        done = expect_exit(125, "acl", "/x", spec)
        assert done.err.startswith("latchkey: acl: "), done
        assert "letters cdrwa" in done.err, done
    assert "too many" in expect_exit(125, "acl", "/x", "open", "y").err


live.run(live.together(
    each_event_of_a_node_is_a_line,
    r_watches_all_descendants,
    n_counts_events,
    json_is_an_object_a_line,
    signals_end_watch_with_0,
    nohup_is_respected,
    reconnect_reports_missed_events,
    connection_that_breaks_at_once_is_retried,
    expired_session_is_reported_and_replaced,
    closed_reader_ends_watch,
    output_opened_for_reading_does_not_end_watch,
    slow_reader_gets_a_missed_line,
    usage_of_watch_is_125,
    acl_prints_an_entry_a_line,
    acl_replaces_the_access_list,
    acl_uses_identities,
    usage_of_acl_is_125))
