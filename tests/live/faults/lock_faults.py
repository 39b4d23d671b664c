# SPDX-License-Identifier: Apache-2.0
"""The mutex under faults. At each frame of an acquire and of a release the
connection breaks, the server is killed or stopped, or the acquire is cancelled
or times out. Other tests let sessions expire."""

import contextlib
import os
import signal
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import relay
import zkserver
from live import eventually
from worker import Worker
from relay import (CHILDREN, CREATE2, DELETE, EVENT, GET, MULTI, Relay)

T = 10000
SHORT = 4000

# The frames of an acquire without and with waiting, of a grant, and of a release:
# (from the client, opcode, the n-th of this opcode).
ALONE = [(True, CREATE2, 1), (True, CHILDREN, 1),
         (False, CREATE2, 1), (False, CHILDREN, 1)]
QUEUED = ALONE + [(True, GET, 1), (True, GET, 2),
                  (False, GET, 1), (False, GET, 2)]
HANDED = [(False, EVENT, 1), (True, MULTI, 1), (False, MULTI, 1)]
RELEASED = [(True, DELETE, 1), (False, DELETE, 1)]

NATIVE = 2  # a lk_layout without a UUID in the node names


class Stage:
    """Two locks for the same path: `holder` of a client without a relay, and
    `lock` of a client behind a relay."""

    def __init__(self, worker, wire, options):
        self.direct = worker.client(zk.connect, timeout=3 * T)
        self.tested = worker.client(wire.address, timeout=T)
        self.direct.state("connected")
        self.tested.state("connected")
        self.dir = self.direct.create("/faults-", flags=2).path
        self.holder = self.direct.lock(self.dir, **options)
        self.lock = self.tested.lock(self.dir, **options)

    def queue(self):
        return sorted(self.direct.do("children", path=self.dir,
                                     repeat=1).names)

    def wait_for_contenders(self, count):
        eventually(lambda: len(self.queue()) == count,
                   "%d in the queue" % count)

    def end(self):
        """Check that all nodes are deleted while the sessions live."""
        self.wait_for_contenders(0)
        for client in (self.tested, self.direct):
            eventually(lambda: client.facts().unfinished == 0)
            client.do("close")


def with_stage(test):
    def with_it(*args, **options):
        with Relay(zk.connect) as wire, Worker() as worker:
            stage = Stage(worker, wire, options)
            test(stage, wire, *args)
            stage.end()
    with_it.__name__ = test.__name__
    return with_it


# ---- faults: (action of the trap, function that ends the fault)

def nothing():
    pass


def cut(wire):
    return "cut", nothing


def tear(wire):
    return "tear", nothing


def freeze(wire):
    """The relay forwards nothing for 0.1 s, then closes the connection."""
    def back():
        time.sleep(.1)
        wire.drop()
        wire.thaw()
    return "freeze", back


def kill(wire):
    pid = zk.pid()

    def back():
        zk.kill()  # script/server must know that the server is not running
        zk.start()
    return lambda: os.kill(pid, signal.SIGKILL), back


def stop(wire):
    pid = zk.pid()

    def back():
        time.sleep(.3)
        os.kill(pid, signal.SIGCONT)
    return lambda: os.kill(pid, signal.SIGSTOP), back


def granted(stage, pending):
    grant = pending.succeeds()
    assert stage.queue() == [grant.node.rpartition("/")[2]], grant
    found = stage.direct.do("get", path=grant.node, repeat=1)
    assert found.czxid == grant.token
    assert found.owner == stage.tested.facts().session


@with_stage
def fault_alone(stage, wire, fault, step):
    up, op, count = step
    action, back = fault(wire)
    trap = wire.trap(action, up=up, op=op, count=count)
    pending = stage.lock.submit("acquire")
    trap.wait()
    back()
    granted(stage, pending)
    stage.lock.release()


@with_stage
def fault_queued(stage, wire, fault, step):
    up, op, count = step
    stage.holder.acquire()
    action, back = fault(wire)
    trap = wire.trap(action, up=up, op=op, count=count)
    pending = stage.lock.submit("acquire")
    trap.wait()
    back()
    stage.lock.wait_until_queued()
    assert not pending.is_done()
    stage.wait_for_contenders(2)
    assert stage.holder.inspect().ok
    stage.holder.release()
    granted(stage, pending)
    stage.lock.release()


@with_stage
def fault_handed(stage, wire, fault, step):
    up, op, count = step
    stage.holder.acquire()
    pending = stage.lock.submit("acquire")
    # The lock reports its position before the watch is set, so count replies.
    eventually(lambda: [f.op for f in wire.frames_since()
                        if not f.up].count(GET) == 2)
    action, back = fault(wire)
    trap = wire.trap(action, up=up, op=op, count=count)
    released = stage.holder.submit("release")
    trap.wait()
    back()
    released.succeeds()
    granted(stage, pending)
    assert stage.lock.inspect().ok
    stage.lock.release()


