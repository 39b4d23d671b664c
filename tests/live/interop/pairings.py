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
from contenders import Contender
from judge import Judge
from worker import Worker
from rivals import SESSION_MS, Host, Ours, Theirs, Trespasser

try:
    import kazoos
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")
import contests

FAULT_EVERY = 12    # seconds
STALL = 30          # limit of a wait, in seconds
STALL_FAULTS = 90


class Here:
    """The host of kazoo's locks, which is this process and is never killed."""

    def kill(self):
        pass

    stop = cont = close = kill


class Run:
    """The contenders of all recipes on one server."""

    def __init__(self, zk, faults):
        self.zk, self.judge = zk, Judge()
        self.ours = [Host(Worker), Host(Worker)]
        self.theirs = [Host(curator.Curator)
                       for _ in range(2 if faults else 1)]
        self.here = Host(Here)
        self.watcher = Worker()
        self.direct = self.watcher.client(zk.connect, timeout=60000)
        self.turns = {}         # recipe -> contenders
        self.queues = {}        # recipe -> directories of contender nodes
        self.pairs = collections.Counter()
        self.over = threading.Event()

    # ---- for recipes

    def place(self, recipe, name, room, *queues, stays=False):
        """A path for a lock, in a directory of the recipe: a container that the
        first contender creates, or with `stays` a persistent node."""
        base = "/" + recipe
        if recipe not in self.turns:
            self.direct.create(base)
            self.turns[recipe], self.queues[recipe] = [], []
        path = base + "/" + name
        if stays:
            self.direct.create(path)
        self.judge.room(path, room)
        self.queues[recipe] += [path + q for q in queues or ("",)]
        return path

    def host(self, hosts, recipe):
        return hosts[len(self.turns[recipe]) % len(hosts)]

    def join(self, recipe, contender):
        contender.name = recipe
        self.turns[recipe].append(contender)

    def ours_do(self, recipe, make):
        return Ours(self.host(self.ours, recipe), self.zk.connect, self.judge,
                    make)

    def theirs_do(self, recipe, kind, *words, of=Theirs):
        return of(self.host(self.theirs, recipe), self.zk.connect, self.judge,
                  kind, *words)

    # ---- the run

    def all(self):
        return [c for turns in self.turns.values() for c in turns]

    def go(self):
        for contender in self.all():
            contender.moved = time.monotonic()
            contender.start()

    def stalled(self, bound):
        now = time.monotonic()
        late = [c for c in self.all() if now - c.moved > bound]
        return ["%s: %s has waited for %d s" % (
            c.name, c.rival.name, now - c.moved) for c in late] + [
            text for recipe in {c.name for c in late}
            for text in self.describe(recipe)]

    def describe(self, recipe):
        """The nodes of a recipe and their owners."""
        owners = {c.rival.session(): c.rival.name for c in self.turns[recipe]}
        for path in self.orphans(recipe):
            found = self.direct.submit("exists", path=path).result()
            yield "%s: %s" % (path, owners.get(found.owner, "nobody")
                              if found.err == "0" else "gone")

    def end(self):
        """End all contenders; True if all of them ended in time."""
        self.over.set()
        for contender in self.all():
            contender.over.set()
        end = time.monotonic() + STALL_FAULTS
        for contender in self.all():
            contender.join(max(end - time.monotonic(), .1))
        return not any(c.is_alive() for c in self.all())

    def orphans(self, *recipes):
        """The nodes that are left in the queues although their sessions
        live."""
        left = []
        for recipe in recipes or self.queues:
            for path in self.queues[recipe]:
                found = self.direct.submit("children", path=path).result()
                if found.err == "0":
                    left += [path + "/" + name for name in found.names]
        return left

    def close(self):
        for host in self.ours + self.theirs:
            host.close()
        for contender in self.all():
            if isinstance(contender.rival, kazoos.Kazoo):
                contender.rival.close()
        self.watcher.close()


# ---- faults

