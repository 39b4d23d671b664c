# SPDX-License-Identifier: Apache-2.0
"""The semaphore on a real server: how many hold, what it costs."""

import re
import struct
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG, SHORT, Wired, names, on_server, wait_until_empty
from worker import Worker
from relay import CHILDREN, CREATE2, CREATE_CONTAINER, DELETE, GET, \
    REMOVE_WATCHES, Relay

LEASE = re.compile(r"_c_[0-9a-f-]{36}-lease-[0-9]{10}")
PLACE = re.compile(r"_c_[0-9a-f-]{36}-lock-[0-9]{10}")
AT_ONCE = (CREATE2, CHILDREN, CREATE2, CHILDREN)


def leases(far, base):
    return names(far, base + "/l/leases")


def places(far, base):
    return names(far, base + "/l/locks")


def wait_until_free(far, base):
    wait_until_empty(far, base + "/l/leases")
    wait_until_empty(far, base + "/l/locks")


def hold(lock, far, base):
    """Acquires it and waits until its place in the queue is gone: that is
    deleted after the grant, and who comes before that is not the first."""
    grant = lock.acquire()
    wait_until_empty(far, base + "/l/locks")
    return grant


# ---- how many hold

@on_server
def the_nodes_are_curators(worker, far, base):
    lock = far.semaphore(base + "/l", permits=2, data=b"who")
    rest = far.semaphore(base + "/l", permits=2, take=2)
    grant = lock.acquire()
    found = leases(far, base)
    assert len(found) == 1 and LEASE.fullmatch(found[0]), found
    assert grant.node == base + "/l/leases/" + found[0]
    node = far.get(grant.node)
    assert node.data == b"who" and node.czxid == grant.token
    wait_until_empty(far, base + "/l/locks")
    # Who is first keeps its place until there is enough.
    asked = rest.ask("acquire")
    assert rest.waits().position == 1
    assert PLACE.fullmatch(places(far, base)[0])
    lock.release()
    asked.good()
    rest.release()
    wait_until_free(far, base)


@on_server
def so_many_and_no_more(worker, far, base):
    for permits in (1, 3):
        some = [far.semaphore(base + "/l", permits=permits)
                for _ in range(permits + 2)]
        for lock in some[:permits]:
            lock.acquire()
        for lock in some[permits:]:
            lock.ask("acquire", wait=0).fails("BUSY")
            lock.ask("acquire", wait=200).fails("DEADLINE")
        late = [lock.ask("acquire") for lock in some[permits:]]
        for lock in some[permits:]:
            lock.waits()
        assert not any(asked.is_done() for asked in late)
        some[0].release()
        late[0].good()
        assert not late[1].is_done()
        some[permits].release()
        late[1].good()
        for lock in [some[permits + 1], *some[1:permits]]:
            lock.release()
        wait_until_free(far, base)


@on_server
def many_are_taken_at_once_or_not_at_all(worker, far, base):
    two = [far.semaphore(base + "/l", permits=3, take=2) for _ in range(2)]
    for _ in range(20):
        cycles = [lock.ask("cycle", turns=5) for lock in two]
        for cycle in cycles:
            done = cycle.good()
            assert (done.granted, done.failed) == (5, 0), done
    two[0].acquire()
    assert len(leases(far, base)) == 2
    two[1].ask("acquire", wait=0).fails("BUSY")
    one = far.semaphore(base + "/l", permits=3)
    one.ask("acquire", wait=0).good()
    one.ask("acquire").fails("DEADLOCK")
    one.release()
    two[0].release()
    wait_until_free(far, base)


@on_server
def the_number_may_change(worker, far, base):
    limit = base + "/limit"
    some = [far.semaphore(base + "/l", permits=1, limit=limit)
            for _ in range(3)]
    some[0].acquire()
    assert far.get(limit).data == struct.pack(">i", 1)
    asked = some[1].ask("acquire")
    some[1].waits()
    far.do("set", path=limit, data=struct.pack(">i", 2))
    asked.good()
    # Fewer: nobody loses what he has, and the next waits for two to go.
    far.do("set", path=limit, data=struct.pack(">i", 1))
    asked = some[2].ask("acquire")
    some[2].waits()
    some[0].release()
    far.do("sync", path="/")
    eventually(lambda: len(leases(far, base)) == 2)  # one of who waits inside
    assert not asked.is_done()
    some[1].release()
    asked.good()
    some[2].release()
    wait_until_free(far, base)


# ---- what it costs

def make(far, base):
    """So that containers come into nobody's way."""
    for part in ("", "/locks", "/leases"):
        far.create(base + "/l" + part)


@on_server
def a_warm_acquire_is_one_write(worker, far, base):
    make(far, base)
    with Wired() as it:
        for take in (1, 3):
            lock = it.client.semaphore(base + "/l", permits=3, take=take)
            for _ in range(3):
                it.begin()
                lock.acquire()
                # The rest is not waited for: the place is given back, and the
                # permits are watched no more.
                it.costs(2, CREATE2, CHILDREN, *take * [CREATE2], CHILDREN,
                         REMOVE_WATCHES, DELETE)
                lock.release()
                it.costs(1, *take * [DELETE])


