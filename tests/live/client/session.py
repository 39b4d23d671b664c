# SPDX-License-Identifier: Apache-2.0
"""One server: a session across broken connections, and its expiry."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import relay
import zkserver
from live import eventually
from worker import EPHEMERAL, EPHEMERAL_SEQUENTIAL, SEQUENTIAL, Worker, \
    boottime
from relay import Relay

T = 4000  # the session timeout


def on_relay(test):
    """Run the test with a client `tested` behind a relay, and a client `direct`
    without a relay."""
    def with_them():
        with Relay(zk.connect) as wire, Worker() as worker:
            tested = worker.client(wire.address, timeout=T)
            direct = worker.client(zk.connect, timeout=T)
            tested.wait_for_state("connected")
            direct.wait_for_state("connected")
            base = direct.create("/test-", flags=SEQUENTIAL).path
            test(wire, worker, tested, direct, base)
            tested.submit("close").result()
            direct.create(base + "/end")  # `direct` may still be connecting
            direct.do("close")
    with_them.__name__ = test.__name__
    return with_them


def same_session(client, before):
    now = client.facts()
    assert now.session == before.session, (before, now)
    return now


# ---- connections that break

@on_relay
def client_reconnects_after_a_broken_connection(wire, worker, tested, direct,
                                                base):
    before = tested.facts()
    tested.create(base + "/mine", flags=EPHEMERAL)
    wire.drop()
    tested.wait_for_state("suspended")
    tested.wait_for_state("connected")
    after = same_session(tested, before)
    assert after.connection == before.connection + 1
    assert direct.get(base + "/mine").owner == after.session


@on_relay
def xids_continue_after_a_reconnect(wire, worker, tested, direct, base):
    for _ in range(3):
        tested.do("sync", path="/")
        wire.drop()
        tested.wait_for_state("connected")
    tested.do("sync", path="/")
    xids = [f.xid for f in wire.requests()]
    assert xids == list(range(1, len(xids) + 1)), xids
    assert wire.accepted == 4


@on_relay
def write_without_reply_is_in_doubt(wire, worker, tested, direct, base):
    # The server receives no request, or half of one, and executes nothing. The
    # client cannot distinguish this from a lost reply.
    for action in ("cut", "tear"):
        wire.at_frame(action, op=relay.CREATE2)
        tested.submit("create", path=base + "/never").fails("IN_DOUBT")
        tested.wait_for_state("connected")
        direct.submit("exists", path=base + "/never").fails("NO_NODE")
    # The server executes the request, and the reply is lost as a whole or in
    # part.
    for action in ("cut", "tear"):
        wire.at_frame(action, up=False, op=relay.CREATE2)
        tested.submit("create", path=base + "/" + action).fails("IN_DOUBT")
        tested.wait_for_state("connected")
        assert direct.get(base + "/" + action)
    for action, up in (("cut", True), ("tear", True), ("cut", False),
                       ("tear", False)):
        wire.at_frame(action, up=up, op=relay.GET)
        tested.submit("get", path=base).fails("CONNECTION_LOSS")
        tested.wait_for_state("connected")
        wire.at_frame(action, up=up, op=relay.GET)
        tested.get(base, repeat=1)


@on_relay
def unsent_requests_end_with_not_sent(wire, worker, tested, direct, base):
    wire.freeze()
    pending = [tested.submit("create", path="%s/%d" % (base, n),
                             data=b"x" * 500000)
               for n in range(30)]
    tested.wait_for_state("suspended")
    wire.drop()
    wire.thaw()
    tested.wait_for_state("connected")
    ends = [a.fails("IN_DOUBT", "NOT_SENT").err for a in pending]
    # The first requests fitted into the socket buffers, so they are in doubt.
    # The others were not sent.
    assert ends == sorted(ends) and ends[-1] == "NOT_SENT", ends
    assert "IN_DOUBT" in ends, ends
    assert direct.children(base).count <= ends.count("IN_DOUBT")


@on_relay
def broken_handshake_is_repeated(wire, worker, tested, direct, base):
    session = tested.facts()
    for action in ("cut", "tear"):
        for up in (True, False):
            trap = wire.at_frame(action, up=up, op=relay.CONNECT)
            wire.drop()
            trap.wait()
            tested.wait_for_state("connected")
            same_session(tested, session)
            new = wire.at_frame(action, up=up, op=relay.CONNECT)
            third = worker.client(wire.address, timeout=T)
            new.wait()
            third.wait_for_state("connected")
            third.do("close")


@on_relay
def requests_on_a_slow_connection_keep_their_order(wire, worker, tested,
                                                   direct, base):
    wire.delay(60)
    pending = [tested.submit("create", path=base + "/n-", flags=EPHEMERAL_SEQUENTIAL)
               for _ in range(300)]
    names = [a.succeeds().path for a in pending]
    assert names == ["%s/n-%010d" % (base, n) for n in range(300)]


# ---- requests that wait, and end

@on_relay
def requests_wait_for_a_connection(wire, worker, tested, direct, base):
    wire.refuse()
    wire.drop()
    tested.wait_for_state("suspended")
    late = tested.submit("get", path=base, wait=300)
    waiting = tested.submit("create", path=base + "/waited")
    late.fails("DEADLINE")
    assert not waiting.is_done()
    wire.accept()
    waiting.succeeds()


@on_relay
def late_reply_is_ignored(wire, worker, tested, direct, base):
    zk.stop()
    pending = tested.submit("create", path=base + "/late", wait=200)
    read = tested.submit("get", path=base, wait=200, watch=1)
    pending.fails("DEADLINE")
    read.fails("DEADLINE")
    zk.cont()
    tested.do("set", path=base, data=b"1")
    assert tested.get(base).data == b"1"
    assert tested.facts().connection == 1
    # The create was executed; the watch of the timed-out read does not fire.
    assert direct.get(base + "/late")
    assert not tested.lines_like("event")


@on_relay
def close_without_a_server_ends_at_its_deadline(wire, worker, tested, direct,
                                                base):
    tested.create(base + "/mine", flags=EPHEMERAL)
    wire.freeze()
    began = boottime()
    end = tested.submit("close").fails("DEADLINE", "IN_DOUBT", "NOT_SENT")
    assert end.at - began < T / 2, end.at - began
    assert direct.get(base + "/mine")


# ---- watches

@on_relay
def watches_survive_a_reconnect(wire, worker, tested, direct, base):
    paths = {n: base + "/" + n for n in ("data", "gone", "dir", "calm")}
    for path in paths.values():
        tested.create(path)
    events = {
        "data": (tested.submit("get", path=paths["data"], watch=1), 3),
        "gone": (tested.submit("exists", path=paths["gone"], watch=1), 2),
        "dir": (tested.submit("children", path=paths["dir"], watch=1), 4),
        "calm": (tested.submit("get", path=paths["calm"], watch=1), 3),
    }
    born = tested.submit("exists", path=base + "/born", watch=1)
    born.fails("NO_NODE")
    brief = tested.submit("get", path=paths["calm"], watch=1,
                          until_disconnect=1)
    for pending, _ in events.values():
        pending.succeeds()
    brief.succeeds()
    wire.freeze()
    direct.do("set", path=paths["data"], data=b"1")
    direct.do("delete", path=paths["gone"])
    direct.create(paths["dir"] + "/x")
    direct.create(base + "/born")
    mark = wire.mark()
    wire.drop()
    tested.wait_for_state("suspended")
    waiting = tested.submit("get", path=base)
    wire.thaw()
    tested.wait_for_state("connected")
    waiting.succeeds()
    # Events of missed changes are reported before the reply.
    told = {line.tag: line for line in tested.lines_like("event")}
    for name in ("data", "gone", "dir"):
        pending, kind = events[name]
        assert told[pending.tag].type == kind, told
        assert told[pending.tag].path == paths[name]
        assert told[pending.tag].at <= waiting.result().at
    assert told[born.tag].type == 1
    assert told[brief.tag].type == 0 and told[brief.tag].err == "CONNECTION_LOSS"
    assert events["calm"][0].tag not in told
    assert wire.ops(mark) == [relay.SET_WATCHES, relay.GET], wire.ops(mark)
    direct.do("set", path=paths["calm"], data=b"1")
    tested.wait_for_event(events["calm"][0], type=3)
    assert len(tested.lines_like("event")) == 6


@on_relay
def many_watches_are_reregistered_in_several_requests(wire, worker, tested,
                                                      direct, base):
    long = "x" * 200
    pending = [tested.submit("exists", path="%s/%s%d" % (base, long, n),
                             watch=1)
               for n in range(2000)]
    for a in pending:
        a.fails("NO_NODE")
    mark = wire.mark()
    wire.drop()
    tested.wait_for_state("suspended")
    tested.wait_for_state("connected")
    tested.do("sync", path="/")
    frames = [f for f in wire.requests(mark) if f.op == relay.SET_WATCHES]
    assert len(frames) > 2 and max(f.size for f in frames) < 150000, [
        f.size for f in frames]
    assert live.watch_count(zk.connect) == 2000
    for n in (0, 777, 1999):
        direct.create("%s/%s%d" % (base, long, n))
        tested.wait_for_event(pending[n], type=1)


# ---- the end of sessions

@on_relay
def server_reports_an_expired_session(wire, worker, tested, direct, base):
    stubborn = worker.client(wire.address, timeout=T, give_up=-1)
    stubborn.wait_for_state("connected")
    mine = stubborn.create(base + "/mine", flags=EPHEMERAL)
    watch = stubborn.submit("get", path=base, watch=1)
    watch.succeeds()
    gone = direct.submit("exists", path=mine.path, watch=1)
    wire.freeze()
    direct.wait_for_event(gone, type=2)
    waiting = stubborn.submit("get", path=base)
    wire.drop()
    wire.thaw()
    stubborn.wait_for_state("expired")
    waiting.fails("SESSION_EXPIRED")
    assert stubborn.wait_for_event(watch).err == "SESSION_EXPIRED"
    stubborn.wait_for_state("connecting")
    stubborn.wait_for_state("connected")
    assert stubborn.facts().session != mine.owner
    stubborn.get(base)
    stubborn.do("close")


@on_relay
def session_expires_without_a_server(wire, worker, tested, direct, base):
    final = worker.client(wire.address, timeout=T, one_session=1)
    final.wait_for_state("connected")
    heard = max(f.at for f in wire.frames_since() if not f.up) * 1000
    wire.freeze()
    final.wait_for_state("suspended")
    waiting = final.submit("get", path=base)
    offset = boottime() - time.monotonic() * 1000
    expired = final.wait_for_state("expired")
    tested.wait_for_state("expired")
    # The client takes the session for expired after 4/3 of the timeout, when
    # the server has expired it.
    assert T < expired.at - offset - heard < 5 * T / 3, (
        expired.at - offset - heard)
    waiting.fails("SESSION_EXPIRED")
    final.submit("get", path=base).fails("CLOSED")
    wire.thaw()
    tested.wait_for_state("connected")
    assert not final.lines_like("state", "connecting", since=expired.at)


@on_relay
def resumed_session_moves_to_another_client(wire, worker, tested, direct, base):
    facts = tested.facts()
    tested.create(base + "/mine", flags=EPHEMERAL)
    wire.refuse()
    other = worker.client(
        zk.connect, timeout=T,
        resume="0x%x:%s" % (facts.session & (1 << 64) - 1, facts.password))
    other.wait_for_state("connected")
    tested.wait_for_state("suspended")
    assert other.facts().session == facts.session
    assert other.get(base + "/mine").owner == facts.session
    other.do("close")
    direct.submit("exists", path=base + "/mine").fails("NO_NODE")
    wire.accept()
    tested.wait_for_state("expired")
    tested.wait_for_state("connected")


@on_relay
def paused_process_is_suspended_before_a_reply(wire, worker, tested, direct,
                                               base):
    tested.create(base + "/mine", flags=EPHEMERAL)
    with Worker() as other:
        sleeper = other.client(wire.address, timeout=T)
        sleeper.wait_for_state("connected")
        sleeper.create(base + "/sleeper", flags=EPHEMERAL)
        gone = direct.submit("exists", path=base + "/sleeper", watch=1)
        gone.succeeds()
        other.stop()
        direct.wait_for_event(gone, type=2)
        time.sleep(T / 3000)
        woken = boottime()
        other.cont()
        sleeper.wait_for_state("expired")
        sleeper.wait_for_state("connected")
        first = [line for line in sleeper.lines_like("state", since=woken)][0]
        assert first.word in ("suspended", "expired"), first


# ---- the server

@on_relay
def session_survives_a_short_stop_of_the_server(wire, worker, tested, direct,
                                                base):
    before = tested.facts()
    tested.create(base + "/mine", flags=EPHEMERAL)
    zk.stop()
    time.sleep(T / 4000)
    zk.cont()
    tested.do("sync", path="/")
    same_session(tested, before)
    zk.stop()
    tested.wait_for_state("expired")
    zk.cont()
    tested.wait_for_state("connected")
    assert tested.facts().session != before.session
    tested.get(base)
    eventually(lambda: direct.submit("exists",
                                     path=base + "/mine").result().err ==
               "NO_NODE")


@on_relay
def session_survives_a_server_restart(wire, worker, tested, direct, base):
    slow = worker.client(wire.address, timeout=30000)
    slow.wait_for_state("connected")
    before = slow.facts()
    slow.create(base + "/mine", flags=EPHEMERAL)
    watch = slow.submit("get", path=base, watch=1)
    watch.succeeds()
    reading = slow.submit("get", path=base + "/mine", repeat=1)
    zk.kill()
    slow.wait_for_state("suspended")
    unsent = slow.submit("set", path=base + "/mine", data=b"after")
    zk.start()
    slow.wait_for_state("connected")
    reading.succeeds()
    unsent.succeeds()
    same_session(slow, before)
    assert slow.get(base + "/mine").owner == before.session
    late = worker.client(zk.connect, timeout=T)
    late.do("set", path=base, data=b"1")
    slow.wait_for_event(watch, type=3)
    slow.do("close")


# ---- finding a server

def hosts_are_tried_until_one_serves():
    with Relay(zk.connect) as dead, Relay(zk.connect) as mute, \
            Relay(zk.connect) as good, Worker() as worker:
        dead.refuse()
        mute.freeze()
        for _ in range(6):  # each client tries the hosts in a random order
            client = worker.client("%s,nosuch.invalid,%s,%s" % (
                dead.address, mute.address, good.address), timeout=T)
            client.wait_for_state("connected")
            assert client.facts().server == good.address
            client.do("close")
        wanderer = worker.client("%s,%s" % (mute.address, good.address),
                                 timeout=T)
        wanderer.wait_for_state("connected")
        before = wanderer.facts()
        mute.thaw()
        good.freeze()
        wanderer.wait_for_state("suspended")
        wanderer.wait_for_state("connected")
        assert same_session(wanderer, before).server == mute.address


with zkserver.Server("--tick", "500") as zk:
    live.run(
        client_reconnects_after_a_broken_connection,
        xids_continue_after_a_reconnect,
        write_without_reply_is_in_doubt,
        broken_handshake_is_repeated,
        requests_on_a_slow_connection_keep_their_order,
        requests_wait_for_a_connection,
        late_reply_is_ignored,
        watches_survive_a_reconnect,
        many_watches_are_reregistered_in_several_requests,
        resumed_session_moves_to_another_client,
        live.together(
            unsent_requests_end_with_not_sent,
            close_without_a_server_ends_at_its_deadline,
            server_reports_an_expired_session,
            session_expires_without_a_server,
            paused_process_is_suspended_before_a_reply,
            hosts_are_tried_until_one_serves,
        ),
        session_survives_a_short_stop_of_the_server,
        session_survives_a_server_restart,
    )
