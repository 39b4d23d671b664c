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
WAIT_SECONDS = 1200  # limit of a wait
CLIENTS = 10


class Handoffs:
    """The requests of a queue of WAITERS, from the release of the holder until
    all waiters have held the lock: `lists` of the queue and `bytes`."""

    def __init__(self, path, holder):
        with Worker() as waiters:
            clients = [waiters.client(shared.connect_string(), timeout=LONG)
                       for _ in range(CLIENTS)]
            holder.acquire()
            began = time.monotonic()
            pending = [c.submit("crowd", path=path, count=WAITERS // CLIENTS)
                       for c in clients]
            for client in clients:
                client.wait("crowd", "queued", WAIT_SECONDS)
            queued = time.monotonic()
            # The command "totals" counts for all clients of the process.
            before = clients[0].do("totals")
            holder.release()
            for crowd in pending:
                done = crowd.succeeds(WAIT_SECONDS)
                assert (done.granted, done.failed) == (
                    WAITERS // CLIENTS, 0), done
            ended = time.monotonic()
            after = clients[0].do("totals")
            assert after.backwards == 0  # no token was smaller than the last
            for client in clients:
                client.do("close")
        self.lists = after.lists - before.lists
        self.bytes = (after.bytes_in - before.bytes_in +
                      after.bytes_out - before.bytes_out)
        print("%d waiters: queued in %.1f s, granted in %.1f s; for each "
              "handoff %.4f lists, %.0f bytes" % (
                  WAITERS, queued - began, ended - queued,
                  self.lists / WAITERS, self.bytes / WAITERS))


@on_server
def long_queue_takes_at_most_a_list_for_each_handoff(worker, direct, base):
    handoffs = Handoffs(base + "/l", direct.lock(base + "/l"))
    assert handoffs.lists <= WAITERS, handoffs.lists


@on_server
def list_above_a_megabyte_is_received(worker, direct, base):
    direct.create(base + "/l")
    pending = [direct.submit("create", path="%s/l/%s-%d" % (base, "x" * 500, n),
                             data=b"") for n in range(2300)]
    for create in pending:
        create.succeeds()
    with CountedClient() as counted:
        counted.client.lock(base + "/l").acquire()
        replies = [frame for frame in counted.wire.frames_since(counted.mark)
                   if frame.op == relay.CHILDREN and not frame.up]
        assert max(reply.size for reply in replies) > 1 << 20, replies


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
    # Each client gives up many times, after 0 to 4 ms.
    turns = CYCLES // len(waiters)
    cycles = [client.lock(base + "/l").submit("cycle", turns=turns, wait=ms)
              for ms, client in enumerate(waiters)]
    for cycle in cycles:
        done = cycle.succeeds(WAIT_SECONDS)
        assert (done.granted, done.missed, done.failed) == (0, turns, 0), done
    eventually(lambda: len(names(direct, base + "/l")) == 1)
    eventually(lambda: live.watch_count(shared.connect_string()) == watches,
               "%d watches" % watches)
    holder.release()
    for client in waiters:
        client.do("close")


with shared.serve("--heap", "1200" if IS_LONG else "256"):
    live.run(
        timeouts_leave_no_watch_behind,
        list_above_a_megabyte_is_received,
        long_queue_takes_at_most_a_list_for_each_handoff,
    )
