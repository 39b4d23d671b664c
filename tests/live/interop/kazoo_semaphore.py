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

import kazoos  # first: it skips the test without kazoo  # noqa: F401
import kazoo.client
import kazoo.exceptions

KAZOO = 1  # lk_layout
PERMIT_NAME = re.compile(r"[0-9a-f]{32}")
QUEUE_NAME = re.compile(r"[0-9a-f]{32}__lock__[0-9]{10}")
# The requests of an acquire: read the number of permits, create the queue node
# and list the queue, create a permit node and list the permits.
FIRST_REQUESTS = (GET, CREATE2, CHILDREN, CREATE2, CHILDREN)


def latchkey_semaphore(client, base, permits=1, **options):
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


def kazoo_semaphore(client, base, permits=1):
    return client.Semaphore(base + "/l", "kazoo", max_leases=permits)


def queue_path(base):
    return base + "/l-__lock__"


def wait_until_free(direct, base):
    wait_until_empty(direct, base + "/l")
    wait_until_empty(direct, queue_path(base))


# ---- exclusion

@on_server
def each_library_counts_the_others_permits(worker, direct, base):
    lock = latchkey_semaphore(direct, base, permits=2, data=b"latchkey")
    with kazoo_client() as kz:
        kz_semaphore = kazoo_semaphore(kz, base, permits=2)
        waiter = latchkey_semaphore(direct, base, permits=2)
        grant = lock.acquire()
        (name,) = names(direct, base + "/l")
        assert PERMIT_NAME.fullmatch(name), name
        assert grant.node == base + "/l/" + name
        assert kz_semaphore.acquire(timeout=20)
        assert sorted(kz_semaphore.lease_holders()) == ["kazoo", "latchkey"]
        # No permit is free, for either library.
        pending = waiter.submit("acquire")
        waiter.wait_until_queued()
        (name,) = names(direct, queue_path(base))
        assert QUEUE_NAME.fullmatch(name), name
        assert not kz.Semaphore(base + "/l", max_leases=2).acquire(
            blocking=False)
        kz_semaphore.release()
        pending.succeeds()
        lock.release()
        assert kz_semaphore.acquire(timeout=20)
        waiter.release()
        kz_semaphore.release()
    wait_until_free(direct, base)


# ---- the number of permits

@on_server
def kazoo_with_another_number_than_latchkeys_is_refused(worker, direct, base):
    lock = latchkey_semaphore(direct, base, permits=2)
    lock.acquire()
    assert direct.get(base + "/l").data == b"2"
    with kazoo_client() as kz:
        for permits in (1, 3):
            try:
                kazoo_semaphore(kz, base, permits).acquire(timeout=5)
            except ValueError as e:
                assert "Inconsistent max leases: 2, expected: %d" % permits \
                    in str(e), e
            else:
                raise AssertionError("kazoo takes %d for 2" % permits)
        kz_semaphore = kazoo_semaphore(kz, base, permits=2)
        assert kz_semaphore.acquire(timeout=20)
        kz_semaphore.release()
    lock.release()
    wait_until_free(direct, base)


@on_server
def latchkey_with_another_number_than_kazoos_is_refused(worker, direct, base):
    with kazoo_client() as kz:
        kz_semaphore = kazoo_semaphore(kz, base, permits=3)
        assert kz_semaphore.acquire(timeout=20)
        assert direct.get(base + "/l").data == b"3"
        for permits in (2, 4, 30):
            lock = latchkey_semaphore(direct, base, permits=permits)
            lock.submit("acquire").fails("OTHER_LIMIT")
            # The refused client leaves no node, and does not change kazoo's
            # data.
            eventually(lambda: direct.facts().unfinished == 0)
            assert len(names(direct, base + "/l")) == 1
            assert not names(direct, queue_path(base))
            assert direct.get(base + "/l").data == b"3"
        lock = latchkey_semaphore(direct, base, permits=3, take=2)
        lock.acquire()
        lock.release()
        kz_semaphore.release()
    wait_until_free(direct, base)


@on_server
def data_without_a_number_is_ignored(worker, direct, base):
    for text in (b"", b"three", b"3 permits"):
        path = "%s/%s" % (base, uuid.uuid4().hex)
        direct.create(path, data=b"")
        direct.create(path + "/l", data=text)
        with kazoo_client() as kz:
            kz_semaphore = kazoo_semaphore(kz, path, permits=2)
            assert kz_semaphore.acquire(timeout=20)
            lock = latchkey_semaphore(direct, path, permits=2)
            lock.acquire()
            assert direct.get(path + "/l").data == text
            lock.release()
            kz_semaphore.release()
        wait_until_free(direct, path)


# ---- requests

def create_directories(direct, base, permits):
    """Create the directories as the first holder of a permit does."""
    direct.create(base + "/l", data=b"%d" % permits)
    direct.create(queue_path(base))


@on_server
def first_waiter_watches_no_node_of_the_queue(worker, direct, base):
    create_directories(direct, base, permits=1)
    with CountedClient() as it, kazoo_client() as kz:
        lock, holder = latchkey_semaphore(it.client, base), kazoo_semaphore(kz, base)
        for _ in range(3):
            assert holder.acquire(timeout=20)
            it.reset_counts()
            pending = lock.submit("acquire")
            assert lock.wait_until_queued().position == 1
            it.expect_requests(1, *FIRST_REQUESTS)
            holder.release()
            pending.succeeds()
            # It lists once after the event; the other requests follow the
            # grant.
            it.expect_requests(2, CHILDREN, REMOVE_WATCHES, DELETE)
            lock.release()
            it.expect_requests(1, DELETE)


@on_server
def waiter_behind_others_deletes_its_permit_node(worker, direct, base):
    create_directories(direct, base, permits=1)
    holder, first = [latchkey_semaphore(direct, base) for _ in range(2)]
    with CountedClient() as it:
        lock = latchkey_semaphore(it.client, base)
        for turn in range(4):
            holder.acquire()
            first_waits = first.submit("acquire")
            first.wait_until_queued()
            it.reset_counts()
            pending = lock.submit("acquire")
            lock.wait_until_queued()
            if turn < 3:
                ops = eventually(
                    lambda: len(it.counts()[0]) >= 9 and it.counts()[0])
                assert ops[:5] == list(FIRST_REQUESTS), ops
                assert sorted(ops[5:]) == sorted(
                    [GET, GET, DELETE, REMOVE_WATCHES]), ops
            else:
                # After three such turns it creates only the queue node.
                it.expect_requests(2, GET, CREATE2, CHILDREN, GET, GET)
            eventually(lambda: len(names(direct, base + "/l")) == 2)
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


with shared.serve("--tick", "500"):
    live.run(
        each_library_counts_the_others_permits,
        kazoo_with_another_number_than_latchkeys_is_refused,
        latchkey_with_another_number_than_kazoos_is_refused,
        data_without_a_number_is_ignored,
        first_waiter_watches_no_node_of_the_queue,
        waiter_behind_others_deletes_its_permit_node,
    )
