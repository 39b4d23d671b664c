# SPDX-License-Identifier: Apache-2.0
"""The driver of contests.py: rivals of several libraries on one server, faults,
and a Judge that finds holders that overlap."""

import collections
import itertools
import threading
import time
from concurrent import futures

import contenders
import curator
import kazoos
import live
import zkserver
from faults import Faults
from rivals import CuratorLock, Host, Wire
from run import BaseRun

MAX_WAIT_S = 30
MAX_WAIT_WITH_FAULTS_S = 90
TURN_MS = 30000     # for a lock of which the holder releases at once


class Run(BaseRun):
    """The rivals of some recipes on one server, also those of Curator and
    kazoo."""

    def __init__(self, zk, with_faults=False, session_ms=8000):
        super().__init__(zk, session_ms)
        self.curator_hosts = [Host(curator.Curator)
                              for _ in range(2 if with_faults else 1)]
        self.wires = Host(lambda: Wire(zk.connect))  # of kazoo
        self.pairs = collections.Counter()

    def curator(self, kind, *words, rival=CuratorLock):
        return rival(self, self.next_host(self.curator_hosts), kind, *words)

    def kazoo(self, path, make, rival=kazoos.Kazoo):
        return rival(self, self.wires, path, make)

    def hosts(self):
        return self.latchkey_hosts + self.curator_hosts + [self.wires]

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

    def close(self):
        self.wires.cont()
        for rival in self.wires.rivals:
            rival.close()
        super().close()


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
        errors = run.count_errors()
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
