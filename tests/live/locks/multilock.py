# SPDX-License-Identifier: Apache-2.0
"""Several locks as one, on a real server: all or none, and what it costs."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG, SHORT, Wired, names, on_server, owned_by
from worker import Worker
from relay import CHILDREN, CREATE_CONTAINER, DELETE, GET, MULTI, Relay


def paths(base, letters="abc"):
    return [base + "/" + letter for letter in letters]


def make(far, base, letters="abc"):
    """So that containers come into nobody's way."""
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
def all_are_held_with_one_token(worker, far, base):
    lock = far.multilock(*members(base))
    grant = lock.acquire()
    assert counts(far, base) == [1, 1, 1]
    for path in paths(base):
        found = names(far, path)
        assert found[0][:3] == "_c_" and found[0][39:45] == "-lock-", found
        assert far.get(path + "/" + found[0]).czxid == grant.token
        far.lock(path).ask("acquire", wait=0).fails("BUSY")
    lock.release()
    wait_until_free(far, base)


@on_server
def who_waits_keeps_nothing_later_from_others(worker, far, base):
    make(far, base)
    lock = far.multilock(*members(base))
    for held, queued in (("a", [2, 0, 0]), ("b", [1, 2, 0]),
                         ("c", [1, 1, 2])):
        holder = far.lock(base + "/" + held)
        holder.acquire()
        lock.ask("acquire", wait=0).fails("BUSY")
        asked = lock.ask("acquire")
        lock.waits()
        eventually(lambda: counts(far, base) == queued, queued)
        holder.release()
        asked.good()
        assert counts(far, base) == [1, 1, 1]
        lock.release()
        wait_until_free(far, base)


@on_server
def orders_do_not_matter(worker, far, base):
    make(far, base)
    some = [far.multilock(*members(base, letters))
            for letters in ("abc", "cba", "bca", "ac", "ba")]
    singles = [far.lock(path) for path in paths(base)]
    cycles = [lock.ask("cycle", turns=60) for lock in some + singles]
    for cycle in cycles:
        done = cycle.good()
        assert (done.granted, done.failed) == (60, 0), done
    wait_until_free(far, base)


@on_server
def readers_and_writers_may_be_members(worker, far, base):
    make(far, base)
    one = far.multilock("r:" + base + "/a", "w:" + base + "/b")
    two = far.multilock("r:" + base + "/a", "w:" + base + "/c")
    one.acquire()
    two.ask("acquire", wait=0).good()
    read, write = far.rwlock(base + "/a")
    read.ask("acquire", wait=0).good()
    read.release()
    write.ask("acquire", wait=0).fails("BUSY")
    three = far.multilock("w:" + base + "/a", "w:" + base + "/b")
    asked = three.ask("acquire")
    three.waits()
    two.release()
    assert not asked.is_done()
    one.release()
    asked.good()
    three.release()
    wait_until_free(far, base)


# ---- what it costs

@on_server
def a_warm_acquire_is_one_write_however_many(worker, far, base):
    make(far, base, "abcdefgh")
    with Wired() as it:
        for letters in ("a", "abc", "abcdefgh"):
            lock = it.client.multilock(*members(base, letters))
            it.begin()
            lock.acquire()
            it.costs(1, MULTI, *len(letters) * [CHILDREN])
            lock.release()
            it.costs(1, *len(letters) * [DELETE])


@on_server
def a_cold_acquire_is_two_writes(worker, far, base):
    with Wired() as it:
        lock = it.client.multilock(*members(base + "/deep/er"))
        it.begin()
        lock.acquire()
        ops, writes = it.since()
        lists = 3 * [CHILDREN]
        assert ops[:4] == [MULTI, *lists] and ops[-4:] == [MULTI, *lists], ops
        assert set(ops[4:-4]) == {CREATE_CONTAINER} and writes == 2, ops
        lock.release()


@on_server
def each_lock_that_is_waited_for_costs_a_round_trip(worker, far, base):
    make(far, base)
    with Wired() as it:
        lock = it.client.multilock(*members(base))
        for blocked, back, more in (("a", 2, [MULTI, CHILDREN, CHILDREN]),
                                    ("b", 1, [MULTI, CHILDREN]),
                                    ("c", 0, [])):
            holder = far.lock(base + "/" + blocked)
            holder.acquire()
            it.begin()
            asked = lock.ask("acquire")
            lock.waits()
            ops = eventually(lambda: it.since()[0][5 + back:] and
                             it.since()[0])
            assert ops[:4] == [MULTI, CHILDREN, CHILDREN, CHILDREN], ops
            assert sorted(ops[4:]) == sorted([GET, GET] + back * [DELETE]), ops
            eventually(lambda: sum(counts(far, base)) == 4 - back)
            it.begin()
            holder.release()
            asked.good()
            # What is lacking, if anything.
            it.costs(1 if more else 0, *more)
            lock.release()
            wait_until_free(far, base)


