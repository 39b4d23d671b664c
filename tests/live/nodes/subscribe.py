# SPDX-License-Identifier: Apache-2.0
"""Subscriptions on a real server: notifications and requests, across broken
connections and sessions, without permission, and with many changes at once."""

import contextlib
import logging
import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG, SHORT, CountedClient, on_server
from worker import Worker
from relay import CHILDREN, EVENT, EXISTS, GET, REMOVE_WATCHES, Relay


def watches():
    return live.watch_count(shared.connect_string())


# ---- notifications and requests

@on_server
def children_cost_a_request_and_an_event_each(worker, direct, base):
    path = direct.create(base + "/d").path
    before = watches()
    with CountedClient() as it:
        subscription = it.client.subscribe(path)
        subscription.expect_notified(names=[])
        it.expect_requests(1, CHILDREN)
        mark = it.wire.mark()
        for names in (["a"], ["a", "b"], ["b"]):
            if names == ["b"]:
                direct.do("delete", path=path + "/a")
            else:
                direct.create(path + "/" + names[-1])
            subscription.expect_notified(names=names)
            it.expect_requests(1, CHILDREN)
        assert len(it.wire.events(mark)) == 3
        direct.do("set", path=path, data=b"x")
        direct.do("delete", path=path + "/b")
        subscription.expect_notified(names=[])
        it.expect_requests(1, CHILDREN)
        mark = it.wire.mark()
        direct.do("delete", path=path)
        subscription.expect_missing()
        it.expect_requests(1, EXISTS)
        direct.create(path)
        subscription.expect_notified(names=[])
        it.expect_requests(1, CHILDREN)
        assert len(it.wire.events(mark)) == 2
        assert watches() == before + 1
        subscription.free()
        it.expect_requests(1, REMOVE_WATCHES)
        eventually(lambda: watches() == before)
        assert subscription.is_silent()


@on_server
def data_cost_a_request_and_an_event_each(worker, direct, base):
    path = base + "/d"
    before = watches()
    with CountedClient() as it:
        subscription = it.client.subscribe(path, data=1)
        subscription.expect_missing()
        it.expect_requests(2, GET, EXISTS)
        eventually(lambda: watches() == before + 1)
        direct.create(path, data=b"1")
        subscription.expect_notified(data=b"1")
        it.expect_requests(1, GET)
        direct.do("set", path=path, data=b"2")
        subscription.expect_notified(data=b"2")
        it.expect_requests(1, GET)
        direct.create(path + "/child")
        direct.do("set", path=path, data=b"null")
        subscription.expect_notified(data=b"null")
        it.expect_requests(1, GET)
        direct.do("delete", path=path + "/child")
        direct.do("delete", path=path)
        subscription.expect_missing()
        it.expect_requests(1, EXISTS)
        subscription.free()
        it.expect_requests(1, REMOVE_WATCHES)


@on_server
def many_changes_are_merged_into_reads(worker, direct, base):
    """Two clients make 350 changes while a round trip of the subscriber takes
    20 ms."""
    path = direct.create(base + "/d").path
    other = worker.client(shared.connect_string(), timeout=LONG)
    with Relay(shared.connect_string()) as wire:
        tested = worker.client(wire.address, timeout=LONG)
        tested.state("connected")
        wire.delay(10)
        subscription = tested.subscribe(path)
        subscription.expect_notified(names=[])
        mark = wire.mark()
        pending = []
        for n in range(100):
            for client in (direct, other):
                node = "%s/%s-%d" % (path, client.name, n)
                pending.append(client.submit("create", path=node))
                if n % 4:
                    pending.append(client.submit("delete", path=node))
        for one in pending:
            one.succeeds()
        left = shared.names(direct, path)
        assert len(left) == 50, left
        eventually(lambda: sorted(subscription.latest().names) == left)
        reads, events = wire.ops(mark).count(CHILDREN), wire.events(mark)
        print("%d changes: %d events, %d reads, %d notifications" % (
            len(pending), len(events), reads,
            len(subscription.lines_like("notified")) - 1))
        assert len(pending) == 350 and reads <= 100, reads
        assert len(events) <= reads + 1
        wire.delay(0)
        subscription.free()
        tested.do("close")
    other.do("close")


