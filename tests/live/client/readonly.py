# SPDX-License-Identifier: Apache-2.0
"""Read-only servers, and clients that use them until they find a server with a
quorum."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
from live import eventually
from worker import SEQUENTIAL, Worker

T = 3000  # the session timeout
MODE = ("--tick", "200", "--property", "readonlymode.enabled=true")
LOCAL = ("--config", "localSessionsEnabled=true",
         "--config", "localSessionsUpgradingEnabled=true")


def isro_reply(n):
    """The reply of server n to isro, "ro" or "rw"; "gone" if there is none."""
    try:
        return live.four_letter_word(three.zk.addresses[n - 1], "isro")
    except OSError:
        return "gone"


def wait_for_isro(n, word):
    eventually(lambda: isro_reply(n) == word, "server %d %s" % (n, word))


def others_than(n):
    return [m for m in (1, 2, 3) if m != n]


def wait_until_synced(worker, n, path):
    tested = worker.client(three.client_relays[n].address, timeout=T)
    eventually(lambda: tested.submit("get", path=path).result().err == "0")
    tested.do("close")


def expect_read_only(client, base):
    """Check that the read-only server executes reads and refuses writes, also
    when many requests are outstanding."""
    reads, writes = [], []
    for _ in range(100):
        reads.append(client.submit("get", path=base))
        writes.append(client.submit("create", path=base + "/x"))
        writes.append(client.submit("sync", path="/"))
    for r in reads:
        assert r.succeeds().data == b"old"
    for w in writes:
        w.fails("NOT_READ_ONLY")
    assert client.facts().session == 0


def get(path, *options):
    return command.run("get", "-z", three.connect, *options, path)


def expect_command_reads(path):
    done = get(path, "--connect-timeout", "1")
    assert done.code == 125 and done.out == "", done
    done = get(path, "--read-only")
    assert done.code == 0 and done.out == "old", done
    assert "has no quorum; what it shows may be old" in done.err, done
    lines = [line for line in done.err.splitlines()
             if "no session yet" not in line]  # printed after a second
    assert len(lines) == 1, done


def client_leaves_a_read_only_server_for_a_quorum():
    """The other servers have a quorum, but the client cannot connect to them.
    When it can, it leaves the read-only server, which does not close the
    connection."""
    with Worker() as worker:
        n = three.zk.follower()
        rest = others_than(n)
        maker = worker.client(three.client_relays[rest[0]].address, timeout=T)
        maker.wait_for_state("connected")
        base = maker.create("/cut-", data=b"old", flags=SEQUENTIAL).path
        calm = maker.create(base + "/calm").path
        wait_until_synced(worker, n, calm)
        three.cut_off(n)
        for m in rest:
            three.client_relays[m].refuse()
        wait_for_isro(n, "ro")
        plain = worker.client(three.client_relays[n].address, timeout=T)
        client = worker.client(three.connect, timeout=T, read_only=1)
        client.wait_for_state("read-only")
        lock = client.lock(base + "/l")
        pending = lock.submit("acquire")
        watch = client.submit("get", path=base, watch=1)
        assert watch.succeeds().data == b"old"
        unchanged = client.submit("get", path=calm, watch=1)
        unchanged.succeeds()
        expect_read_only(client, base)
        assert not pending.is_done()
        assert lock.inspect().state == "acquiring", lock.inspect()
        for m in rest:
            three.client_relays[m].accept()
        maker.do("set", path=base, data=b"new")
        shown = get(base, "--read-only")  # prefers a server with a quorum
        assert shown.out == "new" and shown.err == "", shown
        began = time.monotonic()
        client.wait_for_state("suspended")
        client.wait_for_state("connected")
        took = time.monotonic() - began
        assert isro_reply(n) == "ro"
        client.wait_for_event(watch, type=3)
        # A changed event (type 3), although the node is unchanged: the
        # read-only server may have shown a state that the quorum does not have.
        client.wait_for_event(unchanged, type=3)
        pending.succeeds()
        assert client.get(base).data == b"new"
        client.create(base + "/x")
        assert client.facts().session != 0
        assert not client.lines_like("state", "expired")
        assert lock.inspect().state == "held"
        lock.release()
        assert not plain.lines_like("state"), plain.lines_like("state")
        assert plain.facts().trouble == "REFUSED", plain.facts()
        print("moved after %.1f s" % took)
        client.do("close")
    three.heal()
    three.zk.wait()


def read_only_session_begins_after_the_expiry():
    """A client with a session keeps it, and its lock, until the session
    expires; only then it uses the read-only server."""
    with Worker() as worker:
        n = three.zk.follower()
        rest = others_than(n)
        client = worker.client(three.connect, timeout=T, read_only=1)
        client.wait_for_state("connected")
        base = client.create("/last-", data=b"old", flags=SEQUENTIAL).path
        lock = client.lock(base + "/l")
        lock.acquire()
        wait_until_synced(worker, n, base)
        for m in rest:
            three.zk.kill(m)
        client.wait_for_state("suspended")
        wait_for_isro(n, "ro")
        client.wait_for_state("expired")
        client.wait_for_state("read-only")
        lost = [line.word for line in lock.lines_like("lock")]
        assert lost[-2:] == ["unsure", "lost"], lost
        assert lock.inspect().deadline < client.facts().at, lock.inspect()
        expect_read_only(client, base)
        expect_command_reads(base)
        lock.submit("release").fails("LOST")
        pending = lock.submit("acquire")
        time.sleep(.5)
        assert not pending.is_done()
        three.zk.start(rest[0])
        client.wait_for_state("suspended")
        client.wait_for_state("connected")
        pending.succeeds()
        client.create(base + "/x")
        assert client.facts().session != 0
        lock.release()
        client.do("close")


def read_only_server_without_local_sessions_refuses_sessions():
    """The server replies with an error instead of a session, and keeps the
    connection open."""
    with Worker() as worker:
        three.zk.kill(2)
        three.zk.kill(3)
        wait_for_isro(1, "ro")
        client = worker.client(three.client_relays[1].address, timeout=T, read_only=1)
        eventually(lambda: client.facts().trouble == "NOT_READ_ONLY")
        assert not client.lines_like("state")
        three.zk.start(2)
        client.wait_for_state("connected")
        client.create("/made")
        client.do("close")


def ensemble(*options):
    servers = live.Ensemble(*MODE, *options)
    for wire in servers.client_relays.values():
        wire.frames = False  # clients also send `isro`, which is no frame
    return servers


with ensemble(*LOCAL) as three:
    live.run(
        client_leaves_a_read_only_server_for_a_quorum,
        read_only_session_begins_after_the_expiry,
    )
with ensemble() as three:
    live.run(read_only_server_without_local_sessions_refuses_sessions)
