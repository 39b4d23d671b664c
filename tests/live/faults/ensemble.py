# SPDX-License-Identifier: Apache-2.0
"""Three servers: sessions and locks move from a server that is killed, stopped
or separated to the others."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import relay
from live import eventually
from worker import Worker

T = 6000        # session timeout of tests that wait for it
LONG = 30000    # session timeout of tests with an election


def with_client(test, timeout=LONG):
    """Run the test with a client of all servers, each of which is behind a
    relay."""
    def with_it():
        three.zk.wait()
        eventually(three.zk.leader)
        with Worker() as worker:
            client = worker.client(three.connect, timeout=timeout)
            client.state("connected")
            base = client.create("/ensemble-", flags=2).path
            test(worker, client, base)
            client.do("close")
        for n in (1, 2, 3):
            if three.zk.pid(n) is None:
                three.zk.start(n)
    with_it.__name__ = test.__name__
    return with_it


def with_quick_client(test):
    return with_client(test, T)


def server_of(client):
    address = client.facts().server
    return [n for n, r in three.client.items() if r.address == address][0]


def connect_to(client, n):
    """Connect the client to server n."""
    for m, wire in three.client.items():
        if m != n:
            wire.refuse()
    if server_of(client) != n:
        three.client[server_of(client)].drop()
        client.state("suspended")
        client.state("connected")
    for wire in three.client.values():
        wire.accept()
    assert server_of(client) == n


def other_than(*numbers):
    return [n for n in (1, 2, 3) if n not in numbers][0]


def session_moves(worker, client, base, leave):
    """Call `leave`, and check that the session moves to another server with its
    ephemeral nodes, watches and waiting requests."""
    direct = worker.client(",".join(
        r.address for n, r in three.client.items() if n != server_of(client)),
        timeout=LONG)
    direct.state("connected")
    before = client.facts()
    old = server_of(client)
    mine = client.create(base + "/mine", flags=1)
    watch = client.submit("get", path=base, watch=1)
    calm = client.submit("get", path=mine.path, watch=1)
    watch.succeeds()
    calm.succeeds()
    leave(old)
    client.state("suspended")
    client.submit("sync", path="/", repeat=1).succeeds()
    now = client.facts()
    assert now.session == before.session, (before, now)
    assert server_of(client) != old
    direct.do("sync", path="/", repeat=1)
    assert direct.do("get", path=mine.path, repeat=1).owner == before.session
    eventually(lambda: direct.submit("set", path=base,
                                     data=b"1").result().err ==
               "0")
    client.event(watch, type=3)
    assert not [e for e in client.lines_like("event") if e.tag == calm.tag]
    direct.do("close")


@with_client
def session_survives_a_killed_follower(worker, client, base):
    connect_to(client, three.zk.follower())
    session_moves(worker, client, base, three.zk.kill)


@with_client
def session_survives_a_killed_leader(worker, client, base):
    connect_to(client, three.zk.leader())
    session_moves(worker, client, base, three.zk.kill)


@with_quick_client
def session_survives_a_stopped_server(worker, client, base):
    connect_to(client, three.zk.follower())
    stopped = server_of(client)
    session_moves(worker, client, base, three.zk.stop)
    three.zk.cont(stopped)


@with_client
def session_survives_an_election(worker, client, base):
    connect_to(client, three.zk.follower())
    before = client.facts()
    mine = client.create(base + "/mine", flags=1)
    three.zk.kill(three.zk.leader())
    eventually(lambda: client.submit("create", path=base + "/x-",
                                     flags=2).result().err == "0")
    assert client.facts().session == before.session
    assert client.do("get", path=mine.path, repeat=1).owner == before.session


@with_quick_client
def half_open_connection_is_replaced(worker, client, base):
    """The session moves while its old connection is still open. Requests that
    were sent over the old connection are not executed twice, and their replies
    are not taken for replies to other requests."""
    before = client.facts()
    for turn in range(2):
        wire = three.client[server_of(client)]
        wire.freeze(up=False)
        pending = client.submit("create", path=base + "/n-", flags=2)
        client.state("suspended")
        pending.fails("IN_DOUBT")
        client.state("connected")
        client.do("sync", path="/", repeat=1)
        made = client.submit("create", path="%s/own-%d-" % (base, turn),
                             flags=2).succeeds()
        assert made.path.startswith("%s/own-%d-" % (base, turn)), made
        wire.drop()
        wire.thaw()
    assert client.facts().session == before.session
    names = client.children(base).names
    assert len([n for n in names if n.startswith("n-")]) == 2, names


@with_client
def xids_continue_at_another_server(worker, client, base):
    marks = {n: wire.mark() for n, wire in three.client.items()}
    for n in (1, 2, 3, 1):
        connect_to(client, n)
        client.do("sync", path="/")
    frames = sorted((f for n, wire in three.client.items()
                     for f in wire.requests(marks[n])), key=lambda f: f.at)
    xids = [f.xid for f in frames]
    assert len(set(f.connection for f in frames)) > 1
    assert xids == list(range(xids[0], xids[0] + len(xids))), xids


@with_client
def server_that_is_behind_refuses_the_session(worker, client, base):
    """A server refuses a client that has seen a newer zxid than the server."""
    behind = three.zk.follower()
    ahead = other_than(behind, three.zk.leader())
    wire = three.client[ahead]
    target, lagging = ["%s:%d" % three.client[n].target
                       for n in (ahead, behind)]
    mover = worker.client(wire.address, timeout=T)
    mover.state("connected")
    before = mover.facts()
    three.cut_off(behind)
    mover.do("set", path=base, data=b"new")
    wire.lead_to(lagging)
    wire.drop()
    eventually(lambda: mover.facts().trouble == "REFUSED")
    assert three.zk.mode(behind) == "follower"  # it serves other clients
    pending = mover.submit("get", path=base)
    assert not pending.is_done()
    wire.lead_to(target)
    assert pending.succeeds().data == b"new"
    assert mover.facts().session == before.session
    mover.do("close")
    three.heal()
    three.zk.wait()


def lock_survives(leave, come_back, timeout):
    """A test in which the server of the holder, then that of the waiter, is
    taken down by `leave` and brought back by `come_back`."""
    @with_client
    def test(worker, client, base):
        names = ["one", "two"]
        locks = []
        for name in names:
            c = worker.client(three.connect, timeout=timeout)
            c.state("connected")
            locks.append((c, c.lock(base + "/l", data=name.encode())))
        holder, waiter = locks
        pending = holder[1].submit("acquire")
        pending.succeeds()
        for who in (holder, waiter):
            behind = waiter[1].submit("acquire")
            waiter[1].wait_until_queued()
            gone = server_of(who[0])
            leave(gone)
            who[0].state("suspended")
            who[0].state("connected")
            assert not behind.is_done()
            assert holder[1].inspect().state in ("held", "unsure")
            token = holder[1].inspect().token
            holder[1].release()
            assert behind.succeeds().token > token
            come_back(gone)
            three.zk.wait()
            holder, waiter = waiter, holder
        assert not holder[1].lines_like("lock", "lost")
        assert not waiter[1].lines_like("lock", "lost")
        holder[1].release()
        eventually(lambda: not client.do("children", path=base + "/l",
                                         repeat=1).names)
        for c, _ in locks:
            c.do("close")
    return test


def killed():
    lock_survives(three.zk.kill, three.zk.start, LONG)()


def stopped():
    lock_survives(three.zk.stop, three.zk.cont, 2 * T)()


killed.__name__ = "a_lock_survives_servers_that_are_killed"
stopped.__name__ = "a_lock_survives_servers_that_are_stopped"


@with_client
def cut_during_create_leaves_one_node(worker, client, base):
    """The old server receives the create, and the client connects to another
    server before the create is committed. The client must create one node, and
    not two."""
    lock = client.lock(base + "/l")
    lock.acquire()
    lock.release()
    for turn in range(4):
        wire = three.client[server_of(client)]
        trap = wire.trap("cut", op=relay.CREATE2, forward=True)
        pending = lock.submit("acquire")
        trap.wait()
        grant = pending.succeeds()
        time.sleep(.05)
        client.do("sync", path="/", repeat=1)
        names = client.do("children", path=base + "/l", repeat=1).names
        assert names == [grant.node.rpartition("/")[2]], (turn, names)
        lock.release()


def address(n):
    return three.client[n].address


@with_client
def client_moves_when_its_server_is_removed_from_the_list(worker, client, base):
    """The list of servers is replaced several times. The session and its lock
    survive, and no request fails."""
    connect_to(client, 1)
    before = client.facts()
    lock = client.lock(base + "/l")
    grant = lock.acquire()
    watch = client.submit("get", path=base, watch=1)
    watch.succeeds()
    for n in (2, 3, 1):
        pending = [client.submit("create", path=base + "/x-", flags=2)
                   for _ in range(50)]
        client.do("hosts", hosts=address(n))
        pending += [client.submit("create", path=base + "/y-", flags=2)
                    for _ in range(50)]
        assert client.state("suspended").err == "0"
        client.state("connected")
        for a in pending:
            a.succeeds()
        now = client.facts()
        assert now.session == before.session, (before, now)
        assert server_of(client) == n, now
        assert lock.inspect().token == grant.token
        client.do("hosts", hosts=address(n))  # the same list changes nothing
    made = len([name for name in client.children(base).names
                if name[:2] in ("x-", "y-")])
    assert made == 300, made
    assert lock.inspect().state == "held", lock.inspect()
    assert not lock.lines_like("lock", "lost") and not lock.lines_like("lock", "unsure")
    assert client.facts().connection == now.connection
    client.do("set", path=base, data=b"1")
    client.event(watch, type=3)
    client.do("hosts", hosts=three.connect)
    lock.release()


@with_client
def clients_spread_over_a_list_that_grows(worker, client, base):
    """Of thirty clients at one server, about twenty move to the two others."""
    crowd = [worker.client(address(1), timeout=LONG) for _ in range(30)]
    for c in crowd:
        c.state("connected")
    sessions = [c.facts().session for c in crowd]
    for c in crowd:
        c.do("hosts", hosts=three.connect)
    for c in crowd:
        c.do("sync", path="/", repeat=1)
    at = [server_of(c) for c in crowd]
    assert min(at.count(n) for n in (1, 2, 3)) >= 1, at
    assert [c.facts().session for c in crowd] == sessions
    pending = [c.submit("close") for c in crowd]
    for a in pending:
        a.succeeds()


with live.Ensemble("--tick", "500") as three:
    live.run(
        xids_continue_at_another_server,
        cut_during_create_leaves_one_node,
        server_that_is_behind_refuses_the_session,
        half_open_connection_is_replaced,
        client_moves_when_its_server_is_removed_from_the_list,
        clients_spread_over_a_list_that_grows,
        session_survives_a_killed_follower,
        session_survives_a_killed_leader,
        session_survives_a_stopped_server,
        session_survives_an_election,
        killed,
        stopped,
    )
