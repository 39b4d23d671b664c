# SPDX-License-Identifier: Apache-2.0
"""The mutex on a real server: names of nodes, tokens, requests, queues with
nodes of other libraries, and access lists."""

import re
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
import relay
from live import eventually
from locks import LONG, SHORT, CountedClient, names, on_server, digest_identity
from relay import Relay

# The name of a contender node; its group is the UUID.
NAME = re.compile(r"_c_([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                  r"[0-9a-f]{12})-lock-[0-9]{10}")


# ---- one holder

@on_server
def node_is_named_as_by_curator(worker, direct, base):
    lock = direct.lock(base + "/l", data=b"label")
    grant = lock.acquire()
    parent, _, name = grant.node.rpartition("/")
    assert parent == base + "/l" and NAME.fullmatch(name), grant
    node = direct.get(grant.node)
    assert node.data == b"label" and node.owner == direct.facts().session
    assert node.czxid == grant.token
    lock.release()


@on_server
def each_acquire_uses_another_uuid(worker, direct, base):
    lock = direct.lock(base + "/l")
    uuids = []
    for _ in range(2):
        name = lock.acquire().node.rpartition("/")[2]
        uuids.append(NAME.fullmatch(name)[1])
        lock.release()
    assert uuids[0] != uuids[1], uuids


@on_server
def empty_directories_are_deleted_by_the_server(worker, direct, base):
    """The lock creates its directories as containers."""
    lock = direct.lock(base + "/parent/l")
    lock.acquire()
    lock.release()
    eventually(lambda: direct.submit(
        "exists", path=base + "/parent").result().err == "NO_NODE")


@on_server
def many_short_waits_leave_no_watch(worker, direct, base):
    direct.create(base + "/l")
    holder = direct.lock(base + "/l")
    holder.acquire()
    waiters = [worker.client(zk.connect, timeout=LONG) for _ in range(4)]
    for client in waiters:
        client.do("sync", path="/")
    watches = live.watch_count(zk.connect)
    # Each client gives up 150 times, after 0, 1, 2 or 3 ms.
    cycles = [client.lock(base + "/l").submit("cycle", turns=150, wait=ms)
              for ms, client in enumerate(waiters)]
    for cycle in cycles:
        done = cycle.succeeds()
        assert (done.granted, done.missed, done.failed) == (0, 150, 0), done
    eventually(lambda: len(names(direct, base + "/l")) == 1)
    eventually(lambda: live.watch_count(zk.connect) == watches,
               "%d watches" % watches)
    holder.release()
    for client in waiters:
        client.do("close")


# ---- requests

@on_server
def acquire_without_directories_takes_two_sends(worker, direct, base):
    with CountedClient() as counted:
        lock = counted.client.lock(base + "/a/b/c/d")
        lock.acquire()
        ops, sends = counted.counts()
        assert sends == 2, sends
        assert ops[:2] == [relay.CREATE2, relay.CHILDREN], ops
        assert set(ops[2:-2]) == {relay.CREATE_CONTAINER}, ops
        assert ops[-2:] == [relay.CREATE2, relay.CHILDREN], ops
        lock.release()


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
def turn_of_a_busy_queue_takes_five_requests(worker, direct, base):
    direct.create(base + "/l")
    others = [worker.client(zk.connect, timeout=LONG).lock(base + "/l")
              for _ in range(3)]
    with CountedClient() as it:
        lock = it.client.lock(base + "/l")
        for _ in range(3):
            others[0].acquire()
            waiting = []
            for other in others[1:]:
                waiting.append(other.submit("acquire"))
                eventually(lambda: len(names(direct, base + "/l")) ==
                           1 + len(waiting))
            it.reset_counts()
            pending = lock.submit("acquire")
            it.expect_requests(2, relay.CREATE2, relay.CHILDREN, relay.GET)
            others[0].release()
            for other, grant in zip(others[1:], waiting):
                grant.succeeds()
                other.release()
            pending.succeeds()
            it.expect_requests(1, relay.CHILDREN)
            lock.release()
            it.expect_requests(1, relay.DELETE)


@on_server
def long_list_is_not_repeated_after_cancels(worker, direct, base):
    others = 64  # nodes that belong to no contender
    direct.create(base + "/l")
    for n in range(others):
        direct.create(f"{base}/l/other-{n}")
    with Relay(zk.connect) as wire:
        clients = [worker.client(wire.address, timeout=LONG)
                   for _ in range(6)]
        locks, waiting = [], []
        for client in clients:
            lock = client.lock(base + "/l")
            waiting.append(lock.submit("acquire"))
            if locks:
                lock.wait_until_queued()
            else:
                waiting[0].succeeds()
            locks.append(lock)
        direct.do("sync", path="/")
        mark = wire.mark()
        for cancelled in (2, 1):
            locks[cancelled].do("cancel")
            waiting[cancelled].fails("CANCELLED")
        # Wait until the nodes of the cancelled waiters are deleted.
        eventually(lambda: len(names(direct, base + "/l")) == others + 4)
        locks[4].do("cancel")
        waiting[4].fails("CANCELLED")
        eventually(lambda: locks[5].lines_like("lock", "waiting")[-1].position == 2)
        assert relay.CHILDREN not in wire.ops(mark), wire.ops(mark)
        for n in (0, 3, 5):
            waiting[n].succeeds()
            locks[n].release()
        assert relay.CHILDREN not in wire.ops(mark), wire.ops(mark)
        for client in clients:
            client.do("close")


