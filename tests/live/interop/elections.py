# SPDX-License-Identifier: Apache-2.0
"""Candidates of latchkey in the elections of Curator and kazoo, both ways:
LeaderLatch, LeaderSelector and Election."""

import sys
from concurrent import futures

sys.path.append(sys.path[0] + "/../support")

import contests
import driver
import live
from live import eventually

SESSION_MS = 4000
WAIT_MS = 30000


def wait_for_roster(observer, *ids):
    """Wait until the roster of an election has these candidates, the leader
    first."""
    def found():
        line = observer.lines_like("roster")[-1]
        return [bytes.fromhex(name.partition(":")[2]).decode()
                for name in line.names] == list(ids)
    eventually(found, "the roster has %s" % (ids,))


# ---- tests: each is run in the elections of each library

def both_lead_in_turns_and_see_each_other(run, path, begin, ours, theirs):
    observer = run.direct.roster(path, layout=contests.ELECTIONS[run.recipe])
    assert ours.acquire(WAIT_MS)
    first_term = ours.term
    theirs_leads = begin(theirs)
    assert theirs.participants() == ["ours=leader", "theirs=candidate"]
    wait_for_roster(observer, "ours", "theirs")
    assert not theirs_leads.done()
    ours.lock.resign()
    ours.lock.wait_for_event("deposed", err="0")
    assert theirs_leads.result()
    ours_leads = begin(ours)
    assert theirs.participants() == ["theirs=leader", "ours=candidate"]
    wait_for_roster(observer, "theirs", "ours")
    assert ours.lock.facts().state == "waiting"
    theirs.release()
    assert ours_leads.result()
    assert ours.term > first_term
    ours.lock.free()
    eventually(lambda: not run.queue_nodes())


def dead_leader_is_followed_by_the_other_library(run, path, begin, ours,
                                                 theirs):
    assert ours.acquire(WAIT_MS)
    theirs_leads = begin(theirs)
    ours.host.kill()
    assert theirs_leads.result()
    ours.host.start()
    ours.open()
    ours_leads = begin(ours)
    theirs.host.kill()
    assert ours_leads.result()
    ours.release()


def in_each_election(test):
    def run_election(run):
        path = run.path("l", 1, persistent=True)
        ours, theirs = rivals = contests.candidates(
            run, path, "theirs", data=b"ours", persistent=True)
        for rival in rivals:
            rival.open()
        with futures.ThreadPoolExecutor() as pool:
            def begin(rival):
                """Take part as the second; gives the future of whether it
                leads."""
                leads = pool.submit(rival.acquire, WAIT_MS)
                eventually(lambda: len(run.queue_nodes()) == 2)
                return leads
            test(run, path, begin, ours, theirs)

    def run_test():
        for name in contests.ELECTIONS:
            run = driver.Run(zk, session_ms=SESSION_MS)
            try:
                run.make(run_election, name)
            finally:
                run.close()
    run_test.__name__ = test.__name__
    return run_test


with live.zkserver.Server() as zk:
    live.run(*map(in_each_election,
                  (both_lead_in_turns_and_see_each_other,
                   dead_leader_is_followed_by_the_other_library)))
sys.exit(0)
