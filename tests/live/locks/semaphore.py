# SPDX-License-Identifier: Apache-2.0
"""The semaphore on a real server: holders and requests."""

import re
import struct
import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import CountedClient, names, on_server, wait_until_empty
from relay import CHILDREN, CREATE2, DELETE, GET, REMOVE_WATCHES

PERMIT_NAME = re.compile(r"_c_[0-9a-f-]{36}-lease-[0-9]{10}")
QUEUE_NAME = re.compile(r"_c_[0-9a-f-]{36}-lock-[0-9]{10}")
# The requests of an acquire: create a queue node and list the queue, create a
# permit node and list the permits.
FIRST_REQUESTS = (CREATE2, CHILDREN, CREATE2, CHILDREN)


def permit_nodes(direct, base):
    return names(direct, base + "/l/leases")


def queue_nodes(direct, base):
    return names(direct, base + "/l/locks")


def wait_until_free(direct, base):
    wait_until_empty(direct, base + "/l/leases")
    wait_until_empty(direct, base + "/l/locks")


def hold(lock, direct, base):
    """Acquire the semaphore, and wait until the queue node is deleted, which
    happens after the grant. Then the next contender is the first in the
    queue."""
    grant = lock.acquire()
    wait_until_empty(direct, base + "/l/locks")
    return grant


# ---- holders

@on_server
def nodes_are_named_as_by_curator(worker, direct, base):
    lock = direct.semaphore(base + "/l", permits=2, data=b"label")
    waiter = direct.semaphore(base + "/l", permits=2, take=2)
    grant = lock.acquire()
    (name,) = permit_nodes(direct, base)
    assert PERMIT_NAME.fullmatch(name), name
    assert grant.node == base + "/l/leases/" + name
    node = direct.get(grant.node)
    assert node.data == b"label" and node.czxid == grant.token
    wait_until_empty(direct, base + "/l/locks")
    # The first waiter keeps its queue node until enough permits are free.
    pending = waiter.submit("acquire")
    assert waiter.wait_until_queued().position == 1
    (name,) = queue_nodes(direct, base)
    assert QUEUE_NAME.fullmatch(name), name
    lock.release()
    pending.succeeds()
    waiter.release()
    wait_until_free(direct, base)


@on_server
def semaphore_grants_no_more_than_its_permits(worker, direct, base):
    for permits in (1, 3):
        holders = [direct.semaphore(base + "/l", permits=permits)
                   for _ in range(permits)]
        waiters = [direct.semaphore(base + "/l", permits=permits)
                   for _ in range(2)]
        for lock in holders:
            lock.acquire()
        for lock in waiters:
            lock.submit("acquire", wait=0).fails("BUSY")
            lock.submit("acquire", wait=200).fails("DEADLINE")
        first, second = [lock.submit("acquire") for lock in waiters]
        for lock in waiters:
            lock.wait_until_queued()
        assert not first.is_done() and not second.is_done()
        holders[0].release()
        first.succeeds()
        assert not second.is_done()
        waiters[0].release()
        second.succeeds()
        for lock in [waiters[1], *holders[1:]]:
            lock.release()
        wait_until_free(direct, base)


@on_server
def several_permits_are_acquired_together(worker, direct, base):
    takes_two, rival_takes_two = [
        direct.semaphore(base + "/l", permits=3, take=2) for _ in range(2)]
    takes_one = direct.semaphore(base + "/l", permits=3)
    for _ in range(20):
        cycles = [lock.submit("cycle", turns=5)
                  for lock in (takes_two, rival_takes_two)]
        for cycle in cycles:
            done = cycle.succeeds()
            assert (done.granted, done.failed) == (5, 0), done
    takes_two.acquire()
    assert len(permit_nodes(direct, base)) == 2
    rival_takes_two.submit("acquire", wait=0).fails("BUSY")
    takes_one.submit("acquire", wait=0).succeeds()
    takes_one.submit("acquire").fails("DEADLOCK")  # it holds already
    takes_one.release()
    takes_two.release()
    wait_until_free(direct, base)


