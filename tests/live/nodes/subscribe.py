# SPDX-License-Identifier: Apache-2.0
"""Subscriptions on a real server: what is told and what that costs, over
breaks and sessions, without permission, and in a storm of changes."""

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
    return live.watch_count(shared.connect())


# ---- what is told, and what it costs

@on_server
def children_cost_a_request_and_an_event_each(worker, far, base):
    path = far.create(base + "/d").path
    before = watches()
    with CountedClient() as it:
        subscription = it.client.subscribe(path)
        subscription.expect_notified(names=[])
        it.expect_requests(1, CHILDREN)
        mark = it.wire.mark()
        for names in (["a"], ["a", "b"], ["b"]):
            if names == ["b"]:
                far.do("delete", path=path + "/a")
            else:
                far.create(path + "/" + names[-1])
            subscription.expect_notified(names=names)
            it.expect_requests(1, CHILDREN)
        assert len(it.wire.events(mark)) == 3
        far.do("set", path=path, data=b"x")
        far.do("delete", path=path + "/b")
        subscription.expect_notified(names=[])
        it.expect_requests(1, CHILDREN)
        mark = it.wire.mark()
        far.do("delete", path=path)
        subscription.missing()
        it.expect_requests(1, EXISTS)
        far.create(path)
        subscription.expect_notified(names=[])
        it.expect_requests(1, CHILDREN)
        assert len(it.wire.events(mark)) == 2
        assert watches() == before + 1
        subscription.free()
        it.expect_requests(1, REMOVE_WATCHES)
        eventually(lambda: watches() == before)
        assert subscription.is_silent()


@on_server
def data_cost_the_same(worker, far, base):
    path = base + "/d"
    before = watches()
    with CountedClient() as it:
        subscription = it.client.subscribe(path, data=1)
        subscription.missing()
        it.expect_requests(2, GET, EXISTS)
        eventually(lambda: watches() == before + 1)
        far.create(path, data=b"1")
        subscription.expect_notified(data=b"1")
        it.expect_requests(1, GET)
        far.do("set", path=path, data=b"2")
        subscription.expect_notified(data=b"2")
        it.expect_requests(1, GET)
        far.create(path + "/child")
        far.do("set", path=path, data=b"null")
        subscription.expect_notified(data=b"null")
        it.expect_requests(1, GET)
        far.do("delete", path=path + "/child")
        far.do("delete", path=path)
        subscription.missing()
        it.expect_requests(1, EXISTS)
        subscription.free()
        it.expect_requests(1, REMOVE_WATCHES)


@on_server
def a_storm_is_told_of_as_fast_as_it_can_be_read(worker, far, base):
    """400 changes while a round trip takes 20 ms, made by two others."""
    path = far.create(base + "/d").path
    other = worker.client(shared.connect(), timeout=LONG)
    with Relay(shared.connect()) as wire:
        near = worker.client(wire.address, timeout=LONG)
        near.state("connected")
        wire.delay(10)
        subscription = near.subscribe(path)
        subscription.expect_notified(names=[])
        mark = wire.mark()
        pending = []
        for n in range(100):
            for client in (far, other):
                node = "%s/%s-%d" % (path, client.name, n)
                pending.append(client.submit("create", path=node))
                if n % 4:
                    pending.append(client.submit("delete", path=node))
        for one in pending:
            one.succeeds()
        left = shared.names(far, path)
        assert len(left) == 50, left
        eventually(lambda: sorted(subscription.latest().names) == left)
        reads, events = wire.ops(mark).count(CHILDREN), wire.events(mark)
        print("%d changes: %d events, %d reads, told %d times" % (
            len(pending), len(events), reads, len(subscription.lines_like("notified")) - 1))
        assert len(pending) == 350 and reads <= 100, reads
        assert len(events) <= reads + 1
        wire.delay(0)
        subscription.free()
        near.do("close")
    other.do("close")


