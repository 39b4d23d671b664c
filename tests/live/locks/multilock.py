# SPDX-License-Identifier: Apache-2.0
"""What the multi-lock alone does, on a real server: members in any order, of any
kind, busy ones and deleted ones."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import CountedClient, names, on_server
from relay import CHILDREN, DELETE, GET, MULTI


def paths(base, letters="abc"):
    return [base + "/" + letter for letter in letters]


def make_directories(direct, base):
    """Create the lock directories as persistent nodes: unlike containers, the
    server does not delete them."""
    for path in paths(base):
        direct.create(path)


def members(base, letters="abc"):
    return ["x:" + path for path in paths(base, letters)]


def counts(direct, base):
    """The number of contender nodes of each member."""
    return [len(names(direct, path)) for path in paths(base)]


def wait_until_free(direct, base):
    eventually(lambda: not any(counts(direct, base)))


@on_server
def any_order_of_members_is_free_of_deadlock(worker, direct, base):
    make_directories(direct, base)
    multilocks = [direct.multilock(*members(base, letters))
                  for letters in ("abc", "cba", "bca", "ac", "ba")]
    singles = [direct.lock(path) for path in paths(base)]
    cycles = [lock.submit("cycle", turns=60) for lock in multilocks + singles]
    for cycle in cycles:
        done = cycle.succeeds()
        assert (done.granted, done.failed) == (60, 0), done
    wait_until_free(direct, base)


@on_server
def readers_and_writers_may_be_members(worker, direct, base):
    make_directories(direct, base)
    read_a_write_b = direct.multilock("r:" + base + "/a", "w:" + base + "/b")
    read_a_write_c = direct.multilock("r:" + base + "/a", "w:" + base + "/c")
    read_a_write_b.acquire()
    read_a_write_c.submit("acquire", wait=0).succeeds()
    read, write = direct.rwlock(base + "/a")
    read.submit("acquire", wait=0).succeeds()
    read.release()
    write.submit("acquire", wait=0).fails("BUSY")
    write_a_and_b = direct.multilock("w:" + base + "/a", "w:" + base + "/b")
    pending = write_a_and_b.submit("acquire")
    write_a_and_b.wait_until_queued()
    read_a_write_c.release()
    assert not pending.is_done()
    read_a_write_b.release()
    pending.succeeds()
    write_a_and_b.release()
    wait_until_free(direct, base)


@on_server
def nodes_of_members_behind_a_held_one_are_deleted_and_created_again(
        worker, direct, base):
    make_directories(direct, base)
    with CountedClient() as it:
        lock = it.client.multilock(*members(base))
        # The held member, the number of members behind it, the numbers of nodes
        # of a, b and c while the multi-lock waits, and the requests that create
        # its nodes again after the wait, and list their queues.
        for held, behind, node_counts, recreate in (
                ("a", 2, [2, 0, 0], [MULTI, CHILDREN, CHILDREN]),
                ("b", 1, [1, 2, 0], [MULTI, CHILDREN]),
                ("c", 0, [1, 1, 2], [])):
            holder = direct.lock(base + "/" + held)
            holder.acquire()
            it.reset_counts()
            pending = lock.submit("acquire")
            lock.wait_until_queued()
            first = [MULTI, CHILDREN, CHILDREN, CHILDREN]
            # The multi-lock reads its own node and that of the holder, and
            # deletes the nodes of the members behind. The order of these
            # requests depends on the replies.
            then = [GET, GET] + behind * [DELETE]
            ops = eventually(lambda: len(it.counts()[0]) >=
                             len(first + then) and it.counts()[0])
            assert ops[:len(first)] == first, ops
            assert sorted(ops[len(first):]) == sorted(then), ops
            eventually(lambda: counts(direct, base) == node_counts, node_counts)
            it.reset_counts()
            holder.release()
            pending.succeeds()
            it.expect_requests(1 if recreate else 0, *recreate)
            assert counts(direct, base) == [1, 1, 1]
            lock.release()
            wait_until_free(direct, base)


@on_server
def verify_finds_a_member_deleted_while_another_was_waited_for(
        worker, direct, base):
    make_directories(direct, base)
    holder, lock = direct.lock(base + "/b"), direct.multilock(*members(base))
    holder.acquire()
    pending = lock.submit("acquire")
    lock.wait_until_queued()
    eventually(lambda: counts(direct, base) == [1, 2, 0])
    direct.do("delete", path=base + "/a/" + names(direct, base + "/a")[0])
    holder.release()
    pending.succeeds()
    lock.submit("verify").fails("LOST")
    lock.submit("release").fails("LOST")
    wait_until_free(direct, base)


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(live.together(
        any_order_of_members_is_free_of_deadlock,
        readers_and_writers_may_be_members,
        nodes_of_members_behind_a_held_one_are_deleted_and_created_again,
        verify_finds_a_member_deleted_while_another_was_waited_for))
