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

LEASE = re.compile(r"_c_[0-9a-f-]{36}-lease-[0-9]{10}")
PLACE = re.compile(r"_c_[0-9a-f-]{36}-lock-[0-9]{10}")
# The requests of an acquire: create a queue node and list the queue, create a
# permit node and list the permits.
AT_ONCE = (CREATE2, CHILDREN, CREATE2, CHILDREN)


def leases(direct, base):
    return names(direct, base + "/l/leases")


def places(direct, base):
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
    lock = direct.semaphore(base + "/l", permits=2, data=b"who")
    rest = direct.semaphore(base + "/l", permits=2, take=2)
    grant = lock.acquire()
    found = leases(direct, base)
    assert len(found) == 1 and LEASE.fullmatch(found[0]), found
    assert grant.node == base + "/l/leases/" + found[0]
    node = direct.get(grant.node)
    assert node.data == b"who" and node.czxid == grant.token
    wait_until_empty(direct, base + "/l/locks")
    # The first waiter keeps its queue node until enough permits are free.
    pending = rest.submit("acquire")
    assert rest.wait_until_queued().position == 1
    assert PLACE.fullmatch(places(direct, base)[0])
    lock.release()
    pending.succeeds()
    rest.release()
    wait_until_free(direct, base)


@on_server
def semaphore_grants_no_more_than_its_permits(worker, direct, base):
    for permits in (1, 3):
        some = [direct.semaphore(base + "/l", permits=permits)
                for _ in range(permits + 2)]
        for lock in some[:permits]:
            lock.acquire()
        for lock in some[permits:]:
            lock.submit("acquire", wait=0).fails("BUSY")
            lock.submit("acquire", wait=200).fails("DEADLINE")
        late = [lock.submit("acquire") for lock in some[permits:]]
        for lock in some[permits:]:
            lock.wait_until_queued()
        assert not any(pending.is_done() for pending in late)
        some[0].release()
        late[0].succeeds()
        assert not late[1].is_done()
        some[permits].release()
        late[1].succeeds()
        for lock in [some[permits + 1], *some[1:permits]]:
            lock.release()
        wait_until_free(direct, base)


@on_server
def several_permits_are_acquired_together(worker, direct, base):
    two = [direct.semaphore(base + "/l", permits=3, take=2) for _ in range(2)]
    for _ in range(20):
        cycles = [lock.submit("cycle", turns=5) for lock in two]
        for cycle in cycles:
            done = cycle.succeeds()
            assert (done.granted, done.failed) == (5, 0), done
    two[0].acquire()
    assert len(leases(direct, base)) == 2
    two[1].submit("acquire", wait=0).fails("BUSY")
    one = direct.semaphore(base + "/l", permits=3)
    one.submit("acquire", wait=0).succeeds()
    one.submit("acquire").fails("DEADLOCK")
    one.release()
    two[0].release()
    wait_until_free(direct, base)


@on_server
def number_of_permits_may_change(worker, direct, base):
    limit = base + "/limit"
    some = [direct.semaphore(base + "/l", permits=1, limit=limit)
            for _ in range(3)]
    some[0].acquire()
    assert direct.get(limit).data == struct.pack(">i", 1)
    pending = some[1].submit("acquire")
    some[1].wait_until_queued()
    direct.do("set", path=limit, data=struct.pack(">i", 2))
    pending.succeeds()
    # When the number of permits is reduced, no holder loses its permit. The
    # waiter then needs two releases.
    direct.do("set", path=limit, data=struct.pack(">i", 1))
    pending = some[2].submit("acquire")
    some[2].wait_until_queued()
    some[0].release()
    direct.do("sync", path="/")
    eventually(lambda: len(leases(direct, base)) == 2)  # of holder and waiter
    assert not pending.is_done()
    some[1].release()
    pending.succeeds()
    some[2].release()
    wait_until_free(direct, base)


# ---- requests

def make(direct, base):
    """Create the directories as persistent nodes, which no server deletes."""
    for part in ("", "/locks", "/leases"):
        direct.create(base + "/l" + part)


@on_server
def only_the_missing_directory_is_created(worker, direct, base):
    with CountedClient() as it:
        lock = it.client.semaphore(base + "/a/b/l")
        lock.acquire()
        for part in ("/locks", "/leases"):
            lock.release()
            wait_until_empty(direct, base + "/a/b/l/leases")
            gone = direct.submit("delete", path=base + "/a/b/l" + part).result()
            assert gone.err in ("0", "NO_NODE"), gone  # deleted by the server
            it.begin()
            lock.acquire()
            ops, _ = it.since()
            assert ops[:4] == list(AT_ONCE), ops
            assert 3 <= ops.count(CREATE2) <= 4, ops
        lock.release()


@on_server
def waiter_behind_others_gives_its_permits_back(worker, direct, base):
    make(direct, base)
    holder, first = [direct.semaphore(base + "/l") for _ in range(2)]
    with CountedClient() as it:
        lock = it.client.semaphore(base + "/l")
        for turn in range(5):
            hold(holder, direct, base)
            before = first.submit("acquire")
            first.wait_until_queued()
            it.begin()
            pending = lock.submit("acquire")
            lock.wait_until_queued()
            if turn < 3:
                ops = eventually(lambda: it.since()[0][7:] and it.since()[0])
                assert ops[:4] == list(AT_ONCE), ops
                assert sorted(ops[4:]) == sorted(
                    [GET, GET, DELETE, REMOVE_WATCHES]), ops
            else:
                # After three such turns it creates the queue node only.
                it.expect_requests(2, CREATE2, CHILDREN, GET, GET)
            eventually(lambda: len(leases(direct, base)) == 2)
            it.begin()
            holder.release()
            before.succeeds()
            # It is the first in the queue now, and sends the requests for its
            # permits at once.
            it.expect_requests(2, CREATE2, CHILDREN, GET)
            first.release()
            pending.succeeds()
            it.expect_requests(2, CHILDREN, REMOVE_WATCHES, DELETE)
            lock.release()
        it.begin()
        lock.acquire()  # the queue is empty, so it creates both nodes at once
        it.expect_requests(3, *AT_ONCE, REMOVE_WATCHES, DELETE)
        lock.release()
        it.expect_requests(1, DELETE)
        lock.acquire()
        it.expect_requests(2, *AT_ONCE, REMOVE_WATCHES, DELETE)
        lock.release()


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        nodes_are_named_as_by_curator,
        semaphore_grants_no_more_than_its_permits,
        several_permits_are_acquired_together,
        number_of_permits_may_change,
        only_the_missing_directory_is_created,
        waiter_behind_others_gives_its_permits_back,
    )
