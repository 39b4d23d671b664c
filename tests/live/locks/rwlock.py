# SPDX-License-Identifier: Apache-2.0
"""The read-write lock on a real server: who holds with whom, what it costs."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import SHORT, Wired, names, on_server, wait_until_empty
from relay import CHILDREN, CREATE2, DELETE, GET, MULTI


def suffix(node):
    return node[-10:]


# ---- who holds with whom

@on_server
def the_nodes_are_curators(worker, far, base):
    read, write = far.rwlock(base + "/l", data=b"who")
    for side, mark in ((read, "__READ__"), (write, "__WRIT__")):
        grant = side.acquire()
        name = grant.node.rpartition("/")[2]
        assert name[:3] == "_c_" and name[39:48] == "-" + mark, name
        assert len(name) == 58, name
        node = far.get(grant.node)
        assert node.data == b"who" and node.owner == far.facts().session
        assert node.czxid == grant.token
        side.release()
    wait_until_empty(far, base + "/l")


@on_server
def readers_share_and_writers_are_alone(worker, far, base):
    one, two, three = [far.rwlock(base + "/l") for _ in range(3)]
    one[0].acquire()
    two[0].acquire()
    three[0].ask("acquire", wait=0).good()
    three[0].release()
    three[1].ask("acquire", wait=0).fails("BUSY")
    writer = three[1].ask("acquire")
    three[1].waits()
    # A reader does not overtake who waits.
    late = far.rwlock(base + "/l")
    late[0].ask("acquire", wait=0).fails("BUSY")
    reader = late[0].ask("acquire")
    late[0].waits()
    one[0].release()
    far.do("sync", path="/")
    assert not writer.is_done()
    two[0].release()
    writer.good()
    assert not reader.is_done()
    three[1].release()
    reader.good()
    late[0].release()
    wait_until_empty(far, base + "/l")


@on_server
def a_mutex_and_a_read_write_lock_exclude_each_other(worker, far, base):
    mutex, (read, write) = far.lock(base + "/l"), far.rwlock(base + "/l")
    for side in (read, write):
        side.acquire()
        asked = mutex.ask("acquire")
        mutex.waits()
        side.release()
        asked.good()
        asked = side.ask("acquire")
        side.waits()
        mutex.release()
        asked.good()
        side.release()


@on_server
def who_writes_may_read_and_go_on_reading(worker, far, base):
    (read, write), (_, rival) = [far.rwlock(base + "/l") for _ in range(2)]
    written = write.acquire()
    behind = rival.ask("acquire")
    rival.waits()
    got = read.acquire()
    assert suffix(got.node) == suffix(written.node), (got, written)
    assert got.token == written.token
    write.release()
    eventually(lambda: far.ask("exists", path=written.node).result().err ==
               "NO_NODE")
    far.do("sync", path="/")
    assert not behind.is_done(), "a writer beside a reader"
    assert read.look().token == written.token
    read.release()
    behind.good()
    rival.release()


@on_server
def who_reads_may_not_write_and_leaves_nothing(worker, far, base):
    with Wired() as it:
        read, write = it.client.rwlock(base + "/l")
        read.acquire()
        it.begin()
        write.ask("acquire").fails("DEADLOCK")
        write.ask("acquire", wait=0).fails("DEADLOCK")
        it.costs(0)
        assert len(names(far, base + "/l")) == 1
        read.release()
        write.acquire()
        write.release()


# ---- what it costs

@on_server
def who_waits_parks_with_one_write_more(worker, far, base):
    far.create(base + "/l")
    far_read, far_write = far.rwlock(base + "/l")
    with Wired() as it:
        read, write = it.client.rwlock(base + "/l")
        # Behind the last one a deletion grants. A writer behind a writer has
        # to list the queue, since the other may have become a reader.
        for before, side, looks in ((far_write, read, []),
                                    (far_read, write, []),
                                    (far_write, write, [CHILDREN])):
            before.acquire()
            it.begin()
            asked = side.ask("acquire")
            side.waits()
            it.costs(2, CREATE2, CHILDREN, GET, GET)
            before.release()
            asked.good()
            it.costs(len(looks), *looks)
            side.release()
            it.costs(1, DELETE)


@on_server
def a_reader_waits_for_the_nearest_writer_alone(worker, far, base):
    """Its place is known by one list, however many writers are ahead."""
    far.create(base + "/l")
    writers = [far.rwlock(base + "/l")[1] for _ in range(4)]
    asked = [writer.ask("acquire") for writer in writers]
    eventually(lambda: len(names(far, base + "/l")) == 4)
    with Wired() as it:
        read, _ = it.client.rwlock(base + "/l")
        it.begin()
        wanted = read.ask("acquire")
        read.waits()
        it.costs(2, CREATE2, CHILDREN, GET, GET)
        for n in (0, 1, 2):
            asked[n].good()
            writers[n].release()
        asked[3].good()
        it.costs(0)
        writers[3].release()
        wanted.good()
        ops, _ = it.since()
        assert ops.count(CHILDREN) <= 1, ops
        read.release()


@on_server
def reading_while_writing_is_one_request(worker, far, base):
    with Wired() as it:
        read, write = it.client.rwlock(base + "/l")
        write.acquire()
        it.begin()
        read.acquire()
        it.costs(1, MULTI)
        write.release()
        it.costs(1, DELETE)
        read.release()
        it.costs(1, DELETE)


@on_server
def a_writer_that_leaves_wakes_all_readers(worker, far, base):
    _, writer = far.rwlock(base + "/l")
    writer.acquire()
    wire, readers, asked = shared.crowd(
        worker, lambda client: client.rwlock(base + "/l")[0], 100)
    with wire:
        mark = wire.mark()
        writer.release()
        for grant in asked:
            grant.good()
        assert len(shared.told_since(wire, mark)) == 100
        # By the event alone.
        assert not shared.lists_since(wire, mark)
        # A reader that leaves wakes nobody but a writer behind it.
        wait = writer.ask("acquire")
        writer.waits()
        mark = wire.mark()
        for reader in readers[:50]:
            reader.release()
        far.do("sync", path="/")
        eventually(lambda: len(names(far, base + "/l")) == 51)
        owners = {f.connection for f in wire.requests(mark)
                  if f.op == DELETE}
        assert shared.told_since(wire, mark) <= owners
        assert not wait.is_done()
        for reader in readers[50:]:
            reader.release()
        wait.good()
        writer.release()
        for reader in readers:
            reader.free()


# ---- others meddle

@on_server
def a_foreign_writer_may_become_a_reader(worker, far, base):
    """Its read node has its old number, and stays when the others go."""
    far.create(base + "/l")
    with Wired() as it:
        _, write = it.client.rwlock(base + "/l")
        for last in ("writer", "reader"):
            writer = far.create(base + "/l/x-__WRIT__", flags=3).path
            reader = far.create(base + "/l/y-__READ__", flags=3).path
            asked = write.ask("acquire")
            write.waits()
            kept = base + "/l/x-__READ__" + suffix(writer)
            far.create(kept, flags=1)
            left = (reader, writer) if last == "writer" else (writer, reader)
            for gone in left:
                far.do("delete", path=gone)
            eventually(lambda: asked.is_done() or any(
                f.op == GET and f.path == kept
                for f in it.wire.requests(it.mark)))
            assert not asked.is_done(), "a writer beside a reader"
            far.do("delete", path=kept)
            asked.good()
            write.release()


@on_server
def each_side_of_a_downgrade_is_lost_by_itself(worker, far, base):
    client = worker.client(_zk.connect, timeout=SHORT)
    read, write = client.rwlock(base + "/l")
    node = write.acquire().node
    read.acquire()
    far.do("delete", path=node)
    write.event("lost")
    assert read.look().state == "held"
    write.ask("release").fails("LOST")
    read.release()
    # Who has lost the write side and does not know it gets no read side by it.
    node = write.acquire().node
    (_, rival) = far.rwlock(base + "/l")
    asked = rival.ask("acquire")
    rival.waits()
    far.do("delete", path=node)
    asked.good()
    read.ask("acquire", wait=0).fails("BUSY")
    write.event("lost")
    write.ask("release").fails("LOST")
    rival.release()
    client.do("close")


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        the_nodes_are_curators,
        readers_share_and_writers_are_alone,
        a_mutex_and_a_read_write_lock_exclude_each_other,
        who_writes_may_read_and_go_on_reading,
        who_reads_may_not_write_and_leaves_nothing,
        who_waits_parks_with_one_write_more,
        a_reader_waits_for_the_nearest_writer_alone,
        reading_while_writing_is_one_request,
        a_writer_that_leaves_wakes_all_readers,
        a_foreign_writer_may_become_a_reader,
        each_side_of_a_downgrade_is_lost_by_itself,
    )
