# SPDX-License-Identifier: Apache-2.0
"""The read-write lock on a real server: exclusion, downgrades and requests."""

import re
import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import SHORT, CountedClient, names, on_server, wait_until_empty
from worker import EPHEMERAL, EPHEMERAL_SEQUENTIAL
from relay import CHILDREN, CREATE2, DELETE, GET, MULTI




def number_of(node):
    """The ten digits at the end of a sequential node's name."""
    return node[-10:]


# ---- exclusion

@on_server
def nodes_are_named_as_by_curator(worker, direct, base):
    read, write = direct.rwlock(base + "/l", data=b"label")
    for side, kind in ((read, "__READ__"), (write, "__WRIT__")):
        grant = side.acquire()
        name = grant.node.rpartition("/")[2]
        assert re.fullmatch(r"_c_[0-9a-f-]{36}-%s\d{10}" % kind, name), name
        node = direct.get(grant.node)
        assert node.data == b"label" and node.owner == direct.facts().session
        assert node.czxid == grant.token
        side.release()
    wait_until_empty(direct, base + "/l")


@on_server
def readers_share_and_writers_exclude_all(worker, direct, base):
    (reader1, _), (reader2, _), (reader3, writer), (late_reader, _) = [
        direct.rwlock(base + "/l") for _ in range(4)]
    reader1.acquire()
    reader2.acquire()
    reader3.submit("acquire", wait=0).succeeds()
    reader3.release()
    writer.submit("acquire", wait=0).fails("BUSY")
    writer_waits = writer.submit("acquire")
    writer.wait_until_queued()
    # A reader does not overtake a waiting writer.
    late_reader.submit("acquire", wait=0).fails("BUSY")
    reader_waits = late_reader.submit("acquire")
    late_reader.wait_until_queued()
    reader1.release()
    direct.do("sync", path="/")
    assert not writer_waits.is_done()
    reader2.release()
    writer_waits.succeeds()
    assert not reader_waits.is_done()
    writer.release()
    reader_waits.succeeds()
    late_reader.release()
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
    write_grant = write.acquire()
    rival_waits = rival.submit("acquire")
    rival.wait_until_queued()
    read_grant = read.acquire()
    assert number_of(read_grant.node) == number_of(write_grant.node), (
        read_grant, write_grant)
    assert read_grant.token == write_grant.token
    write.release()
    eventually(lambda: direct.submit(
        "exists", path=write_grant.node).result().err == "NO_NODE")
    direct.do("sync", path="/")
    assert not rival_waits.is_done(), "a writer holds with a reader"
    assert read.inspect().token == write_grant.token
    read.release()
    rival_waits.succeeds()
    rival.release()


@on_server
def upgrade_is_refused_without_a_request(worker, direct, base):
    with CountedClient() as it:
        read, write = it.client.rwlock(base + "/l")
        read.acquire()
        it.reset_counts()
        write.submit("acquire").fails("DEADLOCK")
        write.submit("acquire", wait=0).fails("DEADLOCK")
        it.expect_requests(0)
        assert len(names(direct, base + "/l")) == 1
        read.release()
        write.acquire()
        write.release()


# ---- requests

@on_server
def wait_takes_two_sends_and_a_direct_handoff_none(worker, direct, base):
    direct.create(base + "/l")
    direct_read, direct_write = direct.rwlock(base + "/l")
    with CountedClient() as it:
        read, write = it.client.rwlock(base + "/l")
        # When the only predecessor is deleted, the lock is granted without a
        # list. A writer behind a writer must list the queue, since its
        # predecessor may have downgraded to a reader.
        for holder, side, lists in ((direct_write, read, []),
                                    (direct_read, write, []),
                                    (direct_write, write, [CHILDREN])):
            holder.acquire()
            it.reset_counts()
            pending = side.submit("acquire")
            side.wait_until_queued()
            it.expect_requests(2, CREATE2, CHILDREN, GET, GET)
            holder.release()
            pending.succeeds()
            it.expect_requests(len(lists), *lists)
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
        it.reset_counts()
        read_waits = read.submit("acquire")
        read.wait_until_queued()
        it.expect_requests(2, CREATE2, CHILDREN, GET)
        for n in (0, 1, 2):
            pending[n].succeeds()
            writers[n].release()
        pending[3].succeeds()
        it.expect_requests(0)
        writers[3].release()
        read_waits.succeeds()
        ops, _ = it.counts()
        assert ops.count(CHILDREN) <= 1, ops
        read.release()


@on_server
def read_side_of_a_writer_takes_one_request(worker, direct, base):
    with CountedClient() as it:
        read, write = it.client.rwlock(base + "/l")
        write.acquire()
        it.reset_counts()
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
        writer_waits = writer.submit("acquire")
        writer.wait_until_queued()
        mark = wire.mark()
        for reader in readers[:50]:
            reader.release()
        direct.do("sync", path="/")
        eventually(lambda: len(names(direct, base + "/l")) == 51)
        released = {f.connection for f in wire.requests(mark)
                    if f.op == DELETE}
        assert shared.connections_notified_since(wire, mark) <= released
        assert not writer_waits.is_done()
        for reader in readers[50:]:
            reader.release()
        writer_waits.succeeds()
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
        for deleted_last in ("writer", "reader"):
            writer = direct.create(base + "/l/x-__WRIT__",
                                   flags=EPHEMERAL_SEQUENTIAL).path
            reader = direct.create(base + "/l/y-__READ__",
                                   flags=EPHEMERAL_SEQUENTIAL).path
            pending = write.submit("acquire")
            write.wait_until_queued()
            downgraded = base + "/l/x-__READ__" + number_of(writer)
            direct.create(downgraded, flags=EPHEMERAL)
            for node in ((reader, writer) if deleted_last == "writer"
                         else (writer, reader)):
                direct.do("delete", path=node)
            # Wait until our writer reads the data of its new predecessor.
            eventually(lambda: pending.is_done() or any(
                f.op == GET and f.path == downgraded
                for f in it.wire.requests(it.mark)))
            assert not pending.is_done(), "a writer holds with a reader"
            direct.do("delete", path=downgraded)
            pending.succeeds()
            write.release()


@on_server
def each_side_of_a_downgrade_is_lost_separately(worker, direct, base):
    client = worker.client(_zk.connect, timeout=SHORT)
    read, write = client.rwlock(base + "/l")
    node = write.acquire().node
    read.acquire()
    direct.do("delete", path=node)
    write.wait_for_event("lost")
    assert read.inspect().state == "held"
    write.submit("release").fails("LOST")
    read.release()
    client.do("close")


@on_server
def downgrade_fails_if_the_write_sides_node_is_deleted(worker, direct, base):
    """The holder may not know yet that it has lost the write side."""
    client = worker.client(_zk.connect, timeout=SHORT)
    read, write = client.rwlock(base + "/l")
    node = write.acquire().node
    (_, rival) = direct.rwlock(base + "/l")
    pending = rival.submit("acquire")
    rival.wait_until_queued()
    direct.do("delete", path=node)
    pending.succeeds()
    read.submit("acquire", wait=0).fails("BUSY")
    write.wait_for_event("lost")
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
        wait_takes_two_sends_and_a_direct_handoff_none,
        reader_waits_for_the_nearest_writer_only,
        read_side_of_a_writer_takes_one_request,
        release_of_a_writer_grants_all_readers,
        downgraded_foreign_writer_is_a_predecessor,
        each_side_of_a_downgrade_is_lost_separately,
        downgrade_fails_if_the_write_sides_node_is_deleted,
    )