@on_server
def a_cold_acquire_is_two_round_trips(worker, far, base):
    with Wired() as it:
        lock = it.client.semaphore(base + "/a/b/l")
        it.begin()
        lock.acquire()
        ops = eventually(lambda: it.since()[0][19:] and it.since()[0])
        assert ops[:4] == list(AT_ONCE), ops
        assert ops.count(CREATE2) == ops.count(CHILDREN) == 4, ops
        assert set(ops) == {CREATE2, CHILDREN, CREATE_CONTAINER, DELETE,
                            REMOVE_WATCHES}, ops
        # Half of what is lacking: only that half is asked for again.
        for part in ("/locks", "/leases"):
            lock.release()
            wait_until_empty(far, base + "/a/b/l/leases")
            gone = far.ask("delete", path=base + "/a/b/l" + part).result()
            assert gone.err in ("0", "NO_NODE"), gone  # the sweep came first
            it.begin()
            lock.acquire()
            ops, _ = it.since()
            assert ops[:4] == list(AT_ONCE), ops
            assert 3 <= ops.count(CREATE2) <= 4, ops
        lock.release()


@on_server
def who_is_first_waits_for_permits_alone(worker, far, base):
    make(far, base)
    holder = far.semaphore(base + "/l")
    with Wired() as it:
        lock = it.client.semaphore(base + "/l")
        for _ in range(3):
            hold(holder, far, base)
            it.begin()
            asked = lock.ask("acquire")
            assert lock.waits().position == 1
            it.costs(2, *AT_ONCE, GET)
            holder.release()
            asked.good()
            # The event, one list; and what nobody waits for.
            it.costs(2, CHILDREN, REMOVE_WATCHES, DELETE)
            lock.release()
            it.costs(1, DELETE)


@on_server
def who_is_not_first_gives_its_permits_back(worker, far, base):
    make(far, base)
    holder, first = [far.semaphore(base + "/l") for _ in range(2)]
    with Wired() as it:
        lock = it.client.semaphore(base + "/l")
        for turn in range(5):
            hold(holder, far, base)
            before = first.ask("acquire")
            first.waits()
            it.begin()
            asked = lock.ask("acquire")
            lock.waits()
            if turn < 3:
                ops = eventually(lambda: it.since()[0][7:] and it.since()[0])
                assert ops[:4] == list(AT_ONCE), ops
                assert sorted(ops[4:]) == sorted(
                    [GET, GET, DELETE, REMOVE_WATCHES]), ops
            else:
                # It learns: the place alone, until there is no queue.
                it.costs(2, CREATE2, CHILDREN, GET, GET)
            eventually(lambda: len(leases(far, base)) == 2)
            it.begin()
            holder.release()
            before.good()
            # It is first now, and asks for permits in one write.
            it.costs(2, CREATE2, CHILDREN, GET)
            first.release()
            asked.good()
            it.costs(2, CHILDREN, REMOVE_WATCHES, DELETE)
            lock.release()
        it.begin()
        lock.acquire()  # nobody is there
        it.costs(3, *AT_ONCE, REMOVE_WATCHES, DELETE)
        lock.release()
        it.costs(1, DELETE)
        lock.acquire()
        it.costs(2, *AT_ONCE, REMOVE_WATCHES, DELETE)
        lock.release()


@on_server
def a_release_wakes_one_of_a_hundred(worker, far, base):
    make(far, base)
    holder = far.semaphore(base + "/l", permits=2)
    other = far.semaphore(base + "/l", permits=2)
    hold(holder, far, base)
    hold(other, far, base)
    wire, locks, asked = shared.crowd(
        worker, lambda c: c.semaphore(base + "/l", permits=2), 100)
    with wire:
        eventually(lambda: len(leases(far, base)) == 3)
        mark, wakes = wire.mark(), shared.told_since
        holder.release()
        asked[0].good()
        eventually(lambda: len(places(far, base)) == 99)
        # The head of the queue, and, when it goes, the next.
        eventually(lambda: len(leases(far, base)) == 3)
        owners = {f.connection for f in wire.requests(mark)
                  if f.op == DELETE}
        assert len(owners) == 1 and len(wakes(wire, mark) - owners) == 1
        assert len(shared.lists_since(wire, mark)) <= 3
        for n in (1, 2, 3):
            mark = wire.mark()
            locks[n - 1].release()
            asked[n].good()
            eventually(lambda: len(leases(far, base)) == 3)
            assert len(wakes(wire, mark)) <= 3, wakes(wire, mark)
            assert not asked[n + 1].is_done()
        for lock in reversed(locks):
            lock.free()
        other.release()
        wait_until_free(far, base)


# ---- others meddle

