# SPDX-License-Identifier: Apache-2.0
"""Members of latchkey in the groups of Curator and kazoo, both ways: GroupMember
and Party: groups.py [--seconds=N] [--seed=N]

For N seconds [15] a random process is killed, or stopped until its session has
expired, or the server is restarted, one fault after the other. After each, all
members that live must see each other, and no dead one, within the session timeout
and the time to reconnect. kazoo sees only names like those of its Party, so there
are two groups.
"""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import contests
import driver
import live
import rivals
from faults import Faults
from live import eventually
from relay import Relay
from worker import Worker, boottime

SESSION_MS, TICK_MS = 4000, 1000
# A session timeout, two ticks of the server, by which it rounds up, and the
# pauses of clients before they connect and join again.
SETTLE_S = (SESSION_MS + 2 * TICK_MS) / 1000 + 20


class Groups:
    """The members of all groups, which have joined."""

    def __init__(self):
        self.run = driver.Run(zk, session_ms=SESSION_MS)
        self.all = [self.run.make(recipe) for recipe in contests.GROUPS]
        self.join()

    def join(self):
        """Let the members of new processes join."""
        for members in self.all:
            for member in members.values():
                if not member.is_open():
                    member.open()
                    member.acquire(0)

    def wait(self, absent=None):
        """Wait until each member sees the others, but not those on the host
        `absent`."""
        for members in self.all:
            living = {name: member for name, member in members.items()
                      if member.host is not absent}
            eventually(lambda: self.see_each_other(living), "members %s" %
                       sorted(living), SETTLE_S)

    @staticmethod
    def see_each_other(members):
        try:
            return all(member.sees() == sorted(members)
                       for member in members.values())
        except (rivals.Broken, AssertionError):
            return False  # without a connection, Curator and kazoo fail

    def __enter__(self):
        self.wait()
        return self

    def __exit__(self, *_):
        self.run.close()


def members_of_all_libraries_see_each_other():
    with Groups() as groups:
        for members in groups.all:
            members["latchkey-a"].set_data("new")
            members["new"] = members.pop("latchkey-a")
            groups.wait()
            for name in sorted(members, key="curator kazoo".split().__contains__):
                members.pop(name).release()
                groups.wait()
        eventually(lambda: not groups.run.queue_nodes())


def members_see_each_other_after_each_fault():
    seconds = live.option("seconds", 15)
    seed = live.option("seed", int(time.time()))
    print("seed", seed)
    with Groups() as groups:
        run = groups.run
        faults = Faults(run, seed, run.latchkey_hosts + run.curator_hosts)
        kinds = (faults.kill, faults.stop, faults.restart)
        end = time.monotonic() + seconds
        while time.monotonic() < end or not faults.counts["kill"]:
            faults.begin(faults.random.choice(kinds) if faults.counts["kill"]
                         else faults.kill)
            if faults.host is not None:
                groups.wait(faults.host)
            else:
                time.sleep(faults.random.uniform(0, 2))
            faults.heal()
            groups.join()
            groups.wait()
        print(dict(faults.counts))


def dead_member_leaves_with_its_session_and_living_ones_come_back():
    path = "/deaths"
    with Worker() as worker, Relay(zk.connect) as wire:
        roster = worker.client(zk.connect, timeout=60000).roster(path)
        member = worker.client(wire.address, timeout=SESSION_MS).member(
            path, id="living", data=b"1")
        member.join()
        with Worker() as doomed:
            dead = doomed.client(zk.connect, timeout=SESSION_MS)
            dead.member(path, id="dead").join()
            roster.wait_for([("dead", b""), ("living", b"1")])
            killed = boottime()
            doomed.kill()
        gone = roster.wait_for([("living", b"1")])
        # A session timeout, and two ticks of the server, by which it rounds up.
        assert gone.at - killed < SESSION_MS + 2 * TICK_MS + 1000, gone
        # The member is cut off until its session has expired.
        wire.freeze()
        roster.wait_for([])
        wire.thaw()
        member.wait_for_event("left", err="SESSION_EXPIRED")
        member.wait_for_event("joined")
        roster.wait_for([("living", b"1")])


with live.zkserver.Server("--tick", str(TICK_MS)) as zk:
    live.run(members_of_all_libraries_see_each_other,
             dead_member_leaves_with_its_session_and_living_ones_come_back,
             members_see_each_other_after_each_fault)
sys.exit(0)
