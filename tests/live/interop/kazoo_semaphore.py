# SPDX-License-Identifier: Apache-2.0
"""The semaphore in kazoo's layout, together with kazoo: requests, and refusals
of clients with another number of permits."""

import contextlib
import re
import sys
import uuid

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import CountedClient, names, on_server, wait_until_empty
from relay import CHILDREN, CREATE2, DELETE, GET, REMOVE_WATCHES

try:
    import kazoo.client
    import kazoo.exceptions
    import kazoos  # also disables kazoo's log
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")

KAZOO = 1  # lk_layout
LEASE = re.compile(r"[0-9a-f]{32}")
PLACE = re.compile(r"[0-9a-f]{32}__lock__[0-9]{10}")
# The requests of an acquire: read the number of permits, create the queue node
# and list the queue, create a permit node and list the permits.
AT_ONCE = (GET, CREATE2, CHILDREN, CREATE2, CHILDREN)


def ours(client, base, permits=1, **options):
    return client.semaphore(base + "/l", permits=permits, layout=KAZOO,
                            **options)


@contextlib.contextmanager
def kazoo_client():
    client = kazoo.client.KazooClient(shared.connect_string(), timeout=8)
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def theirs(client, base, permits=1):
    return client.Semaphore(base + "/l", "kazoo", max_leases=permits)


def queue(base):
    return base + "/l-__lock__"


def wait_until_free(direct, base):
    wait_until_empty(direct, base + "/l")
    wait_until_empty(direct, queue(base))


# ---- exclusion

@on_server
def each_library_counts_the_others_permits(worker, direct, base):
    lock = ours(direct, base, permits=2, data=b"latchkey")
    with kazoo_client() as kz:
        other = theirs(kz, base, permits=2)
        last = ours(direct, base, permits=2)
        grant = lock.acquire()
        found = names(direct, base + "/l")
        assert len(found) == 1 and LEASE.fullmatch(found[0]), found
        assert grant.node == base + "/l/" + found[0]
        assert other.acquire(timeout=20)
        assert sorted(other.lease_holders()) == ["kazoo", "latchkey"]
        # No permit is free, for either library.
        pending = last.submit("acquire")
        last.wait_until_queued()
        assert PLACE.fullmatch(names(direct, queue(base))[0])
        assert not kz.Semaphore(base + "/l", max_leases=2).acquire(
            blocking=False)
        other.release()
        pending.succeeds()
        lock.release()
        assert other.acquire(timeout=20)
        last.release()
        other.release()
    wait_until_free(direct, base)


# ---- the number of permits

@on_server
def kazoo_with_another_number_than_latchkeys_is_refused(worker, direct, base):
    lock = ours(direct, base, permits=2)
    lock.acquire()
    assert direct.get(base + "/l").data == b"2"
    with kazoo_client() as kz:
        for permits in (1, 3):
            try:
                theirs(kz, base, permits).acquire(timeout=5)
            except ValueError as e:
                assert "Inconsistent max leases: 2, expected: %d" % permits \
                    in str(e), e
            else:
                raise AssertionError("kazoo takes %d for 2" % permits)
        other = theirs(kz, base, permits=2)
        assert other.acquire(timeout=20)
        other.release()
    lock.release()
    wait_until_free(direct, base)


@on_server
def latchkey_with_another_number_than_kazoos_is_refused(worker, direct, base):
    with kazoo_client() as kz:
        other = theirs(kz, base, permits=3)
        assert other.acquire(timeout=20)
        assert direct.get(base + "/l").data == b"3"
        for permits in (2, 4, 30):
            lock = ours(direct, base, permits=permits)
            lock.submit("acquire").fails("OTHER_LIMIT")
            # The refused client leaves no node, and does not change kazoo's
            # data.
            eventually(lambda: direct.facts().unfinished == 0)
            assert len(names(direct, base + "/l")) == 1
            assert not names(direct, queue(base))
            assert direct.get(base + "/l").data == b"3"
        lock = ours(direct, base, permits=3, take=2)
        lock.acquire()
        lock.release()
        other.release()
    wait_until_free(direct, base)


@on_server
def data_without_a_number_is_ignored(worker, direct, base):
    for text in (b"", b"three", b"3 permits"):
        path = "%s/%s" % (base, uuid.uuid4().hex)
        direct.create(path, data=b"")
        direct.create(path + "/l", data=text)
        with kazoo_client() as kz:
            other = theirs(kz, path, permits=2)
            assert other.acquire(timeout=20)
            lock = ours(direct, path, permits=2)
            lock.acquire()
            assert direct.get(path + "/l").data == text
            lock.release()
            other.release()
        wait_until_free(direct, path)


# ---- requests

def make(direct, base, permits):
    """Create the directories as the first holder leaves them."""
    direct.create(base + "/l", data=b"%d" % permits)
    direct.create(queue(base))


@on_server
def first_waiter_waits_for_permits_only(worker, direct, base):
    make(direct, base, 1)
    with CountedClient() as it, kazoo_client() as kz:
        lock, holder = ours(it.client, base), theirs(kz, base)
        for _ in range(3):
            assert holder.acquire(timeout=20)
            it.begin()
            pending = lock.submit("acquire")
            assert lock.wait_until_queued().position == 1
            it.expect_requests(2, *AT_ONCE, GET)
            holder.release()
            pending.succeeds()
            # It lists once after the event; the other requests follow the
            # grant.
            it.expect_requests(2, CHILDREN, REMOVE_WATCHES, DELETE)
            lock.release()
            it.expect_requests(1, DELETE)


@on_server
def waiter_behind_others_gives_its_permits_back(worker, direct, base):
    make(direct, base, 1)
    holder, first = [ours(direct, base) for _ in range(2)]
    with CountedClient() as it:
        lock = ours(it.client, base)
        for turn in range(4):
            holder.acquire()
            before = first.submit("acquire")
            first.wait_until_queued()
            it.begin()
            pending = lock.submit("acquire")
            lock.wait_until_queued()
            if turn < 3:
                ops = eventually(lambda: it.since()[0][8:] and it.since()[0])
                assert ops[:5] == list(AT_ONCE), ops
                assert sorted(ops[5:]) == sorted(
                    [GET, GET, DELETE, REMOVE_WATCHES]), ops
            else:
                # After three such turns it creates the queue node only.
                it.expect_requests(2, GET, CREATE2, CHILDREN, GET, GET)
            eventually(lambda: len(names(direct, base + "/l")) == 2)
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


with shared.serve("--tick", "500"):
    live.run(
        each_library_counts_the_others_permits,
        kazoo_with_another_number_than_latchkeys_is_refused,
        latchkey_with_another_number_than_kazoos_is_refused,
        data_without_a_number_is_ignored,
        first_waiter_waits_for_permits_only,
        waiter_behind_others_gives_its_permits_back,
    )