@on_server
def an_operator_may_delete_what_is_held(worker, far, base):
    client = worker.client(_zk.connect, timeout=SHORT)
    for which in (0, 1):
        lock = client.semaphore(base + "/l", permits=3, take=2)
        lock.acquire()
        far.do("delete", path="%s/l/leases/%s" % (
            base, leases(far, base)[which]))
        assert lock.event("lost").err == "NO_NODE"
        # The other one goes with it.
        wait_until_free(far, base)
        lock.ask("release").fails("LOST")
    client.do("close")


@on_server
def an_operator_may_delete_what_waits(worker, far, base):
    client = worker.client(_zk.connect, timeout=SHORT)
    holder = far.semaphore(base + "/l")
    lock, last = [client.semaphore(base + "/l") for _ in range(2)]
    kept = hold(holder, far, base).node.rpartition("/")[2]
    asked = lock.ask("acquire")
    lock.waits()
    behind = last.ask("acquire")
    last.waits()
    eventually(lambda: len(leases(far, base)) == 2)
    # Its lease, then the places, from the head on.
    for part, found in (("leases", lambda: [n for n in leases(far, base)
                                            if n != kept]),
                        ("locks", lambda: places(far, base))):
        for _ in range(2):
            name = eventually(found)[0]
            far.do("delete", path="%s/l/%s/%s" % (base, part, name))
            eventually(lambda: name not in found() and
                       len(places(far, base)) == 2 and
                       len(leases(far, base)) == 2)
    assert not asked.is_done() and not behind.is_done()
    holder.release()
    eventually(lambda: asked.is_done() or behind.is_done())
    assert not (asked.is_done() and behind.is_done())
    turns = [(lock, asked), (last, behind)]
    for one, grant in turns if asked.is_done() else reversed(turns):
        grant.good()
        one.release()
    wait_until_free(far, base)
    client.do("close")


@on_server
def a_change_of_a_nodes_data_is_no_release(worker, far, base):
    some = [far.semaphore(base + "/l") for _ in range(3)]
    some[0].acquire()
    asked = [lock.ask("acquire") for lock in some[1:]]
    for lock in some[1:]:
        lock.waits()
    eventually(lambda: len(leases(far, base)) == 2)
    for _ in range(3):
        for part in ("locks", "leases"):
            for name in names(far, base + "/l/" + part):
                far.do("set", path="%s/l/%s/%s" % (base, part, name),
                       data=b"x")
    far.do("sync", path="/")
    assert not asked[0].is_done() and not asked[1].is_done()
    some[0].release()
    asked[0].good()
    assert not asked[1].is_done()
    some[1].release()
    asked[1].good()
    some[2].release()
    wait_until_free(far, base)


@on_server
def directories_that_are_swept_lose_no_acquire(worker, far, base):
    with Relay(_zk.connect) as wire:
        clients = [worker.client(wire.address, timeout=LONG)
                   for _ in range(2)]
        locks = [c.semaphore(base + "/l") for c in clients]
        made = 0
        end = time.monotonic() + 20
        while made < 12 and time.monotonic() < end:
            for cycle in [lock.ask("cycle", turns=100) for lock in locks]:
                done = cycle.good()
                assert (done.granted, done.failed) == (100, 0), done
            time.sleep(.35)
            made = wire.ops().count(CREATE_CONTAINER)
        assert made >= 12, "the sweep was never in the way"
        for client in clients:
            client.do("close")


@on_server
def a_holder_that_dies_makes_room(worker, far, base):
    dying = Worker()
    client = dying.client(_zk.connect, timeout=SHORT)
    client.semaphore(base + "/l", permits=2, take=2).acquire()
    inside = client.semaphore(base + "/l", permits=2)
    inside.ask("acquire")
    inside.waits()
    waiting = far.semaphore(base + "/l", permits=2, take=2)
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
    for part in ("locks", "leases"):
        for perms, what in ((27, "no-create"), (30, "no-read")):
            path = "%s/%s-%s" % (base, part, what)
            far.create(path)
            for child in ("locks", "leases"):
                far.create(path + "/" + child, acl="%d:world:anyone" % (
                    perms if child == part else 31))
            lock = far.semaphore(path)
            lock.ask("acquire").fails("NO_AUTH")
            eventually(lambda: far.facts().unfinished == 0)
            for child in ("locks", "leases"):
                assert far.do("exists", path=path + "/" + child).children == 0


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        the_nodes_are_curators,
        so_many_and_no_more,
        many_are_taken_at_once_or_not_at_all,
        the_number_may_change,
        a_warm_acquire_is_one_write,
        a_cold_acquire_is_two_round_trips,
        who_is_first_waits_for_permits_alone,
        who_is_not_first_gives_its_permits_back,
        a_release_wakes_one_of_a_hundred,
        an_operator_may_delete_what_is_held,
        an_operator_may_delete_what_waits,
        a_change_of_a_nodes_data_is_no_release,
        directories_that_are_swept_lose_no_acquire,
        rights_that_lack_are_named,
        a_holder_that_dies_makes_room,
    )