class Faults:
    """A fault every few seconds: a process is killed, or stopped until its
    session has expired, or the server is restarted."""

    def __init__(self, run):
        self.run = run
        self.random = random.Random("faults")
        self.due = time.monotonic() + FAULT_EVERY
        self.stopped = None
        self.counts = collections.Counter()
        self.last = "none"

    def go_on(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + FAULT_EVERY
        if self.stopped is not None:
            self.stopped.cont()
            self.stopped = None
            self.last += ", and on"
            return
        what = self.random.choice((self.kill, self.stop, self.restart))
        self.last = what.__name__
        what()
        self.counts[what.__name__] += 1

    def some_host(self):
        return self.random.choice(self.run.ours + self.run.theirs)

    def kill(self):
        host = self.some_host()
        self.last += " of %s" % ", ".join(r.name for r in host.rivals)
        host.kill()
        host.start()

    def stop(self):
        self.stopped = self.some_host()
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
    """Print the grants of each side, and errors."""
    bad = list(run.judge.overlaps[:5])
    for recipe, turns in run.turns.items():
        granted, missed = collections.Counter(), 0
        for c in turns:
            granted[c.rival.side] += c.granted
            missed += c.missed
        worst = max(turns, key=lambda c: c.worst)
        print("%-15s %s; gave up %d; longest wait %.1f s (%s); inside %s" % (
            recipe, ", ".join("%s %d" % e for e in sorted(granted.items())),
            missed, worst.worst, worst.rival.name,
            "/".join(str(run.judge.most.get(path, 0)) for path in sorted(
                {path for c in turns for path in c.claims or [c.path]}))))
        bad += ["%s: nothing for %s" % (recipe, c.rival.name)
                for c in turns if c.granted == 0]
    for (asker, holder), n in sorted(run.pairs.items()):
        print("%-15s %s asked %s %d times" % ("", asker, holder, n))
    return bad


def troubles(run):
    """Print the errors of acquires and releases."""
    found = collections.Counter()
    for c in run.all():
        for text, n in c.broken.items():
            found["%s: %s: %s" % (c.name, c.rival.side, text)] += n
    return found


def watch_over(run, seconds, faults):
    """Wait until the time is over, or a contender waits too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(.2)
        if faults is not None:
            faults.go_on()
        stalls = run.stalled(STALL if faults is None else STALL_FAULTS)
        if stalls or run.judge.overlaps:
            return stalls
    return []


def contend(recipes, seconds, with_faults):
    with zkserver.Server("--tick", "500", "--container-check", "300") as zk:
        run = Run(zk, with_faults)
        for recipe in recipes:
            recipe(run)
        faults = Faults(run) if with_faults else None
        run.go()
        bad = watch_over(run, seconds, faults)
        if faults is not None:
            faults.end()
        if not run.end():
            bad.append("not all came to an end")
        bad += report(run)
        left = wait_for_none(run, SESSION_MS / 1000 + 15 if with_faults
                             else 10)
        bad += ["left behind: " + path for path in left]
        found = troubles(run)
        for text, n in found.most_common(20):
            print("error: %s (%d times)" % (text, n))
        if not with_faults:
            bad += [text for text in found
                    if ": latchkey: " in text or "not asked" in text]
        if faults is not None:
            print("faults: %s; the last: %s" % (dict(faults.counts),
                                                 faults.last))
        print("overlaps %d, left behind %d" % (len(run.judge.overlaps),
                                               len(left)))
        if contests.revoke in recipes:
            bad += ["%s never asked %s" % pair for pair in (
                ("latchkey", "curator"), ("curator", "latchkey"))
                if run.pairs[pair] == 0]
        run.close()
    for text in bad:
        print("WRONG: " + text)
    return not bad


def wait_for_none(run, seconds):
    end = time.monotonic() + seconds
    while (left := run.orphans()) and time.monotonic() < end:
        time.sleep(.1)
    return left


def the_judge_notices():
    """Check the Judge: it must find a contender without a lock."""
    with zkserver.Server("--tick", "500") as zk:
        run = Run(zk, False)
        contests.mutex(run)
        path, = run.queues["mutex"]
        run.join("mutex", Contender(Trespasser(
            run.here, zk.connect, run.judge), {path: 1}))
        run.go()
        live.eventually(lambda: run.judge.overlaps, "the judge sees it")
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
    given = parser.parse_args()
    recipes = [names[name] for name in given.recipe] or list(contests.ALL)
    the_judge_notices()
    print("the judge notices who goes in without asking")
    sys.exit(0 if contend(recipes, given.seconds, given.faults) else 1)


main()