@on_server
def a_release_wakes_one_of_a_hundred(worker, far, base):
    make(far, base)
    holder = far.multilock(*members(base))
    holder.acquire()
    wire, locks, asked = shared.crowd(
        worker, lambda client: client.multilock(*members(base)), 100)
    with wire:
        eventually(lambda: counts(far, base) == [101, 1, 1])
        mark = wire.mark()
        holder.release()
        asked[0].good()
        assert len(shared.told_since(wire, mark)) == 1
        for lock in reversed(locks):
            lock.free()
        wait_until_free(far, base)


# ---- others meddle

@on_server
def what_loses_a_part_loses_all(worker, far, base):
    client = worker.client(_zk.connect, timeout=SHORT)
    lock = client.multilock(*members(base))
    for path in paths(base):
        lock.acquire()
        far.do("delete", path=path + "/" + names(far, path)[0])
        assert lock.event("lost").err == "NO_NODE"
        wait_until_free(far, base)
        lock.ask("release").fails("LOST")
    assert len(lock.said("lock", "lost")) == 3
    client.do("close")


@on_server
def an_operator_may_delete_a_place(worker, far, base):
    make(far, base)
    holder, lock = far.lock(base + "/b"), far.multilock(*members(base))
    for victim in ("b", "a"):
        node = holder.acquire().node.rpartition("/")[2]
        asked = lock.ask("acquire")
        lock.waits()
        eventually(lambda: counts(far, base) == [1, 2, 0])
        old = [name for name in names(far, base + "/" + victim)
               if name != node]
        far.do("delete", path=base + "/" + victim + "/" + old[0])
        if victim == "b":  # it waits there, and sees it at once
            lock.event("place_lost")
            eventually(lambda: counts(far, base) == [1, 2, 0])
        holder.release()
        asked.good()
        assert counts(far, base)[1:] == [1, 1]
        if victim == "a":
            lock.ask("verify").fails("LOST")
            lock.ask("release").fails("LOST")
        else:
            lock.release()
        wait_until_free(far, base)


@on_server
def directories_that_are_swept_lose_no_acquire(worker, far, base):
    with Relay(_zk.connect) as wire:
        clients = [worker.client(wire.address, timeout=LONG)
                   for _ in range(2)]
        locks = [c.multilock(*members(base)) for c in clients]
        made = 0
        end = time.monotonic() + 20
        while made < 12 and time.monotonic() < end:
            for cycle in [lock.ask("cycle", turns=60) for lock in locks]:
                done = cycle.good()
                assert (done.granted, done.failed) == (60, 0), done
            time.sleep(.35)
            made = wire.ops().count(CREATE_CONTAINER)
        assert made >= 12, "the sweep was never in the way"
        for client in clients:
            client.do("close")


@on_server
def a_holder_that_dies_makes_room(worker, far, base):
    dying = Worker()
    client = dying.client(_zk.connect, timeout=SHORT)
    client.multilock(*members(base)).acquire()
    waiting = far.multilock(*members(base))
    asked = waiting.ask("acquire")
    waiting.waits()
    dying.kill()
    dying.close()
    asked.good()
    waiting.release()
    wait_until_free(far, base)


# ---- access lists

@on_server
def rights_that_lack_are_named(worker, far, base):
    for perms in (27, 30):
        far.create(base + "/b", acl="%d:world:anyone" % perms)
        lock = far.multilock(*members(base))
        lock.ask("acquire").fails("NO_AUTH")
        eventually(lambda: far.facts().unfinished == 0)
        assert not names(far, base + "/a") and not names(far, base + "/c")
        assert far.do("exists", path=base + "/b").children == 0
        far.do("delete", path=base + "/b")


@on_server
def a_pred_that_cannot_be_read_is_waited_for(worker, far, base):
    secret, acl = owned_by("amy")
    amy = worker.client(_zk.connect, timeout=LONG)
    amy.do("auth", scheme="digest", auth=secret)
    holder = amy.lock(base + "/b", acl=acl % 31, parent_acl="open")
    holder.acquire()
    lock = far.multilock(*members(base))
    asked = lock.ask("acquire")
    lock.waits()
    far.create(base + "/b/other")
    assert not asked.is_done()
    holder.release()
    asked.good()
    lock.release()
    amy.do("close")


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        all_are_held_with_one_token,
        who_waits_keeps_nothing_later_from_others,
        orders_do_not_matter,
        readers_and_writers_may_be_members,
        a_warm_acquire_is_one_write_however_many,
        a_cold_acquire_is_two_writes,
        each_lock_that_is_waited_for_costs_a_round_trip,
        a_release_wakes_one_of_a_hundred,
        what_loses_a_part_loses_all,
        an_operator_may_delete_a_place,
        directories_that_are_swept_lose_no_acquire,
        rights_that_lack_are_named,
        a_pred_that_cannot_be_read_is_waited_for,
        a_holder_that_dies_makes_room,
    )
