# SPDX-License-Identifier: Apache-2.0
"""The contenders of some recipes on one server or ensemble, and the Judge that
finds holders that overlap. Without those of other libraries, which driver.py and
upgrade_clients.py add."""

import collections
import threading
import time

from judge import Judge
from rivals import Host, LatchkeyLock
from worker import SEQUENTIAL, Worker

MAX_END_S = 90  # until all contenders have ended


class BaseRun:
    def __init__(self, zk, session_ms, latchkey_hosts=2):
        self.zk, self.judge, self.session_ms = zk, Judge(), session_ms
        self.latchkey_hosts = [Host(Worker) for _ in range(latchkey_hosts)]
        self.worker = Worker()
        self.direct = self.worker.client(zk.connect, timeout=60000)
        self.recipe = None      # the name of the one that makes rivals
        self.contenders = collections.defaultdict(list)  # by recipe
        self.queues = {}        # recipe -> directories of contender nodes
        self.others = []        # threads beside those of the contenders
        self.over = threading.Event()

    def make(self, recipe, name=None):
        """Let the recipe make its rivals; gives what it gives."""
        self.recipe = name or recipe.__name__
        self.queues[self.recipe] = []
        self.base = self.direct.create("/" + self.recipe + "-",
                                       flags=SEQUENTIAL).path
        return recipe(self)

    # ---- for recipes

    def path(self, name, limit, *queues, persistent=False):
        """A path for a lock, in a directory of the recipe: a container that the
        first contender creates, or a persistent node. It is also a resource of
        the judge. `queues` are the directories of contender nodes, below the
        path."""
        path = "%s/%s" % (self.base, name)
        if persistent:
            self.direct.create(path)
        self.judge.set_limit(path, limit)
        self.queues[self.recipe] += [path + q for q in queues or ("",)]
        return path

    def join(self, *joining):
        for contender in joining:
            contender.name = self.recipe
            self.contenders[self.recipe].append(contender)

    def latchkey(self, make, rival=LatchkeyLock):
        return rival(self, self.next_host(self.latchkey_hosts), make)

    @staticmethod
    def next_host(hosts):
        """The hosts take turns."""
        return min(hosts, key=lambda host: len(host.rivals))

    # ---- the run

    def hosts(self):
        return list(self.latchkey_hosts)

    def all_contenders(self):
        return [c for group in self.contenders.values() for c in group]

    def start(self):
        for contender in self.all_contenders():
            contender.last_grant = time.monotonic()
            contender.start()
        for thread in self.others:
            thread.start()

    def request_end(self):
        self.over.set()
        for contender in self.all_contenders():
            contender.over.set()

    def end(self):
        """End all contenders; gives whether all of them ended in time."""
        self.request_end()
        end = time.monotonic() + MAX_END_S
        for contender in self.all_contenders():
            contender.join(max(end - time.monotonic(), .1))
        return not any(c.is_alive() for c in self.all_contenders())

    def queue_nodes(self, *recipes):
        """The nodes in the queues of these recipes, or of all."""
        nodes = []
        for recipe in recipes or self.queues:
            for path in self.queues[recipe]:
                found = self.direct.submit("children", path=path).result()
                if found.err == "0":
                    nodes += [path + "/" + name for name in found.names]
        return nodes

    def wait_for_empty_queues(self, seconds):
        """Wait until the queues are empty; gives the nodes that are left."""
        end = time.monotonic() + seconds
        while (left := self.queue_nodes()) and time.monotonic() < end:
            time.sleep(.1)
        return left

    def count_errors(self):
        """The errors of acquires and releases, with their numbers."""
        found = collections.Counter()
        for c in self.all_contenders():
            for text, n in c.errors.items():
                found["%s: %s: %s" % (c.name, c.rival.side, text)] += n
        return found

    def close(self):
        for host in self.hosts():
            host.close()
        self.worker.close()
