# SPDX-License-Identifier: Apache-2.0
"""latchkey doctor reports each broken layer of a connection, and no other."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(sys.path[0] + "/../support")

import command
import differences
from command import expect_exit, run, start
import live
import relay

zk = command.serve()


def run_doctor(*words, code, **options):
    """Run `latchkey doctor --json`, and check its exit code; gives its
    findings."""
    done = run("doctor", "--json", *words, **options)
    assert done.code == code, done
    (facts,) = done.json()
    assert facts["state"] == ("ok" if code == 0 else "broken"), facts
    return facts["findings"]


def finding(layer, findings):
    (one,) = [f for f in findings if f["layer"] == layer]
    return one


def without_clocks(findings):
    """The findings without that of the clocks, which is the last one."""
    assert findings[-1]["layer"] == "clocks", findings
    return findings[:-1]


def problems(findings):
    """(layer, verdict) of each finding that is not ok. Interruptions of the
    process are left out, since they are common on a busy machine."""
    return [(f["layer"], f["verdict"]) for f in findings
            if f["verdict"] != "ok"
            and (f["layer"], f["verdict"]) != ("clocks", "note")]


@contextlib.contextmanager
def listener(serve, backlog=16):
    """A fake server, which calls serve(connection) for each connection."""
    server_socket = socket.create_server(("127.0.0.1", 0), backlog=backlog)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection = server_socket.accept()[0]
                threading.Thread(target=serve_and_close, args=(connection,),
                                 daemon=True).start()

    def serve_and_close(connection):
        with connection, contextlib.suppress(OSError):
            serve(connection)

    threading.Thread(target=accept, daemon=True).start()
    yield "127.0.0.1:%d" % server_socket.getsockname()[1]
    server_socket.shutdown(socket.SHUT_RDWR)
    server_socket.close()


def srvr_server(reply, serve_session):
    """What a fake server does with a connection: it replies to the four-letter
    word srvr, and calls serve_session(connection, its first 4 bytes) if the
    connection begins with other bytes."""
    def serve(connection):
        first = connection.recv(4)
        if first == b"srvr":
            connection.sendall(reply)
        else:
            serve_session(connection, first)
    return serve


def forward_to_server(connection, first):
    """Forward the connection, which began with the bytes `first`, to the real
    server."""
    host, _, port = zk.connect.rpartition(":")
    with socket.create_connection((host, int(port))) as server:
        server.sendall(first)

        def forward_replies():
            with contextlib.suppress(OSError):
                while piece := server.recv(65536):
                    connection.sendall(piece)
                connection.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=forward_replies, daemon=True).start()
        while piece := connection.recv(65536):
            server.sendall(piece)


# A socket that is bound and does not listen: nothing else can get its port.
dead_socket = socket.socket()
dead_socket.bind(("127.0.0.1", 0))


def closed_port():
    return "127.0.0.1:%d" % dead_socket.getsockname()[1]


# ---- a working server --------------------------------------------------------------

def working_server_has_no_problems():
    expect_exit(0, "create", "/well")
    before = expect_exit(0, "stat", "/well").out
    done = expect_exit(0, "doctor", "/well")
    # Each line has the verdict "ok"; that of the clocks may have "note".
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


def json_has_the_same_findings():
    server, session, trip, access, clocks = run_doctor(code=0)
    assert server.pop("text").endswith("standalone, session timeout 30000 ms")
    assert re.fullmatch(r"3\.\d+\.\d+", server.pop("version"))
    assert server == {
        "layer": "server", "verdict": "ok", "server": zk.connect,
        "address": zk.connect, "software": "ZooKeeper", "mode": "standalone",
        "timeout_ms": 30000, "advice": None}, server
    assert re.fullmatch("0x[0-9a-f]+", session["session"])
    assert session["server"] == zk.connect and session["timeout_ms"] == 30000
    assert 0 < trip["median_us"] < 10000000, trip
    assert access["path"] == "/" and access["node"] == "/", access
    assert access["read"] and access["create"] and access["delete"], access
    assert clocks["took_ms"] < 60000, clocks
    uninterrupted = clocks["verdict"] == "ok"
    assert uninterrupted == (
        clocks["paused_ms"] == 0 and clocks["set_ms"] == 0), clocks
    assert uninterrupted == ("no interruption in the %d ms" % clocks["took_ms"]
                             in clocks["text"]), clocks


# ---- connections ----------------------------------------------------------------------

def each_server_is_reported():
    closed = closed_port()
    findings = run_doctor(
        "-z", "no-such-host.invalid,%s,%s" % (closed, zk.connect), code=1)
    name, port, server = findings[:3]
    assert name["layer"] == "name" and name["verdict"] == "broken", name
    assert name["server"] == "no-such-host.invalid:2181", name
    assert name["advice"], name
    assert port["layer"] == "port" and port["server"] == closed, port
    assert "refused" in port["text"] and port["advice"], port
    assert server["layer"] == "server" and server["verdict"] == "ok", server
    # One working server is enough for the layers above the connection.
    assert finding("access", findings)["verdict"] == "ok"


def unreachable_servers_end_the_examination():
    findings = run_doctor("-z", closed_port(), code=1)
    assert [f["layer"] for f in findings] == ["port", "clocks"], findings
    assert problems(findings) == [("port", "broken")], findings


def ipv6_address_in_brackets_is_accepted():
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server_socket:
        port = server_socket.getsockname()[1]
    (one,) = without_clocks(run_doctor("-z", "[::1]:%d" % port, code=1))
    assert one["layer"] == "port", one
    assert one["server"] == one["address"] == "[::1]:%d" % port, one


def silent_server_is_reported():
    with relay.Relay(zk.connect) as proxy:
        proxy.freeze()
        began = time.monotonic()
        findings = run_doctor("-z", proxy.address, "--connect-timeout", "0.7",
                              code=1)
        assert time.monotonic() - began < 30
        assert problems(findings)[0] == ("answer", "broken"), findings
        assert "does not reply" in findings[0]["text"], findings
        assert "not its client port" in findings[0]["advice"], findings


def doctor_waits_for_a_slow_server():
    with relay.Relay(zk.connect, relay.UNPARSED) as proxy:
        proxy.delay(200, up=False)
        findings = run_doctor("-z", proxy.address, code=0)
    one = finding("session", findings)
    assert one["verdict"] == "ok", findings


def connect_timeout_limits_every_wait():
    def send_bytes_slowly(connection):
        while True:
            connection.sendall(b"x")
            time.sleep(.1)

    def send_without_end(connection):
        while True:
            connection.sendall(b"Zookeeper version: " + b"3" * 60000)

    for serve in (send_bytes_slowly, send_without_end):
        with listener(serve) as address:
            began = time.monotonic()
            findings = run_doctor("-z", address, "--connect-timeout", "3",
                                  code=1)
            assert time.monotonic() - began < 30
            assert problems(findings)[0] == ("session", "broken"), findings
            assert len(findings[0]["text"]) < 4000, findings


def doctor_makes_few_connections():
    """One for each four-letter word, one by TLS, and those of a session."""
    count = 0

    def reply(connection):
        nonlocal count
        count += 1
        if connection.recv(4) == b"srvr":
            connection.sendall(b"no such command")

    with listener(reply) as address:
        run_doctor("-z", address, code=1)
    assert 2 <= count <= 5, count


def server_that_is_not_zookeeper_is_reported():
    def reply_with_http(connection):
        connection.recv(100)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n\x1b[31m\xff")

    def hang_up(connection):
        connection.recv(100)

    def reset(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                              relay.LINGER_RESET)

    for serve in (reply_with_http, hang_up, reset):
        with listener(serve) as address:
            (one,) = without_clocks(run_doctor("-z", address, code=1))
            assert one["layer"] == "session", one
            assert "the client port of a ZooKeeper" in one["advice"], one
            out = run("doctor", "-z", address).out
            assert out.startswith("broken  session ") and "\x1b" not in out


# ---- replies to four-letter words -------------------------------------------------------

def old_server_is_reported():
    with listener(srvr_server(
            b"Zookeeper version: 3.4.14-4c25d480e66aadd371de8bd2fd8da255ac"
            b"140bcf, built on 03/06/2019 16:18 GMT\nLatency min/avg/max: "
            b"0/0/0\nMode: standalone\nNode count: 4\n",
            forward_to_server)) as address:
        findings = run_doctor("-z", address, code=1)
        assert problems(findings)[0] == ("version", "broken"), findings
        assert findings[0]["version"] == "3.4.14", findings
        assert "3.5.9" in findings[0]["advice"], findings


def other_software_is_a_note():
    for reply, software in ((b"RaftKeeper version: v2.3.0-x, built on x\nMode: "
                             b"standalone\n", "RaftKeeper"),
                            (b"ClickHouse Keeper version: v3.4.1.2-x\nMode: "
                             b"leader\n", "ClickHouse Keeper")):
        with listener(srvr_server(reply, forward_to_server)) as address:
            findings = run_doctor("-z", address, code=0)
            assert problems(findings) == [("software", "note")], findings
            assert findings[0]["software"] == software, findings
            assert "fencing tokens" in findings[0]["advice"], findings
            assert software + " v" in findings[0]["text"], findings


def untrusted_reply_of_a_server_is_quoted():
    with listener(srvr_server(b"Zookeeper version: \x1b[31m\xff, x\nMode: \x1b\xff"
                              b"\n", forward_to_server)) as address:
        findings = run_doctor("-z", address, code=0)
        assert findings[0]["mode"] == "\x1b\ufffd", findings
        out = expect_exit(0, "doctor", "-z", address).out
        assert "\x1b" not in out and "\\x1b[31m\\xff" in out, out


def server_without_quorum_is_reported():
    """The servers are fake; a test with real ones follows below."""
    def hang_up(connection, first):
        pass

    for reply, layer in (
            (b"This ZooKeeper instance is not currently serving requests\n",
             "quorum"),
            (b"Zookeeper version: 3.8.0-x, built on x\nREAD-ONLY mode; serving"
             b" only read-only clients\nMode: read-only\n", "read-only")):
        with listener(srvr_server(reply, hang_up)) as address:
            (one,) = without_clocks(run_doctor("-z", address, code=1))
            assert one["layer"] == layer and "majority" in one["advice"], one


FOLLOWER = b"Zookeeper version: 3.8.0-x, built on x\nMode: follower\n"


def server_that_grants_no_session_is_broken():
    """The server replies to srvr, and refuses sessions or does not reply."""
    def hang_up(connection, first):
        connection.recv(65536)

    def say_nothing(connection, first):
        connection.recv(65536)
        connection.recv(1)

    for serve_session, reason in (
            (hang_up, "the server closed the connection without a reply"),
            (say_nothing, "no reply in time")):
        with listener(srvr_server(FOLLOWER, serve_session)) as address:
            (one,) = without_clocks(run_doctor(
                "-z", address, "--connect-timeout", "4", code=1))
            assert one["layer"] == "session" and "log" in one["advice"], one
            assert one["text"] == "%s: gives no session: %s" % (
                address, reason), one


def session_timeout_of_one_ms_is_accepted():
    """The server grants 1 ms and sends nothing more, so that only the finding
    of the server is ok."""
    def grant(connection, first):
        connection.recv(65536)
        # Frame length, protocol version, timeout, session, password, read-only.
        connection.sendall(struct.pack(">iiiqi16s?", 37, 0, 1, 4711, 16, b"", False))
        connection.recv(1)

    with listener(srvr_server(FOLLOWER, grant)) as address:
        server = run_doctor("-z", address, "--connect-timeout", "4", code=1)[0]
        assert server["verdict"] == "ok" and server["timeout_ms"] == 1, server


def disabled_four_letter_words_are_no_error():
    """ZooKeeper always replies to srvr; proxies and other servers may not."""
    disabled = b"%s is not executed because it is not in the whitelist.\n"
    srvr_disabled = {b"srvr": disabled % b"srvr"}
    isro_disabled = {b"isro": disabled % b"isro"}

    def server_with(replies):
        """A fake server with these replies to four-letter words. It closes the
        connection of each other four-letter word."""
        def serve(connection):
            first = connection.recv(4)
            if first in replies:
                connection.sendall(replies[first])
            elif first not in (b"srvr", b"isro", b"ruok"):
                forward_to_server(connection, first)
        return serve

    for replies in ({}, srvr_disabled, {**srvr_disabled, b"isro": b"rw"},
                    {**srvr_disabled, **isro_disabled, b"ruok": b"imok"}):
        with listener(server_with(replies)) as address:
            findings = run_doctor("-z", address, code=0)
            assert problems(findings)[0] == ("words", "note"), findings
            assert findings[0]["timeout_ms"] == 30000, findings
    # A server without a quorum replies "null" to isro.
    with listener(server_with({**srvr_disabled, b"isro": b"null"})) as address:
        assert problems(run_doctor("-z", address, code=1))[0] == (
            "quorum", "broken")


def servers_of_two_ensembles_are_reported():
    with listener(srvr_server(b"Zookeeper version: 3.8.0-x, built on x\nMode: "
                              b"leader\n", forward_to_server)) as address:
        findings = run_doctor("-z", "%s,%s" % (zk.connect, address), code=1)
        one = finding("ensemble", findings)
        assert one["servers"] == [zk.connect, address], one
        # One server under two names is one ensemble.
        run_doctor("-z", "%s,%s" % (zk.connect, zk.connect), code=0)


def real_ensemble_without_quorum_is_reported():
    """A majority is killed: first the server replies nothing, then it is a
    read-only server."""
    with command.zkserver.Server("--property", "readonlymode.enabled=true",
                                 servers=3) as ensemble:
        modes = [f.get("mode") for f in
                 run_doctor("-z", ensemble.connect, code=0)[:3]]
        assert sorted(modes) == ["follower", "follower", "leader"], modes
        ensemble.kill(2)
        ensemble.kill(3)
        killed_at = time.monotonic()
        while True:
            findings = run_doctor("-z", ensemble.connect, code=1)
            layers = [f["layer"] for f in findings]
            assert layers[1:3] == ["port", "port"], findings
            if layers[0] == "read-only":
                break
            # Until it is read-only, it may close connections without a reply.
            assert layers[0] in ("quorum", "session"), findings
            assert time.monotonic() < killed_at + live.worker.SECONDS
            time.sleep(.05)
        assert findings[0]["mode"] == "read-only", findings


# ---- the session and its permissions ------------------------------------------------------

def changed_session_timeout_is_a_note():
    findings = run_doctor("-T", "90", code=0)
    one = finding("timeout", findings)
    assert one["verdict"] == "note" and one["wanted_ms"] == 90000, one
    assert one["timeout_ms"] == 60000 and "maxSessionTimeout" in one["advice"]
    assert findings[0]["timeout_ms"] == 60000, findings


def identities_are_sent_to_the_server():
    with tempfile.NamedTemporaryFile("w", suffix=".auth") as file:
        file.write("digest:me:secret\nip:\n")
        file.flush()
        findings = run_doctor("--auth-file", file.name, code=0)
        assert finding("auth", findings)["verdict"] == "ok"
        expect_exit(0, "create", "--auth-file", file.name, "--acl", "creator",
                    "/mine")
        run_doctor("--auth-file", file.name, "/mine", code=0)
        file.write("no-such-scheme:x\n")
        file.flush()
        findings = run_doctor("--auth-file", file.name, code=1)
        one = finding("auth", findings)
        assert one["verdict"] == "broken" and "--auth-file" in one["advice"]
        assert "access" not in [f["layer"] for f in findings], findings
    # The file has been deleted at the end of the `with` block.
    one = finding("auth", run_doctor("--auth-file", file.name, code=1))
    assert file.name in one["text"] and "No such file" in one["text"], one
    assert finding("access", run_doctor("/mine", code=1))["read"] is False


def server_with_too_many_connections_is_reported():
    """The connections count per client address."""
    with command.zkserver.Server("--config", "maxClientCnxns=1") as server, \
            start("run", "-z", server.connect, "/l", "cat",
                  stdin=subprocess.PIPE) as process:
        process.stdin.write("holds\n")
        process.stdin.flush()
        assert process.stdout.readline() == "holds\n"
        for _ in range(5):  # with and without a RST
            (one,) = without_clocks(run_doctor("-z", server.connect, code=1))
            assert one["layer"] == "session", one
            assert "closed the connection without a reply" in one["text"], one
            assert "maxClientCnxns" in one["advice"], one
            done = run("ls", "-z", server.connect, "--connect-timeout", "0.5", "/")
            assert done.code == 125, done
            assert "has reached maxClientCnxns" in done.err, done
        process.stdin.close()


def server_that_requires_identities_is_reported():
    differences.need("SCHEMES_ENFORCED")
    with command.zkserver.Server(
            "--property", "zookeeper.enforce.auth.enabled=true",
            "--property", "zookeeper.enforce.auth.schemes=digest") as other, \
            tempfile.NamedTemporaryFile("w", suffix=".auth") as file:
        findings = run_doctor("-z", other.connect, code=1)
        assert problems(findings) == [("auth", "broken")], findings
        assert "--auth-file" in finding("auth", findings)["advice"]
        file.write("digest:me:secret\n")
        file.flush()
        findings = run_doctor("-z", other.connect, "--auth-file", file.name,
                              code=0)
        assert finding("access", findings)["create"] is True, findings


def access_check_changes_no_node():
    expect_exit(0, "create", "/acl")
    # None: doctor cannot check the permission to delete without that to create.
    for perms, read, create, delete in (
            ("r", True, False, None), ("w", False, False, None),
            ("cd", False, True, True), ("cr", True, True, False)):
        path = "/acl/" + perms
        expect_exit(0, "create", "--acl", "world:anyone:" + perms, path)
        before = expect_exit(0, "stat", path).out if read else None
        one = finding("access", run_doctor(path, code=1))
        missing = one["text"].split("no permission to")[1]
        for name, permitted in (("read", read), ("create", create),
                                ("delete", delete)):
            assert one.get(name) == permitted, one
            assert (name in missing) == (permitted is False), one
        if read:
            assert expect_exit(0, "stat", path).out == before
    expect_exit(0, "create", "--acl", "world:anyone:crd", "/acl/all")
    run_doctor("/acl/all", code=0)


def missing_path_is_checked_at_its_nearest_parent():
    expect_exit(0, "create", "/up")
    expect_exit(0, "create", "--acl", "world:anyone:c", "/up/create")
    one = finding("access", run_doctor("/up/create/a/b", code=0))
    assert one["path"] == "/up/create/a/b", one
    assert one["node"] == "/up/create", one
    expect_exit(0, "create", "--acl", "world:anyone:r", "/up/read")
    one = finding("access", run_doctor("/up/read/a", code=1))
    assert one["create"] is False and "/up/read/a does not exist" in one["text"]


def missing_chroot_is_broken():
    one = finding("access", run_doctor("-z", zk.connect + "/chroot", code=1))
    assert "/chroot does not exist" in one["text"] and "create -p" in \
        one["advice"], one
    expect_exit(0, "create", "/chroot")
    run_doctor("-z", zk.connect + "/chroot", code=0)


# ---- clocks, usage --------------------------------------------------------------------------

def interruption_of_the_process_is_reported():
    # 1.2 s are a small part of a session timeout of 30 s, and a large one of 2 s.
    for timeout, code, verdict in (("30", 0, "note"), ("2", 1, "broken")):
        with relay.Relay(zk.connect, relay.UNPARSED) as proxy:
            proxy.freeze()
            with start("doctor", "--json", "-T", timeout, "-z",
                       proxy.address) as process:
                live.eventually(lambda: proxy.accepted > 0 or proxy.opening)
                os.kill(process.pid, signal.SIGSTOP)
                time.sleep(1.2)
                os.kill(process.pid, signal.SIGCONT)
                proxy.thaw()
                done = process.finish()
        assert done.code == code, done
        one = finding("clocks", done.json()[0]["findings"])
        assert one["verdict"] == verdict and one["paused_ms"] >= 1000, one
        assert "did not run" in one["text"] and "-T" in one["advice"], one
        assert "evenly" not in one["text"], one


def usage_error_exits_with_125():
    assert "usage: latchkey doctor" in expect_exit(0, "doctor", "--help").out
    assert "must begin with" in expect_exit(125, "doctor", "x").err
    assert "too many" in expect_exit(125, "doctor", "/x", "/y").err
    assert 'must not contain "//"' in expect_exit(125, "doctor", "/x//y").err
    assert "65535" in expect_exit(125, "doctor", "-z", "a:0").err
    assert "unknown option" in expect_exit(125, "doctor", "-Q").err


def unwritable_output_exits_with_125():
    with open("/dev/full", "w") as full:
        done = run("doctor", stdout=full)
    assert done.code == 125 and "standard output" in done.err, done


live.run(live.together(
    working_server_has_no_problems,
    json_has_the_same_findings,
    each_server_is_reported,
    unreachable_servers_end_the_examination,
    ipv6_address_in_brackets_is_accepted,
    silent_server_is_reported,
    doctor_waits_for_a_slow_server,
    connect_timeout_limits_every_wait,
    doctor_makes_few_connections,
    server_that_is_not_zookeeper_is_reported,
    old_server_is_reported,
    other_software_is_a_note,
    untrusted_reply_of_a_server_is_quoted,
    server_without_quorum_is_reported,
    server_that_grants_no_session_is_broken,
    session_timeout_of_one_ms_is_accepted,
    disabled_four_letter_words_are_no_error,
    servers_of_two_ensembles_are_reported,
    changed_session_timeout_is_a_note,
    identities_are_sent_to_the_server,
    access_check_changes_no_node,
    missing_path_is_checked_at_its_nearest_parent,
    missing_chroot_is_broken,
    interruption_of_the_process_is_reported,
    usage_error_exits_with_125,
    unwritable_output_exits_with_125),
    real_ensemble_without_quorum_is_reported,
    server_with_too_many_connections_is_reported,
    server_that_requires_identities_is_reported)
