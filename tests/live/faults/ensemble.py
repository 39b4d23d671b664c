# SPDX-License-Identifier: Apache-2.0
"""Three servers: sessions and locks move from a server that is killed, stopped
or separated to the others."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import relay
from live import eventually
from worker import EPHEMERAL, SEQUENTIAL, Worker

# Session timeouts in ms: of tests that wait for it, and of tests with an
# election.
SHORT = 6000
LONG = 30000
DATA_CHANGED = 3  # the type of an event


def with_client(test, timeout=LONG):
    """Run the test with a client of all servers, each of which is behind a
    relay."""
    def run_test():
        three.zk.wait()
        eventually(three.zk.leader)
        with Worker() as worker:
            client = worker.client(three.connect, timeout=timeout)
            client.wait_for_state("connected")
            base = client.create("/ensemble-", flags=SEQUENTIAL).path
            test(worker, client, base)
            client.do("close")
        for n in (1, 2, 3):
            if three.zk.pid(n) is None:
                three.zk.start(n)
    run_test.__name__ = test.__name__
    return run_test


def with_short_session(test):
    return with_client(test, SHORT)


def server_of(client):
    address = client.facts().server
    (number,) = [n for n, r in three.client_relays.items() if r.address == address]
    return number


def connect_to(client, n):
    """Connect the client to server n."""
    for m, wire in three.client_relays.items():
        if m != n:
            wire.refuse()
    if server_of(client) != n:
        three.client_relays[server_of(client)].drop()
        client.wait_for_state("suspended")
        client.wait_for_state("connected")
    for wire in three.client_relays.values():
        wire.accept()
    assert server_of(client) == n


def third_server(one, another):
    (number,) = {1, 2, 3} - {one, another}
    return number


def check_session_moves(worker, client, base, disable):
    """Call disable() with the number of the client's server, and check that the
    session moves to another server with its ephemeral nodes, watches and
    waiting requests."""
    direct = worker.client(",".join(
        r.address for n, r in three.client_relays.items() if n != server_of(client)),
        timeout=LONG)
    direct.wait_for_state("connected")
    before = client.facts()
    old = server_of(client)
    node = client.create(base + "/ephemeral", flags=EPHEMERAL)
    watch = client.submit("get", path=base, watch=1)
    silent_watch = client.submit("get", path=node.path, watch=1)
    watch.succeeds()
    silent_watch.succeeds()
    disable(old)
    client.wait_for_state("suspended")
    client.submit("sync", path="/", repeat=1).succeeds()
    now = client.facts()
    assert now.session == before.session, (before, now)
    assert server_of(client) != old
    direct.do("sync", path="/", repeat=1)
    assert direct.do("get", path=node.path, repeat=1).owner == before.session
    eventually(lambda: direct.submit(
        "set", path=base, data=b"1").result().err == "0")
    client.wait_for_event(watch, type=DATA_CHANGED)
    assert not any(event.tag == silent_watch.tag
                   for event in client.lines_like("event"))
    direct.do("close")


@with_client
def session_survives_a_killed_follower(worker, client, base):
    connect_to(client, three.zk.follower())
    check_session_moves(worker, client, base, three.zk.kill)


@with_client
def session_survives_a_killed_leader(worker, client, base):
    connect_to(client, three.zk.leader())
    check_session_moves(worker, client, base, three.zk.kill)


@with_short_session
def session_survives_a_stopped_server(worker, client, base):
    connect_to(client, three.zk.follower())
    stopped = server_of(client)
    check_session_moves(worker, client, base, three.zk.stop)
    three.zk.cont(stopped)


@with_client
def session_survives_an_election(worker, client, base):
    connect_to(client, three.zk.follower())
    before = client.facts()
    node = client.create(base + "/ephemeral", flags=EPHEMERAL)
    three.zk.kill(three.zk.leader())
    eventually(lambda: client.submit("create", path=base + "/x-",
                                     flags=SEQUENTIAL).result().err == "0")
    assert client.facts().session == before.session
    assert client.do("get", path=node.path, repeat=1).owner == before.session


@with_short_session
def half_open_connection_is_replaced(worker, client, base):
    """The session moves while its old connection is still open. Requests that
    were sent over the old connection are not executed twice, and their replies
    are not taken for replies to other requests."""
    before = client.facts()
    for turn in range(2):
        wire = three.client_relays[server_of(client)]
        wire.freeze(up=False)
        pending = client.submit("create", path=base + "/n-", flags=SEQUENTIAL)
        client.wait_for_state("suspended")
        pending.fails("IN_DOUBT")
        client.wait_for_state("connected")
        client.do("sync", path="/", repeat=1)
        created = client.submit("create", path="%s/later-%d-" % (base, turn),
                                flags=SEQUENTIAL).succeeds()
        assert created.path.startswith("%s/later-%d-" % (base, turn)), created
        wire.drop()
        wire.thaw()
    assert client.facts().session == before.session
    names = client.children(base).names
    assert len([n for n in names if n.startswith("n-")]) == 2, names


@with_client
def xids_continue_at_another_server(worker, client, base):
    marks = {n: wire.mark() for n, wire in three.client_relays.items()}
    for n in (1, 2, 3, 1):
        connect_to(client, n)
        client.do("sync", path="/")
    frames = sorted((f for n, wire in three.client_relays.items()
                     for f in wire.requests(marks[n])), key=lambda f: f.at)
    xids = [f.xid for f in frames]
    assert len(set(f.connection for f in frames)) > 1
    assert xids == list(range(xids[0], xids[0] + len(xids))), xids


@with_client
def server_that_is_behind_refuses_the_session(worker, client, base):
    """A server refuses a client that has seen a newer zxid than the server."""
    behind = three.zk.follower()
    ahead = third_server(behind, three.zk.leader())
    wire = three.client_relays[ahead]
    address_ahead, address_behind = ["%s:%d" % three.client_relays[n].target
                                     for n in (ahead, behind)]
    moving = worker.client(wire.address, timeout=SHORT)
    moving.wait_for_state("connected")
    before = moving.facts()
    three.cut_off(behind)
    moving.do("set", path=base, data=b"new")
    wire.lead_to(address_behind)
    wire.drop()
    eventually(lambda: moving.facts().trouble == "REFUSED")
    assert three.zk.mode(behind) == "follower"  # it serves other clients
    pending = moving.submit("get", path=base)
    assert not pending.is_done()
    wire.lead_to(address_ahead)
    assert pending.succeeds().data == b"new"
    assert moving.facts().session == before.session
    moving.do("close")
    three.heal()
    three.zk.wait()


def check_lock_survives(worker, client, base, disable, enable, timeout):
    """Acquire a lock twice; each time, a client of the lock loses its server,
    first the holder and then the waiter. disable() and enable() take the number
    of this server."""
    clients = [worker.client(three.connect, timeout=timeout) for _ in range(2)]
    for c in clients:
        c.wait_for_state("connected")
    first, second = [c.lock(base + "/l") for c in clients]
    first.acquire()
    # In the second turn, clients[1] is the waiter's client.
    holder, waiter = first, second
    for affected in clients:
        pending = waiter.submit("acquire")
        waiter.wait_until_queued()
        server = server_of(affected)
        disable(server)
        affected.wait_for_state("suspended")
        affected.wait_for_state("connected")
        assert not pending.is_done()
        assert holder.inspect().state in ("held", "unsure")
        token = holder.inspect().token
        holder.release()
        assert pending.succeeds().token > token
        enable(server)
        three.zk.wait()
        holder, waiter = waiter, holder
    assert not first.lines_like("lock", "lost")
    assert not second.lines_like("lock", "lost")
    holder.release()
    eventually(lambda: not client.do("children", path=base + "/l",
                                     repeat=1).names)
    for c in clients:
        c.do("close")


@with_client
def lock_survives_servers_that_are_killed(worker, client, base):
    check_lock_survives(worker, client, base, disable=three.zk.kill,
                        enable=three.zk.start, timeout=LONG)


@with_client
def lock_survives_servers_that_are_stopped(worker, client, base):
    check_lock_survives(worker, client, base, disable=three.zk.stop,
                        enable=three.zk.cont, timeout=2 * SHORT)


@with_client
def cut_during_create_leaves_one_node(worker, client, base):
    """The old server receives the create, and the client connects to another
    server before the create is committed. The client must create one node, and
    not two."""
    lock = client.lock(base + "/l")
    lock.acquire()
    lock.release()
    for turn in range(4):
        wire = three.client_relays[server_of(client)]
        trap = wire.at_frame("cut", op=relay.CREATE2, forward=True)
        pending = lock.submit("acquire")
        trap.wait()
        grant = pending.succeeds()
        time.sleep(.05)  # long enough to commit a second create, if there is one
        client.do("sync", path="/", repeat=1)
        names = client.do("children", path=base + "/l", repeat=1).names
        assert names == [grant.node.rpartition("/")[2]], (turn, names)
        lock.release()


def address(n):
    return three.client_relays[n].address


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
        pending = [client.submit("create", path=base + "/x-", flags=SEQUENTIAL)
                   for _ in range(50)]
        client.do("hosts", hosts=address(n))
        pending += [client.submit("create", path=base + "/y-", flags=SEQUENTIAL)
                    for _ in range(50)]
        assert client.wait_for_state("suspended").err == "0"
        client.wait_for_state("connected")
        for create in pending:
            create.succeeds()
        now = client.facts()
        assert now.session == before.session, (before, now)
        assert server_of(client) == n, now
        assert lock.inspect().token == grant.token
        client.do("hosts", hosts=address(n))  # the same list changes nothing
    created = [name for name in client.children(base).names
               if name[:2] in ("x-", "y-")]
    assert len(created) == 3 * 100, len(created)
    assert lock.inspect().state == "held", lock.inspect()
    assert not lock.lines_like("lock", "lost") and not lock.lines_like("lock", "unsure")
    assert client.facts().connection == now.connection
    client.do("set", path=base, data=b"1")
    client.wait_for_event(watch, type=DATA_CHANGED)
    client.do("hosts", hosts=three.connect)
    lock.release()


@with_client
def clients_spread_over_a_list_that_grows(worker, client, base):
    """Of thirty clients at one server, about twenty move to the two others."""
    clients = [worker.client(address(1), timeout=LONG) for _ in range(30)]
    for c in clients:
        c.wait_for_state("connected")
    sessions = [c.facts().session for c in clients]
    for c in clients:
        c.do("hosts", hosts=three.connect)
    for c in clients:
        c.do("sync", path="/", repeat=1)
    # The choice is random, so check only that no server has no client.
    assert {server_of(c) for c in clients} == {1, 2, 3}
    assert [c.facts().session for c in clients] == sessions
    for close in [c.submit("close") for c in clients]:
        close.succeeds()


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
        lock_survives_servers_that_are_killed,
        lock_survives_servers_that_are_stopped,
    )
