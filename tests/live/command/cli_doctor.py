# SPDX-License-Identifier: Apache-2.0
"""latchkey doctor: it names the layer that is broken, and what is none."""

import contextlib
import os
import re
import signal
import socket
import struct
import sys
import tempfile
import threading
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run, start
import live
import relay

zk = command.serve()


def examine(*words, code, **options):
    """Its findings as JSON."""
    done = run("doctor", "--json", *words, **options)
    assert done.code == code, done
    (facts,) = done.json()
    assert facts["state"] == ("ok" if code == 0 else "broken"), facts
    return facts["findings"]


def finding(layer, findings):
    (one,) = [f for f in findings if f["layer"] == layer]
    return one


def not_well(findings):
    """(layer, verdict) of what is not ok; where much is going on, processes
    stand still for a while."""
    return [(f["layer"], f["verdict"]) for f in findings
            if f["verdict"] != "ok"
            and (f["layer"], f["verdict"]) != ("clocks", "note")]


@contextlib.contextmanager
def listener(serve, backlog=16):
    """A server that is none: serve(socket) for each who connects."""
    door = socket.create_server(("127.0.0.1", 0), backlog=backlog)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                guest = door.accept()[0]
                threading.Thread(target=attend, args=(guest,),
                                 daemon=True).start()

    def attend(guest):
        with guest, contextlib.suppress(OSError):
            serve(guest)

    threading.Thread(target=accept, daemon=True).start()
    yield "127.0.0.1:%d" % door.getsockname()[1]
    door.shutdown(socket.SHUT_RDWR)
    door.close()


def saying(answer, rest=lambda guest, first: None):
    """Answers srvr so; else does `rest`."""
    def serve(guest):
        first = guest.recv(4)
        if first == b"srvr":
            guest.sendall(answer)
        else:
            rest(guest, first)
    return serve


def passing_on(guest, first):
    """To the real server."""
    host, _, port = zk.connect.rpartition(":")
    with socket.create_connection((host, int(port))) as server:
        server.sendall(first)

        def back():
            with contextlib.suppress(OSError):
                while piece := server.recv(65536):
                    guest.sendall(piece)
                guest.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=back, daemon=True).start()
        while piece := guest.recv(65536):
            server.sendall(piece)


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as door:
        return "127.0.0.1:%d" % door.getsockname()[1]


# ---- all well ----------------------------------------------------------------------

def a_server_that_is_well_is_0():
    expect_exit(0, "create", "/well")
    before = expect_exit(0, "stat", "/well").out
    done = expect_exit(0, "doctor", "/well")
    lines = [re.match(r"(?:ok  |note(?=  clocks))    (\S+) +(.*)", line)
             for line in done.out.splitlines()]
    assert [m[1] for m in lines] == ["server", "session", "round-trip",
                                     "access", "clocks"], done
    assert re.fullmatch(re.escape(zk.connect) + r": ZooKeeper 3\.\d+\.\d+, "
                        "standalone, session timeout 30000 ms", lines[0][2])
    assert re.fullmatch("0x[0-9a-f]+ at " + re.escape(zk.connect) +
                        ", timeout 30000 ms", lines[1][2])
    assert re.match(r"\d+\.\d{3} ms, the median of 9 reads", lines[2][2])
    assert lines[3][2] == "/well: permission to read, create and delete", done
    assert done.err == ""
    assert expect_exit(0, "stat", "/well").out == before


