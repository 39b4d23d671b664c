# SPDX-License-Identifier: Apache-2.0
"""Members of latchkey in the groups of Curator and kazoo, both ways: GroupMember
and Party. Members that die leave the group with their session."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks
from curator import Curator
from live import eventually
from relay import Relay
from worker import Worker, boottime

try:
    import kazoo.client
    import kazoo.recipe.party
except ImportError:
    live.missing("there is no kazoo (Debian: python3-kazoo)")
import kazoos  # noqa: F401 - quiets kazoo's log

SESSION_MS, TICK_MS = 4000, 1000


def members_of_curator_and_of_latchkey_see_each_other():
    path = "/members/curator"
    with Curator() as java, Worker() as worker:
        client = worker.client(server.connect, timeout=SESSION_MS)
        theirs = java.lock("member", java.client(server.connect, SESSION_MS),
                           path, "theirs", "java")
        java.do("acquire", theirs, 0)
        ours = client.member(path, id="ours", data=b"c")
        ours.join()
        ours.wait_for_event("joined")
        eventually(lambda: java.do("nodes", theirs) == "ours=c,theirs=java")
        roster = client.roster(path)
        roster.wait_for([("ours", b"c"), ("theirs", b"java")])
        ours.do("data", data=b"new")
        eventually(lambda: java.do("nodes", theirs) == "ours=new,theirs=java")
        roster.wait_for([("ours", b"new"), ("theirs", b"java")])
        ours.leave()
        # Curator lists its own member in any case.
        eventually(lambda: java.do("nodes", theirs) == "theirs=java")
        java.do("release", theirs)
        roster.wait_for([])


def members_of_kazoo_and_of_latchkey_see_each_other():
    path = "/members-kazoo"
    with Worker() as worker:
        client = worker.client(server.connect, timeout=SESSION_MS)
        kz = kazoo.client.KazooClient(server.connect,
                                      timeout=SESSION_MS / 1000)
        kz.start(30)
        try:
            party = kazoo.recipe.party.Party(kz, path, "theirs")
            party.join()
            ours = client.member(path, data=b"ours", persistent=True)
            ours.join()
            ours.wait_for_event("joined")
            assert sorted(party) == ["ours", "theirs"]
            roster = client.roster(path)
            line = roster.wait("roster", count=2)
            assert sorted(bytes.fromhex(name.split(":")[1])
                          for name in line.names) == [b"ours", b"theirs"]
            ours.leave()
            roster.wait("roster", count=1)
            assert list(party) == ["theirs"]
            party.leave()
            roster.wait_for([])
        finally:
            kz.stop()
            kz.close()


def dead_member_leaves_with_its_session_and_living_ones_come_back():
    path = "/members/deaths"
    with Worker() as worker, Relay(server.connect) as wire:
        client = worker.client(server.connect, timeout=locks.LONG)
        roster = client.roster(path)
        living = worker.client(wire.address, timeout=SESSION_MS)
        member = living.member(path, id="living", data=b"1")
        member.join()
        with Worker() as doomed:
            dead = doomed.client(server.connect, timeout=SESSION_MS)
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


with locks.serve("--tick", str(TICK_MS)) as server:
    live.run(members_of_curator_and_of_latchkey_see_each_other,
             members_of_kazoo_and_of_latchkey_see_each_other,
             dead_member_leaves_with_its_session_and_living_ones_come_back)
sys.exit(0)
