# SPDX-License-Identifier: Apache-2.0
"""What the tests of locks on a real server share."""

import base64
import contextlib
import hashlib

import relay
import zkserver
from live import eventually
from worker import Worker
from relay import Relay

LONG = 40000   # a session timeout whose beats do not come into the way
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
    """A test with a process of its own and clients straight to the server."""
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
    """An access list for one with this name, for clients that say so."""
    secret = "%s:%s" % (name, name)
    digest = base64.b64encode(hashlib.sha1(secret.encode()).digest()).decode()
    return secret.encode(), "%d:digest:" + name + ":" + digest


class CountedClient:
    """A client in a process of its own, whose requests are counted."""

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
        """Count from here."""
        self.mark, self.sends = self.wire.mark(), self.worker.sends()

    def since(self):
        """The requests since begin(), and in how many writes they left."""
        return self.wire.ops(self.mark), self.worker.sends() - self.sends

    def expect_requests(self, writes, *ops):
        """Since begin() there were these requests in so many writes; and from
        here they count anew. None: in any number of writes and any order."""
        found = eventually(lambda: (lambda got: len(got[0]) >= len(ops) and
                                    got)(self.since()), ops)
        wanted = list(ops), writes
        if writes is None:
            found, wanted = (sorted(found[0]),), (sorted(ops),)
        assert found == wanted, "%s, not %s" % (found, wanted)
        self.begin()


def crowd(worker, make, count):
    """So many clients behind one relay, each with a lock that make(client)
    gives, all of them in the queue: the relay and the locks, with what they
    asked for. Places are told before the watch on the one ahead is asked
    for; who is woken without it would have to list the queue."""
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
    """Which connections got a watch event."""
    return {f.connection for f in wire.events(mark)}


def lists_since(wire, mark):
    return [f for f in wire.requests(mark) if f.op == relay.CHILDREN]
