# SPDX-License-Identifier: Apache-2.0
"""The driver of contests.py: rivals of several libraries on one server, faults,
and a Judge that finds holders that overlap."""

import collections
import itertools
import random
import threading
import time
from concurrent import futures

import contenders
import curator
import kazoos
import live
import zkserver
from judge import Judge
from rivals import CuratorLock, Host, LatchkeyLock, Wire
from worker import SEQUENTIAL, Worker

FAULT_EVERY_S = 12
MAX_WAIT_S = 30
MAX_WAIT_WITH_FAULTS_S = 90
TURN_MS = 30000     # for a lock of which the holder releases at once


class Run:
    """The rivals of some recipes on one server."""

    def __init__(self, zk, faults=False, session_ms=8000):
        self.zk, self.judge, self.session_ms = zk, Judge(), session_ms
        self.latchkey_hosts = [Host(Worker), Host(Worker)]
        self.curator_hosts = [Host(curator.Curator)
                              for _ in range(2 if faults else 1)]
        self.wires = Host(lambda: Wire(zk.connect))  # of kazoo
        self.worker = Worker()
        self.direct = self.worker.client(zk.connect, timeout=60000)
        self.recipe = None      # the name of the one that makes rivals
        self.contenders = collections.defaultdict(list)  # by recipe
        self.queues = {}        # recipe -> directories of contender nodes
        self.others = []        # threads beside those of the contenders
        self.pairs = collections.Counter()
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

    def curator(self, kind, *words, rival=CuratorLock):
        return rival(self, self.next_host(self.curator_hosts), kind, *words)

    def kazoo(self, path, make, rival=kazoos.Kazoo):
        return rival(self, self.wires, path, make)

    @staticmethod
    def next_host(hosts):
        """The hosts take turns."""
        return min(hosts, key=lambda host: len(host.rivals))

    # ---- the run

    def hosts(self):
        return self.latchkey_hosts + self.curator_hosts + [self.wires]

    def all_contenders(self):
        return [c for group in self.contenders.values() for c in group]

    def start(self):
        for contender in self.all_contenders():
            contender.last_grant = time.monotonic()
            contender.start()
        for thread in self.others:
            thread.start()

    def long_waits(self, max_wait_s):
        """Texts about contenders that have waited longer than `max_wait_s`."""
        now = time.monotonic()
        late = [c for c in self.all_contenders()
                if now - c.last_grant > max_wait_s]
        return ["%s: %s has waited for %d s" % (
            c.name, c.rival.name, now - c.last_grant) for c in late] + [
            text for recipe in {c.name for c in late}
            for text in self.describe(recipe)]

    def describe(self, recipe):
        """The nodes of a recipe and their owners."""
        owners = {c.rival.session(): c.rival.name
                  for c in self.contenders[recipe]}
        for path in self.queue_nodes(recipe):
            found = self.direct.submit("exists", path=path).result()
            yield "%s: %s" % (path, owners.get(found.owner, "nobody")
                              if found.err == "0" else "gone")

    def end(self):
        """End all contenders; gives whether all of them ended in time."""
        self.over.set()
        for contender in self.all_contenders():
            contender.over.set()
        end = time.monotonic() + MAX_WAIT_WITH_FAULTS_S
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

    def close(self):
        self.wires.cont()
        for rival in self.wires.rivals:
            rival.close()
        for host in self.hosts():
            host.close()
        self.worker.close()


# ---- one contender waits for another

def check_turns(run, recipe):
    """Contenders of each library wait for each other, in both directions and
    with both sides, or hold at the same time: as the judge allows."""
    chosen = []
    for i, contender in enumerate(run.contenders[recipe]):
        if i < 2 or contender.rival.side not in [c.rival.side for c in chosen]:
            contender.rival.open()
            chosen.append(contender)
    for holder, waiter in itertools.permutations(chosen, 2):
        for held, wanted in itertools.product(holder.ways(), waiter.ways()):
            check_turn(run, recipe, holder.rival, held, waiter.rival, wanted)


def check_turn(run, recipe, holder, held, waiter, wanted):
    def acquire(rival, side):
        if side is not None:
            rival.choose(side)
        while not rival.acquire(TURN_MS):
            pass  # a reader of kazoo gives up early
    acquire(holder, held[0])
    nodes = len(run.queue_nodes(recipe))
    wait = threading.Thread(target=acquire, args=(waiter, wanted[0]),
                            daemon=True)
    wait.start()
    if not run.judge.allows(held[1], wanted[1]):
        live.eventually(lambda: len(run.queue_nodes(recipe)) > nodes or
                        not wait.is_alive())
        wait.join(.05)
        assert wait.is_alive(), "%s: %s did not wait for %s" % (
            recipe, waiter.name, holder.name)
        holder.release()
        wait.join(TURN_MS / 1000)
    else:
        wait.join(TURN_MS / 1000)
        holder.release()
    assert not wait.is_alive(), "%s: %s waits behind %s" % (
        recipe, waiter.name, holder.name)
    waiter.release()


