# SPDX-License-Identifier: Apache-2.0
"""Locks of latchkey and of other libraries contend on the same nodes, with each
recipe for a while, and a Judge finds overlaps. See script/pairings."""

import argparse
import collections
import random
import sys
import threading
import time

sys.path.append(sys.path[0] + "/../support")

import curator
import live
import zkserver
from contenders import NOT_REVOKED, Contender
from judge import Judge
from worker import Worker
from rivals import SESSION_MS, CuratorLock, Host, LatchkeyLock, Trespasser

try:
    import kazoos
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")
import contests

FAULT_EVERY_S = 12
MAX_WAIT_S = 30
MAX_WAIT_WITH_FAULTS_S = 90


class Here:
    """The host of kazoo's locks, which is this process and is never killed."""

    def kill(self):
        pass

    stop = cont = close = kill


class Run:
    """The contenders of all recipes on one server."""

    def __init__(self, zk, faults):
        self.zk, self.judge = zk, Judge()
        self.latchkey_hosts = [Host(Worker), Host(Worker)]
        self.curator_hosts = [Host(curator.Curator)
                              for _ in range(2 if faults else 1)]
        self.here = Host(Here)
        self.worker = Worker()
        self.direct = self.worker.client(zk.connect, timeout=60000)
        self.contenders = {}    # recipe -> contenders
        self.queues = {}        # recipe -> directories of contender nodes
        self.pairs = collections.Counter()
        self.over = threading.Event()

    # ---- for recipes

    def lock_path(self, recipe, name, limit, *queues, persistent=False):
        """A path for a lock, in a directory of the recipe: a container that the
        first contender creates, or a persistent node. It is also a resource of
        the judge. `queues` are the directories of contender nodes, below the
        path."""
        base = "/" + recipe
        if recipe not in self.contenders:
            self.direct.create(base)
            self.contenders[recipe], self.queues[recipe] = [], []
        path = base + "/" + name
        if persistent:
            self.direct.create(path)
        self.judge.set_limit(path, limit)
        self.queues[recipe] += [path + q for q in queues or ("",)]
        return path

    def choose_host(self, hosts, recipe):
        """The hosts take turns with the contenders of a recipe."""
        return hosts[len(self.contenders[recipe]) % len(hosts)]

    def join(self, recipe, contender):
        contender.name = recipe
        self.contenders[recipe].append(contender)

    def latchkey_lock(self, recipe, make, rival=LatchkeyLock):
        return rival(self.choose_host(self.latchkey_hosts, recipe),
                     self.zk.connect, self.judge, make)

    def curator_lock(self, recipe, kind, *words, rival=CuratorLock):
        return rival(self.choose_host(self.curator_hosts, recipe),
                     self.zk.connect, self.judge, kind, *words)

    # ---- the run

    def all_contenders(self):
        return [c for contenders in self.contenders.values()
                for c in contenders]

    def start(self):
        for contender in self.all_contenders():
            contender.last_grant = time.monotonic()
            contender.start()

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

    def close(self):
        for host in self.latchkey_hosts + self.curator_hosts:
            host.close()
        for contender in self.all_contenders():
            if isinstance(contender.rival, kazoos.Kazoo):
                contender.rival.close()
        self.worker.close()


# ---- faults

