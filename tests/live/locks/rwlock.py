# SPDX-License-Identifier: Apache-2.0
"""The read-write lock on a real server: exclusion, downgrades and requests."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import SHORT, CountedClient, names, on_server, wait_until_empty
from relay import CHILDREN, CREATE2, DELETE, GET, MULTI


def suffix(node):
    return node[-10:]


# ---- exclusion

@on_server
def nodes_are_named_as_by_curator(worker, direct, base):
    read, write = direct.rwlock(base + "/l", data=b"who")
    for side, mark in ((read, "__READ__"), (write, "__WRIT__")):
        grant = side.acquire()
        name = grant.node.rpartition("/")[2]
        assert name[:3] == "_c_" and name[39:48] == "-" + mark, name
        assert len(name) == 58, name
        node = direct.get(grant.node)
        assert node.data == b"who" and node.owner == direct.facts().session
        assert node.czxid == grant.token
        side.release()
    wait_until_empty(direct, base + "/l")


@on_server
def readers_share_and_writers_exclude_all(worker, direct, base):
    one, two, three = [direct.rwlock(base + "/l") for _ in range(3)]
    one[0].acquire()
    two[0].acquire()
    three[0].submit("acquire", wait=0).succeeds()
    three[0].release()
    three[1].submit("acquire", wait=0).fails("BUSY")
    writer = three[1].submit("acquire")
    three[1].wait_until_queued()
    # A reader does not overtake a waiting writer.
    late = direct.rwlock(base + "/l")
    late[0].submit("acquire", wait=0).fails("BUSY")
    reader = late[0].submit("acquire")
    late[0].wait_until_queued()
    one[0].release()
    direct.do("sync", path="/")
    assert not writer.is_done()
    two[0].release()
    writer.succeeds()
    assert not reader.is_done()
    three[1].release()
    reader.succeeds()
    late[0].release()
    wait_until_empty(direct, base + "/l")


@on_server
def a_mutex_and_a_read_write_lock_exclude_each_other(worker, direct, base):
    mutex, (read, write) = direct.lock(base + "/l"), direct.rwlock(base + "/l")
    for side in (read, write):
        side.acquire()
        pending = mutex.submit("acquire")
        mutex.wait_until_queued()
        side.release()
        pending.succeeds()
        pending = side.submit("acquire")
        side.wait_until_queued()
        mutex.release()
        pending.succeeds()
        side.release()


@on_server
def writer_downgrades_to_reader(worker, direct, base):
    (read, write), (_, rival) = [direct.rwlock(base + "/l") for _ in range(2)]
    written = write.acquire()
    behind = rival.submit("acquire")
    rival.wait_until_queued()
    got = read.acquire()
    assert suffix(got.node) == suffix(written.node), (got, written)
    assert got.token == written.token
    write.release()
    eventually(lambda: direct.submit("exists",
                                     path=written.node).result().err ==
               "NO_NODE")
    direct.do("sync", path="/")
    assert not behind.is_done(), "a writer holds with a reader"
    assert read.inspect().token == written.token
    read.release()
    behind.succeeds()
    rival.release()


@on_server
def upgrade_is_refused_without_a_request(worker, direct, base):
    with CountedClient() as it:
        read, write = it.client.rwlock(base + "/l")
        read.acquire()
        it.begin()
        write.submit("acquire").fails("DEADLOCK")
        write.submit("acquire", wait=0).fails("DEADLOCK")
        it.expect_requests(0)
        assert len(names(direct, base + "/l")) == 1
        read.release()
        write.acquire()
        write.release()


# ---- requests

@on_server
def wait_takes_two_sends_and_a_grant_none(worker, direct, base):
    direct.create(base + "/l")
    direct_read, direct_write = direct.rwlock(base + "/l")
    with CountedClient() as it:
        read, write = it.client.rwlock(base + "/l")
        # When the only predecessor is deleted, the lock is granted without a
        # list. A writer behind a writer must list the queue, since the other
        # may have downgraded to a reader.
        for before, side, looks in ((direct_write, read, []),
                                    (direct_read, write, []),
                                    (direct_write, write, [CHILDREN])):
            before.acquire()
            it.begin()
            pending = side.submit("acquire")
            side.wait_until_queued()
            it.expect_requests(2, CREATE2, CHILDREN, GET, GET)
            before.release()
            pending.succeeds()
            it.expect_requests(len(looks), *looks)
            side.release()
            it.expect_requests(1, DELETE)


@on_server
def reader_waits_for_the_nearest_writer_only(worker, direct, base):
    """One list shows the reader which of several writers is its predecessor."""
    direct.create(base + "/l")
    writers = [direct.rwlock(base + "/l")[1] for _ in range(4)]
    pending = [writer.submit("acquire") for writer in writers]
    eventually(lambda: len(names(direct, base + "/l")) == 4)
    with CountedClient() as it:
        read, _ = it.client.rwlock(base + "/l")
        it.begin()
        wanted = read.submit("acquire")
        read.wait_until_queued()
        it.expect_requests(2, CREATE2, CHILDREN, GET, GET)
        for n in (0, 1, 2):
            pending[n].succeeds()
            writers[n].release()
        pending[3].succeeds()
        it.expect_requests(0)
        writers[3].release()
        wanted.succeeds()
        ops, _ = it.since()
        assert ops.count(CHILDREN) <= 1, ops
        read.release()


@on_server
def read_side_of_a_writer_takes_one_request(worker, direct, base):
    with CountedClient() as it:
        read, write = it.client.rwlock(base + "/l")
        write.acquire()
        it.begin()
        read.acquire()
        it.expect_requests(1, MULTI)
        write.release()
        it.expect_requests(1, DELETE)
        read.release()
        it.expect_requests(1, DELETE)


@on_server
def release_of_a_writer_grants_all_readers(worker, direct, base):
    _, writer = direct.rwlock(base + "/l")
    writer.acquire()
    wire, readers, pending = shared.crowd(
        worker, lambda client: client.rwlock(base + "/l")[0], 100)
    with wire:
        mark = wire.mark()
        writer.release()
        for grant in pending:
            grant.succeeds()
        assert len(shared.connections_notified_since(wire, mark)) == 100
        # The events grant all readers without a list.
        assert not shared.lists_since(wire, mark)
        # The release of a reader notifies only a writer behind it.
        wait = writer.submit("acquire")
        writer.wait_until_queued()
        mark = wire.mark()
        for reader in readers[:50]:
            reader.release()
        direct.do("sync", path="/")
        eventually(lambda: len(names(direct, base + "/l")) == 51)
        owners = {f.connection for f in wire.requests(mark)
                  if f.op == DELETE}
        assert shared.connections_notified_since(wire, mark) <= owners
        assert not wait.is_done()
        for reader in readers[50:]:
            reader.release()
        wait.succeeds()
        writer.release()
        for reader in readers:
            reader.free()


# ---- changes by other clients

@on_server
def downgraded_foreign_writer_is_a_predecessor(worker, direct, base):
    """The new read node of the foreign client has the number of its write node.
    It still excludes our writer when the other predecessors are deleted."""
    direct.create(base + "/l")
    with CountedClient() as it:
        _, write = it.client.rwlock(base + "/l")
        for last in ("writer", "reader"):
            writer = direct.create(base + "/l/x-__WRIT__", flags=3).path
            reader = direct.create(base + "/l/y-__READ__", flags=3).path
            pending = write.submit("acquire")
            write.wait_until_queued()
            kept = base + "/l/x-__READ__" + suffix(writer)
            direct.create(kept, flags=1)
            left = (reader, writer) if last == "writer" else (writer, reader)
            for gone in left:
                direct.do("delete", path=gone)
            eventually(lambda: pending.is_done() or any(
                f.op == GET and f.path == kept
                for f in it.wire.requests(it.mark)))
            assert not pending.is_done(), "a writer holds with a reader"
            direct.do("delete", path=kept)
            pending.succeeds()
            write.release()


@on_server
def each_side_of_a_downgrade_is_lost_separately(worker, direct, base):
    client = worker.client(_zk.connect, timeout=SHORT)
    read, write = client.rwlock(base + "/l")
    node = write.acquire().node
    read.acquire()
    direct.do("delete", path=node)
    write.event("lost")
    assert read.inspect().state == "held"
    write.submit("release").fails("LOST")
    read.release()
    # The node of the write side is deleted. A downgrade fails, even if the
    # holder does not know yet that it has lost the write side.
    node = write.acquire().node
    (_, rival) = direct.rwlock(base + "/l")
    pending = rival.submit("acquire")
    rival.wait_until_queued()
    direct.do("delete", path=node)
    pending.succeeds()
    read.submit("acquire", wait=0).fails("BUSY")
    write.event("lost")
    write.submit("release").fails("LOST")
    rival.release()
    client.do("close")


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        nodes_are_named_as_by_curator,
        readers_share_and_writers_exclude_all,
        a_mutex_and_a_read_write_lock_exclude_each_other,
        writer_downgrades_to_reader,
        upgrade_is_refused_without_a_request,
        wait_takes_two_sends_and_a_grant_none,
        reader_waits_for_the_nearest_writer_only,
        read_side_of_a_writer_takes_one_request,
        release_of_a_writer_grants_all_readers,
        downgraded_foreign_writer_is_a_predecessor,
        each_side_of_a_downgrade_is_lost_separately,
    )