# ---- faults

class Faults:
    """One fault after the other: a process is killed, or stopped until its
    session has expired, or the server is restarted."""

    def __init__(self, run, seed, hosts):
        self.run, self.hosts, self.random = run, hosts, random.Random(seed)
        self.due = time.monotonic() + FAULT_EVERY_S
        self.counts = collections.Counter()
        self.host = None    # the process that is killed or stopped
        self.end = None     # ends the fault that lasts; None: there is none
        self.last = "none"  # the last fault, for the report

    def execute_if_due(self):
        """Kill and restart at once; stop until the next fault is due."""
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + FAULT_EVERY_S
        if self.end is not None:
            self.heal()
            return
        self.begin(self.random.choice((self.kill, self.stop, self.restart)))
        if self.last.split()[0] != "stop":
            self.heal()

    def begin(self, fault):
        self.host = None
        self.last = fault.__name__
        self.counts[self.last] += 1
        fault()
        if self.host is not None:
            self.last += " of %s" % ", ".join(r.name for r in self.host.rivals)

    def heal(self):
        if self.end is not None:
            self.end()
            self.last += ", ended"
            self.end = None

    def kill(self):
        self.host = self.random.choice(self.hosts)
        self.host.kill()
        self.end = self.host.start

    def stop(self):
        self.host = self.random.choice(self.hosts)
        self.host.stop()
        self.end = self.host.cont

    def restart(self):
        if self.random.random() < .5:
            self.run.zk.restart()
        else:
            self.run.zk.kill()
            self.end = self.run.zk.start


# ---- contention

def report(run):
    """Print the grants of each library; gives texts about what is wrong."""
    bad = list(run.judge.overlaps[:5])
    for recipe, group in run.contenders.items():
        granted, missed = collections.Counter(), 0
        for c in group:
            granted[c.rival.side] += c.granted
            missed += c.missed
        slowest = max(group, key=lambda c: c.longest_wait_s)
        paths = sorted({path for c in group for path in c.claims or [c.path]})
        print("%-15s %s; gave up %d; longest wait %.1f s (%s); inside %s" % (
            recipe, ", ".join("%s %d" % e for e in sorted(granted.items())),
            missed, slowest.longest_wait_s, slowest.rival.name,
            "/".join(str(run.judge.most_holders.get(path, 0))
                     for path in paths)))
        bad += ["%s: no grant for %s" % (recipe, c.rival.name)
                for c in group if c.granted == 0]
    for (waiter, holder), n in sorted(run.pairs.items()):
        print("%-15s %s revoked %s %d times" % ("", waiter, holder, n))
    return bad


def count_errors(run):
    """The errors of acquires and releases, with their numbers."""
    found = collections.Counter()
    for c in run.all_contenders():
        for text, n in c.errors.items():
            found["%s: %s: %s" % (c.name, c.rival.side, text)] += n
    return found


def execute_faults(run, seconds, faults):
    """Wait until the time is over, or a contender waits too long; gives texts
    about such contenders. `faults`: Faults or None."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(.2)
        if faults is not None:
            faults.execute_if_due()
        long_waits = run.long_waits(MAX_WAIT_S if faults is None
                                    else MAX_WAIT_WITH_FAULTS_S)
        if long_waits or run.judge.overlaps:
            return long_waits
    return []


def contend(recipes, seconds, with_faults):
    """Let the contenders of these recipes contend; gives texts about what is
    wrong."""
    with zkserver.Server("--tick", "500", "--container-check", "300") as zk:
        run = Run(zk, with_faults)
        for recipe in recipes:
            run.make(recipe)
        with futures.ThreadPoolExecutor(len(recipes)) as pool:
            list(pool.map(lambda r: check_turns(run, r.__name__), recipes))
        faults = Faults(run, "faults", run.latchkey_hosts +
                        run.curator_hosts) if with_faults else None
        run.start()
        bad = execute_faults(run, seconds, faults)
        if faults is not None:
            faults.heal()
        if not run.end():
            bad.append("not all contenders have ended")
        bad += report(run)
        # Nodes of killed processes are deleted when their sessions expire.
        left = run.wait_for_empty_queues(
            run.session_ms / 1000 + 15 if with_faults else 10)
        bad += ["left behind: " + path for path in left]
        errors = count_errors(run)
        for text, n in errors.most_common(20):
            print("error: %s (%d times)" % (text, n))
        if not with_faults:
            bad += [text for text in errors if ": latchkey: " in text
                    or contenders.NOT_REVOKED in text]
        if faults is not None:
            print("faults: %s; the last: %s" % (dict(faults.counts),
                                                 faults.last))
        print("overlaps %d, left behind %d" % (len(run.judge.overlaps),
                                               len(left)))
        if "revoke" in run.contenders:
            bad += ["%s never revoked %s" % pair for pair in (
                ("latchkey", "curator"), ("curator", "latchkey"))
                if run.pairs[pair] == 0]
        run.close()
    return bad
