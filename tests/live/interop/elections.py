# SPDX-License-Identifier: Apache-2.0
"""Candidates of latchkey in the elections of Curator and kazoo, both ways:
LeaderLatch, LeaderSelector and Election."""

import sys
import threading

sys.path.append(sys.path[0] + "/../support")

import live
import locks
from curator import Curator
from live import eventually
from worker import KAZOO, LATCH, SELECTOR, Worker

try:
    import kazoo.client
    import kazoo.exceptions
    import kazoo.recipe.election
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")
import kazoos  # noqa: F401 - quiets kazoo's log

SESSION_MS = 4000
WAIT_MS = 30000


class CuratorCandidate:
    """A LeaderLatch or a LeaderSelector in a process of its own."""

    def __init__(self, kind, path, name):
        self.java = Curator()
        self.client = self.java.client(server.connect, SESSION_MS)
        self.lock = self.java.lock(kind, self.client, path, name)

    def begin(self):
        """Take part; gives what tells that it leads."""
        pending = self.java.submit("acquire", self.lock, WAIT_MS)
        return lambda: pending.is_done() and pending.result() == "held"

    def participants(self):
        return self.java.do("nodes", self.lock).split(",")

    def resign(self):
        self.java.do("release", self.lock)

    def kill(self):
        self.java.kill()

    def close(self):
        self.java.close()


class KazooCandidate:
    """An Election of kazoo, in this process."""

    def __init__(self, kind, path, name):
        self.client = kazoo.client.KazooClient(server.connect,
                                               timeout=SESSION_MS / 1000)
        self.client.start(30)
        self.election = kazoo.recipe.election.Election(self.client, path, name)

    def begin(self):
        self.leads, self.over = threading.Event(), threading.Event()

        def lead():
            self.leads.set()
            self.over.wait()

        def take_part():
            try:
                self.election.run(lead)
            except kazoo.exceptions.ConnectionClosedError:
                pass  # after kill()
        self.thread = threading.Thread(target=take_part, daemon=True)
        self.thread.start()
        return self.leads.is_set

    def participants(self):
        names = self.election.contenders()
        return ["%s=%s" % (name, "candidate" if i else "leader")
                for i, name in enumerate(names)]

    def resign(self):
        self.over.set()
        self.thread.join(WAIT_MS / 1000)

    def kill(self):
        """End the session."""
        self.client.stop()
        self.over.set()

    def close(self):
        self.client.stop()
        self.client.close()


# ---- tests: each is run with the three kinds of peers

def both_lead_in_turns_and_see_each_other(peer, client, path, layout):
    ours = client.candidate(path, layout=layout, data=b"ours",
                            persistent=True)
    ours.start()
    first = ours.wait_for_event("elected")
    peer_leads = peer.begin()
    eventually(lambda: len(locks.names(client, path)) == 2)
    assert peer.participants() == ["ours=leader", "theirs=candidate"]
    assert not peer_leads()
    ours.resign()
    ours.wait_for_event("deposed", err="0")
    eventually(peer_leads, "the peer leads")
    ours.start()
    eventually(lambda: len(locks.names(client, path)) == 2)
    assert peer.participants() == ["theirs=leader", "ours=candidate"]
    assert ours.facts().state == "waiting"
    peer.resign()
    second = ours.wait_for_event("elected")
    assert second.term > first.term
    ours.free()
    eventually(lambda: not locks.names(client, path))


def dead_leader_is_followed_by_the_other_library(peer, client, path, layout):
    with Worker() as doomed:
        theirs = doomed.client(server.connect, timeout=SESSION_MS)
        leader = theirs.candidate(path, layout=layout, persistent=True)
        leader.start()
        leader.wait_for_event("elected")
        peer_leads = peer.begin()
        eventually(lambda: len(locks.names(client, path)) == 2)
        doomed.kill()
    eventually(peer_leads, "the peer leads")
    ours = client.candidate(path, layout=layout, persistent=True)
    ours.start()
    eventually(lambda: len(locks.names(client, path)) == 2)
    peer.kill()
    ours.wait_for_event("elected")
    ours.free()


# ---- the kinds of peers

PEERS = (("latch", CuratorCandidate, LATCH),
         ("selector", CuratorCandidate, SELECTOR),
         ("kazoo", KazooCandidate, KAZOO))


def each_peer(test):
    def run():
        for kind, make, layout in PEERS:
            path = "/elections-%s-%s" % (test.__name__, kind)
            with Worker() as worker:
                client = worker.client(server.connect, timeout=SESSION_MS)
                client.create(path)  # kazoo does not make it again
                peer = make(kind, path, "theirs")
                try:
                    test(peer, client, path, layout)
                finally:
                    peer.close()
    run.__name__ = test.__name__
    return run


with locks.serve() as server:
    live.run(*map(each_peer, (both_lead_in_turns_and_see_each_other,
                              dead_leader_is_followed_by_the_other_library)))
sys.exit(0)
