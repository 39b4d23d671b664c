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

TIMEOUT = 4000  # the session timeout in ms
TIMEOUT_SECONDS = TIMEOUT / 1000
UINT64_MAX = (1 << 64) - 1
ENDED, CREATED, DELETED, CHANGED, CHILDREN = 0, 1, 2, 3, 4  # types of events


def on_relay(test):
    """Run the test with a client `tested` behind the relay `wire`, and a client
    `direct` without a relay. `up` is the direction from client to server."""
    def with_clients():
        with Relay(zk.connect) as wire, Worker() as worker:
            tested = worker.client(wire.address, timeout=TIMEOUT)
            direct = worker.client(zk.connect, timeout=TIMEOUT)
            tested.wait_for_state("connected")
            direct.wait_for_state("connected")
            base = direct.create("/test-", flags=SEQUENTIAL).path
            test(wire, worker, tested, direct, base)
            tested.submit("close").result()
            direct.create(base + "/end")  # `direct` may still be connecting
            direct.do("close")
    with_clients.__name__ = test.__name__
    return with_clients


def expect_same_session(client, before):
    """Check that the session is that of the facts `before`; gives the facts of
    now."""
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
    after = expect_same_session(tested, before)
    assert after.connection == before.connection + 1
    assert direct.get(base + "/mine").owner == after.session


@on_relay
def xids_continue_after_a_reconnect(wire, worker, tested, direct, base):
    for _ in range(3):
        tested.do("sync", path="/")
        wire.drop()
        tested.wait_for_state("connected")
    tested.do("sync", path="/")
    xids = [request.xid for request in wire.requests()]
    assert xids == list(range(1, len(xids) + 1)), xids
    assert wire.accepted == 4  # connections


@on_relay
def request_without_reply_is_in_doubt_or_lost(wire, worker, tested, direct,
                                              base):
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
    errors = [create.fails("IN_DOUBT", "NOT_SENT").err for create in pending]
    # The first requests fitted into the socket buffers, so they are in doubt.
    # The others were not sent.
    in_doubt = errors.count("IN_DOUBT")
    assert 0 < in_doubt < len(errors), errors
    assert errors[:in_doubt] == ["IN_DOUBT"] * in_doubt, errors
    assert direct.children(base).count <= in_doubt


@on_relay
def broken_handshake_is_repeated(wire, worker, tested, direct, base):
    before = tested.facts()
    for action in ("cut", "tear"):
        for up in (True, False):
            trap = wire.at_frame(action, up=up, op=relay.CONNECT)
            wire.drop()
            trap.wait()
            tested.wait_for_state("connected")
            expect_same_session(tested, before)
            # A new client has no session yet.
            trap = wire.at_frame(action, up=up, op=relay.CONNECT)
            new = worker.client(wire.address, timeout=TIMEOUT)
            trap.wait()
            new.wait_for_state("connected")
            new.do("close")


@on_relay
def requests_on_a_slow_connection_keep_their_order(wire, worker, tested,
                                                   direct, base):
    wire.delay(60)  # ms
    pending = [tested.submit("create", path=base + "/n-",
                             flags=EPHEMERAL_SEQUENTIAL)
               for _ in range(300)]
    paths = [create.succeeds().path for create in pending]
    assert paths == ["%s/n-%010d" % (base, n) for n in range(300)]


# ---- requests that wait, and end

@on_relay
def request_waits_for_a_connection_until_its_timeout(wire, worker, tested,
                                                     direct, base):
    wire.refuse()
    wire.drop()
    tested.wait_for_state("suspended")
    with_timeout = tested.submit("get", path=base, wait=300)
    without_timeout = tested.submit("create", path=base + "/waited")
    with_timeout.fails("DEADLINE")
    assert not without_timeout.is_done()
    wire.accept()
    without_timeout.succeeds()


@on_relay
def late_reply_is_ignored(wire, worker, tested, direct, base):
    zk.stop()
    create = tested.submit("create", path=base + "/late", wait=200)
    read = tested.submit("get", path=base, wait=200, watch=1)
    create.fails("DEADLINE")
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
    assert end.at - began < TIMEOUT / 2, end.at - began
    assert direct.get(base + "/mine")


# ---- watches