@on_server
def several_share_a_watch(worker, far, base):
    path = far.create(base + "/d").path
    before = watches()
    near = worker.client(shared.connect(), timeout=LONG)
    subscriptions = [near.subscribe(path) for _ in range(3)]
    for subscription in subscriptions:
        subscription.expect_notified(names=[])
    assert watches() == before + 1
    subscriptions.pop().free()
    far.create(path + "/a")
    for subscription in subscriptions:
        subscription.expect_notified(names=["a"])
        subscription.free()
    eventually(lambda: watches() == before)
    near.do("close")


# ---- breaks

class Scene:
    """A subscriber to children and one to data, behind a relay."""

    def __init__(self, worker, far, wire, base, timeout=LONG):
        self.far, self.wire = far, wire
        self.path = far.create(base + "/d", data=b"0").path
        self.before = watches()
        self.near = worker.client(wire.address, timeout=timeout)
        self.near.state("connected")
        self.names = self.near.subscribe(self.path)
        self.data = self.near.subscribe(self.path, data=1)
        self.told([], b"0")

    def told(self, names, data):
        if names is None:
            self.names.missing()
            self.data.missing()
        else:
            self.names.expect_notified(names=names)
            self.data.expect_notified(data=data)

    def settles(self, names, data):
        """Told this at the end, whatever comes before."""
        eventually(lambda: sorted(self.names.latest().names) == names and
                   self.data.latest().data == data)

    def away(self):
        self.wire.refuse()
        self.wire.drop()
        self.near.state("suspended")

    def back(self):
        mark = self.wire.mark()
        self.wire.accept()
        self.near.state("connected")
        return mark

    def end(self):
        assert watches() == self.before + 2
        self.names.free()
        self.data.free()
        eventually(lambda: watches() == self.before)
        self.near.do("close")


def on_scene(test):
    @on_server
    def with_it(worker, far, base):
        with Relay(shared.connect()) as wire:
            scene = Scene(worker, far, wire, base)
            test(scene, far, wire)
            scene.end()
    with_it.__name__ = test.__name__
    return with_it


@on_scene
def what_changed_meanwhile_is_told_after_a_reconnect(scene, far, wire):
    scene.away()
    far.create(scene.path + "/a")
    far.do("set", path=scene.path, data=b"1")
    mark = scene.back()
    scene.told(["a"], b"1")
    assert wire.ops(mark)[:2] == [CHILDREN, GET], wire.ops(mark)
    # Gone, and gone and made anew, and made anew.
    scene.away()
    far.do("delete", path=scene.path + "/a")
    far.do("delete", path=scene.path)
    scene.back()
    scene.told(None, None)
    scene.away()
    far.create(scene.path, data=b"2")
    scene.back()
    scene.told([], b"2")
    scene.away()
    far.do("delete", path=scene.path)
    far.create(scene.path, data=b"2")
    scene.back()
    scene.told([], b"2")
    # Nothing: nothing is told, but it was looked at.
    scene.away()
    mark = scene.back()
    eventually(lambda: wire.ops(mark) == [CHILDREN, GET])
    scene.near.do("sync", path="/")
    assert scene.names.is_silent() and scene.data.is_silent()


@on_scene
def a_break_at_any_frame_is_survived(scene, far, wire):
    def change(n):
        far.create("%s/%d" % (scene.path, n))
        far.do("set", path=scene.path, data=b"%d" % n)

    number = 0
    for up, op in ((False, EVENT), (True, CHILDREN), (False, CHILDREN),
                   (True, GET), (False, GET)):
        for action in ("cut", "tear"):
            number += 1
            trap = wire.trap(action, up=up, op=op)
            change(number)
            trap.wait()
            scene.settles(sorted(map(str, range(1, number + 1))),
                          b"%d" % number)


@on_server
def a_break_where_nothing_is_is_survived(worker, far, base):
    path = base + "/d"
    with Relay(shared.connect()) as wire:
        near = worker.client(wire.address, timeout=LONG)
        near.state("connected")
        subscription = near.subscribe(path)
        subscription.missing()
        for up, op in ((False, EVENT), (True, EXISTS), (False, EXISTS)):
            far.create(path)
            subscription.expect_notified(names=[])
            trap = wire.trap("cut", up=up, op=op)
            far.do("delete", path=path)
            trap.wait()
            subscription.missing()
        subscription.free()
        near.do("close")


