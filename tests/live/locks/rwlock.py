# SPDX-License-Identifier: Apache-2.0
"""What the read-write lock alone does, on a real server: readers that share the
lock, and downgrades. conformance.py tests its sides as kinds of locks."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import SHORT, CountedClient, names, on_server, wait_until_empty
from relay import CHILDREN, CREATE2, DELETE, GET, MULTI


# ---- readers

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


# ---- downgrades

@on_server
def writer_downgrades_to_reader(worker, direct, base):
    _, rival = direct.rwlock(base + "/l")
    with CountedClient() as it:
        read, write = it.client.rwlock(base + "/l")
        write_grant = write.acquire()
        rival_waits = rival.submit("acquire")
        rival.wait_until_queued()
        it.reset_counts()
        read_grant = read.acquire()
        it.expect_requests(1, MULTI)
        # The nodes have the same sequence number, of ten digits.
        assert read_grant.node[-10:] == write_grant.node[-10:], (
            read_grant, write_grant)
        assert read_grant.token == write_grant.token
        write.release()
        it.expect_requests(1, DELETE)
        direct.submit("exists", path=write_grant.node).fails("NO_NODE")
        assert not rival_waits.is_done(), "a writer holds with a reader"
        assert read.inspect().token == write_grant.token
        read.release()
        it.expect_requests(1, DELETE)
        rival_waits.succeeds()
        rival.release()


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
    live.run(live.together(
        readers_share_and_writers_exclude_all,
        reader_waits_for_the_nearest_writer_only,
        release_of_a_writer_grants_all_readers,
        writer_downgrades_to_reader,
        each_side_of_a_downgrade_is_lost_separately,
        downgrade_fails_if_the_write_sides_node_is_deleted))