def json_has_the_same_facts():
    server, session, trip, access, clocks = examine(code=0)
    assert server.pop("text").endswith("standalone, session timeout 30000 ms")
    assert re.fullmatch(r"3\.\d+\.\d+", server.pop("version"))
    assert server == {
        "layer": "server", "verdict": "ok", "server": zk.connect,
        "address": zk.connect, "mode": "standalone", "timeout_ms": 30000,
        "advice": None}, server
    assert re.fullmatch("0x[0-9a-f]+", session["session"])
    assert session["server"] == zk.connect and session["timeout_ms"] == 30000
    assert 0 < trip["median_us"] < 10000000, trip
    assert access["path"] == "/" and access["node"] == "/", access
    assert access["read"] and access["create"] and access["delete"], access
    assert (clocks["verdict"] == "ok") == (
        (clocks["paused_ms"], clocks["set_ms"]) == (0, 0)), clocks
    assert clocks["took_ms"] < 60000, clocks
    assert (clocks["verdict"] == "ok") == (
        "no interruption in the %d ms" % clocks["took_ms"] in clocks["text"]), clocks


# ---- the way to a server --------------------------------------------------------------

def each_server_is_told_of():
    closed = closed_port()
    findings = examine(
        "-z", "no-such-host.invalid,%s,%s" % (closed, zk.connect), code=1)
    name, port, server = findings[:3]
    assert name["layer"] == "name" and name["verdict"] == "broken", name
    assert name["server"] == "no-such-host.invalid:2181", name
    assert name["advice"], name
    assert port["layer"] == "port" and port["server"] == closed, port
    assert "refused" in port["text"] and port["advice"], port
    assert server["layer"] == "server" and server["verdict"] == "ok", server
    # One that is well is enough for the rest.
    assert finding("access", findings)["verdict"] == "ok"


def without_any_server_it_ends_there():
    findings = examine("-z", closed_port(), code=1)
    assert [f["layer"] for f in findings] == ["port", "clocks"], findings
    assert not_well(findings) == [("port", "broken")], findings


def an_address_in_brackets_is_one():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as door:
        port = door.getsockname()[1]
    (one, _) = examine("-z", "[::1]:%d" % port, code=1)
    assert one["layer"] == "port", one
    assert one["server"] == one["address"] == "[::1]:%d" % port, one


def who_accepts_and_never_answers_is_named():
    with relay.Relay(zk.connect) as way:
        way.freeze()
        began = time.monotonic()
        findings = examine("-z", way.address, "--connect-timeout", "0.7",
                           code=1)
        assert time.monotonic() - began < 30
        assert not_well(findings)[0] == ("answer", "broken"), findings
        assert "does not reply" in findings[0]["text"], findings
        assert "not its client port" in findings[0]["advice"], findings


def slow_server_is_waited_for():
    with relay.Relay(zk.connect, frames=False) as way:
        way.delays[False] = 0.2
        findings = examine("-z", way.address, code=0)
    one = finding("session", findings)
    assert one["verdict"] == "ok", findings


def nobody_is_waited_for_longer_than_asked():
    def drip(guest):
        while True:
            guest.sendall(b"x")
            time.sleep(.1)

    def pour(guest):
        while True:
            guest.sendall(b"Zookeeper version: " + b"3" * 60000)

    for serve in (drip, pour):
        with listener(serve) as address:
            began = time.monotonic()
            findings = examine("-z", address, "--connect-timeout", "3",
                               code=1)
            assert time.monotonic() - began < 30
            assert not_well(findings)[0] == ("session", "broken"), findings
            assert len(findings[0]["text"]) < 4000, findings


