# SPDX-License-Identifier: Apache-2.0
"""Groups with members of latchkey, Curator and kazoo under faults: groups.py
[--seconds=N] [--seed=N]

Two groups, since kazoo sees only names like those of its Party: latchkey with
Curator's GroupMember, and latchkey with kazoo's Party. For N seconds [15] a
random process is killed, or stopped until its session has expired, or the server is
restarted, one fault after the other. After each, all members that live must see
each other, and no dead one, within the session timeout and the time to
reconnect.
"""

import random
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
from curator import Curator
from live import eventually
from worker import Worker

try:
    import kazoo.client
    import kazoo.recipe.party
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")
import kazoos  # noqa: F401 - quiets kazoo's log

SESSION_MS, TICK_MS = 4000, 1000
# A session timeout, two ticks of the server, by which it rounds up, and the
# pauses of clients before they connect and join again.
SETTLE_S = (SESSION_MS + 2 * TICK_MS) / 1000 + 20


class Latchkey:
    """A worker with a member and a roster."""

    def __init__(self, group, name, **options):
        self.group, self.name, self.options = group, name, options
        self.start()

    def start(self):
        self.process = Worker()
        client = self.process.client(zk.connect, timeout=SESSION_MS)
        self.roster = client.roster(self.group.path)
        client.member(self.group.path, id=self.name, data=self.name.encode(),
                      **self.options).join()

    def sees(self):
        reports = [line for line in self.roster.lines_like("roster")
                   if line.err in ("0", "NO_NODE")]
        if not reports:
            return []
        return sorted(bytes.fromhex(name.split(":")[1]).decode()
                      for name in reports[-1].names)


class OfCurator:
    """A process with a GroupMember."""

    def __init__(self, group, name):
        self.group, self.name = group, name
        self.start()

    def start(self):
        self.process = Curator()
        client = self.process.client(zk.connect, SESSION_MS)
        self.member = self.process.lock("member", client, self.group.path,
                                        self.name, self.name)
        self.process.do("acquire", self.member, 0)

    def sees(self):
        nodes = self.process.do("nodes", self.member)
        return sorted(text.split("=")[1] for text in nodes.split(",") if text)


class OfKazoo:
    """A Party in this process, which no fault kills or stops."""

    process = None

    def __init__(self, group, name):
        self.name = name
        self.client = kazoo.client.KazooClient(zk.connect,
                                               timeout=SESSION_MS / 1000)
        self.client.start(30)
        self.party = kazoo.recipe.party.Party(self.client, group.path, name)
        self.party.join()
        # A Party does not join again by itself.
        self.client.add_listener(self.on_state)

    def on_state(self, state):
        if state == "CONNECTED":
            self.client.handler.spawn(self.party.join)

    def sees(self):
        return sorted(self.client.retry(lambda: list(self.party)))

    def close(self):
        self.client.stop()
        self.client.close()


class Group:
    def __init__(self, path):
        self.path = path
        self.members = []

    def add(self, kind, name, **options):
        self.members.append(kind(self, name, **options))

    def is_settled(self, absent=()):
        """Whether each member sees the others, but not those that are absent."""
        living = [m for m in self.members if m not in absent]
        names = sorted(m.name for m in living)
        try:
            return all(m.sees() == names for m in living)
        except (kazoo.client.KazooException, AssertionError):
            return False  # without a connection, kazoo and Curator fail

    def wait(self, absent=()):
        eventually(lambda: self.is_settled(absent), "members of %s without %s"
                   % (self.path, [m.name for m in absent]), SETTLE_S)


def kill(group, member):
    member.process.kill()
    group.wait([member])
    member.start()


def stop(group, member):
    """Its session expires, and the member comes back by itself."""
    member.process.stop()
    group.wait([member])
    member.process.cont()


def restart_server(*_):
    zk.kill()
    time.sleep(random.uniform(0, 2))
    zk.start()


def members_see_each_other_after_each_fault():
    seconds = live.option("seconds", 15)
    seed = live.option("seed", int(time.time()))
    print("seed", seed)
    random.seed(seed)
    with_curator, with_kazoo = Group("/groups/curator"), Group("/groups-kazoo")
    groups = [with_curator, with_kazoo]
    for name in "ab":
        with_curator.add(Latchkey, "latchkey-" + name)
        with_kazoo.add(Latchkey, "latchkey-%s__party__" % name,
                       persistent=True)
    with_curator.add(OfCurator, "curator")
    with_kazoo.add(OfKazoo, "kazoo")
    for group in groups:
        group.wait()
    counts = {kill: 0, stop: 0, restart_server: 0}
    end = time.monotonic() + seconds
    while time.monotonic() < end or not counts[kill]:
        fault = kill if not counts[kill] else random.choice(list(counts))
        group = random.choice(groups)
        member = random.choice([m for m in group.members if m.process])
        counts[fault] += 1
        fault(group, member)
        for each in groups:
            each.wait()
    print("%d kills, %d stops, %d restarts of the server" %
          tuple(counts.values()))
    for group in groups:
        for member in group.members:
            (member.process or member).close()


with live.zkserver.Server("--tick", str(TICK_MS)) as zk:
    live.run(members_see_each_other_after_each_fault)
sys.exit(0)
