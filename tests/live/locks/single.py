# SPDX-License-Identifier: Apache-2.0
"""The single-node lock on a real server: exclusion, requests, and deletes and
creates whose reply is lost."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG, on_server
from relay import CREATE2, DELETE, EVENT, GET, MULTI, Relay


def czxid(direct, path):
    found = direct.submit("exists", path=path).result()
    return found.czxid if found.err == "0" else None


def wait_until_gone(direct, path):
    eventually(lambda: czxid(direct, path) is None, "%s is gone" % path)


# ---- exclusion

@on_server
def single_node_is_the_lock(worker, direct, base):
    path = base + "/a/b/lock"
    lock = direct.single(path, data=b"who")
    grant = lock.acquire()
    assert grant.node == path
    node = direct.get(path)
    assert node.data == b"who" and node.owner == direct.facts().session
    assert node.czxid == grant.token
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
    kinds = [{}, {"spread": -1}, {"poll": 20}, {"poll": 50, "spread": -1}]
    cycles = [client.single(path, **kind).submit("cycle", turns=25)
              for client in clients for kind in kinds]
    for cycle in cycles:
        done = cycle.succeeds()
        assert (done.granted, done.failed) == (25, 0), done
    wait_until_gone(direct, path)
    for client in clients:
        client.do("close")


# ---- requests

@on_server
def release_makes_few_waiters_try(worker, direct, base):
    path = base + "/lock"
    holder = direct.single(path)
    holder.acquire()
    wire, locks, pending = shared.crowd(
        worker, lambda client: client.single(path, spread=500), 30)
    mark = wire.mark()
    holder.release()
    eventually(lambda: any(one.is_done() for one in pending))
    eventually(lambda: wire.ops(mark).count(GET) >= 30)
    creates = wire.ops(mark).count(CREATE2)
    assert creates <= 10, "%d creates" % creates
    for lock in locks:
        lock.free()
    wait_until_gone(direct, path)
    wire.close()


# ---- broken connections

class Stage:
    """A lock of a client behind a relay, and one of a client without."""

    def __init__(self, worker, direct, wire, base):
        self.direct, self.wire, self.path = direct, wire, base + "/lock"
        direct.create(base + "/lock")
        direct.do("delete", path=self.path)
        self.tested = worker.client(wire.address, timeout=LONG)
        self.tested.state("connected")
        self.lock = self.tested.single(self.path, spread=-1)
        self.other = direct.single(self.path, spread=-1)

    def end(self):
        wait_until_gone(self.direct, self.path)
        eventually(lambda: self.tested.facts().unfinished == 0)
        self.tested.do("close")


def with_stage(test):
    @on_server
    def with_it(worker, direct, base):
        for number, step in enumerate(test.steps):
            part = direct.create("%s/%d" % (base, number)).path
            with Relay(shared.connect_string()) as wire:
                stage = Stage(worker, direct, wire, part)
                test(stage, wire, *step)
                stage.end()
    with_it.__name__ = test.__name__
    return with_it


def at(*steps):
    def mark(test):
        test.steps = steps
        return test
    return mark


@with_stage
@at((True,), (False,))
def delete_in_doubt_does_not_delete_the_next_holders_node(stage, wire, up):
    stage.lock.acquire()
    pending = stage.other.submit("acquire")
    stage.other.wait_until_queued()
    trap = wire.trap("cut", up=up, op=DELETE)
    released = stage.lock.submit("release")
    trap.wait()
    wire.refuse()
    if up:  # the server did not receive the delete, so an operator deletes it
        stage.direct.do("delete", path=stage.path)
    token = pending.succeeds().token
    mark = wire.mark()
    wire.accept()
    released.succeeds()
    assert DELETE not in wire.ops(mark), wire.ops(mark)
    assert MULTI in wire.ops(mark)
    assert czxid(stage.direct, stage.path) == token
    assert stage.other.inspect().ok == 1
    stage.other.release()


@with_stage
@at((True,))
def lost_delete_is_repeated(stage, wire, up):
    stage.lock.acquire()
    pending = stage.other.submit("acquire")
    stage.other.wait_until_queued()
    trap = wire.trap("cut", up=up, op=DELETE)
    released = stage.lock.submit("release")
    trap.wait()
    released.succeeds()
    pending.succeeds()
    stage.other.release()


@with_stage
@at((True, CREATE2), (True, GET), (False, CREATE2), (False, GET))
def create_in_doubt_is_resolved(stage, wire, up, op):
    trap = wire.trap("cut", up=up, op=op)
    pending = stage.lock.submit("acquire")
    trap.wait()
    grant = pending.succeeds()
    assert czxid(stage.direct, stage.path) == grant.token
    stage.other.submit("acquire", wait=0).fails("BUSY")
    stage.lock.release()


@with_stage
@at((True, CREATE2), (False, CREATE2), (False, GET))
def cancelled_create_in_doubt_is_deleted(stage, wire, up, op):
    trap = wire.trap("cut", up=up, op=op)
    pending = stage.lock.submit("acquire")
    trap.wait()
    wire.refuse()
    stage.lock.do("cancel")
    pending.fails("CANCELLED")
    wire.accept()
    stage.other.acquire()
    stage.other.release()


@with_stage
@at((False, EVENT), (True, CREATE2), (False, GET))
def waiter_survives_a_break(stage, wire, up, op):
    stage.other.acquire()
    pending = stage.lock.submit("acquire")
    stage.lock.wait_until_queued()
    trap = wire.trap("cut", up=up, op=op)
    stage.other.release()
    trap.wait()
    assert pending.succeeds().token == czxid(stage.direct, stage.path)
    stage.lock.release()


@with_stage
@at(())
def replaced_node_is_a_loss(stage, wire):
    stage.lock.acquire()
    wire.refuse()
    wire.drop()
    stage.lock.event("suspended")
    stage.direct.do("delete", path=stage.path)
    token = stage.other.acquire().token
    wire.accept()
    stage.lock.event("lost", err="NO_NODE")
    assert czxid(stage.direct, stage.path) == token
    stage.other.release()


@on_server
def unreadable_holder_is_an_error(worker, direct, base):
    _, acl = shared.digest_identity("me")
    direct.create(base + "/lock", acl=acl % 31)
    direct.single(base + "/lock").submit("acquire").fails("NO_AUTH")


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        single_node_is_the_lock,
        waiters_acquire_one_after_the_other,
        release_makes_few_waiters_try,
        delete_in_doubt_does_not_delete_the_next_holders_node,
        lost_delete_is_repeated,
        create_in_doubt_is_resolved,
        cancelled_create_in_doubt_is_deleted,
        waiter_survives_a_break,
        replaced_node_is_a_loss,
        unreadable_holder_is_an_error,
    )
