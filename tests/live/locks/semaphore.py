# SPDX-License-Identifier: Apache-2.0
"""What the semaphore alone does, on a real server: several holders at a time,
several permits of a holder, and a number of permits that changes."""

import struct
import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import names, on_server, wait_until_empty


def permit_nodes(direct, base):
    return names(direct, base + "/l/leases")


def wait_until_free(direct, base):
    wait_until_empty(direct, base + "/l/leases")
    wait_until_empty(direct, base + "/l/locks")


@on_server
def semaphore_grants_no_more_than_its_permits(worker, direct, base):
    holders = [direct.semaphore(base + "/l", permits=3) for _ in range(3)]
    waiters = [direct.semaphore(base + "/l", permits=3) for _ in range(2)]
    for lock in holders:
        lock.acquire()
    for lock in waiters:
        lock.submit("acquire", wait=0).fails("BUSY")
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


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(live.together(
        semaphore_grants_no_more_than_its_permits,
        several_permits_are_acquired_together,
        number_of_permits_may_change))
