# SPDX-License-Identifier: Apache-2.0
"""Elections, groups and rosters under faults, on a real server: connections
break at each frame, sessions expire, and other clients delete nodes. What each
operation costs is counted on the wire."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks
from live import eventually
from relay import (CHILDREN, CREATE2, CREATE_CONTAINER, DELETE, DOWN, EVENT,
                   EXISTS, GET, MULTI, PING, REMOVE_WATCHES, SET, UP, Relay)
from worker import LATCH, SEQUENTIAL, Worker

LONG = 30000    # session timeouts in ms
MEDIUM = 10000
SHORT = 4000


class Pair:
    """The client `direct`, and the client `tested` behind a relay, with a new
    directory."""

    def __init__(self, worker, wire, timeout=MEDIUM):
        self.direct = worker.client(zk.connect, timeout=LONG)
        self.tested = worker.client(wire.address, timeout=timeout)
        self.direct.wait_for_state("connected")
        self.tested.wait_for_state("connected")
        self.path = self.direct.create("/leaders-", flags=SEQUENTIAL).path

    def names(self):
        return locks.names(self.direct, self.path)

    def candidate(self, client, data=b""):
        return client.candidate(self.path, layout=LATCH, data=data)


def with_pair(timeout=MEDIUM):
    def wrap(test):
        def run_test(*args):
            with Relay(zk.connect) as wire, Worker() as worker:
                test(Pair(worker, wire, timeout), wire, *args)
        run_test.__name__ = test.__name__
        return run_test
    return wrap


def at_each_frame(frames):
    """Run the test with a connection that breaks at each of these frames:
    (direction, opcode, the n-th of it)."""
    def wrap(test):
        def run_test():
            for frame in frames:
                try:
                    with Relay(zk.connect) as wire, Worker() as worker:
                        test(Pair(worker, wire), wire, frame)
                except Exception:
                    print("%s: at %s" % (test.__name__, frame))
                    raise
        run_test.__name__ = test.__name__
        return run_test
    return wrap


def cut_at(wire, frame):
    up, op, count = frame
    return wire.at_frame("cut", up=up, op=op, count=count)


def arrived_together(frames):
    return len({(f.connection, f.read) for f in frames}) == 1


# ---- elections

def check_leader(pair, candidate):
    elected = candidate.wait_for_event("elected")
    facts = candidate.facts()
    assert facts.state == "leading" and facts.ok and facts.term == elected.term
    node = pair.direct.do("get", path=facts.node, repeat=1)
    assert node.czxid == elected.term
    assert node.owner == pair.tested.facts().session


@at_each_frame([(UP, CREATE2, 1), (DOWN, CREATE2, 1), (UP, CHILDREN, 1),
                (DOWN, CHILDREN, 1)])
def candidate_is_elected_though_the_connection_breaks(pair, wire, frame):
    candidate = pair.candidate(pair.tested)
    trap = cut_at(wire, frame)
    candidate.start()
    trap.wait()
    check_leader(pair, candidate)
    assert len(pair.names()) == 1
    candidate.resign()
    eventually(lambda: not pair.names())


@at_each_frame([(UP, CREATE2, 1), (DOWN, CREATE2, 1),
                (UP, CREATE_CONTAINER, 1), (DOWN, CREATE_CONTAINER, 1),
                (UP, CREATE2, 2), (DOWN, CREATE2, 2)])
def first_candidate_makes_the_directory_though_the_connection_breaks(
        pair, wire, frame):
    pair.path += "/election"
    candidate = pair.candidate(pair.tested)
    trap = cut_at(wire, frame)
    candidate.start()
    trap.wait()
    check_leader(pair, candidate)
    assert len(pair.names()) == 1


@at_each_frame([(UP, MULTI, 1), (DOWN, MULTI, 1), (UP, GET, 1), (DOWN, GET, 1)])
def leader_keeps_its_term_over_a_reconnect(pair, wire, frame):
    leader = pair.candidate(pair.tested)
    leader.start()
    elected = leader.wait_for_event("elected")
    successor = pair.candidate(pair.direct)
    successor.start()
    trap = cut_at(wire, frame)  # of a heartbeat
    trap.wait()
    mark = wire.mark()
    eventually(lambda: MULTI in wire.ops(mark), "the next heartbeat")
    facts = leader.facts()
    assert facts.state == "leading" and facts.term == elected.term, facts
    assert successor.facts().state == "waiting"


def wait_for_reads(wire):
    """A candidate in the queue reads its own node and the one before, to watch
    them: wait for both replies."""
    eventually(lambda: [f.op for f in wire.frames_since()
                        if not f.up].count(GET) >= 2, "two nodes are watched")


def waiting_candidate(pair, wire):
    """A leader, and a candidate that watches its node."""
    leader = pair.candidate(pair.direct)
    leader.start()
    leader.wait_for_event("elected")
    candidate = pair.candidate(pair.tested)
    candidate.start()
    wait_for_reads(wire)
    return leader, candidate


@at_each_frame([(UP, CREATE2, 1), (DOWN, CREATE2, 1), (UP, CHILDREN, 1),
                (DOWN, CHILDREN, 1), (UP, GET, 1), (DOWN, GET, 1)])
def candidate_waits_though_the_connection_breaks(pair, wire, frame):
    leader = pair.candidate(pair.direct)
    leader.start()
    leader.wait_for_event("elected")
    trap = cut_at(wire, frame)
    candidate = pair.candidate(pair.tested)
    candidate.start()
    trap.wait()
    eventually(lambda: len(pair.names()) == 2)
    leader.resign()
    check_leader(pair, candidate)
    assert len(pair.names()) == 1


@at_each_frame([(DOWN, EVENT, 1)])
def successor_is_elected_though_its_event_is_lost(pair, wire, frame):
    leader, candidate = waiting_candidate(pair, wire)
    trap = cut_at(wire, frame)
    leader.resign()
    trap.wait()
    check_leader(pair, candidate)


@at_each_frame([(UP, CHILDREN, 1), (DOWN, CHILDREN, 1)])
def successor_lists_the_queue_again_after_each_reconnect(pair, wire, frame):
    leader, candidate = waiting_candidate(pair, wire)
    trap = cut_at(wire, frame)
    wire.drop()
    trap.wait()
    leader.resign()
    check_leader(pair, candidate)


@at_each_frame([(UP, DELETE, 1), (DOWN, DELETE, 1)])
def resignation_is_not_lost_with_the_connection(pair, wire, frame):
    candidate = pair.candidate(pair.tested)
    candidate.start()
    candidate.wait_for_event("elected")
    successor = pair.candidate(pair.direct)
    successor.start()
    trap = cut_at(wire, frame)
    candidate.resign()
    candidate.wait_for_event("deposed", err="0")
    trap.wait()
    successor.wait_for_event("elected")
    assert len(pair.names()) == 1


@with_pair(SHORT)
def expired_leader_stops_before_the_next_one_leads(pair, wire):
    leader = pair.candidate(pair.tested)
    leader.start()
    first = leader.wait_for_event("elected")
    successor = pair.candidate(pair.direct)
    successor.start()
    wire.refuse()
    wire.drop()
    unsure = leader.wait_for_event("unsure")
    second = successor.wait_for_event("elected")
    assert unsure.at < second.at and first.term < second.term
    assert not leader.facts().ok
    wire.accept()
    leader.wait_for_event("deposed", err="SESSION_EXPIRED")
    eventually(lambda: len(pair.names()) == 2, "it takes part again")
    successor.resign()
    third = leader.wait_for_event("elected")
    assert third.term > second.term


@with_pair()
def deposed_leader_takes_part_again(pair, wire):
    leader = pair.candidate(pair.tested)
    leader.start()
    first = leader.wait_for_event("elected")
    # The own node is watched after the first heartbeat.
    eventually(lambda: wire.ops().count(GET) >= 1)
    (name,) = pair.names()
    pair.direct.do("delete", path=pair.path + "/" + name)
    leader.wait_for_event("deposed", err="NO_NODE")
    second = leader.wait_for_event("elected")
    assert second.term > first.term


@with_pair()
def deleted_directory_is_made_again(pair, wire):
    pair.path += "/election"
    leader = pair.candidate(pair.tested)
    leader.start()
    first = leader.wait_for_event("elected")
    waiting = pair.candidate(pair.direct)
    waiting.start()
    # Both nodes are watched, the leader's after its first heartbeat.
    eventually(lambda: wire.ops().count(GET) >= 1)

    def delete_all():
        for name in pair.names():
            pair.direct.submit("delete", path=pair.path + "/" + name).result()
        return pair.direct.submit("delete", path=pair.path).result().err == "0"
    eventually(delete_all, "the directory is deleted")
    leader.wait_for_event("deposed", err="NO_NODE")
    eventually(lambda: len(pair.names()) == 2, "both take part again")

    def leaders():
        return [c for c in (leader, waiting) if c.facts().state == "leading"]
    (second,) = eventually(leaders, "one of them leads")
    assert second.facts().term > first.term
    second.resign()
    eventually(lambda: leaders() and leaders() != [second], "the other leads")


@with_pair()
def election_costs_one_write_and_one_list(pair, wire):
    candidate = pair.candidate(pair.tested)
    mark = wire.mark()
    candidate.start()
    candidate.wait_for_event("elected")
    assert wire.ops(mark)[:2] == [CREATE2, CHILDREN], wire.ops(mark)
    assert arrived_together(wire.requests(mark)[:2])
    assert [op for op in wire.ops(mark) if op in (CREATE2, DELETE)] == [CREATE2]


@with_pair()
def successor_leads_after_one_event_without_a_request(pair, wire):
    leader, candidate = waiting_candidate(pair, wire)
    mark = wire.mark()
    leader.resign()
    elected = candidate.wait_for_event("elected")
    frames = [f for f in wire.frames_since(mark) if f.op != PING]
    assert frames[0].op == EVENT, frames
    # What the leader sends later renews its lease and watches its node.
    writes = [f for f in frames if f.up and f.op in (CREATE2, DELETE, CHILDREN)]
    assert not writes, (elected, frames)


@with_pair()
def resignation_wakes_the_successor_only(pair, wire):
    leader, second = pair.candidate(pair.direct), pair.candidate(pair.direct)
    leader.start()
    leader.wait_for_event("elected")
    second.start()
    eventually(lambda: len(pair.names()) == 2, "the second is in the queue")
    third = pair.candidate(pair.tested)
    third.start()
    wait_for_reads(wire)
    mark = wire.mark()
    leader.resign()
    second.wait_for_event("elected")
    # The reply to this read comes behind any event.
    pair.tested.do("get", path=pair.path)
    assert EVENT not in [f.op for f in wire.frames_since(mark)]
    assert CHILDREN not in wire.ops(mark)


# ---- groups

def check_member(pair, name, data):
    def node():
        found = pair.direct.submit("get", path=pair.path + "/" + name).result()
        return found.err == "0" and found.data == data and \
            found.owner == pair.tested.facts().session
    eventually(node, "the node of " + name)


@at_each_frame([(UP, CREATE2, 1), (DOWN, CREATE2, 1), (UP, GET, 1),
                (DOWN, GET, 1)])
def member_joins_though_the_connection_breaks(pair, wire, frame):
    member = pair.tested.member(pair.path, id="m", data=b"data")
    trap = cut_at(wire, frame)
    member.join()
    trap.wait()
    member.wait_for_event("joined")
    check_member(pair, "m", b"data")
    member.leave()
    member.wait_for_event("left", err="0")
    eventually(lambda: not pair.names())


@at_each_frame([(UP, DELETE, 1), (DOWN, DELETE, 1)])
def leave_is_not_lost_with_the_connection(pair, wire, frame):
    member = pair.tested.member(pair.path, id="m")
    member.join()
    member.wait_for_event("joined")
    trap = cut_at(wire, frame)
    member.leave()
    trap.wait()
    eventually(lambda: not pair.names())


@at_each_frame([(UP, SET, 1), (DOWN, SET, 1), (DOWN, EVENT, 1)])
def data_are_written_though_the_connection_breaks(pair, wire, frame):
    member = pair.tested.member(pair.path, id="m", data=b"1")
    member.join()
    member.wait_for_event("joined")
    # The event comes after the node is watched.
    eventually(lambda: [f.op for f in wire.frames_since()
                        if not f.up].count(GET) == 1)
    trap = cut_at(wire, frame)
    member.do("data", data=b"2")
    trap.wait()
    check_member(pair, "m", b"2")


@with_pair(SHORT)
def expired_member_joins_again(pair, wire):
    member = pair.tested.member(pair.path, id="m", data=b"data")
    member.join()
    member.wait_for_event("joined")
    roster = pair.direct.roster(pair.path)
    roster.wait_for([("m", b"data")])
    wire.refuse()
    wire.drop()
    roster.wait_for([])
    wire.accept()
    member.wait_for_event("left", err="SESSION_EXPIRED")
    member.wait_for_event("joined")
    roster.wait_for([("m", b"data")])


@with_pair()
def data_of_another_client_are_replaced(pair, wire):
    member = pair.tested.member(pair.path, id="m", data=b"data")
    member.join()
    member.wait_for_event("joined")
    eventually(lambda: wire.ops().count(GET) == 1)
    pair.direct.do("set", path=pair.path + "/m", data=b"other")
    check_member(pair, "m", b"data")


@with_pair()
def join_costs_one_write_and_one_read(pair, wire):
    member = pair.tested.member(pair.path, id="m")
    mark = wire.mark()
    member.join()
    member.wait_for_event("joined")
    eventually(lambda: wire.ops(mark) == [CREATE2, GET], "two requests")


@with_pair()
def missing_directory_costs_two_round_trips_more(pair, wire):
    member = pair.tested.member(pair.path + "/group", id="m")
    mark = wire.mark()
    member.join()
    member.wait_for_event("joined")
    eventually(lambda: wire.ops(mark) == [CREATE2, CREATE_CONTAINER, CREATE2,
                                          GET], "four requests")


@with_pair()
def write_after_a_reconnect_follows_a_transaction_and_a_read(pair, wire):
    member = pair.tested.member(pair.path, id="m")
    member.join()
    member.wait_for_event("joined")
    eventually(lambda: wire.ops().count(GET) == 1)
    mark = wire.mark()
    wire.drop()
    member.do("data", data=b"2")
    check_member(pair, "m", b"2")
    found = [op for op in wire.ops(mark) if op in (MULTI, EXISTS, SET)]
    assert found == [MULTI, EXISTS, SET], found


@with_pair()
def joined_member_sends_nothing_but_pings(pair, wire):
    member = pair.tested.member(pair.path, id="m")
    member.join()
    member.wait_for_event("joined")
    eventually(lambda: wire.ops().count(GET) == 1)
    mark = wire.mark()
    time.sleep(MEDIUM / 1000 / 2)
    assert not wire.ops(mark), wire.ops(mark)


# ---- rosters

@at_each_frame([(UP, CHILDREN, 1), (DOWN, CHILDREN, 1), (UP, GET, 1),
                (UP, GET, 2), (DOWN, GET, 1), (DOWN, GET, 2)])
def roster_is_reported_though_the_connection_breaks(pair, wire, frame):
    for name in "ab":
        pair.direct.create(pair.path + "/" + name, data=b"1")
    trap = cut_at(wire, frame)
    roster = pair.tested.roster(pair.path)
    trap.wait()
    roster.wait_for([("a", b"1"), ("b", b"1")])
    pair.direct.do("set", path=pair.path + "/b", data=b"2")
    roster.wait_for([("a", b"1"), ("b", b"2")])


@at_each_frame([(DOWN, EVENT, 1), (UP, CHILDREN, 1), (UP, GET, 1),
                (DOWN, GET, 1)])
def change_of_a_roster_is_reported_though_the_connection_breaks(pair, wire,
                                                                frame):
    pair.direct.create(pair.path + "/a", data=b"1")
    roster = pair.tested.roster(pair.path)
    roster.wait_for([("a", b"1")])
    trap = cut_at(wire, frame)
    pair.direct.create(pair.path + "/b", data=b"1")
    trap.wait()
    roster.wait_for([("a", b"1"), ("b", b"1")])


@with_pair()
def roster_reads_what_has_changed(pair, wire):
    entries = [("a", b"1"), ("b", b"1")]
    for name, data in entries:
        pair.direct.create(pair.path + "/" + name, data=data)

    def expect(*ops):
        """Wait for the roster, and check the requests that it has cost."""
        nonlocal mark
        roster.wait_for(entries)
        requests = wire.requests(mark)
        assert [f.op for f in requests] == list(ops), requests
        mark = wire.mark()
        return requests
    mark = wire.mark()
    roster = pair.tested.roster(pair.path)
    assert arrived_together(expect(CHILDREN, GET, GET)[1:])
    entries.append(("c", b"1"))
    pair.direct.create(pair.path + "/c", data=b"1")
    expect(CHILDREN, GET)
    entries[1] = "b", b"2"
    pair.direct.do("set", path=pair.path + "/b", data=b"2")
    expect(GET)
    wire.drop()
    entries[0] = "a", b"2"
    pair.direct.do("set", path=pair.path + "/a", data=b"2")
    roster.wait_for(entries)
    reads = [op for op in wire.ops(mark) if op in (CHILDREN, GET)]
    assert reads[:4] == [CHILDREN, GET, GET, GET], reads
    mark = wire.mark()
    roster.free()
    eventually(lambda: wire.ops(mark).count(REMOVE_WATCHES) == 4,
               "the watches of the directory and of three children")


with live.zkserver.Server("--tick", "200") as zk:
    live.run(live.together(
        candidate_is_elected_though_the_connection_breaks,
        first_candidate_makes_the_directory_though_the_connection_breaks,
        leader_keeps_its_term_over_a_reconnect,
        candidate_waits_though_the_connection_breaks,
        successor_is_elected_though_its_event_is_lost,
        successor_lists_the_queue_again_after_each_reconnect,
        resignation_is_not_lost_with_the_connection,
        expired_leader_stops_before_the_next_one_leads,
        deposed_leader_takes_part_again,
        deleted_directory_is_made_again,
        election_costs_one_write_and_one_list,
        successor_leads_after_one_event_without_a_request,
        resignation_wakes_the_successor_only,
        member_joins_though_the_connection_breaks,
        leave_is_not_lost_with_the_connection,
        data_are_written_though_the_connection_breaks,
        expired_member_joins_again,
        data_of_another_client_are_replaced,
        join_costs_one_write_and_one_read,
        missing_directory_costs_two_round_trips_more,
        write_after_a_reconnect_follows_a_transaction_and_a_read,
        joined_member_sends_nothing_but_pings,
        roster_is_reported_though_the_connection_breaks,
        change_of_a_roster_is_reported_though_the_connection_breaks,
        roster_reads_what_has_changed))