@with_stage
def fault_released(stage, wire, fault, step):
    up, op, count = step
    stage.lock.acquire()
    behind = stage.holder.submit("acquire")
    stage.holder.wait_until_queued()
    action, back = fault(wire)
    trap = wire.trap(action, up=up, op=op, count=count)
    released = stage.lock.submit("release")
    trap.wait()
    back()
    behind.succeeds()
    released.succeeds()
    # The lock must not wait for a node that it created itself.
    stage.holder.release()
    stage.lock.acquire()
    stage.lock.release()


def at_each_step(fault, **options):
    """A test of the fault at each step; `options` are those of the locks."""
    def test():
        for kind, steps in ((fault_alone, ALONE), (fault_queued, QUEUED),
                            (fault_handed, HANDED),
                            (fault_released, RELEASED)):
            for step in steps:
                try:
                    kind(fault, step, **options)
                except Exception:
                    print("%s: %s %s at %s" % (test.__name__, kind.__name__,
                                               fault.__name__, step))
                    raise
    test.__name__ = "_".join([fault.__name__, "at_each_step",
                              *map(str, sum(options.items(), ()))])
    return test


# ---- cancel, timeout, free

def leave_at_each_step(leave):
    """A test that ends the acquire by `leave` ("cancel", "timeout" or "free")
    while the relay is frozen at each step."""
    @with_stage
    def one(stage, wire, contended, step, broken):
        up, op, count = step
        if contended:
            stage.holder.acquire()
        trap = wire.trap("freeze", up=up, op=op, count=count)
        pending = stage.lock.submit("acquire",
                                  wait=150 if leave == "timeout" else -1)
        trap.wait()
        if leave == "timeout":
            pending.fails("DEADLINE")
        elif leave == "cancel":
            stage.lock.do("cancel")
            pending.fails("CANCELLED")
        else:
            stage.lock.free()
            pending.fails("CLOSED")
        if broken:
            wire.drop()
        wire.thaw()
        stage.wait_for_contenders(1 if contended else 0)
        if leave != "free":
            assert stage.lock.inspect().state == "idle"
            assert stage.lock.inspect().token == 0
        if contended:
            assert stage.holder.inspect().ok
            stage.holder.release()

    def test():
        for broken in (False, True):
            for contended, steps in ((False, ALONE), (True, QUEUED)):
                for step in steps:
                    try:
                        one(contended, step, broken)
                    except Exception:
                        print("%s: at %s, contended %s, broken %s" % (
                            test.__name__, step, contended, broken))
                        raise
    test.__name__ = "%s_at_each_step" % leave
    return test


@with_stage
def release_is_executed_before_the_next_acquire(stage, wire):
    """The client sends pending deletes before other requests, also after the
    connection has broken."""
    for up in (True, False):
        stage.lock.acquire()
        old = stage.lock.inspect().node
        trap = wire.trap("cut", up=up, op=DELETE)
        again = stage.lock.submit("reacquire")
        trap.wait()
        grant = again.succeeds()
        assert grant.node != old
        assert stage.queue() == [grant.node.rpartition("/")[2]]
        stage.lock.release()
    assert not stage.lock.lines_like("lock", "waiting")


def process_killed_at_any_step_leaves_no_node():
    """The nodes of the killed process are deleted when its session expires."""
    with Worker() as worker, contextlib.ExitStack() as stack:
        direct = worker.client(zk.connect, timeout=3 * T)
        places = []
        for contended, steps in ((False, ALONE), (True, QUEUED)):
            for up, op, count in steps:
                path = direct.create("/killed-", flags=2).path
                if contended:
                    direct.lock(path).acquire()
                wire = stack.enter_context(Relay(zk.connect))
                victim = Worker()
                tested = victim.client(wire.address, timeout=SHORT)
                tested.state("connected")
                trap = wire.trap("freeze", up=up, op=op, count=count)
                tested.lock(path).submit("acquire")
                trap.wait()
                victim.kill()
                victim.close()
                wire.drop()
                places.append((path, contended))
        for path, contended in places:
            eventually(lambda: len(direct.children(path).names) == contended,
                       path, SHORT / 1000 + 4)
        direct.do("close")


# ---- broken connections of a holder

@with_stage
def short_break_suspends_the_lock_only(stage, wire):
    stage.lock.acquire()
    mark = wire.mark()
    wire.drop()
    told = stage.lock.event("suspended")
    assert told.deadline > told.at
    stage.tested.state("connected")
    eventually(lambda: MULTI in wire.ops(mark))
    stage.tested.do("sync", path="/")
    look = stage.lock.inspect()
    assert look.state == "held" and look.ok, look
    assert look.deadline >= told.deadline
    assert not stage.lock.lines_like("lock", "unsure")
    stage.lock.release()


def unsure_when_suspended_is_unsure_at_once():
    with Relay(zk.connect) as wire, Worker() as worker:
        client = worker.client(wire.address, timeout=T)
        lock = client.lock("/careful", unsure_early=1)
        lock.acquire()
        wire.drop()
        lock.event("unsure")
        lock.event("held")
        assert lock.inspect().ok
        lock.release()
        client.do("close")