@on_relay
def missed_changes_are_reported_after_a_reconnect(wire, worker, tested,
                                                  direct, base):
    paths = {n: base + "/" + n for n in ("data", "gone", "dir", "calm")}
    for path in paths.values():
        tested.create(path)
    # The request that sets a watch, and the event of the change made below.
    # Nothing changes "calm" until the end.
    watches = {
        "data": (tested.submit("get", path=paths["data"], watch=1), CHANGED),
        "gone": (tested.submit("exists", path=paths["gone"], watch=1), DELETED),
        "dir": (tested.submit("children", path=paths["dir"], watch=1),
                CHILDREN),
        "calm": (tested.submit("get", path=paths["calm"], watch=1), CHANGED),
    }
    born = tested.submit("exists", path=base + "/born", watch=1)
    born.fails("NO_NODE")
    brief = tested.submit("get", path=paths["calm"], watch=1,
                          until_disconnect=1)
    for request, _ in watches.values():
        request.succeeds()
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
    events = {line.tag: line for line in tested.lines_like("event")}
    for name in ("data", "gone", "dir"):
        request, event_type = watches[name]
        assert events[request.tag].type == event_type, events
        assert events[request.tag].path == paths[name]
        assert events[request.tag].at <= waiting.result().at
    assert events[born.tag].type == CREATED
    assert events[brief.tag].type == ENDED
    assert events[brief.tag].err == "CONNECTION_LOSS"
    calm, _ = watches["calm"]
    assert calm.tag not in events
    assert wire.ops(mark) == [relay.SET_WATCHES, relay.GET], wire.ops(mark)
    direct.do("set", path=paths["calm"], data=b"1")
    tested.wait_for_event(calm, type=CHANGED)
    assert len(tested.lines_like("event")) == 6


@on_relay
def many_watches_are_reregistered_in_several_requests(wire, worker, tested,
                                                      direct, base):
    prefix = base + "/" + "x" * 200  # long, for large requests
    pending = [tested.submit("exists", path="%s%d" % (prefix, n), watch=1)
               for n in range(2000)]
    for exists in pending:
        exists.fails("NO_NODE")
    mark = wire.mark()
    wire.drop()
    tested.wait_for_state("suspended")
    tested.wait_for_state("connected")
    tested.do("sync", path="/")
    frames = [f for f in wire.requests(mark) if f.op == relay.SET_WATCHES]
    sizes = [f.size for f in frames]
    assert len(sizes) > 2 and max(sizes) < 150000, sizes
    assert live.watch_count(zk.connect) == 2000
    for n in (0, 777, 1999):
        direct.create("%s%d" % (prefix, n))
        tested.wait_for_event(pending[n], type=CREATED)


# ---- the end of sessions

@on_relay
def server_reports_an_expired_session(wire, worker, tested, direct, base):
    # This client does not give up the session by itself.
    patient = worker.client(wire.address, timeout=TIMEOUT, give_up=-1)
    patient.wait_for_state("connected")
    mine = patient.create(base + "/mine", flags=EPHEMERAL)
    watch = patient.submit("get", path=base, watch=1)
    watch.succeeds()
    gone = direct.submit("exists", path=mine.path, watch=1)
    wire.freeze()
    direct.wait_for_event(gone, type=DELETED)
    waiting = patient.submit("get", path=base)
    wire.drop()
    wire.thaw()
    patient.wait_for_state("expired")
    waiting.fails("SESSION_EXPIRED")
    assert patient.wait_for_event(watch).err == "SESSION_EXPIRED"
    patient.wait_for_state("connecting")
    patient.wait_for_state("connected")
    assert patient.facts().session != mine.owner
    patient.get(base)
    patient.do("close")


