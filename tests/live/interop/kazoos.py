# SPDX-License-Identifier: Apache-2.0
"""kazoo's locks, candidates and members, in this process. A mutex may have
Curator's mark in its node names, or be configured to wait for nodes with this
mark."""

import logging

import live
import rivals

try:
    import kazoo.client
    import kazoo.exceptions
    import kazoo.recipe.election
    import kazoo.recipe.lock
    import kazoo.recipe.party
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")

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


def election(*identifier):
    """The lock of an Election, whose holder leads."""
    return lambda client, path: kazoo.recipe.election.Election(
        client, path, *identifier).lock


def permit(client, path):
    return kazoo.recipe.lock.Semaphore(client, path, max_leases=3)


def mutex(client, path):
    return kazoo.recipe.lock.Lock(client, path)


def writer(client, path):
    return kazoo.recipe.lock.WriteLock(client, path)


def sides(client, path):
    return [kazoo.recipe.lock.ReadLock(client, path), writer(client, path)]


# A ReadLock of kazoo 2.8 waits for all writers, even for those behind it, which
# wait for the reader. The timeout of acquire() ends this deadlock.
MOST_READER_MS = 200


class Kazoo(rivals.Rival):
    """`make(client, path)` makes the lock, or the list of its sides."""
    side = "kazoo"

    def __init__(self, run, host, path, make):
        super().__init__(run, host)
        self.path, self.make, self.client = path, make, None
        self.most_ms = float("inf")

    def open(self):
        self.close()
        generation = self.host.generation
        self.client = kazoo.client.KazooClient(
            self.host.process.address, timeout=self.session_ms / 1000)
        self.client.add_listener(self.on_state)
        try:
            self.client.start(30)
        except self.client.handler.timeout_exception as e:
            raise rivals.Broken(repr(e)) from None
        self.lock = self.locks = self.make(self.client, self.path)
        self.opened = generation

    def choose(self, side):
        self.lock = self.locks[side]
        self.most_ms = MOST_READER_MS if side == rivals.READ else float("inf")

    def on_state(self, state):
        self.states[state.lower()] += 1
        self.connected = state == "CONNECTED"
        if not self.connected:
            self.doubt()

    def acquire(self, ms):
        seconds = min(ms, self.most_ms) / 1000
        try:
            holds = self.take(lambda: self.lock.acquire(timeout=seconds))
        except kazoo.exceptions.LockTimeout:
            holds = False
        except Exception as e:
            self.opened = 0  # not open: it is opened with a new session
            raise rivals.Broken(repr(e)) from None
        if not holds and not self.safe:
            self.opened = 0  # without a connection, kazoo leaves its node
        self.safe = holds and self.connected
        return holds

    def reports_held(self):
        return self.lock.is_acquired

    def participants(self):
        return ["%s=%s" % (name, "candidate" if i else "leader")
                for i, name in enumerate(self.lock.contenders())]

    def release(self):
        try:
            self.lock.release()
        except Exception as e:
            self.opened = 0
            raise rivals.Broken(repr(e)) from None

    def close(self):
        if self.client is not None:
            self.client.remove_listener(self.on_state)
            self.client.stop()
            self.client.close()
            self.client = None


class Member(Kazoo):
    """A Party, which does not join again by itself."""

    def __init__(self, run, host, path, name):
        super().__init__(run, host, path, lambda client, path:
                         kazoo.recipe.party.Party(client, path, name))
        self.has_joined = False

    def on_state(self, state):
        super().on_state(state)
        if self.connected and self.has_joined:
            self.client.handler.spawn(self.lock.join)

    def acquire(self, ms):
        self.lock.join()
        self.has_joined = True
        return True

    def release(self):
        self.has_joined = False
        self.lock.leave()

    def sees(self):
        try:
            return sorted(self.lock)
        except Exception as e:
            raise rivals.Broken(repr(e)) from None