def unsure_then_lost(one_session):
    """The holder is notified before its lease deadline, and the next client is
    granted only after the deadline."""
    with Relay(zk.connect) as wire, Worker() as worker:
        direct = worker.client(zk.connect, timeout=3 * T)
        tested = worker.client(wire.address, timeout=SHORT,
                               one_session=one_session)
        path = direct.create("/unsure-", flags=2).path
        lock, next_lock = tested.lock(path), direct.lock(path)
        grant = lock.acquire()
        pending = next_lock.submit("acquire")
        next_lock.wait_until_queued()
        wire.freeze()
        unsure = lock.event("unsure")
        assert not pending.is_done() and unsure.at < unsure.deadline, unsure
        other = pending.succeeds()
        assert unsure.deadline < other.at and other.token > grant.token
        look = lock.inspect()
        assert not look.ok and look.state in ("unsure", "lost"), look
        lost = lock.event("lost")
        assert lost.err == "SESSION_EXPIRED", lost
        assert len(lock.lines_like("lock", "unsure")) == 1
        lock.submit("acquire").fails("CLOSED" if one_session else "STATE")
        lock.submit("release").fails("LOST")
        next_lock.release()
        wire.drop()
        wire.thaw()
        if one_session:
            lock.submit("acquire").fails("CLOSED")
        else:
            lock.acquire()
            lock.release()
            tested.do("close")
        direct.do("close")
        assert len(lock.lines_like("lock", "lost")) == 1


def passed_deadline_is_unsure_and_then_lost():
    unsure_then_lost(False)


def final_session_ends_unsure_and_lost():
    unsure_then_lost(True)


def reconnect_before_expiry_renews_an_unsure_lock():
    with Relay(zk.connect) as wire, Worker() as worker:
        tested = worker.client(wire.address, timeout=SHORT, margin=2500)
        path = tested.create("/doubt-", flags=2).path
        lock = tested.lock(path)
        token = lock.acquire().token
        wire.freeze()
        lock.event("unsure")
        wire.drop()
        wire.thaw()
        lock.event("held")
        look = lock.inspect()
        assert look.ok and look.state == "held" and look.token == token
        assert not lock.lines_like("lock", "lost")
        lock.release()
        tested.do("close")


def waiter_whose_session_expired_queues_again():
    with Relay(zk.connect) as wire, Worker() as worker:
        direct = worker.client(zk.connect, timeout=3 * T)
        tested = worker.client(wire.address, timeout=SHORT)
        path = direct.create("/anew-", flags=2).path
        holder = direct.lock(path)
        locks = [tested.lock(path), tested.lock(path, fail_on_expiry=1)]
        holder.acquire()
        pending = [lock.submit("acquire") for lock in locks]
        for lock in locks:
            lock.wait_until_queued()
        old = locks[0].inspect().node
        wire.freeze()
        eventually(lambda: len(direct.children(path).names) == 1)
        wire.drop()
        wire.thaw()
        pending[1].fails("SESSION_EXPIRED")
        assert locks[0].event("place_lost").err == "SESSION_EXPIRED"
        locks[0].wait_until_queued()
        new = locks[0].inspect().node
        assert new != old and new.rpartition("/")[2][:39] not in old
        holder.release()
        grant = pending[0].succeeds()
        assert direct.get(grant.node).owner == tested.facts().session
        locks[0].release()
        tested.do("close")
        direct.do("close")


def stopped_process_is_not_sure_when_it_continues():
    with Worker() as sleeper, Worker() as worker:
        direct = worker.client(zk.connect, timeout=3 * T)
        path = direct.create("/slept-", flags=2).path
        tested = sleeper.client(zk.connect, timeout=SHORT)
        holder, waiter = tested.lock(path), tested.lock(path)
        holder.acquire()
        waiting = waiter.submit("acquire")
        waiter.wait_until_queued()
        other = direct.lock(path)
        pending = other.submit("acquire")
        other.wait_until_queued()
        sleeper.stop()
        look = holder.submit("inspect")
        pending.succeeds()
        other.release()
        sleeper.cont()
        # The process checks the clock before it reads replies from the socket.
        assert not look.succeeds().ok, look.succeeds()
        holder.event("lost")
        grant = waiting.succeeds()
        assert grant.token > pending.succeeds().token
        waiter.release()
        direct.do("close")
        tested.do("close")


with zkserver.Server("--tick", "500") as zk:
    live.run(
        at_each_step(cut),
        at_each_step(cut, layout=NATIVE),
        at_each_step(tear),
        at_each_step(freeze),
        at_each_step(stop),
        at_each_step(kill),
        leave_at_each_step("cancel"),
        leave_at_each_step("timeout"),
        leave_at_each_step("free"),
        release_is_executed_before_the_next_acquire,
        short_break_suspends_the_lock_only,
        unsure_when_suspended_is_unsure_at_once,
        live.together(
            passed_deadline_is_unsure_and_then_lost,
            final_session_ends_unsure_and_lost,
            reconnect_before_expiry_renews_an_unsure_lock,
            waiter_whose_session_expired_queues_again,
            stopped_process_is_not_sure_when_it_continues,
            process_killed_at_any_step_leaves_no_node,
        ),
    )