@on_relay
def session_expires_without_a_server(wire, worker, tested, direct, base):
    final = worker.client(wire.address, timeout=TIMEOUT, one_session=1)
    final.wait_for_state("connected")
    last_heard = max(f.at for f in wire.frames_since() if not f.up) * 1000
    wire.freeze()
    final.wait_for_state("suspended")
    waiting = final.submit("get", path=base)
    # The relay's times are of another clock than the client's.
    clock_difference = boottime() - time.monotonic() * 1000
    expired = final.wait_for_state("expired")
    tested.wait_for_state("expired")
    # The client takes the session for expired after 4/3 of the timeout, when
    # the server has expired it.
    silence = expired.at - clock_difference - last_heard
    assert TIMEOUT < silence < 5 * TIMEOUT / 3, silence
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
        zk.connect, timeout=TIMEOUT,
        resume="0x%x:%s" % (facts.session & UINT64_MAX, facts.password))
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
def continued_process_is_suspended_or_expired_first(wire, worker, tested,
                                                    direct, base):
    tested.create(base + "/mine", flags=EPHEMERAL)
    with Worker() as paused:
        sleeper = paused.client(wire.address, timeout=TIMEOUT)
        sleeper.wait_for_state("connected")
        sleeper.create(base + "/sleeper", flags=EPHEMERAL)
        gone = direct.submit("exists", path=base + "/sleeper", watch=1)
        gone.succeeds()
        paused.stop()
        direct.wait_for_event(gone, type=DELETED)
        time.sleep(TIMEOUT_SECONDS / 3)
        woken = boottime()
        paused.cont()
        sleeper.wait_for_state("expired")
        sleeper.wait_for_state("connected")
        first_state = sleeper.lines_like("state", since=woken)[0]
        assert first_state.word in ("suspended", "expired"), first_state


# ---- the server

@on_relay
def session_survives_a_short_stop_of_the_server(wire, worker, tested, direct,
                                                base):
    before = tested.facts()
    tested.create(base + "/mine", flags=EPHEMERAL)
    zk.stop()
    time.sleep(TIMEOUT_SECONDS / 4)
    zk.cont()
    tested.do("sync", path="/")
    expect_same_session(tested, before)
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
    survivor = worker.client(wire.address, timeout=30000)
    survivor.wait_for_state("connected")
    before = survivor.facts()
    survivor.create(base + "/mine", flags=EPHEMERAL)
    watch = survivor.submit("get", path=base, watch=1)
    watch.succeeds()
    reading = survivor.submit("get", path=base + "/mine", repeat=1)
    zk.kill()
    survivor.wait_for_state("suspended")
    unsent = survivor.submit("set", path=base + "/mine", data=b"after")
    zk.start()
    survivor.wait_for_state("connected")
    reading.succeeds()
    unsent.succeeds()
    expect_same_session(survivor, before)
    assert survivor.get(base + "/mine").owner == before.session
    new = worker.client(zk.connect, timeout=TIMEOUT)
    new.do("set", path=base, data=b"1")
    survivor.wait_for_event(watch, type=CHANGED)
    survivor.do("close")


# ---- finding a server

def hosts_are_tried_until_one_serves():
    with Relay(zk.connect) as refusing, Relay(zk.connect) as silent, \
            Relay(zk.connect) as serving, Worker() as worker:
        refusing.refuse()
        silent.freeze()
        for _ in range(6):  # each client tries the hosts in a random order
            client = worker.client("%s,nosuch.invalid,%s,%s" % (
                refusing.address, silent.address, serving.address), timeout=TIMEOUT)
            client.wait_for_state("connected")
            assert client.facts().server == serving.address
            client.do("close")
        moving = worker.client("%s,%s" % (silent.address, serving.address),
                               timeout=TIMEOUT)
        moving.wait_for_state("connected")
        before = moving.facts()
        silent.thaw()
        serving.freeze()
        moving.wait_for_state("suspended")
        moving.wait_for_state("connected")
        assert expect_same_session(moving, before).server == silent.address


with zkserver.Server("--tick", "500") as zk:
    live.run(
        client_reconnects_after_a_broken_connection,
        xids_continue_after_a_reconnect,
        request_without_reply_is_in_doubt_or_lost,
        broken_handshake_is_repeated,
        requests_on_a_slow_connection_keep_their_order,
        request_waits_for_a_connection_until_its_timeout,
        late_reply_is_ignored,
        missed_changes_are_reported_after_a_reconnect,
        many_watches_are_reregistered_in_several_requests,
        resumed_session_moves_to_another_client,
        live.together(
            unsent_requests_end_with_not_sent,
            close_without_a_server_ends_at_its_deadline,
            server_reports_an_expired_session,
            session_expires_without_a_server,
            continued_process_is_suspended_or_expired_first,
            hosts_are_tried_until_one_serves,
        ),
        session_survives_a_short_stop_of_the_server,
        session_survives_a_server_restart,
    )
