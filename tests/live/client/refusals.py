# SPDX-License-Identifier: Apache-2.0
"""Refusals that depend on the configuration of servers: throttled requests, and
ephemeral nodes of local sessions."""

import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live
import zkserver
from live import eventually
from worker import EPHEMERAL, Worker

LONG = 40000  # a session timeout that no test reaches
AT_ONCE = 50  # requests at once; the server executes one at a time

# The server executes one request at a time, and refuses with THROTTLED a
# request that has waited for a millisecond.
BUSY = ("--property", "zookeeper.request_throttle_max_requests=1",
        "--property", "zookeeper.request_throttle_stall_time=20",
        "--property", "zookeeper.throttled_op_wait_time=1")
# Sessions are local, and upgrades to global sessions are refused.
LOCAL = ("--config", "localSessionsEnabled=true",
         "--config", "localSessionsUpgradingEnabled=false")


def flood(client, path):
    """Send more creates at once than the server accepts; gives the names of the
    created nodes."""
    pending = [client.submit("create", path="%s/x%d" % (path, n), data=b"")
               for n in range(AT_ONCE)]
    made = []
    for n, end in enumerate(pending):
        err = end.result().err
        assert err in ("0", "THROTTLED"), err
        if err == "0":
            made.append("x%d" % n)
    return made


def send_until_accepted(client, verb, **options):
    """Repeat a request until it is not throttled; gives its result."""
    ends = []

    def done():
        ends.append(client.submit(verb, **options).result())
        return ends[-1].err != "THROTTLED"
    eventually(done)
    assert ends[-1].err == "0", ends[-1]
    return ends[-1]


def throttled_requests_are_not_executed(zk):
    with Worker() as worker:
        tested = worker.client(zk.connect, timeout=LONG)
        send_until_accepted(tested, "create", path="/flood", data=b"")
        made = flood(tested, "/flood")
        assert len(made) < AT_ONCE, "the server was not busy"
        names = send_until_accepted(tested, "children", path="/flood").names
        assert sorted(names) == sorted(made), (names, made)
        assert tested.facts().connection == 1


def locks_are_acquired_on_a_throttling_server(zk):
    """Acquire and release while reads are throttled."""
    with Worker() as worker:
        tested = worker.client(zk.connect, timeout=LONG)
        send_until_accepted(tested, "create", path="/beside", data=b"")
        lock = tested.lock("/l")
        ends = []
        for _ in range(3):
            reads = [tested.submit("get",
                                   path="/beside") for _ in range(AT_ONCE)]
            acquired = lock.submit("acquire", wait=-1)
            reads += [tested.submit("get",
                                    path="/beside") for _ in range(AT_ONCE)]
            acquired.succeeds()
            lock.submit("release").succeeds()
            ends += [r.result().err for r in reads]
        assert set(ends) == {"0", "THROTTLED"}, ends
        eventually(lambda: tested.facts().unfinished == 0)
        assert send_until_accepted(tested, "children", path="/l").count == 0
        assert tested.facts().connection == 1


def throttling_server():
    with zkserver.Server(*BUSY) as zk:
        throttled_requests_are_not_executed(zk)
        locks_are_acquired_on_a_throttling_server(zk)


def local_session_cannot_acquire_locks():
    """Locks need ephemeral nodes, which a local session cannot create."""
    with zkserver.Server(*LOCAL, servers=3) as zk, Worker() as worker:
        tested = worker.client(zk.connect, timeout=LONG)
        tested.do("create", path="/n", data=b"")
        tested.submit("create", path="/e", data=b"", flags=EPHEMERAL).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        tested.lock("/l").submit("acquire", wait=-1).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        tested.semaphore("/s", permits=1).submit("acquire", wait=-1).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        tested.single("/o").submit("acquire", wait=-1).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        done = command.run("run", "-z", zk.connect, "/l", "true")
        assert done.code == 125 and done.err == (
            "latchkey: /l: ephemeral node on a local session; zoo.cfg needs "
            "localSessionsUpgradingEnabled=true\n"), done


live.run(throttling_server, local_session_cannot_acquire_locks)
