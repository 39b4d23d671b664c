# SPDX-License-Identifier: Apache-2.0
"""Refusals that depend on the configuration of servers: throttled requests, and
ephemeral nodes of local sessions."""

import sys

sys.path.append(sys.path[0] + "/../support")

import command
import differences
import live
import zkserver
from live import eventually
from worker import EPHEMERAL, Worker

LONG = 40000  # a session timeout in ms, which no test reaches
AT_ONCE = 50  # requests at once; the server executes one at a time
FOREVER = -1  # a wait without a limit
FAILED = 125  # the exit code of the command for an error of its own

# The server executes one request at a time, and refuses with THROTTLED a
# request that has waited for a millisecond.
THROTTLING = ("--property", "zookeeper.request_throttle_max_requests=1",
              "--property", "zookeeper.request_throttle_stall_time=20",
              "--property", "zookeeper.throttled_op_wait_time=1")
# Sessions are local, and upgrades to global sessions are refused.
LOCAL_SESSIONS = ("--config", "localSessionsEnabled=true",
                  "--config", "localSessionsUpgradingEnabled=false")


def flood(client, path):
    """Send more creates at once than the server accepts; gives the names of the
    created nodes."""
    pending = [client.submit("create", path="%s/x%d" % (path, n), data=b"")
               for n in range(AT_ONCE)]
    created = []
    for n, create in enumerate(pending):
        err = create.result().err
        assert err in ("0", "THROTTLED"), err
        if err == "0":
            created.append("x%d" % n)
    return created


def send_until_accepted(client, verb, **options):
    """Repeat a request until it is not throttled; gives its result."""
    def result_unless_throttled():
        result = client.submit(verb, **options).result()
        return None if result.err == "THROTTLED" else result

    result = eventually(result_unless_throttled)
    assert result.err == "0", result
    return result


def throttled_requests_are_not_executed(zk):
    with Worker() as worker:
        tested = worker.client(zk.connect, timeout=LONG)
        send_until_accepted(tested, "create", path="/flood", data=b"")
        created = flood(tested, "/flood")
        assert len(created) < AT_ONCE, "the server was not busy"
        names = send_until_accepted(tested, "children", path="/flood").names
        assert sorted(names) == sorted(created), (names, created)
        assert tested.facts().connection == 1


def locks_are_acquired_on_a_throttling_server(zk):
    """Acquire and release while reads are throttled."""
    with Worker() as worker:
        tested = worker.client(zk.connect, timeout=LONG)
        send_until_accepted(tested, "create", path="/read", data=b"")
        lock = tested.lock("/l")
        read_errors = []
        for _ in range(3):
            reads = [tested.submit("get", path="/read")
                     for _ in range(AT_ONCE)]
            acquired = lock.submit("acquire", wait=FOREVER)
            reads += [tested.submit("get", path="/read")
                      for _ in range(AT_ONCE)]
            acquired.succeeds()
            lock.submit("release").succeeds()
            read_errors += [read.result().err for read in reads]
        assert set(read_errors) == {"0", "THROTTLED"}, read_errors
        eventually(lambda: tested.facts().unfinished == 0)
        assert send_until_accepted(tested, "children", path="/l").count == 0
        assert tested.facts().connection == 1


def requests_and_locks_at_a_throttling_server():
    differences.need("OPERATIONS_THROTTLED")
    with zkserver.Server(*THROTTLING) as zk:
        throttled_requests_are_not_executed(zk)
        locks_are_acquired_on_a_throttling_server(zk)


def multilock_and_doctor_name_the_option(server):
    """A follower refuses their transaction as one of an expired session."""
    done = command.run("run", "-z", server, "-l", "/b", "/a", "true")
    assert done.code == FAILED, done
    assert "localSessionsUpgradingEnabled" in done.err, done
    done = command.run("doctor", "-z", server, "/a")
    assert "localSessionsUpgradingEnabled" in done.out, done


def local_session_cannot_acquire_locks():
    """Locks need ephemeral nodes, which a local session cannot create."""
    with zkserver.Server(*LOCAL_SESSIONS, servers=3) as zk, Worker() as worker:
        tested = worker.client(zk.connect, timeout=LONG)
        tested.do("create", path="/n", data=b"")
        tested.submit("create", path="/e", data=b"", flags=EPHEMERAL).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        tested.lock("/l").submit("acquire", wait=FOREVER).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        tested.semaphore("/s", permits=1).submit("acquire", wait=FOREVER).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        tested.single("/o").submit("acquire", wait=FOREVER).fails(
            "EPHEMERAL_ON_LOCAL_SESSION")
        done = command.run("run", "-z", zk.connect, "/l", "true")
        assert done.code == FAILED and done.err == (
            "latchkey: /l: ephemeral node on a local session; zoo.cfg needs "
            "localSessionsUpgradingEnabled=true\n"), done
        for n in (zk.leader(), zk.follower()):
            multilock_and_doctor_name_the_option(zk.addresses[n - 1])


live.run(requests_and_locks_at_a_throttling_server,
         local_session_cannot_acquire_locks)
