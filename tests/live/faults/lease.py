# SPDX-License-Identifier: Apache-2.0
"""A holder whose server is separated from the others becomes unsure before
another client can hold the lock. A holder whose servers are restarted in turn
stays sure.

    lease.py            two separations each, and one round of restarts
    lease.py --full     twenty separations of a follower, twenty of a leader,
                        and ten rounds of restarts

The session timeout is 4 s, but a server notices only after 10 s that it is
separated, and replies to pings until then. Holders with the assurance `ping`
therefore stay sure for too long. This shows that the test finds such a
fault."""

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
LONG = 30000   # session timeout of clients without a test of expiry
QUORUM, SYNC, PING = 0, 1, 2


class Pair:
    """A holder connected to one server, and a waiter for the same lock
    connected to another."""

    def __init__(self, workers, n, assurance, dir):
        holder_process, waiter_process = workers
        others = ",".join(r.address for m, r in three.client.items() if m != n)
        self.assurance = assurance
        self.client = holder_process.client(three.client[n].address, timeout=T,
                                            assurance=assurance)
        self.other = waiter_process.client(others, timeout=LONG)
        self.path = "%s/%s" % (dir, self.client.name)
        self.lock = self.client.lock(self.path)
        self.next = self.other.lock(self.path)

    def begin(self):
        self.lock.acquire()
        time.sleep(random.uniform(0, T / 4000))
        self.pending = self.next.submit("acquire")
        self.next.wait_until_queued()

    def check(self, cut_at):
        """Check the order of events; gives the time from the holder's lease
        deadline to the next grant in ms, or None with the assurance `ping`."""
        granted = self.pending.succeeds()
        if self.assurance == PING:
            # The server replies to pings without a quorum.
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
    """Separate the server in this mode, to which the holders are connected."""
    gaps = []
    for cut in range(CUTS):
        three.zk.wait()
        leader = eventually(three.zk.leader)
        n = leader if mode == "leader" else three.zk.follower()
        with Worker() as holder_process, Worker() as waiter_process:
            keeper = waiter_process.client(three.connect, timeout=LONG)
            dir = keeper.create("/lease-", flags=2).path
            pairs = [Pair((holder_process, waiter_process), n, kind,
                          dir) for kind in kinds]
            for pair in pairs:
                pair.begin()
            # Wait until the newest proof of the session is a heartbeat.
            time.sleep(random.uniform(T / 2000, T / 1000))
            for pair in pairs:
                assert pair.lock.inspect().state == "held"
                assert not pair.lock.lines_like("lock", "unsure")
            cut_at = boottime()
            three.cut_off(n)
            print("  %s %d is cut off, %d of %d" % (mode, n, cut + 1, CUTS))
            gaps += filter(None, [pair.check(cut_at) for pair in pairs])
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
            client = worker.client(three.zk.connect, timeout=LONG)
            lock = client.lock("/calm/%d" % n)
            lock.acquire()
            holders.append((client, lock))
        began = boottime()
        least = LONG
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