@on_server
def subscriptions_of_a_client_share_a_watch(worker, direct, base):
    path = direct.create(base + "/d").path
    before = watches()
    tested = worker.client(shared.connect_string(), timeout=LONG)
    subscriptions = [tested.subscribe(path) for _ in range(3)]
    for subscription in subscriptions:
        subscription.expect_notified(names=[])
    assert watches() == before + 1
    subscriptions.pop().free()
    direct.create(path + "/a")
    for subscription in subscriptions:
        subscription.expect_notified(names=["a"])
        subscription.free()
    eventually(lambda: watches() == before)
    tested.do("close")


# ---- broken connections

class Scene:
    """A subscription to children and one to data, of a client behind a
    relay."""

    def __init__(self, worker, direct, wire, base, timeout=LONG):
        self.direct, self.wire = direct, wire
        self.path = direct.create(base + "/d", data=b"0").path
        self.before = watches()
        self.tested = worker.client(wire.address, timeout=timeout)
        self.tested.state("connected")
        self.names = self.tested.subscribe(self.path)
        self.data = self.tested.subscribe(self.path, data=1)
        self.expect_both([], b"0")

    def expect_both(self, names, data):
        if names is None:
            self.names.expect_missing()
            self.data.expect_missing()
        else:
            self.names.expect_notified(names=names)
            self.data.expect_notified(data=data)

    def wait_for_last(self, names, data):
        """Wait until the last notifications are these."""
        eventually(lambda: sorted(self.names.latest().names) == names and
                   self.data.latest().data == data)

    def disconnect(self):
        self.wire.refuse()
        self.wire.drop()
        self.tested.state("suspended")

    def reconnect(self):
        mark = self.wire.mark()
        self.wire.accept()
        self.tested.state("connected")
        return mark

    def end(self):
        assert watches() == self.before + 2
        self.names.free()
        self.data.free()
        eventually(lambda: watches() == self.before)
        self.tested.do("close")


def on_scene(test):
    @on_server
    def with_it(worker, direct, base):
        with Relay(shared.connect_string()) as wire:
            scene = Scene(worker, direct, wire, base)
            test(scene, direct, wire)
            scene.end()
    with_it.__name__ = test.__name__
    return with_it


@on_scene
def changes_are_notified_after_a_reconnect(scene, direct, wire):
    scene.disconnect()
    direct.create(scene.path + "/a")
    direct.do("set", path=scene.path, data=b"1")
    mark = scene.reconnect()
    scene.expect_both(["a"], b"1")
    assert wire.ops(mark)[:2] == [CHILDREN, GET], wire.ops(mark)
    # While the client is suspended, the node is deleted; then created; then
    # both deleted and created.
    scene.disconnect()
    direct.do("delete", path=scene.path + "/a")
    direct.do("delete", path=scene.path)
    scene.reconnect()
    scene.expect_both(None, None)
    scene.disconnect()
    direct.create(scene.path, data=b"2")
    scene.reconnect()
    scene.expect_both([], b"2")
    scene.disconnect()
    direct.do("delete", path=scene.path)
    direct.create(scene.path, data=b"2")
    scene.reconnect()
    scene.expect_both([], b"2")
    # If nothing has changed, the client reads again, and there is no
    # notification.
    scene.disconnect()
    mark = scene.reconnect()
    eventually(lambda: wire.ops(mark) == [CHILDREN, GET])
    scene.tested.do("sync", path="/")
    assert scene.names.is_silent() and scene.data.is_silent()


@on_scene
def subscription_survives_a_break_at_any_frame(scene, direct, wire):
    def change(n):
        direct.create("%s/%d" % (scene.path, n))
        direct.do("set", path=scene.path, data=b"%d" % n)

    number = 0
    for up, op in ((False, EVENT), (True, CHILDREN), (False, CHILDREN),
                   (True, GET), (False, GET)):
        for action in ("cut", "tear"):
            number += 1
            trap = wire.at_frame(action, up=up, op=op)
            change(number)
            trap.wait()
            scene.wait_for_last(sorted(map(str, range(1, number + 1))),
                          b"%d" % number)


@on_server
def subscription_to_a_missing_node_survives_breaks(worker, direct, base):
    path = base + "/d"
    with Relay(shared.connect_string()) as wire:
        tested = worker.client(wire.address, timeout=LONG)
        tested.state("connected")
        subscription = tested.subscribe(path)
        subscription.expect_missing()
        for up, op in ((False, EVENT), (True, EXISTS), (False, EXISTS)):
            direct.create(path)
            subscription.expect_notified(names=[])
            trap = wire.at_frame("cut", up=up, op=op)
            direct.do("delete", path=path)
            trap.wait()
            subscription.expect_missing()
        subscription.free()
        tested.do("close")


