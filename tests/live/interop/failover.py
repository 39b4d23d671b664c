# SPDX-License-Identifier: Apache-2.0
"""How long an election has no leader, beside Curator's LeaderLatch in the same
run: failover.py [--kills=N] [--cuts=N]

Three candidates of each library, each in a process of its own and at one of
three servers. N times [1] the leaders of both elections are killed with kill -9,
at a random time after their election; N times [1] their server is cut off from
the other two. A leader's period ends when it is killed, at its lease deadline,
or when it is deposed before; Curator's latch knows no lease, so its period ends
with notLeader(). No two periods of latchkey's election may overlap, and no
leader may begin before the lease deadline of one that was killed; overlaps of
Curator's are counted.
"""

import random
import statistics
import sys
import threading
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks
import versions
from curator import Curator
from live import eventually
from worker import LATCH, Worker, boottime

SESSION_MS = 4000
# The age of the last message of a leader decides when its session expires. So
# leaders live for a random time, up to this one, before they are killed.
MAX_TERM_S = 2
SERVERS = 3
WAIT_S = 60


class Participant:
    """A candidate in a process of its own, at one server. `changes` are pairs of
    a time in ms and whether it leads from then on."""

    def __init__(self, election, server):
        self.election = election
        self.server = server
        self.killed_at = None
        self.lease_at_kill = 0  # the last lease deadline of a killed leader

    def leads(self):
        changes = self.changes()
        return self.killed_at is None and bool(changes) and changes[-1][1]

    def periods(self):
        """Pairs of begin and end; the end of a period that lasts is None."""
        periods = []
        for at, leads in self.changes():
            if not leads:
                if periods and (periods[-1][1] is None or at < periods[-1][1]):
                    periods[-1][1] = at
            elif periods and periods[-1][1] is not None and at <= periods[-1][1]:
                periods[-1][1] = None  # renewed before the deadline
            else:
                periods.append([at, None])
        if periods and periods[-1][1] is None:
            periods[-1][1] = self.killed_at
        return periods

    def kill(self):
        self.lease_at_kill = self.lease_deadline()
        self.kill_process()
        self.killed_at = boottime()


class Ours(Participant):
    name = "latchkey"
    may_overlap = False
    LEADS = {"elected": True, "renewed": True, "unsure": False, "deposed": False}

    def __init__(self, election, server):
        super().__init__(election, server)
        self.worker = Worker()
        client = self.worker.client(ensemble.client_relays[server].address,
                                    timeout=SESSION_MS)
        self.candidate = client.candidate(election.path, layout=LATCH)
        self.candidate.start()

    def changes(self):
        return [(line.deadline if line.word == "unsure" else line.at,
                 self.LEADS[line.word])
                for line in self.candidate.lines_like("candidate")
                if line.word in self.LEADS]

    def lease_deadline(self):
        return self.candidate.facts().deadline

    def hand_over(self):
        self.candidate.resign()
        self.candidate.start()

    def kill_process(self):
        self.worker.kill()

    def close(self):
        self.worker.close()


class Theirs(Participant):
    name = "Curator"
    may_overlap = True

    def __init__(self, election, server):
        super().__init__(election, server)
        self.java = Curator()
        client = self.java.client(ensemble.client_relays[server].address,
                                  SESSION_MS)
        self.latch = self.java.lock("latch", client, election.path, "theirs")
        self.noted = []
        self.java.on_line[self.latch] = lambda word: self.noted.append(
            (boottime(), word == "leader"))
        self.begin()

    def begin(self):
        self.java.submit("acquire", self.latch, 10 ** 8)

    def changes(self):
        return list(self.noted)

    def lease_deadline(self):
        return 0

    def hand_over(self):
        # A latch that is closed does not notify its listener.
        self.noted.append((boottime(), False))
        self.java.do("release", self.latch)
        self.begin()

    def kill_process(self):
        self.java.kill()

    def close(self):
        self.java.close()


KILLED = "killed with kill -9"
FOLLOWER_CUT = "server cut off, a follower"
LEADER_CUT = "server cut off, their leader"
FAILURES = (KILLED, FOLLOWER_CUT, LEADER_CUT)


