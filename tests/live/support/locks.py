# SPDX-License-Identifier: Apache-2.0
"""Helpers of the tests of locks on a real server."""

import base64
import contextlib
import hashlib

import relay
import zkserver
from live import eventually
from worker import SEQUENTIAL, Worker
from relay import Relay

# Session timeouts in ms. LONG is so long that no heartbeat is due in a test.
LONG = 40000
SHORT = 4000

_server = None  # the server of serve(), which all tests of a program share


@contextlib.contextmanager
def serve(*options):
    """Start the server of all tests of the program."""
    global _server
    with zkserver.Server(*options) as _server:
        yield _server


def connect_string():
    return _server.connect


def on_server(test):
    """Run the test with a worker process, a client `direct` that is connected to
    the server without a relay, and a new directory `base`."""
    def run_test():
        with Worker() as worker:
            direct = worker.client(_server.connect, timeout=LONG)
            base = direct.create("/lock-test-", flags=SEQUENTIAL).path
            test(worker, direct, base)
            eventually(lambda: direct.facts().unfinished == 0)  # cleanups
            direct.do("close")
    run_test.__name__ = test.__name__
    return run_test


def names(client, path):
    """The sorted names of the children of a node; [] if it does not exist."""
    found = client.submit("children", path=path).result()
    return sorted(found.names) if found.err == "0" else []


def wait_until_empty(client, path):
    eventually(lambda: not names(client, path), "%s is empty" % path)


def digest_identity(name):
    """The credentials of the digest identity `name`, and the text of its entry in
    an access list, with "%d" in the place of the permissions."""
    secret = "%s:%s" % (name, name)
    digest = base64.b64encode(hashlib.sha1(secret.encode()).digest()).decode()
    return secret.encode(), "%d:digest:" + name + ":" + digest


class CountedClient:
    """A client in a process of its own, behind a relay that counts its
    requests."""

    def __enter__(self):
        self.wire, self.worker = Relay(_server.connect), Worker()
        self.client = self.worker.client(self.wire.address, timeout=LONG)
        self.client.wait_for_state("connected")
        self.reset_counts()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.client.do("close")
        self.worker.__exit__(kind)
        self.wire.close()

    def reset_counts(self):
        """Count requests and calls of send() from now on."""
        self.mark = self.wire.mark()
        self._sends_before = self.worker.sends()

    def counts(self):
        """The opcodes of the requests since reset_counts(), and the number of
        send() calls."""
        return (self.wire.ops(self.mark),
                self.worker.sends() - self._sends_before)

    def expect_requests(self, sends, *ops):
        """Check that the client has sent requests with the opcodes `ops` since
        reset_counts(), in `sends` send() calls, and call reset_counts(). If
        `sends` is None, neither the number of calls nor the order of the
        requests is checked. The server has then executed the requests, so that
        those of other clients come later."""
        def counts_of_all():
            counts = self.counts()
            if len(counts[0]) < len(ops) or self.wire.awaits_replies():
                return None
            return counts
        found_ops, found_sends = eventually(counts_of_all, ops)
        if sends is None:
            assert sorted(found_ops) == sorted(ops), found_ops
        else:
            assert (found_ops, found_sends) == (list(ops), sends), (
                "%s in %s sends, not %s in %s" % (found_ops, found_sends, ops,
                                                  sends))
        self.reset_counts()

    def expect_one_of(self, *costs):
        """Wait until the requests since reset_counts() are those of one of
        `costs`, each (sends, opcode...) as for expect_requests(), and call
        reset_counts()."""
        wanted = [(list(ops), sends) for sends, *ops in costs]
        eventually(lambda: self.counts() in wanted, wanted)
        self.reset_counts()


def crowd(worker, make, count):
    """`count` clients behind one relay, each with a lock of make(client), all
    of them in the queue. Gives the relay, the locks and the pending acquires.

    A lock reports its position before it sets the watch on its predecessor, so
    each client also sends a sync: after the reply the watch is set. A waiter
    whose predecessor leaves earlier would list the queue again, and change the
    numbers of requests that the tests check."""
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
    """The numbers of the connections that received a watch event."""
    return {frame.connection for frame in wire.events(mark)}


def lists_since(wire, mark):
    """The requests that list a queue."""
    return [frame for frame in wire.requests(mark)
            if frame.op == relay.CHILDREN]