def what_is_no_zookeeper_is_not_taken_for_one():
    def web(guest):
        guest.recv(100)
        guest.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n\x1b[31m\xff")

    def hang_up(guest):
        guest.recv(100)

    for serve in (web, hang_up):
        with listener(serve) as address:
            (one, _) = examine("-z", address, code=1)
            assert one["layer"] == "session", one
            assert "the client port of a ZooKeeper" in one["advice"], one
            out = run("doctor", "-z", address).out
            assert out.startswith("broken  session ") and "\x1b" not in out


# ---- what a server says of itself -------------------------------------------------------

def an_old_server_is_named():
    with listener(saying(
            b"Zookeeper version: 3.4.14-4c25d480e66aadd371de8bd2fd8da255ac"
            b"140bcf, built on 03/06/2019 16:18 GMT\nLatency min/avg/max: "
            b"0/0/0\nMode: standalone\nNode count: 4\n",
            passing_on)) as address:
        findings = examine("-z", address, code=1)
        assert not_well(findings)[0] == ("version", "broken"), findings
        assert findings[0]["version"] == "3.4.14", findings
        assert "3.5.0" in findings[0]["advice"], findings


def a_server_that_lies_of_itself_is_only_quoted():
    with listener(saying(b"Zookeeper version: \x1b[31m\xff, x\nMode: \x1b\xff"
                         b"\n", passing_on)) as address:
        findings = examine("-z", address, code=0)
        assert findings[0]["mode"] == "\x1b\ufffd", findings
        out = expect_exit(0, "doctor", "-z", address).out
        assert "\x1b" not in out and "\\x1b[31m\\xff" in out, out


def a_server_without_quorum_is_named():
    """Whatever else; the real ones are below."""
    def hang_up(guest, first):
        pass

    for said, layer in (
            (b"This ZooKeeper instance is not currently serving requests\n",
             "quorum"),
            (b"Zookeeper version: 3.8.0-x, built on x\nREAD-ONLY mode; serving"
             b" only read-only clients\nMode: read-only\n", "read-only")):
        with listener(saying(said, hang_up)) as address:
            (one, _) = examine("-z", address, code=1)
            assert one["layer"] == layer and "majority" in one["advice"], one


FOLLOWER = b"Zookeeper version: 3.8.0-x, built on x\nMode: follower\n"


def a_session_is_what_counts():
    """Words are fine, and sessions are refused, or answered by nobody."""
    def hang_up(guest, first):
        guest.recv(65536)

    def say_nothing(guest, first):
        guest.recv(65536)
        guest.recv(1)

    for rest, why in ((hang_up,
                       "the server closed the connection without a reply"),
                      (say_nothing, "no reply in time")):
        with listener(saying(FOLLOWER, rest)) as address:
            (one, _) = examine("-z", address, "--connect-timeout", "1",
                               code=1)
            assert one["layer"] == "session" and "log" in one["advice"], one
            assert one["text"] == "%s: gives no session: %s" % (
                address, why), one


def the_shortest_session_is_one():
    """A server that grants a millisecond, and says no more."""
    def grant(guest, first):
        guest.recv(65536)
        guest.sendall(struct.pack(">iiiqi16s?", 37, 0, 1, 4711, 16, b"", False))
        guest.recv(1)

    with listener(saying(FOLLOWER, grant)) as address:
        one = examine("-z", address, "--connect-timeout", "1", code=1)[0]
        assert one["verdict"] == "ok" and one["timeout_ms"] == 1, one


def words_that_are_off_are_no_error():
    """ZooKeeper's own servers always obey srvr; others, and proxies, do not."""
    off = b" is not executed because it is not in the whitelist.\n"

    def serve(words):
        def attend(guest):
            first = guest.recv(4)
            if first in words:
                guest.sendall(words[first] or first + off)
            elif first in (b"srvr", b"isro", b"ruok"):
                pass
            else:
                passing_on(guest, first)
        return attend

    for words in ({}, {b"srvr": None}, {b"srvr": None, b"isro": b"rw"},
                  {b"srvr": None, b"isro": None, b"ruok": b"imok"}):
        with listener(serve(words)) as address:
            findings = examine("-z", address, code=0)
            assert not_well(findings)[0] == ("words", "note"), findings
            assert findings[0]["timeout_ms"] == 30000, findings
    with listener(serve({b"srvr": None, b"isro": b"null"})) as address:
        assert not_well(examine("-z", address, code=1))[0] == (
            "quorum", "broken")


def servers_of_two_ensembles_are_strangers():
    with listener(saying(b"Zookeeper version: 3.8.0-x, built on x\nMode: "
                         b"leader\n", passing_on)) as address:
        findings = examine("-z", "%s,%s" % (zk.connect, address), code=1)
        one = finding("ensemble", findings)
        assert one["servers"] == [zk.connect, address], one
        # Two names for one server are none.
        examine("-z", "%s,%s" % (zk.connect, zk.connect), code=0)


def real_servers_say_so_too():
    """A majority goes: first there is no quorum, then only reads."""
    with command.zkserver.Server("--property", "readonlymode.enabled=true",
                                 servers=3) as ensemble:
        modes = [f.get("mode") for f in
                 examine("-z", ensemble.connect, code=0)[:3]]
        assert sorted(modes) == ["follower", "follower", "leader"], modes
        ensemble.kill(2)
        ensemble.kill(3)
        gone = time.monotonic()
        while True:
            findings = examine("-z", ensemble.connect, code=1)
            layers = [f["layer"] for f in findings]
            assert layers[1:3] == ["port", "port"], findings
            if layers[0] == "read-only":
                break
            # In between it may hang up without a word.
            assert layers[0] in ("quorum", "session"), findings
            assert time.monotonic() < gone + live.worker.SECONDS
            time.sleep(.05)
        assert findings[0]["mode"] == "read-only", findings


# ---- the session and what it may ----------------------------------------------------------

def a_session_timeout_that_is_changed_is_noted():
    findings = examine("-T", "90", code=0)
    one = finding("timeout", findings)
    assert one["verdict"] == "note" and one["wanted_ms"] == 90000, one
    assert one["timeout_ms"] == 60000 and "maxSessionTimeout" in one["advice"]
    assert findings[0]["timeout_ms"] == 60000, findings


def identities_are_shown_to_the_server():
    with tempfile.NamedTemporaryFile("w", suffix=".auth") as file:
        file.write("digest:me:secret\nip:\n")  # a scheme with a shorter name
        file.flush()
        findings = examine("--auth-file", file.name, code=0)
        assert finding("auth", findings)["verdict"] == "ok"
        expect_exit(0, "create", "--auth-file", file.name, "--acl", "creator",
                    "/mine")
        examine("--auth-file", file.name, "/mine", code=0)
        file.write("no-such-scheme:x\n")
        file.flush()
        findings = examine("--auth-file", file.name, code=1)
        one = finding("auth", findings)
        assert one["verdict"] == "broken" and "--auth-file" in one["advice"]
        assert "access" not in [f["layer"] for f in findings], findings
    one = finding("auth", examine("--auth-file", file.name, code=1))
    assert file.name in one["text"] and "No such file" in one["text"], one
    assert finding("access", examine("/mine", code=1))["read"] is False


def a_server_that_insists_on_identities_is_told_of():
    with command.zkserver.Server(
            "--property", "zookeeper.enforce.auth.enabled=true",
            "--property", "zookeeper.enforce.auth.schemes=digest") as other, \
            tempfile.NamedTemporaryFile("w", suffix=".auth") as file:
        findings = examine("-z", other.connect, code=1)
        assert not_well(findings) == [("auth", "broken")], findings
        assert "--auth-file" in finding("auth", findings)["advice"]
        file.write("digest:me:secret\n")
        file.flush()
        findings = examine("-z", other.connect, "--auth-file", file.name,
                           code=0)
        assert finding("access", findings)["create"] is True, findings


def access_is_tried_without_a_trace():
    expect_exit(0, "create", "/acl")
    for perms, rights in (("r", (True, False, None)), ("w", (False, False, None)),
                          ("cd", (False, True, True)),
                          ("cr", (True, True, False))):
        path = "/acl/" + perms
        expect_exit(0, "create", "--acl", "world:anyone:" + perms, path)
        before = expect_exit(0, "stat", path).out if "r" in perms else None
        one = finding("access", examine(path, code=1))
        assert tuple(one.get(k) for k in ("read", "create", "delete")) == \
            rights, one
        for word, right in zip(("read", "create", "delete"), rights,
                               strict=True):
            assert (word in one["text"].split("no permission to")[1]) == \
                (right is False), one
        assert before is None or expect_exit(0, "stat", path).out == before
    expect_exit(0, "create", "--acl", "world:anyone:crd", "/acl/all")
    examine("/acl/all", code=0)


def what_is_not_there_yet_must_be_possible():
    expect_exit(0, "create", "/up")
    expect_exit(0, "create", "--acl", "world:anyone:c", "/up/create")
    one = finding("access", examine("/up/create/a/b", code=0))
    assert one["path"] == "/up/create/a/b", one
    assert one["node"] == "/up/create", one
    expect_exit(0, "create", "--acl", "world:anyone:r", "/up/read")
    one = finding("access", examine("/up/read/a", code=1))
    assert one["create"] is False and "/up/read/a does not exist" in one["text"]


def a_chroot_must_be_there():
    one = finding("access", examine("-z", zk.connect + "/chroot", code=1))
    assert "/chroot does not exist" in one["text"] and "create -p" in \
        one["advice"], one
    expect_exit(0, "create", "/chroot")
    examine("-z", zk.connect + "/chroot", code=0)


# ---- clocks, usage --------------------------------------------------------------------------

def standing_still_is_noticed():
    for timeout, code, verdict in (("30", 0, "note"), ("2", 1, "broken")):
        with relay.Relay(zk.connect, frames=False) as way:
            way.freeze()
            with start("doctor", "--json", "-T", timeout, "-z",
                       way.address) as process:
                live.eventually(lambda: way.accepted > 0 or way.opening)
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(1.2)
                os.kill(process.pid, signal.SIGCONT)
                way.thaw()
                done = process.finish()
        assert done.code == code, done
        one = finding("clocks", done.json()[0]["findings"])
        assert one["verdict"] == verdict and one["paused_ms"] >= 1000, one
        assert "did not run" in one["text"] and "-T" in one["advice"], one
        assert "evenly" not in one["text"], one


def usage_is_125():
    assert "usage: latchkey doctor" in expect_exit(0, "doctor", "--help").out
    assert "must begin with" in expect_exit(125, "doctor", "x").err
    assert "too many" in expect_exit(125, "doctor", "/x", "/y").err
    assert 'must not contain "//"' in expect_exit(125, "doctor", "/x//y").err
    assert "65535" in expect_exit(125, "doctor", "-z", "a:0").err
    assert "unknown option" in expect_exit(125, "doctor", "-Q").err


def what_cannot_be_written_is_125():
    with open("/dev/full", "w") as full:
        done = run("doctor", stdout=full)
    assert done.code == 125 and "standard output" in done.err, done


live.run(live.together(
    a_server_that_is_well_is_0,
    json_has_the_same_facts,
    each_server_is_told_of,
    without_any_server_it_ends_there,
    an_address_in_brackets_is_one,
    who_accepts_and_never_answers_is_named,
    slow_server_is_waited_for,
    nobody_is_waited_for_longer_than_asked,
    what_is_no_zookeeper_is_not_taken_for_one,
    an_old_server_is_named,
    a_server_that_lies_of_itself_is_only_quoted,
    a_server_without_quorum_is_named,
    a_session_is_what_counts,
    the_shortest_session_is_one,
    words_that_are_off_are_no_error,
    servers_of_two_ensembles_are_strangers,
    a_session_timeout_that_is_changed_is_noted,
    identities_are_shown_to_the_server,
    access_is_tried_without_a_trace,
    what_is_not_there_yet_must_be_possible,
    a_chroot_must_be_there,
    standing_still_is_noticed,
    usage_is_125,
    what_cannot_be_written_is_125),
    real_servers_say_so_too,
    a_server_that_insists_on_identities_is_told_of)