@on_server
def number_of_permits_may_change(worker, direct, base):
    limit = base + "/limit"
    first, second, third = [
        direct.semaphore(base + "/l", permits=1, limit=limit)
        for _ in range(3)]
    first.acquire()
    assert direct.get(limit).data == struct.pack(">i", 1)
    pending = second.submit("acquire")
    second.wait_until_queued()
    direct.do("set", path=limit, data=struct.pack(">i", 2))
    pending.succeeds()
    # When the number of permits is reduced, no holder loses its permit. The
    # waiter then needs two releases.
    direct.do("set", path=limit, data=struct.pack(">i", 1))
    pending = third.submit("acquire")
    third.wait_until_queued()
    first.release()
    direct.do("sync", path="/")
    # The holder and the waiter each have a permit node.
    eventually(lambda: len(permit_nodes(direct, base)) == 2)
    assert not pending.is_done()
    second.release()
    pending.succeeds()
    third.release()
    wait_until_free(direct, base)


# ---- requests

def create_directories(direct, base):
    """Create the directories as persistent nodes, which no server deletes."""
    for directory in ("", "/locks", "/leases"):
        direct.create(base + "/l" + directory)


@on_server
def only_the_missing_directory_is_created(worker, direct, base):
    with CountedClient() as it:
        lock = it.client.semaphore(base + "/a/b/l")
        lock.acquire()
        for directory in ("/locks", "/leases"):
            lock.release()
            wait_until_empty(direct, base + "/a/b/l/leases")
            deleted = direct.submit(
                "delete", path=base + "/a/b/l" + directory).result()
            # NO_NODE: the server has deleted the empty container.
            assert deleted.err in ("0", "NO_NODE"), deleted
            it.reset_counts()
            lock.acquire()
            ops, _ = it.counts()
            assert ops[:4] == list(FIRST_REQUESTS), ops
            # One or two creates failed and were repeated.
            assert 3 <= ops.count(CREATE2) <= 4, ops
        lock.release()


@on_server
def waiter_behind_others_deletes_its_permit_node(worker, direct, base):
    create_directories(direct, base)
    holder, first = [direct.semaphore(base + "/l") for _ in range(2)]
    with CountedClient() as it:
        lock = it.client.semaphore(base + "/l")
        for turn in range(5):
            hold(holder, direct, base)
            first_waits = first.submit("acquire")
            first.wait_until_queued()
            it.reset_counts()
            pending = lock.submit("acquire")
            lock.wait_until_queued()
            if turn < 3:
                ops = eventually(
                    lambda: len(it.counts()[0]) >= 8 and it.counts()[0])
                assert ops[:4] == list(FIRST_REQUESTS), ops
                assert sorted(ops[4:]) == sorted(
                    [GET, GET, DELETE, REMOVE_WATCHES]), ops
            else:
                # After three such turns it creates only the queue node.
                it.expect_requests(2, CREATE2, CHILDREN, GET, GET)
            eventually(lambda: len(permit_nodes(direct, base)) == 2)
            it.reset_counts()
            holder.release()
            first_waits.succeeds()
            # `lock` is now the first in the queue, so it sends the requests for
            # its permit.
            it.expect_requests(1, CREATE2, CHILDREN)
            first.release()
            pending.succeeds()
            it.expect_requests(2, CHILDREN, REMOVE_WATCHES, DELETE)
            lock.release()
        it.reset_counts()
        lock.acquire()  # the queue is empty, so it creates both nodes at once
        it.expect_requests(3, *FIRST_REQUESTS, REMOVE_WATCHES, DELETE)
        lock.release()
        it.expect_requests(1, DELETE)
        lock.acquire()
        it.expect_requests(2, *FIRST_REQUESTS, REMOVE_WATCHES, DELETE)
        lock.release()


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        nodes_are_named_as_by_curator,
        semaphore_grants_no_more_than_its_permits,
        several_permits_are_acquired_together,
        number_of_permits_may_change,
        only_the_missing_directory_is_created,
        waiter_behind_others_deletes_its_permit_node,
    )
