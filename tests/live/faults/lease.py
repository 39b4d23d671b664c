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

import differences
import live
from live import eventually
from worker import SEQUENTIAL, Worker, boottime

FULL = "--full" in sys.argv
SEPARATIONS = 20 if FULL else 2
RESTART_ROUNDS = 10 if FULL else 1
# Session timeouts in ms: of holders whose session expires, and of all others.
SHORT = 4000
LONG = 30000
HEARTBEAT_INTERVAL_S = SHORT / 1000 / 4
QUORUM, SYNC, PING = 0, 1, 2  # assurances


class Pair:
    """A holder connected to one server, and a waiter for the same lock
    connected to another."""

    def __init__(self, holder_process, waiter_process, server, assurance,
                 directory):
        """The holder is connected to this server, the waiter to another."""
        others = ",".join(r.address for n, r in three.client_relays.items()
                          if n != server)
        self.assurance = assurance
        self.holder_client = holder_process.client(
            three.client_relays[server].address, timeout=SHORT, assurance=assurance)
        self.waiter_client = waiter_process.client(others, timeout=LONG)
        self.path = "%s/%s" % (directory, self.holder_client.name)
        self.holder = self.holder_client.lock(self.path)
        self.waiter = self.waiter_client.lock(self.path)

    def begin(self):
        self.holder.acquire()
        # The heartbeats of several pairs are sent at different times.
        time.sleep(random.uniform(0, HEARTBEAT_INTERVAL_S))
        self.pending = self.waiter.submit("acquire")
        self.waiter.wait_until_queued()

    def check(self, separated_at):
        """Check the order of events; gives the time from the holder's lease
        deadline to the next grant in ms, or None with the assurance `ping`."""
        granted = self.pending.succeeds()
        if self.assurance == PING:
            # The server replies to pings without a quorum, but perhaps not while
            # the writes of the other holders wait for one.
            ok = self.holder.inspect().ok
            assert ok == differences.has("PINGS_PASS_WRITES"), ok
            print("    ping    %s after the next grant" %
                  ("still sure" if ok else "unsure"))
            return None
        event = self.holder.wait_for_event("unsure")
        unsure, deadline, next_grant = [
            at - separated_at for at in (event.at, event.deadline, granted.at)]
        name = {QUORUM: "quorum", SYNC: "sync"}[self.assurance]
        print("    %-6s  unsure %+5.0f, lease until %+5.0f, next grant %+6.0f"
              % (name, unsure, deadline, next_grant), flush=True)
        assert 0 < unsure < deadline < next_grant
        return next_grant - deadline

    def end(self):
        assert self.holder.wait_for_event("lost").err == "SESSION_EXPIRED"
        self.holder.submit("release").fails("LOST")
        self.waiter.release()
        self.holder_client.free()
        self.waiter_client.do("close")


def check_separations(mode, assurances):
    """Separate the server in this mode, to which holders with these assurances
    are connected."""
    gaps = []
    for number in range(SEPARATIONS):
        three.zk.wait()
        leader = eventually(three.zk.leader)
        server = leader if mode == "leader" else three.zk.follower()
        with Worker() as holder_process, Worker() as waiter_process:
            client = waiter_process.client(three.connect, timeout=LONG)
            directory = client.create("/lease-", flags=SEQUENTIAL).path
            pairs = [Pair(holder_process, waiter_process, server, assurance,
                          directory) for assurance in assurances]
            for pair in pairs:
                pair.begin()
            # Wait until the newest proof of the session is a heartbeat.
            time.sleep(random.uniform(2, 4) * HEARTBEAT_INTERVAL_S)
            for pair in pairs:
                assert pair.holder.inspect().state == "held"
                assert not pair.holder.lines_like("lock", "unsure")
            separated_at = boottime()
            three.cut_off(server)
            print("  %s %d is separated, %d of %d" % (
                mode, server, number + 1, SEPARATIONS))
            gaps += filter(None, [pair.check(separated_at) for pair in pairs])
            three.heal()
            for pair in pairs:
                pair.end()
    print("  %d separations; at least %.0f ms from a lease deadline to the next "
          "grant" % (SEPARATIONS, min(gaps)))


def holders_at_a_separated_follower_become_unsure_in_time():
    check_separations("follower", [QUORUM, QUORUM, QUORUM, SYNC, PING])


def holders_at_a_separated_leader_become_unsure_in_time():
    check_separations("leader", [QUORUM] * 4)


def holders_stay_sure_while_servers_are_restarted_in_turn():
    with Worker() as worker:
        holders = []
        for n in (1, 2, 3):
            client = worker.client(three.zk.connect, timeout=LONG)
            lock = client.lock("/sure/%d" % n)
            lock.acquire()
            holders.append((client, lock))
        began = boottime()
        shortest_lease_ms = LONG
        for _ in range(RESTART_ROUNDS):
            for n in (1, 2, 3):
                three.zk.restart(n)
                three.zk.wait()
                eventually(three.zk.leader)
                time.sleep(1)
                for client, lock in holders:
                    now = lock.inspect()
                    assert now.ok, now
                    shortest_lease_ms = min(shortest_lease_ms,
                                            now.deadline - now.at)
        for client, lock in holders:
            for word in ("unsure", "lost"):
                assert not lock.lines_like("lock", word), lock.lines
            suspended = len(lock.lines_like("lock", "suspended", since=began))
            print("  suspended %d times, never unsure" % suspended)
            lock.release()
            client.do("close")
        print("  %d rounds of restarts; the shortest lease was %.1f s" %
              (RESTART_ROUNDS, shortest_lease_ms / 1000))


with live.Ensemble("--tick", "1000", "--init-limit", "5",
                   "--sync-limit", "10") as three:
    live.run(
        holders_at_a_separated_follower_become_unsure_in_time,
        holders_at_a_separated_leader_become_unsure_in_time,
        holders_stay_sure_while_servers_are_restarted_in_turn,
    )
