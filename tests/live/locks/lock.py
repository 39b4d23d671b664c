# SPDX-License-Identifier: Apache-2.0
"""What conformance.py does not test with each kind, with the mutex: the requests
of alternating holders, the place after a loss, and access lists."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
import relay
from live import eventually
from locks import LONG, SHORT, digest_identity, on_server
from relay import Relay


@on_server
def alternating_holders_list_once_a_turn(worker, direct, base):
    direct.create(base + "/l")
    with Relay(zk.connect) as left, Relay(zk.connect) as right:
        wires = [left, right]
        clients = [worker.client(w.address, timeout=LONG) for w in wires]
        locks = [c.lock(base + "/l") for c in clients]
        for client in clients:
            client.wait_for_state("connected")
        grants = [locks[0].submit("acquire")]
        grants[0].succeeds()
        grants.append(locks[1].submit("acquire"))
        locks[1].wait_until_queued()
        marks = [w.mark() for w in wires]
        turns = 20
        for turn in range(turns):
            holder = turn % 2
            grants[holder].succeeds()
            # Release, and acquire again behind the other client.
            grants[holder] = locks[holder].submit("reacquire")
            locks[holder].wait_until_queued()
        # A turn takes a delete, a create, one list, and reads of the
        # predecessor and of the own node. No heartbeat is due, as each reply
        # proves the session.
        for wire, mark in zip(wires, marks):
            ops = wire.ops(mark)
            for op in (relay.DELETE, relay.CREATE2, relay.CHILDREN):
                assert ops.count(op) == turns // 2, ops
            # The reads are sent after the grant, so up to two may be missing.
            assert abs(ops.count(relay.GET) - turns) <= 2, ops
            assert set(ops) == {relay.DELETE, relay.CREATE2, relay.CHILDREN,
                                relay.GET}, ops
        for lock, grant in zip(locks, grants):
            grant.succeeds()
            lock.release()
        for client in clients:
            client.do("close")


@on_server
def waiter_whose_node_is_deleted_queues_last(worker, direct, base):
    holder, lock, last = [direct.lock(base + "/l") for _ in range(3)]
    holder.acquire()
    pending = lock.submit("acquire")
    lock.wait_until_queued()
    behind = last.submit("acquire")
    last.wait_until_queued()
    old = lock.inspect().node
    direct.do("delete", path=old)
    assert lock.wait_for_event("place_lost").err == "NO_NODE"
    assert eventually(lambda: lock.inspect().node) != old
    # The second "waiting" event has the new position, behind `last`.
    (waiting_again,) = eventually(
        lambda: lock.lines_like("lock", "waiting")[1:])
    assert waiting_again.position == 2, waiting_again
    holder.release()
    behind.succeeds()
    assert not pending.is_done()
    last.release()
    pending.succeeds()
    lock.release()


# ---- access lists

@on_server
def access_list_of_a_creator_without_identity_is_refused(worker, direct, base):
    lock = direct.lock(base + "/creator", acl="creator")
    lock.submit("acquire").fails("INVALID_ACL")


@on_server
def unreadable_own_node_is_held_unwatched(worker, direct, base):
    client = worker.client(zk.connect, timeout=SHORT)
    all_but_read = "30:world:anyone"
    lock = client.lock(base + "/l", acl=all_but_read, parent_acl="open")
    lock.acquire()
    lock.wait_for_event("unwatched")
    time.sleep(SHORT / 1000)
    assert lock.inspect().ok == 1, lock.inspect()
    lock.release()
    assert not lock.lines_like("lock", "unsure") and not lock.lines_like("lock", "lost")
    client.do("close")


@on_server
def identities_are_sent_again_before_lock_requests(worker, direct, base):
    secret, acl = digest_identity("bob")
    with Relay(zk.connect) as wire:
        bobs = [worker.client(wire.address, timeout=LONG) for _ in range(2)]
        for bob in bobs:
            bob.do("auth", scheme="digest", auth=secret)
        locks = [bob.lock(base + "/l", acl="creator") for bob in bobs]
        locks[0].acquire()
        pending = locks[1].submit("acquire")
        locks[1].wait_until_queued()
        direct.submit("get", path=locks[0].inspect().node).fails("NO_AUTH")
        wire.drop()
        for bob in bobs:
            bob.wait_for_state("suspended")
            bob.wait_for_state("connected")
        locks[0].release()
        pending.succeeds()
        locks[1].release()
        for bob in bobs:
            bob.do("close")


with shared.serve("--tick", "500", "--container-check", "300") as zk:
    live.run(live.together(
        alternating_holders_list_once_a_turn,
        waiter_whose_node_is_deleted_queues_last,
        access_list_of_a_creator_without_identity_is_refused,
        identities_are_sent_again_before_lock_requests,
        unreadable_own_node_is_held_unwatched))
