# SPDX-License-Identifier: Apache-2.0
"""The single-node lock on a real server: exclusion, requests, and deletes and
creates whose reply is lost."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG, on_server
from relay import CREATE2, DELETE, DOWN, EVENT, GET, MULTI, UP, Relay


def czxid(direct, path):
    found = direct.submit("exists", path=path).result()
    return found.czxid if found.err == "0" else None


def wait_until_gone(direct, path):
    eventually(lambda: czxid(direct, path) is None, "%s is gone" % path)


# ---- exclusion

@on_server
def single_node_is_the_lock(worker, direct, base):
    path = base + "/a/b/lock"
    lock = direct.single(path, data=b"label")
    grant = lock.acquire()
    assert grant.node == path
    node = direct.get(path)
    assert node.data == b"label" and node.owner == direct.facts().session
    assert node.czxid == grant.token
    # It may be acquired again, and is held until it was released as often.
    assert lock.acquire().token == grant.token
    lock.release()
    assert lock.inspect().state == "held"
    lock.release()
    wait_until_gone(direct, path)
    # The directories are persistent.
    assert direct.do("exists", path=base + "/a/b").children == 0
    assert lock.acquire().token > grant.token
    lock.release()


@on_server
def waiters_acquire_one_after_the_other(worker, direct, base):
    path = base + "/lock"
    clients = [worker.client(shared.connect_string(), timeout=LONG)
               for _ in range(4)]
    # `spread` and `poll` in ms; a spread of -1 is none.
    all_options = [{}, {"spread": -1}, {"poll": 20},
                   {"poll": 50, "spread": -1}]
    cycles = [client.single(path, **options).submit("cycle", turns=25)
              for client in clients for options in all_options]
    for cycle in cycles:
        done = cycle.succeeds()
        assert (done.granted, done.failed) == (25, 0), done
    wait_until_gone(direct, path)
    for client in clients:
        client.do("close")


# ---- requests

@on_server
def spread_makes_few_waiters_create_after_a_release(worker, direct, base):
    path = base + "/lock"
    holder = direct.single(path)
    holder.acquire()
    wire, locks, pending = shared.crowd(
        worker, lambda client: client.single(path, spread=500), 30)
    mark = wire.mark()
    holder.release()
    eventually(lambda: any(acquire.is_done() for acquire in pending))
    eventually(lambda: wire.ops(mark).count(GET) >= 30)
    creates = wire.ops(mark).count(CREATE2)
    assert creates <= 10, "%d creates" % creates
    for lock in locks:
        lock.free()
    wait_until_gone(direct, path)
    wire.close()


# ---- broken connections

class TwoClients:
    """A lock of the client `tested` behind a relay, and a lock `other` of the
    client `direct` without a relay."""

    def __init__(self, worker, direct, wire, base):
        self.direct, self.wire, self.path = direct, wire, base + "/lock"
        self.tested = worker.client(wire.address, timeout=LONG)
        self.tested.wait_for_state("connected")
        self.lock = self.tested.single(self.path, spread=-1)
        self.other = direct.single(self.path, spread=-1)

    def end(self):
        wait_until_gone(self.direct, self.path)
        eventually(lambda: self.tested.facts().unfinished == 0)
        self.tested.do("close")




def with_two_clients(*all_arguments):
    """Run the test test(clients, wire, *arguments) once for each of these
    arguments, each time with new clients."""
    def decorate(test):
        @on_server
        def run_all(worker, direct, base):
            for number, arguments in enumerate(all_arguments):
                below = direct.create("%s/%d" % (base, number)).path
                with Relay(shared.connect_string()) as wire:
                    clients = TwoClients(worker, direct, wire, below)
                    test(clients, wire, *arguments)
                    clients.end()
        run_all.__name__ = test.__name__
        return run_all
    return decorate


@with_two_clients((UP,), (DOWN,))
def delete_in_doubt_does_not_delete_the_next_holders_node(clients, wire, up):
    clients.lock.acquire()
    pending = clients.other.submit("acquire")
    clients.other.wait_until_queued()
    trap = wire.at_frame("cut", up=up, op=DELETE)
    released = clients.lock.submit("release")
    trap.wait()
    wire.refuse()
    if up:  # the server did not receive the delete, so an operator deletes it
        clients.direct.do("delete", path=clients.path)
    token = pending.succeeds().token
    mark = wire.mark()
    wire.accept()
    released.succeeds()
    assert DELETE not in wire.ops(mark), wire.ops(mark)
    assert MULTI in wire.ops(mark)
    assert czxid(clients.direct, clients.path) == token
    assert clients.other.inspect().ok == 1
    clients.other.release()


@with_two_clients(())
def lost_delete_is_repeated(clients, wire):
    clients.lock.acquire()
    pending = clients.other.submit("acquire")
    clients.other.wait_until_queued()
    trap = wire.at_frame("cut", up=UP, op=DELETE)
    released = clients.lock.submit("release")
    trap.wait()
    released.succeeds()
    pending.succeeds()
    clients.other.release()


@with_two_clients((UP, CREATE2), (UP, GET), (DOWN, CREATE2), (DOWN, GET))
def create_in_doubt_is_resolved(clients, wire, up, op):
    trap = wire.at_frame("cut", up=up, op=op)
    pending = clients.lock.submit("acquire")
    trap.wait()
    grant = pending.succeeds()
    assert czxid(clients.direct, clients.path) == grant.token
    clients.other.submit("acquire", wait=0).fails("BUSY")
    clients.lock.release()


@with_two_clients((UP, CREATE2), (DOWN, CREATE2), (DOWN, GET))
def cancelled_create_in_doubt_is_deleted(clients, wire, up, op):
    trap = wire.at_frame("cut", up=up, op=op)
    pending = clients.lock.submit("acquire")
    trap.wait()
    wire.refuse()
    clients.lock.do("cancel")
    pending.fails("CANCELLED")
    wire.accept()
    clients.other.acquire()
    clients.other.release()


@with_two_clients((DOWN, EVENT), (UP, CREATE2), (DOWN, GET))
def waiter_acquires_after_a_broken_connection(clients, wire, up, op):
    clients.other.acquire()
    pending = clients.lock.submit("acquire")
    clients.lock.wait_until_queued()
    trap = wire.at_frame("cut", up=up, op=op)
    clients.other.release()
    trap.wait()
    assert pending.succeeds().token == czxid(clients.direct, clients.path)
    clients.lock.release()


@with_two_clients(())
def replaced_node_is_a_loss(clients, wire):
    clients.lock.acquire()
    wire.refuse()
    wire.drop()
    clients.lock.wait_for_event("suspended")
    clients.direct.do("delete", path=clients.path)
    token = clients.other.acquire().token
    wire.accept()
    clients.lock.wait_for_event("lost", err="NO_NODE")
    assert czxid(clients.direct, clients.path) == token
    clients.other.release()


@on_server
def unreadable_holder_is_an_error(worker, direct, base):
    _, acl = shared.digest_identity("me")
    all_permissions = 31
    direct.create(base + "/lock", acl=acl % all_permissions)
    direct.single(base + "/lock").submit("acquire").fails("NO_AUTH")


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        single_node_is_the_lock,
        waiters_acquire_one_after_the_other,
        spread_makes_few_waiters_create_after_a_release,
        delete_in_doubt_does_not_delete_the_next_holders_node,
        lost_delete_is_repeated,
        create_in_doubt_is_resolved,
        cancelled_create_in_doubt_is_deleted,
        waiter_acquires_after_a_broken_connection,
        replaced_node_is_a_loss,
        unreadable_holder_is_an_error,
    )