class Faults:
    """A fault every few seconds: a process is killed, or stopped until its
    session has expired, or the server is restarted."""

    def __init__(self, run):
        self.run = run
        self.random = random.Random("faults")
        self.due = time.monotonic() + FAULT_EVERY_S
        self.stopped = None     # the host that is stopped
        self.counts = collections.Counter()
        self.last = "none"      # the last fault, for the report

    def execute_if_due(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + FAULT_EVERY_S
        if self.stopped is not None:
            self.stopped.cont()
            self.stopped = None
            self.last += ", continued"
            return
        fault = self.random.choice((self.kill, self.stop, self.restart))
        self.last = fault.__name__
        fault()
        self.counts[fault.__name__] += 1

    def random_host(self):
        return self.random.choice(self.run.latchkey_hosts +
                                  self.run.curator_hosts)

    def kill(self):
        host = self.random_host()
        self.last += " of %s" % ", ".join(r.name for r in host.rivals)
        host.kill()
        host.start()

    def stop(self):
        self.stopped = self.random_host()
        self.last += " of %s" % ", ".join(r.name for r in self.stopped.rivals)
        self.stopped.stop()

    def restart(self):
        if self.random.random() < .5:
            self.run.zk.restart()
        else:
            self.run.zk.kill()
            self.run.zk.start()

    def end(self):
        if self.stopped is not None:
            self.stopped.cont()


# ---- the program

def report(run):
    """Print the grants of each library; gives texts about what is wrong."""
    bad = list(run.judge.overlaps[:5])
    for recipe, contenders in run.contenders.items():
        granted, missed = collections.Counter(), 0
        for c in contenders:
            granted[c.rival.side] += c.granted
            missed += c.missed
        slowest = max(contenders, key=lambda c: c.longest_wait_s)
        paths = sorted({path for c in contenders
                         for path in c.claims or [c.path]})
        print("%-15s %s; gave up %d; longest wait %.1f s (%s); inside %s" % (
            recipe, ", ".join("%s %d" % e for e in sorted(granted.items())),
            missed, slowest.longest_wait_s, slowest.rival.name,
            "/".join(str(run.judge.most_holders.get(path, 0))
                     for path in paths)))
        bad += ["%s: no grant for %s" % (recipe, c.rival.name)
                for c in contenders if c.granted == 0]
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
    with zkserver.Server("--tick", "500", "--container-check", "300") as zk:
        run = Run(zk, with_faults)
        for recipe in recipes:
            recipe(run)
        faults = Faults(run) if with_faults else None
        run.start()
        bad = execute_faults(run, seconds, faults)
        if faults is not None:
            faults.end()
        if not run.end():
            bad.append("not all contenders have ended")
        bad += report(run)
        # Nodes of killed processes are deleted when their sessions expire.
        left = wait_for_empty_queues(
            run, SESSION_MS / 1000 + 15 if with_faults else 10)
        bad += ["left behind: " + path for path in left]
        errors = count_errors(run)
        for text, n in errors.most_common(20):
            print("error: %s (%d times)" % (text, n))
        if not with_faults:
            bad += [text for text in errors
                    if ": latchkey: " in text or NOT_REVOKED in text]
        if faults is not None:
            print("faults: %s; the last: %s" % (dict(faults.counts),
                                                 faults.last))
        print("overlaps %d, left behind %d" % (len(run.judge.overlaps),
                                               len(left)))
        if contests.revoke in recipes:
            bad += ["%s never revoked %s" % pair for pair in (
                ("latchkey", "curator"), ("curator", "latchkey"))
                if run.pairs[pair] == 0]
        run.close()
    for text in bad:
        print("WRONG: " + text)
    return not bad


def wait_for_empty_queues(run, seconds):
    """Wait until the queues are empty; gives the nodes that are left."""
    end = time.monotonic() + seconds
    while (left := run.queue_nodes()) and time.monotonic() < end:
        time.sleep(.1)
    return left


def test_the_judge():
    """The Judge must find a contender without a lock."""
    with zkserver.Server("--tick", "500") as zk:
        run = Run(zk, False)
        contests.mutex(run)
        path, = run.queues["mutex"]
        run.join("mutex", Contender(Trespasser(
            run.here, zk.connect, run.judge), {path: 1}))
        run.start()
        live.eventually(lambda: run.judge.overlaps,
                        "the judge finds an overlap")
        assert any("trespasser" in text for text in run.judge.overlaps)
        assert run.end()
        run.close()


def main():
    names = {recipe.__name__: recipe for recipe in contests.ALL}
    parser = argparse.ArgumentParser(prog="pairings")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("recipe", nargs="*", choices=[[], *names],
                        metavar="RECIPE", help=", ".join(names))
    options = parser.parse_args()
    recipes = [names[name] for name in options.recipe] or list(contests.ALL)
    test_the_judge()
    print("the judge finds a contender without a lock")
    sys.exit(0 if contend(recipes, options.seconds, options.faults) else 1)


main()
