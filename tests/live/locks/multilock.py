# SPDX-License-Identifier: Apache-2.0
"""Multi-locks on a real server: all members or none, and requests."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import CountedClient, names, on_server
from relay import CHILDREN, DELETE, GET, MULTI


def paths(base, letters="abc"):
    return [base + "/" + letter for letter in letters]


def make(far, base, letters="abc"):
    """Create the directories as persistent nodes, which no server deletes."""
    for path in paths(base, letters):
        far.create(path)


def members(base, letters="abc"):
    return ["x:" + path for path in paths(base, letters)]


def counts(far, base, letters="abc"):
    return [len(names(far, path)) for path in paths(base, letters)]


def wait_until_free(far, base, letters="abc"):
    eventually(lambda: not any(counts(far, base, letters)))


# ---- all or none

@on_server
def members_share_one_token(worker, far, base):
    lock = far.multilock(*members(base))
    grant = lock.acquire()
    assert counts(far, base) == [1, 1, 1]
    for path in paths(base):
        found = names(far, path)
        assert found[0][:3] == "_c_" and found[0][39:45] == "-lock-", found
        assert far.get(path + "/" + found[0]).czxid == grant.token
        far.lock(path).submit("acquire", wait=0).fails("BUSY")
    lock.release()
    wait_until_free(far, base)


@on_server
def waiter_holds_no_later_members(worker, far, base):
    make(far, base)
    lock = far.multilock(*members(base))
    for held, queued in (("a", [2, 0, 0]), ("b", [1, 2, 0]),
                         ("c", [1, 1, 2])):
        holder = far.lock(base + "/" + held)
        holder.acquire()
        lock.submit("acquire", wait=0).fails("BUSY")
        pending = lock.submit("acquire")
        lock.wait_until_queued()
        eventually(lambda: counts(far, base) == queued, queued)
        holder.release()
        pending.succeeds()
        assert counts(far, base) == [1, 1, 1]
        lock.release()
        wait_until_free(far, base)


@on_server
def any_order_of_members_is_free_of_deadlock(worker, far, base):
    make(far, base)
    some = [far.multilock(*members(base, letters))
            for letters in ("abc", "cba", "bca", "ac", "ba")]
    singles = [far.lock(path) for path in paths(base)]
    cycles = [lock.submit("cycle", turns=60) for lock in some + singles]
    for cycle in cycles:
        done = cycle.succeeds()
        assert (done.granted, done.failed) == (60, 0), done
    wait_until_free(far, base)


@on_server
def readers_and_writers_may_be_members(worker, far, base):
    make(far, base)
    one = far.multilock("r:" + base + "/a", "w:" + base + "/b")
    two = far.multilock("r:" + base + "/a", "w:" + base + "/c")
    one.acquire()
    two.submit("acquire", wait=0).succeeds()
    read, write = far.rwlock(base + "/a")
    read.submit("acquire", wait=0).succeeds()
    read.release()
    write.submit("acquire", wait=0).fails("BUSY")
    three = far.multilock("w:" + base + "/a", "w:" + base + "/b")
    pending = three.submit("acquire")
    three.wait_until_queued()
    two.release()
    assert not pending.is_done()
    one.release()
    pending.succeeds()
    three.release()
    wait_until_free(far, base)


# ---- requests

@on_server
def each_busy_member_takes_a_round_trip(worker, far, base):
    make(far, base)
    with CountedClient() as it:
        lock = it.client.multilock(*members(base))
        for blocked, back, more in (("a", 2, [MULTI, CHILDREN, CHILDREN]),
                                    ("b", 1, [MULTI, CHILDREN]),
                                    ("c", 0, [])):
            holder = far.lock(base + "/" + blocked)
            holder.acquire()
            it.begin()
            pending = lock.submit("acquire")
            lock.wait_until_queued()
            ops = eventually(lambda: it.since()[0][5 + back:] and
                             it.since()[0])
            assert ops[:4] == [MULTI, CHILDREN, CHILDREN, CHILDREN], ops
            assert sorted(ops[4:]) == sorted([GET, GET] + back * [DELETE]), ops
            eventually(lambda: sum(counts(far, base)) == 4 - back)
            it.begin()
            holder.release()
            pending.succeeds()
            # The nodes of the members that it gave back.
            it.expect_requests(1 if more else 0, *more)
            lock.release()
            wait_until_free(far, base)


# ---- changes by other clients

@on_server
def part_deleted_while_another_is_waited_for_is_found_by_verify(
        worker, far, base):
    make(far, base)
    holder, lock = far.lock(base + "/b"), far.multilock(*members(base))
    holder.acquire()
    pending = lock.submit("acquire")
    lock.wait_until_queued()
    eventually(lambda: counts(far, base) == [1, 2, 0])
    far.do("delete", path=base + "/a/" + names(far, base + "/a")[0])
    holder.release()
    pending.succeeds()
    lock.submit("verify").fails("LOST")
    lock.submit("release").fails("LOST")
    wait_until_free(far, base)


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        members_share_one_token,
        waiter_holds_no_later_members,
        any_order_of_members_is_free_of_deadlock,
        readers_and_writers_may_be_members,
        each_busy_member_takes_a_round_trip,
        part_deleted_while_another_is_waited_for_is_found_by_verify,
    )