class Election:
    """The candidates of one library."""

    def __init__(self, kind):
        self.kind = kind
        self.path = "/failover/" + kind.name
        self.all = []
        self.gaps = {how: [] for how in FAILURES}   # in s
        self.led_on = {how: [] for how in FAILURES}  # after the failure, in s
        for server in range(1, SERVERS + 1):
            self.all.append(kind(self, server))
            eventually(lambda: self.count_nodes() == len(self.all))

    def living(self):
        return [p for p in self.all if p.killed_at is None]

    def count_nodes(self):
        return len(locks.names(observer, self.path))

    def leader(self, after=-1.0):
        """The candidate that leads in a period that began later than `after`."""
        def find():
            return next((p for p in self.living() if p.leads() and
                         p.periods()[-1][0] > after), None)
        return eventually(find, "a leader of " + self.path, WAIT_S)

    def lead_at(self, server):
        """Have the candidate at this server lead."""
        while (leader := self.leader()).server != server:
            leader.hand_over()
            eventually(lambda: not leader.leads())

    def note_gap(self, how, old, since):
        """Wait for the leader after `old`, and note the time without one."""
        new = self.leader(since)
        begin = next(p[0] for p in new.periods() if p[0] > since)

        def end():
            return [p[1] for p in old.periods() if p[0] < begin][-1]
        if self.kind.may_overlap:
            limit = time.monotonic() + 10
            while end() is None and time.monotonic() < limit:
                time.sleep(.05)
        else:
            safe_until = max(end() or boottime(), old.lease_at_kill)
            assert safe_until <= begin, (
                "%s: two leaders: one until %.3f, the next from %.3f ms on" %
                (self.path, safe_until, begin))
        ended = end() or boottime()
        self.gaps[how].append((begin - ended) / 1000)
        self.led_on[how].append((ended - since) / 1000)

    def replace(self, dead):
        self.all.append(self.kind(self, dead.server))
        eventually(lambda: self.count_nodes() == SERVERS, seconds=WAIT_S)

    def count_overlaps(self):
        """How many periods there were, and how many of them began before the one
        before had ended."""
        periods = sorted((p for each in self.all for p in each.periods()),
                         key=lambda period: period[0])
        overlaps = sum(end is None or end > begin for (_, end), (begin, _)
                       in zip(periods, periods[1:]))
        assert not overlaps or self.kind.may_overlap, periods
        return len(periods), overlaps

    def close(self):
        for each in self.living():
            each.close()


def in_parallel(elections, function):
    """Call it for each election at the same time."""
    errors = []

    def call(each):
        try:
            function(each)
        except Exception as error:  # re-raised below
            errors.append(error)
    threads = [threading.Thread(target=call, args=(e,)) for e in elections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def kill_leader(election):
    old = election.leader()
    time.sleep(random.uniform(0, MAX_TERM_S))
    old.kill()
    election.note_gap(KILLED, old, old.killed_at)
    election.replace(old)


def cut_off_leaders(elections, server):
    leaders = []
    for election in elections:
        election.lead_at(server)
        leaders.append(election.leader())
    how = LEADER_CUT if ensemble.zk.leader() == server else FOLLOWER_CUT
    cut_at = boottime()
    ensemble.cut_off(server)
    try:
        for election, old in zip(elections, leaders):
            election.note_gap(how, old, cut_at)
    finally:
        ensemble.heal()
    eventually(ensemble.zk.follower, "a quorum of all servers", WAIT_S)
    for election in elections:
        eventually(lambda e=election: e.count_nodes() == SERVERS,
                   seconds=WAIT_S)
        election.leader()


def print_gaps(elections):
    print(versions.line("ZooKeeper", "Curator"))
    print("in s                           times  led on: median  most  "
          "no leader: least median   most")
    for how in FAILURES:
        for election in elections:
            gaps, led_on = election.gaps[how], election.led_on[how]
            if gaps:
                print("%-28s %-8s %3d %8.2f %5.2f %11.2f %6.2f %6.2f" % (
                    how, election.kind.name, len(gaps),
                    statistics.median(led_on), max(led_on), min(gaps),
                    statistics.median(gaps), max(gaps)))


def leaders_follow_each_other(kills, cuts):
    elections = [Election(Ours), Election(Theirs)]
    for i in range(kills):
        in_parallel(elections, kill_leader)
    for i in range(cuts):
        cut_off_leaders(elections, i % SERVERS + 1)
    print_gaps(elections)
    for election in elections:
        print("%s: %d periods, %d began before the one before had ended" % (
            election.kind.name, *election.count_overlaps()))
        election.close()


with live.Ensemble("--tick", "400") as ensemble, Worker() as watcher:
    observer = watcher.client(ensemble.connect, timeout=30000)

    def failover():
        leaders_follow_each_other(live.option("kills", 1),
                                  live.option("cuts", 1))
    live.run(failover)