@on_server
def a_new_session_begins_anew(worker, far, base):
    with Relay(shared.connect()) as wire:
        scene = Scene(worker, far, wire, base, timeout=SHORT)
        facts = scene.near.facts()
        scene.away()
        thief = worker.client(
            shared.connect(), timeout=SHORT,
            resume="0x%x:%s" % (facts.session & (1 << 64) - 1,
                                facts.password))
        thief.state("connected")
        thief.do("close")
        far.create(scene.path + "/a")
        scene.wire.accept()
        scene.near.state("expired")
        scene.near.state("connected")
        scene.names.expect_notified(names=["a"])
        far.do("set", path=scene.path, data=b"1")
        scene.data.expect_notified(data=b"1")
        scene.end()


@on_server
def a_client_that_ends_says_so(worker, far, base):
    near = worker.client(shared.connect(), timeout=LONG)
    subscription = near.subscribe(base)
    subscription.expect_notified(names=[])
    near.do("close")
    subscription.expect_notified("CLOSED")
    near.do("free")
    subscription.free()


# ---- permissions

@on_server
def what_may_not_be_read_is_told_once(worker, far, base):
    secret, acl = shared.owned_by("me")
    path = far.create(base + "/d", acl=acl % 31).path
    near = worker.client(shared.connect(), timeout=LONG)
    subscriptions = near.subscribe(path), near.subscribe(path, data=1)
    for subscription in subscriptions:
        subscription.expect_notified("NO_AUTH")
    near.do("auth", scheme="digest", auth=secret)
    subscriptions[0].expect_notified(names=[])
    subscriptions[1].expect_notified(data=b"")
    for subscription in subscriptions:
        subscription.free()
    near.do("close")


@on_server
def a_node_made_unreadable_is_found_without_an_event(worker, far, base):
    """A patched server keeps quiet about its creation."""
    secret, acl = shared.owned_by("me")
    path = base + "/d"
    near = worker.client(shared.connect(), timeout=LONG)
    subscription = near.subscribe(path, check=300)
    subscription.missing()
    far.create(path, acl=acl % 31)
    subscription.expect_notified("NO_AUTH")
    near.do("auth", scheme="digest", auth=secret)
    subscription.expect_notified(names=[])
    subscription.free()
    near.do("close")


@contextlib.contextmanager
def an_operator():
    """Somebody who changes access lists; gives a function for it."""
    try:
        import kazoo.client
        import kazoo.security
    except ImportError:
        raise live.NotTested("there is no kazoo to change access lists with")
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    client = kazoo.client.KazooClient(shared.connect())
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
def permission_may_be_taken_and_given_back(worker, far, base):
    path = far.create(base + "/d").path
    near = worker.client(shared.connect(), timeout=LONG)
    subscriptions = near.subscribe(path, check=300), near.subscribe(path)
    for subscription in subscriptions:
        subscription.expect_notified(names=[])
    with an_operator() as grant:
        grant(path, create=True, admin=True)
        far.create(path + "/a")  # uses up the watch; who may read is told
        subscriptions[0].expect_notified("NO_AUTH")
        grant(path, all=True)
        subscriptions[0].expect_notified(names=["a"])
    # What does not check knows what it knew, or had luck.
    print("without checks: %s" % subscriptions[1].latest())
    far.create(path + "/b")
    for subscription in subscriptions:
        eventually(lambda: sorted(subscription.latest().names) == ["a", "b"])
        subscription.free()
    near.do("close")


with shared.serve("--tick", "500") as _zk:
    live.run(
        children_cost_a_request_and_an_event_each,
        data_cost_the_same,
        a_storm_is_told_of_as_fast_as_it_can_be_read,
        several_share_a_watch,
        what_changed_meanwhile_is_told_after_a_reconnect,
        a_break_at_any_frame_is_survived,
        a_break_where_nothing_is_is_survived,
        a_new_session_begins_anew,
        a_client_that_ends_says_so,
        what_may_not_be_read_is_told_once,
        a_node_made_unreadable_is_found_without_an_event,
        permission_may_be_taken_and_given_back,
    )
