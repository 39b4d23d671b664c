# SPDX-License-Identifier: Apache-2.0
"""Long queues on a real server, and watches after many timeouts.

    long_queue.py          hundreds of waiters, as `make check` runs it
    long_queue.py long     10,000 waiters and 10,000 timeouts, which takes some
                           minutes and 2 GB of memory
"""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
import relay
from live import eventually
from locks import LONG, CountedClient, names, on_server
from worker import Worker

IS_LONG = "long" in sys.argv
if IS_LONG:
    sys.argv.remove("long")
WAITERS = 10000 if IS_LONG else 400
CYCLES = 10000 if IS_LONG else 200
PATIENCE = 1200  # limit of a wait, in seconds


class Drain:
    """A queue of WAITERS in ten sessions. It counts their lists and bytes from
    the release of the holder until all waiters have held the lock."""

    def __init__(self, path, holder, **options):
        with Worker() as crowd:
            clients = [crowd.client(shared.connect_string(), timeout=LONG)
                       for _ in range(10)]
            grant = holder.acquire()
            began = time.monotonic()
            pending = [c.submit("crowd", path=path, count=WAITERS // len(clients),
                                **options) for c in clients]
            for client in clients:
                client.wait("crowd", "queued", PATIENCE)
            stood = time.monotonic()
            before = clients[0].do("totals")
            holder.release()
            for end in pending:
                line = end.succeeds(PATIENCE)
                assert (line.granted, line.failed) == (
                    WAITERS // len(clients), 0), line
            ended = time.monotonic()
            after = clients[0].do("totals")
            assert after.backwards == 0 and grant.token > 0
            for client in clients:
                client.do("close")
        self.lists = after.lists - before.lists
        self.bytes = (after.bytes_in - before.bytes_in +
                      after.bytes_out - before.bytes_out)
        print("%d waiters %s: came in %.1f s, drained in %.1f s; for each "
              "handoff %.4f lists, %.0f bytes" % (
                  WAITERS, options or "", stood - began, ended - stood,
                  self.lists / WAITERS, self.bytes / WAITERS))


@on_server
def long_queue_takes_at_most_a_list_for_each_handoff(worker, direct, base):
    drain = Drain(base + "/l", direct.lock(base + "/l"))
    assert drain.lists <= WAITERS, drain.lists


@on_server
def announced_handoffs_take_no_list(worker, direct, base):
    holder = direct.lock(base + "/l", announce=1)
    drain = Drain(base + "/l", holder, announce=1, release_late=1)
    assert drain.lists == 0, drain.lists
    assert drain.bytes < 2048 * WAITERS, drain.bytes / WAITERS


@on_server
def short_announced_holds_take_at_most_a_list(worker, direct, base):
    holder = direct.lock(base + "/l", announce=1)
    drain = Drain(base + "/l", holder, announce=1)
    assert drain.lists <= WAITERS, drain.lists


@on_server
def list_above_a_megabyte_is_received(worker, direct, base):
    direct.create(base + "/l")
    pending = [direct.submit("create", path="%s/l/%s-%d" % (base, "x" * 500, n),
                             data=b"") for n in range(2300)]
    for end in pending:
        end.succeeds()
    with CountedClient() as wired:
        wired.client.lock(base + "/l").acquire()
        sizes = [f.size for f in wired.wire.frames_since(wired.mark)
                 if f.op == relay.CHILDREN and not f.up]
        assert max(sizes) > 1 << 20, sizes


@on_server
def full_queue_refuses_contenders(worker, direct, base):
    holder, waiter, late = [direct.lock(base + "/l", max_queue=2)
                            for _ in range(3)]
    holder.acquire()
    waiting = waiter.submit("acquire")
    waiter.wait_until_queued()
    more = late.submit("acquire")
    assert late.wait_until_queued().position == 2
    with CountedClient() as wired:
        lock = wired.client.lock(base + "/l", max_queue=2)
        peeking = wired.client.lock(base + "/l", max_queue=2, peek=1)
        lock.submit("acquire").fails("QUEUE_FULL")
        wired.expect_requests(2, relay.CREATE2, relay.CHILDREN, relay.DELETE)
        peeking.submit("acquire").fails("QUEUE_FULL")
        peeking.submit("acquire", wait=0).fails("BUSY")
        wired.expect_requests(2, relay.CHILDREN, relay.CHILDREN)
        assert len(names(direct, base + "/l")) == 3
        for lock in (late, waiter, holder):
            lock.free()
        for end in (waiting, more):
            end.fails("CLOSED")
        eventually(lambda: not names(direct, base + "/l"))
        peeking.submit("acquire", wait=0).succeeds()


@on_server
def timeouts_leave_no_watch_behind(worker, direct, base):
    direct.create(base + "/l")
    holder = direct.lock(base + "/l")
    holder.acquire()
    waiters = [worker.client(shared.connect_string(), timeout=LONG)
               for _ in range(5)]
    for client in waiters:
        client.do("sync", path="/")
    watches = live.watch_count(shared.connect_string())
    cycles = [client.lock(base + "/l").submit(
        "cycle", turns=CYCLES // len(waiters), wait=n)
        for n, client in enumerate(waiters)]
    for cycle in cycles:
        end = cycle.succeeds(PATIENCE)
        assert (end.granted, end.missed, end.failed) == (
            0, CYCLES // len(waiters), 0), end
    eventually(lambda: len(names(direct, base + "/l")) == 1)
    eventually(lambda: live.watch_count(shared.connect_string()) == watches,
               "%d watches" % watches)
    holder.release()
    for client in waiters:
        client.do("close")


with shared.serve("--heap", "1200" if IS_LONG else "256"):
    live.run(
        timeouts_leave_no_watch_behind,
        full_queue_refuses_contenders,
        list_above_a_megabyte_is_received,
        announced_handoffs_take_no_list,
        short_announced_holds_take_at_most_a_list,
        long_queue_takes_at_most_a_list_for_each_handoff,
    )
