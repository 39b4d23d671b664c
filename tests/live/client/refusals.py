# SPDX-License-Identifier: Apache-2.0
"""What servers refuse because of how they were set up: requests when they are
busy, and what only a session of the whole ensemble can have."""

import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live
import zkserver
from live import eventually
from worker import Worker

LONG = 40000
AT_ONCE = 50  # requests, to a server that takes one at a time

# Whoever has waited for a millisecond is refused.
BUSY = ("--property", "zookeeper.request_throttle_max_requests=1",
        "--property", "zookeeper.request_throttle_stall_time=20",
        "--property", "zookeeper.throttled_op_wait_time=1")
# Until somebody asks for more, and that is not granted.
LOCAL = ("--config", "localSessionsEnabled=true",
         "--config", "localSessionsUpgradingEnabled=false")


def flood(client, path):
    """More than the server takes; some of it is refused, and not done."""
    pending = [client.submit("create", path="%s/x%d" % (path, n), data=b"")
               for n in range(AT_ONCE)]
    made = []
    for n, end in enumerate(pending):
        err = end.result().err
        assert err in ("0", "THROTTLED"), err
        if err == "0":
            made.append("x%d" % n)
    return made


def calm(client, verb, **options):
    """Ask until it is not refused."""
    ends = []

    def done():
        ends.append(client.submit(verb, **options).result())
        return ends[-1].err != "THROTTLED"
    eventually(done)
    assert ends[-1].err == "0", ends[-1]
    return ends[-1]


def who_is_refused_has_done_nothing(zk):
    with Worker() as worker:
        near = worker.client(zk.connect, timeout=LONG)
        calm(near, "create", path="/flood", data=b"")
        made = flood(near, "/flood")
        assert len(made) < AT_ONCE, "the server was not busy"
        names = calm(near, "children", path="/flood").names
        assert sorted(names) == sorted(made), (names, made)
        assert near.facts().connection == 1


def locks_pass_through_a_busy_server(zk):
    """Acquire and release while all else is refused."""
    with Worker() as worker:
        near = worker.client(zk.connect, timeout=LONG)
        calm(near, "create", path="/beside", data=b"")
        lock = near.lock("/l")
        ends = []
        for _ in range(3):
            reads = [near.submit("get", path="/beside") for _ in range(AT_ONCE)]
            acquired = lock.submit("acquire", wait=-1)
            reads += [near.submit("get", path="/beside") for _ in range(AT_ONCE)]
            acquired.succeeds()
            lock.submit("release").succeeds()
            ends += [r.result().err for r in reads]
        assert set(ends) == {"0", "THROTTLED"}, ends
        eventually(lambda: near.facts().unfinished == 0)
        assert calm(near, "children", path="/l").count == 0
        assert near.facts().connection == 1


def a_busy_server():
    with zkserver.Server(*BUSY) as zk:
        who_is_refused_has_done_nothing(zk)
        locks_pass_through_a_busy_server(zk)


def a_local_session_has_no_ephemeral_nodes():
    """So it takes no lock, and says why."""
    with zkserver.Server(*LOCAL, servers=3) as zk, Worker() as worker:
        near = worker.client(zk.connect, timeout=LONG)
        near.do("create", path="/n", data=b"")
        near.submit("create", path="/e", data=b"", flags=1).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        near.lock("/l").submit("acquire", wait=-1).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        near.semaphore("/s", permits=1).submit("acquire", wait=-1).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        near.single("/o").submit("acquire", wait=-1).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        done = command.run("run", "-z", zk.connect, "/l", "true")
        assert done.code == 125 and done.err == (
            "latchkey: /l: ephemeral node on a local session; zoo.cfg needs "
            "localSessionsUpgradingEnabled=true\n"), done


live.run(a_busy_server, a_local_session_has_no_ephemeral_nodes)
