# SPDX-License-Identifier: Apache-2.0
"""A holder whose server is cut off from the others is told that it is unsure
before anybody else can hold; one whose servers are restarted in turn is not.

    lease.py            a few cuts and one round of restarts
    lease.py --full     twenty cuts of a follower, twenty of a leader, and ten
                        rounds of restarts

Session timeout 4 s, while the servers hear of a cut only after 10 s: until
then a server that is cut off answers pings. Holders that trust them, beside
the others, show that the test can see it."""

import random
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
from live import eventually
from worker import Worker, boottime

FULL = "--full" in sys.argv
CUTS = 20 if FULL else 2
ROUNDS = 10 if FULL else 1
T = 4000
CALM = 30000
QUORUM, SYNC, PING = 0, 1, 2


class Pair:
    """A holder at one server, and somebody elsewhere who waits for it."""

    def __init__(self, workers, n, assurance, dir):
        near, far = workers
        others = ",".join(r.address for m, r in three.client.items() if m != n)
        self.assurance = assurance
        self.client = near.client(three.client[n].address, timeout=T,
                                  assurance=assurance)
        self.other = far.client(others, timeout=CALM)
        self.path = "%s/%s" % (dir, self.client.name)
        self.lock = self.client.lock(self.path)
        self.next = self.other.lock(self.path)

    def begin(self):
        self.lock.acquire()
        time.sleep(random.uniform(0, T / 4000))
        self.pending = self.next.submit("acquire")
        self.next.wait_until_queued()

    def judge(self, cut_at):
        """How long after the holder's lease ended the next one held, in ms;
        all else is printed."""
        granted = self.pending.succeeds()
        if self.assurance == PING:
            # What the others are for.
            assert self.lock.inspect().ok, "the ping was no trap"
            print("    ping    still sure when the next one held")
            return None
        unsure = self.lock.event("unsure")
        times = [t - cut_at for t in (unsure.at, unsure.deadline, granted.at)]
        print("    %-6s  unsure %+5.0f, lease until %+5.0f, next held %+6.0f"
              % (("quorum", "sync")[self.assurance], *times), flush=True)
        assert 0 < times[0] < times[1] < times[2], "needless, or too late"
        return times[2] - times[1]

    def end(self):
        assert self.lock.event("lost").err == "SESSION_EXPIRED"
        self.lock.submit("release").fails("LOST")
        self.next.release()
        self.client.free()
        self.other.do("close")


def cuts_of(mode, kinds):
    """Cut off the server in this mode, under its holders."""
    gaps = []
    for cut in range(CUTS):
        three.zk.wait()
        leader = eventually(three.zk.leader)
        n = leader if mode == "leader" else three.zk.follower()
        with Worker() as near, Worker() as far:
            keeper = far.client(three.connect, timeout=CALM)
            dir = keeper.create("/lease-", flags=2).path
            pairs = [Pair((near, far), n, kind, dir) for kind in kinds]
            for pair in pairs:
                pair.begin()
            # Holding long enough that it is the beat which proves it.
            time.sleep(random.uniform(T / 2000, T / 1000))
            for pair in pairs:
                assert pair.lock.inspect().state == "held"
                assert not pair.lock.lines_like("lock", "unsure")
            cut_at = boottime()
            three.cut_off(n)
            print("  %s %d is cut off, %d of %d" % (mode, n, cut + 1, CUTS))
            gaps += filter(None, [pair.judge(cut_at) for pair in pairs])
            three.heal()
            for pair in pairs:
                pair.end()
    print("  %d cuts; at the closest %.0f ms from the end of a lease to the "
          "next holder" % (CUTS, min(gaps)))


def a_follower_is_cut_off():
    cuts_of("follower", [QUORUM, QUORUM, QUORUM, SYNC, PING])


def the_leader_is_cut_off():
    cuts_of("leader", [QUORUM] * 4)


def servers_are_restarted_in_turn():
    with Worker() as worker:
        holders = []
        for n in (1, 2, 3):
            client = worker.client(three.zk.connect, timeout=CALM)
            lock = client.lock("/calm/%d" % n)
            lock.acquire()
            holders.append((client, lock))
        began = boottime()
        least = CALM
        for turn in range(ROUNDS):
            for n in (1, 2, 3):
                three.zk.restart(n)
                three.zk.wait()
                eventually(three.zk.leader)
                time.sleep(1)
                for client, lock in holders:
                    look = lock.inspect()
                    least = min(least, look.deadline - look.at)
                    assert look.ok, look
        for client, lock in holders:
            for word in ("unsure", "lost"):
                assert not lock.lines_like("lock", word), lock.lines
            suspended = len(lock.lines_like("lock", "suspended", since=began))
            print("  suspended %d times, never unsure" % suspended)
            lock.release()
            client.do("close")
        print("  %d rounds of restarts; the shortest lease was %.1f s" %
              (ROUNDS, least / 1000))


with live.Ensemble("--tick", "1000", "--init-limit", "5",
                   "--sync-limit", "10") as three:
    live.run(
        a_follower_is_cut_off,
        the_leader_is_cut_off,
        servers_are_restarted_in_turn,
    )
