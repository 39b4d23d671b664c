# SPDX-License-Identifier: Apache-2.0
"""Read-only servers, and clients that use them until they find a server with a
quorum."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
import differences
import live
import relay
from live import eventually
from worker import SEQUENTIAL, Worker

TIMEOUT = 3000  # the session timeout in ms
CHANGED = 3  # a type of events
FAILED = 125  # the exit code of the command for an error of its own
READ_ONLY_MODE = ("--tick", "200", "--property", "readonlymode.enabled=true")
LOCAL_SESSIONS = ("--config", "localSessionsEnabled=true",
                  "--config", "localSessionsUpgradingEnabled=true")


def isro_reply(n):
    """The reply of server n to isro, "ro" or "rw"; "gone" if there is none."""
    try:
        return live.four_letter_word(ensemble.zk.addresses[n - 1], "isro")
    except OSError:
        return "gone"


def wait_for_isro(n, reply):
    eventually(lambda: isro_reply(n) == reply, "server %d %s" % (n, reply))


def servers_except(n):
    return [m for m in (1, 2, 3) if m != n]


def wait_until_server_has(worker, n, path):
    reader = worker.client(ensemble.client_relays[n].address, timeout=TIMEOUT)
    eventually(lambda: reader.submit("get", path=path).result().err == "0")
    reader.do("close")


def expect_read_only(client, base):
    """Check that the read-only server executes reads and refuses writes, also
    when many requests are outstanding."""
    reads, writes = [], []
    for _ in range(100):
        reads.append(client.submit("get", path=base))
        writes.append(client.submit("create", path=base + "/x"))
        writes.append(client.submit("sync", path="/"))
    for read in reads:
        assert read.succeeds().data == b"old"
    for write in writes:
        write.fails("NOT_READ_ONLY")
    assert client.facts().session == 0  # of a read-only server


def get(path, *options):
    """Run `latchkey get`."""
    return command.run("get", "-z", ensemble.connect, *options, path)


def expect_command_reads_only_if_asked(path):
    done = get(path, "--connect-timeout", "1")
    assert done.code == FAILED and done.out == "", done
    done = get(path, "--read-only")
    assert done.code == 0 and done.out == "old", done
    assert "has no quorum; what it shows may be old" in done.err, done
    # After a second the command prints also "no session yet".
    other_lines = [line for line in done.err.splitlines()
                   if "no session yet" not in line]
    assert len(other_lines) == 1, done


def client_leaves_a_read_only_server_for_a_quorum():
    """The other servers have a quorum, but the client cannot connect to them.
    When it can, it leaves the read-only server, although this server does not
    close the connection."""
    with Worker() as worker:
        n = ensemble.zk.follower()  # the read-only server
        rest = servers_except(n)
        writer = worker.client(ensemble.client_relays[rest[0]].address,
                               timeout=TIMEOUT)
        writer.wait_for_state("connected")
        base = writer.create("/cut-", data=b"old", flags=SEQUENTIAL).path
        unchanged_node = writer.create(base + "/unchanged").path
        wait_until_server_has(worker, n, unchanged_node)
        ensemble.cut_off(n)
        for m in rest:
            ensemble.client_relays[m].refuse()
        wait_for_isro(n, "ro")
        needs_quorum = worker.client(ensemble.client_relays[n].address,
                                     timeout=TIMEOUT)
        client = worker.client(ensemble.connect, timeout=TIMEOUT, read_only=1)
        client.wait_for_state("read-only")
        lock = client.lock(base + "/l")
        acquire = lock.submit("acquire")
        watch = client.submit("get", path=base, watch=1)
        assert watch.succeeds().data == b"old"
        watch_of_unchanged = client.submit("get", path=unchanged_node, watch=1)
        watch_of_unchanged.succeeds()
        expect_read_only(client, base)
        assert not acquire.is_done()
        assert lock.inspect().state == "acquiring", lock.inspect()
        for m in rest:
            ensemble.client_relays[m].accept()
        writer.do("set", path=base, data=b"new")
        # The command prefers a server with a quorum.
        shown = get(base, "--read-only")
        assert shown.out == "new" and shown.err == "", shown
        began = time.monotonic()
        client.wait_for_state("suspended")
        client.wait_for_state("connected")
        took = time.monotonic() - began
        assert isro_reply(n) == "ro"
        client.wait_for_event(watch, type=CHANGED)
        # The client reports a change of the unchanged node: the read-only server
        # may have shown a state that the quorum does not have.
        client.wait_for_event(watch_of_unchanged, type=CHANGED)
        acquire.succeeds()
        assert client.get(base).data == b"new"
        client.create(base + "/x")
        assert client.facts().session != 0
        assert not client.lines_like("state", "expired")
        assert lock.inspect().state == "held"
        lock.release()
        assert not needs_quorum.lines_like("state")
        assert needs_quorum.facts().trouble == "REFUSED"
        print("moved after %.1f s" % took)
        client.do("close")
    ensemble.heal()
    ensemble.zk.wait()


def read_only_session_begins_after_the_expiry_of_a_session():
    """A client with a session keeps it, and its lock, until the session
    expires; only then it uses the read-only server."""
    with Worker() as worker:
        n = ensemble.zk.follower()
        rest = servers_except(n)
        client = worker.client(ensemble.connect, timeout=TIMEOUT, read_only=1)
        client.wait_for_state("connected")
        base = client.create("/last-", data=b"old", flags=SEQUENTIAL).path
        lock = client.lock(base + "/l")
        lock.acquire()
        wait_until_server_has(worker, n, base)
        for m in rest:
            ensemble.zk.kill(m)
        client.wait_for_state("suspended")
        wait_for_isro(n, "ro")
        client.wait_for_state("expired")
        client.wait_for_state("read-only")
        lock_events = [line.word for line in lock.lines_like("lock")]
        assert lock_events[-2:] == ["unsure", "lost"], lock_events
        assert lock.inspect().deadline < client.facts().at, lock.inspect()
        expect_read_only(client, base)
        expect_command_reads_only_if_asked(base)
        lock.submit("release").fails("LOST")
        acquire = lock.submit("acquire")
        time.sleep(.5)  # time for a wrong completion
        assert not acquire.is_done()
        ensemble.zk.start(rest[0])
        client.wait_for_state("suspended")
        client.wait_for_state("connected")
        acquire.succeeds()
        client.create(base + "/x")
        assert client.facts().session != 0
        lock.release()
        client.do("close")


def sessions_of_a_read_only_server_without_local_sessions():
    """The server replies with an error instead of a session, and keeps the
    connection open; or, an older one, with a session."""
    with Worker() as worker:
        ensemble.zk.kill(2)
        ensemble.zk.kill(3)
        wait_for_isro(1, "ro")
        client = worker.client(ensemble.client_relays[1].address, timeout=TIMEOUT,
                               read_only=1)
        if differences.has("READ_ONLY_SESSIONS_ARE_LOCAL"):
            eventually(lambda: client.facts().trouble == "NOT_READ_ONLY")
            assert not client.lines_like("state")
        else:
            client.wait_for_state("read-only")
        ensemble.zk.start(2)
        client.wait_for_state("connected")
        client.create("/made")
        client.do("close")


def start_ensemble(*options):
    servers = live.Ensemble(*READ_ONLY_MODE, *options)
    for wire in servers.client_relays.values():
        # Clients also send `isro`, which is no frame.
        wire.parsed = relay.UNPARSED
    return servers


with start_ensemble(*LOCAL_SESSIONS) as ensemble:
    live.run(
        client_leaves_a_read_only_server_for_a_quorum,
        read_only_session_begins_after_the_expiry_of_a_session,
    )
with start_ensemble() as ensemble:
    live.run(sessions_of_a_read_only_server_without_local_sessions)
