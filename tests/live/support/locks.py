# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of locks on a real server."""

import base64
import contextlib
import hashlib

import relay
import zkserver
from live import eventually
from worker import Worker
from relay import Relay

LONG = 40000   # a session timeout without heartbeats during a test
SHORT = 4000

_server = None


@contextlib.contextmanager
def serve(*options):
    global _server
    with zkserver.Server(*options) as _server:
        yield _server


def connect():
    return _server.connect


def on_server(test):
    """Run the test with a worker process and a client `far` that is connected
    to the server without a relay."""
    def with_them():
        with Worker() as worker:
            far = worker.client(_server.connect, timeout=LONG)
            base = far.create("/lock-test-", flags=2).path
            test(worker, far, base)
            eventually(lambda: far.facts().unfinished == 0)
            far.do("close")
    with_them.__name__ = test.__name__
    return with_them


def names(client, path):
    found = client.submit("children", path=path).result()
    return sorted(found.names) if found.err == "0" else []


def wait_until_empty(client, path):
    eventually(lambda: not names(client, path), "%s is empty" % path)


def owned_by(name):
    """A digest identity with this name: its credentials, and a format for an
    access list of it."""
    secret = "%s:%s" % (name, name)
    digest = base64.b64encode(hashlib.sha1(secret.encode()).digest()).decode()
    return secret.encode(), "%d:digest:" + name + ":" + digest


class CountedClient:
    """A client in a process of its own, behind a relay that counts its
    requests."""

    def __enter__(self):
        self.wire, self.worker = Relay(_server.connect), Worker()
        self.client = self.worker.client(self.wire.address, timeout=LONG)
        self.client.state("connected")
        self.begin()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.client.do("close")
        self.worker.__exit__(kind)
        self.wire.close()

    def begin(self):
        """Reset the counters."""
        self.mark, self.sends = self.wire.mark(), self.worker.sends()

    def since(self):
        """The requests since begin(), and the number of send() calls."""
        return self.wire.ops(self.mark), self.worker.sends() - self.sends

    def expect_requests(self, writes, *ops):
        """Check that the client has sent these requests since begin(), in
        `writes` send() calls, and call begin(). None: in any number of calls
        and any order."""
        found = eventually(lambda: (lambda got: len(got[0]) >= len(ops) and
                                    got)(self.since()), ops)
        wanted = list(ops), writes
        if writes is None:
            found, wanted = (sorted(found[0]),), (sorted(ops),)
        assert found == wanted, "%s, not %s" % (found, wanted)
        self.begin()


def crowd(worker, make, count):
    """`count` clients behind one relay, each with a lock of make(client), all
    of them in the queue. Gives the relay, the locks and the pending acquires.
    A lock reports its position before it sets the watch on its direct
    predecessor; the syncs wait until all watches are set, since a waiter
    without a watch would have to list the queue."""
    wire = Relay(_server.connect)
    clients = [worker.client(wire.address, timeout=LONG)
               for _ in range(count)]
    locks = [make(client) for client in clients]
    pending = []
    for lock in locks:
        pending.append(lock.submit("acquire"))
        lock.wait_until_queued()
    for client in clients:
        client.do("sync", path="/")
    return wire, locks, pending


def connections_notified_since(wire, mark):
    """The connections that received a watch event."""
    return {f.connection for f in wire.events(mark)}


def lists_since(wire, mark):
    return [f for f in wire.requests(mark) if f.op == relay.CHILDREN]
