# SPDX-License-Identifier: Apache-2.0
"""Candidates of latchkey in the elections of Curator and kazoo, both ways:
LeaderLatch, LeaderSelector and Election."""

import importlib.util
import queue
import subprocess
import sys
import threading

sys.path.append(sys.path[0] + "/../support")

import live
import locks
from curator import Curator
from live import eventually
from worker import KAZOO, LATCH, SELECTOR, Worker

if importlib.util.find_spec("kazoo") is None:
    live.missing("there is no kazoo (Debian: python3-kazoo)")

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
    """An Election of kazoo in a process of its own."""

    def __init__(self, kind, path, name):
        self.process = subprocess.Popen(
            [sys.executable, sys.path[0] + "/kazoo_candidate.py",
             server.connect, str(SESSION_MS / 1000), path, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.leads = threading.Event()
        self.replies = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if line == "leads\n":
                self.leads.set()
            else:
                self.replies.put(line.strip())

    def do(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.replies.get(timeout=WAIT_MS / 1000)

    def begin(self):
        self.leads.clear()
        self.do("begin")
        return self.leads.is_set

    def participants(self):
        return ["%s=%s" % (name, "candidate" if i else "leader")
                for i, name in enumerate(self.do("participants").split(","))]

    def resign(self):
        self.do("resign")

    def kill(self):
        self.process.kill()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        self.process.stdin.close()
        self.process.stdout.close()


# ---- tests: each is run with the three kinds of peers

def wait_for_roster(observer, *ids):
    """Wait until the roster of an election has these candidates, the leader
    first."""
    def found():
        line = observer.lines_like("roster")[-1]
        return [bytes.fromhex(name.partition(":")[2]).decode()
                for name in line.names] == list(ids)
    eventually(found, "the roster has %s" % (ids,))


def both_lead_in_turns_and_see_each_other(peer, client, path, layout):
    ours = client.candidate(path, layout=layout, data=b"ours",
                            persistent=True)
    observer = client.roster(path, layout=layout)
    ours.start()
    first = ours.wait_for_event("elected")
    peer_leads = peer.begin()
    eventually(lambda: len(locks.names(client, path)) == 2)
    assert peer.participants() == ["ours=leader", "theirs=candidate"]
    wait_for_roster(observer, "ours", "theirs")
    assert not peer_leads()
    ours.resign()
    ours.wait_for_event("deposed", err="0")
    eventually(peer_leads, "the peer leads")
    ours.start()
    eventually(lambda: len(locks.names(client, path)) == 2)
    assert peer.participants() == ["theirs=leader", "ours=candidate"]
    wait_for_roster(observer, "theirs", "ours")
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