@on_server
def subscription_continues_in_a_new_session(worker, direct, base):
    with Relay(shared.connect_string()) as wire:
        scene = Scene(worker, direct, wire, base, timeout=SHORT)
        facts = scene.tested.facts()
        scene.disconnect()
        thief = worker.client(
            shared.connect_string(), timeout=SHORT,
            resume="0x%x:%s" % (facts.session & (1 << 64) - 1,
                                facts.password))
        thief.state("connected")
        thief.do("close")
        direct.create(scene.path + "/a")
        scene.wire.accept()
        scene.tested.state("expired")
        scene.tested.state("connected")
        scene.names.expect_notified(names=["a"])
        direct.do("set", path=scene.path, data=b"1")
        scene.data.expect_notified(data=b"1")
        scene.end()


@on_server
def closed_client_notifies_its_subscriptions(worker, direct, base):
    tested = worker.client(shared.connect_string(), timeout=LONG)
    subscription = tested.subscribe(base)
    subscription.expect_notified(names=[])
    tested.do("close")
    subscription.expect_notified("CLOSED")
    tested.do("free")
    subscription.free()


# ---- permissions

@on_server
def denied_read_is_notified_once(worker, direct, base):
    secret, acl = shared.digest_identity("me")
    path = direct.create(base + "/d", acl=acl % 31).path
    tested = worker.client(shared.connect_string(), timeout=LONG)
    subscriptions = tested.subscribe(path), tested.subscribe(path, data=1)
    for subscription in subscriptions:
        subscription.expect_notified("NO_AUTH")
    tested.do("auth", scheme="digest", auth=secret)
    subscriptions[0].expect_notified(names=[])
    subscriptions[1].expect_notified(data=b"")
    for subscription in subscriptions:
        subscription.free()
    tested.do("close")


@on_server
def unreadable_new_node_is_found_by_the_check(worker, direct, base):
    """Servers may send no event for a node that the client may not read."""
    secret, acl = shared.digest_identity("me")
    path = base + "/d"
    tested = worker.client(shared.connect_string(), timeout=LONG)
    subscription = tested.subscribe(path, check=300)
    subscription.expect_missing()
    direct.create(path, acl=acl % 31)
    subscription.expect_notified("NO_AUTH")
    tested.do("auth", scheme="digest", auth=secret)
    subscription.expect_notified(names=[])
    subscription.free()
    tested.do("close")


@contextlib.contextmanager
def an_operator():
    """A kazoo client; gives a function that changes access lists."""
    try:
        import kazoo.client
        import kazoo.security
    except ImportError:
        raise live.NotTested("there is no kazoo to change access lists with")
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    client = kazoo.client.KazooClient(shared.connect_string())
    client.start(30)

    def grant(path, **rights):
        client.set_acls(path, [kazoo.security.make_acl("world", "anyone",
                                                       **rights)])
    try:
        yield grant
    finally:
        client.stop()
        client.close()


@on_server
def lost_permission_is_found_by_the_check(worker, direct, base):
    path = direct.create(base + "/d").path
    tested = worker.client(shared.connect_string(), timeout=LONG)
    subscriptions = tested.subscribe(path, check=300), tested.subscribe(path)
    for subscription in subscriptions:
        subscription.expect_notified(names=[])
    with an_operator() as grant:
        grant(path, create=True, admin=True)
        direct.create(path + "/a")  # consumes the watch
        subscriptions[0].expect_notified("NO_AUTH")
        grant(path, all=True)
        subscriptions[0].expect_notified(names=["a"])
    # Without checks the loss of permission may stay unnoticed.
    print("without checks: %s" % subscriptions[1].latest())
    direct.create(path + "/b")
    for subscription in subscriptions:
        eventually(lambda: sorted(subscription.latest().names) == ["a", "b"])
        subscription.free()
    tested.do("close")


with shared.serve("--tick", "500") as _zk:
    live.run(
        children_cost_a_request_and_an_event_each,
        data_cost_a_request_and_an_event_each,
        many_changes_are_merged_into_reads,
        subscriptions_of_a_client_share_a_watch,
        changes_are_notified_after_a_reconnect,
        subscription_survives_a_break_at_any_frame,
        subscription_to_a_missing_node_survives_breaks,
        subscription_continues_in_a_new_session,
        closed_client_notifies_its_subscriptions,
        denied_read_is_notified_once,
        unreadable_new_node_is_found_by_the_check,
        lost_permission_is_found_by_the_check,
    )