# ---- changes by other clients

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


@on_server
def contenders_of_other_libraries_are_predecessors(worker, direct, base):
    direct.create(base + "/l")
    for name in ("note", "lock", "lock-x", "latch-0000000000", "-lock-12a"):
        direct.create(base + "/l/" + name)
    lock = direct.lock(base + "/l")
    lock.acquire()
    lock.release()
    for name in ("x-lock-0000000000", "x-__READ__0000000000",
                 "x-__WRIT__0000000000", "x__lock__0000000000",
                 "x__rlock__0000000000"):
        direct.create(base + "/l/" + name)
        pending = lock.submit("acquire")
        waiting = lock.wait_until_queued()
        assert waiting.node == base + "/l/" + name, waiting
        direct.do("delete", path=base + "/l/" + name)
        pending.succeeds()
        lock.release()
    reports = lock.lines_like("lock", "mixed_queue")
    assert [line.node for line in reports] == [base + "/l/latch-0000000000"]


@on_server
def mixed_queue_is_reported_once(worker, direct, base):
    direct.create(base + "/l")
    lock = direct.lock(base + "/l")
    for _ in range(2):
        direct.create(base + "/l/x-__READ__0000000000")
        pending = lock.submit("acquire")
        lock.wait_until_queued()
        direct.do("delete", path=base + "/l/x-__READ__0000000000")
        pending.succeeds()
        lock.release()
    reports = lock.lines_like("lock", "mixed_queue")
    assert [line.node for line in reports] == [base + "/l/x-__READ__0000000000"]


@on_server
def duplicate_and_negative_sequence_numbers_are_refused(worker, direct, base):
    direct.create(base + "/l")
    lock = direct.lock(base + "/l")
    # ZooKeeper's counter of 32 bits becomes negative after its largest number.
    for foreign in (("a-lock-0000000000", "b-lock-0000000000"),
                    ("a-lock--000000001",), ("a-lock--2147483648",)):
        for name in foreign:
            direct.create(base + "/l/" + name)
        lock.submit("acquire").fails("SEQ_UNSAFE")
        eventually(lambda: names(direct, base + "/l") == sorted(foreign))
        for name in foreign:
            direct.do("delete", path=base + "/l/" + name)
    lock.acquire()
    lock.release()


# ---- verify and guarded writes

@on_server
def verify_and_guarded_write_fail_without_the_lock(worker, direct, base):
    direct.create(base + "/data", data=b"0")
    # A reply proves the session if its request was sent at least half a tick
    # after an earlier reply. The session lease records one such reply for each
    # 48th of the session timeout.
    client = worker.client(zk.connect, timeout=12000, gap=250)
    lock = client.lock(base + "/l")
    lock.submit("verify").fails("NOT_HELD")
    lock.submit("guarded", path=base + "/data", data=b"x").fails("NOT_HELD")
    grant = lock.acquire()
    deadline = lock.inspect().deadline
    time.sleep(.3)
    client.do("sync", path="/")
    time.sleep(.3)
    lock.do("verify")
    assert lock.inspect().deadline > deadline
    done = lock.do("guarded", path=base + "/data", data=b"1", version=0)
    assert (done.count, done.version) == (1, 1)
    lock.submit("guarded", path=base + "/data", data=b"x",
                version=0).fails("BAD_VERSION")
    lock.submit("guarded", path=base + "/nowhere", data=b"x").fails("NO_NODE")
    assert lock.inspect().state == "held"
    direct.do("delete", path=grant.node)
    lock.submit("guarded", path=base + "/data", data=b"x").fails("LOST")
    assert direct.get(base + "/data").data == b"1"
    lock.wait_for_event("lost")
    lock.submit("release").fails("LOST")
    grant = lock.acquire()
    direct.do("delete", path=grant.node)
    lock.submit("verify").fails("LOST")
    lock.wait_for_event("lost")
    lock.submit("verify").fails("LOST")
    lock.submit("release").fails("LOST")
    assert len(lock.lines_like("lock", "lost")) == 2
    client.do("close")


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


@on_server
def refused_credentials_end_an_acquire(worker, direct, base):
    client = worker.client(zk.connect, timeout=LONG)
    direct.lock(base + "/l").acquire()
    lock = client.lock(base + "/l")
    pending = lock.submit("acquire")
    lock.wait_until_queued()
    client.submit("auth", scheme="nosuch", auth=b"x").fails("AUTH_FAILED")
    pending.fails("AUTH_FAILED")
    lock.submit("acquire").fails("AUTH_FAILED")


with shared.serve("--tick", "500", "--container-check", "300") as zk:
    live.run(
        node_is_named_as_by_curator,
        each_acquire_uses_another_uuid,
        empty_directories_are_deleted_by_the_server,
        many_short_waits_leave_no_watch,
        acquire_without_directories_takes_two_sends,
        alternating_holders_list_once_a_turn,
        turn_of_a_busy_queue_takes_five_requests,
        long_list_is_not_repeated_after_cancels,
        waiter_whose_node_is_deleted_queues_last,
        contenders_of_other_libraries_are_predecessors,
        mixed_queue_is_reported_once,
        duplicate_and_negative_sequence_numbers_are_refused,
        verify_and_guarded_write_fail_without_the_lock,
        access_list_of_a_creator_without_identity_is_refused,
        identities_are_sent_again_before_lock_requests,
        refused_credentials_end_an_acquire,
        unreadable_own_node_is_held_unwatched,
    )
