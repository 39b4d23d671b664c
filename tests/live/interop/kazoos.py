# SPDX-License-Identifier: Apache-2.0
"""kazoo's mutex, in this process: with Curator's mark in its node names, or
configured to wait for nodes with this mark."""

import logging

import kazoo.client
import kazoo.exceptions
import kazoo.recipe.election
import kazoo.recipe.lock

import rivals


logging.getLogger("kazoo").setLevel(logging.CRITICAL)


class Lock(kazoo.recipe.lock.Lock):
    """kazoo's mutex with node names that contain "-lock-", as Curator's do."""
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


def waiting_for_curator_nodes(client, path):
    """kazoo's mutex with its own node names, which also waits for nodes with
    names like Curator's."""
    return kazoo.recipe.lock.Lock(client, path,
                                  extra_lock_patterns=["-lock-"])


def election(client, path):
    """The lock of an Election, whose holder leads."""
    return kazoo.recipe.election.Election(client, path).lock


def permit(client, path):
    return kazoo.recipe.lock.Semaphore(client, path, max_leases=3)


class Kazoo(rivals.Rival):
    side = "kazoo"

    def __init__(self, host, connect, judge, path, make=Lock):
        super().__init__(host, connect, judge)
        self.path, self.make, self.client = path, make, None

    def open(self):
        self.close()
        self.client = kazoo.client.KazooClient(
            self.connect, timeout=rivals.SESSION_MS / 1000)
        self.client.add_listener(self.on_state)
        self.client.start(30)
        self.lock = self.make(self.client, self.path)
        self.opened = self.host.generation

    def on_state(self, state):
        self.connected = state == "CONNECTED"
        if not self.connected:
            self.doubt()

    def acquire(self, ms):
        try:
            holds = self.take(lambda: self.lock.acquire(timeout=ms / 1000))
            self.safe = self.connected
            return holds
        except kazoo.exceptions.LockTimeout:
            return False
        except Exception as e:
            self.opened = 0  # not open: it is opened with a new session
            raise rivals.Broken(repr(e)) from None

    def release(self):
        try:
            self.lock.release()
        except Exception as e:
            self.opened = 0
            raise rivals.Broken(repr(e)) from None

    def close(self):
        if self.client is not None:
            self.client.stop()
            self.client.close()
            self.client = None
