# SPDX-License-Identifier: Apache-2.0
"""The mutex while connections break and the server is killed or stopped, at
each step of an acquire and of a release; cancels and timeouts there; and the
end of the session."""

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

# Each frame of an acquire that has to wait, and of its release: on its way up
# or down, its opcode, and which of these.
ALONE = [(True, CREATE2, 1), (True, CHILDREN, 1),
         (False, CREATE2, 1), (False, CHILDREN, 1)]
QUEUED = ALONE + [(True, GET, 1), (True, GET, 2),
                  (False, GET, 1), (False, GET, 2)]
HANDED = [(False, EVENT, 1), (True, MULTI, 1), (False, MULTI, 1)]
RELEASED = [(True, DELETE, 1), (False, DELETE, 1)]

NATIVE = 2  # lk_layout: no name tells whose it is


class Stage:
    """A holder straight at the server, and somebody who wants its lock through
    a relay."""

    def __init__(self, worker, wire, options):
        self.far = worker.client(zk.connect, timeout=3 * T)
        self.near = worker.client(wire.address, timeout=T)
        self.far.state("connected")
        self.near.state("connected")
        self.dir = self.far.create("/faults-", flags=2).path
        self.holder = self.far.lock(self.dir, **options)
        self.lock = self.near.lock(self.dir, **options)

    def queue(self):
        return sorted(self.far.do("children", path=self.dir,
                                  repeat=1).names)

    def becomes(self, count):
        eventually(lambda: len(self.queue()) == count,
                   "%d in the queue" % count)

    def end(self):
        """All is released; nothing may be left, without waiting for any
        session to end."""
        self.becomes(0)
        for client in (self.near, self.far):
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


# ---- what can happen to a connection or a server, and the way back from it

def nothing():
    pass


def cut(wire):
    return "cut", nothing


def tear(wire):
    return "tear", nothing


def freeze(wire):
    """Until the client has had enough."""
    def back():
        time.sleep(.1)
        wire.drop()
        wire.thaw()
    return "freeze", back


def kill(wire):
    pid = zk.pid()

    def back():
        zk.kill()  # that script/server knows
        zk.start()
    return lambda: os.kill(pid, signal.SIGKILL), back


def stop(wire):
    pid = zk.pid()

    def back():
        time.sleep(.3)
        os.kill(pid, signal.SIGCONT)
    return lambda: os.kill(pid, signal.SIGSTOP), back


def granted(stage, asked):
    grant = asked.succeeds()
    assert stage.queue() == [grant.node.rpartition("/")[2]], grant
    found = stage.far.do("get", path=grant.node, repeat=1)
    assert found.czxid == grant.token
    assert found.owner == stage.near.facts().session


@with_stage
def fault_alone(stage, wire, fault, step):
    up, op, count = step
    action, back = fault(wire)
    trap = wire.trap(action, up=up, op=op, count=count)
    asked = stage.lock.submit("acquire")
    trap.wait()
    back()
    granted(stage, asked)
    stage.lock.release()


@with_stage
def fault_queued(stage, wire, fault, step):
    up, op, count = step
    stage.holder.acquire()
    action, back = fault(wire)
    trap = wire.trap(action, up=up, op=op, count=count)
    asked = stage.lock.submit("acquire")
    trap.wait()
    back()
    stage.lock.wait_until_queued()
    assert not asked.is_done()
    stage.becomes(2)
    assert stage.holder.inspect().ok
    stage.holder.release()
    granted(stage, asked)
    stage.lock.release()


@with_stage
def fault_handed(stage, wire, fault, step):
    up, op, count = step
    stage.holder.acquire()
    asked = stage.lock.submit("acquire")
    # It tells its place before it watches the one ahead.
    eventually(lambda: [f.op for f in wire.frames_since()
                        if not f.up].count(GET) == 2)
    action, back = fault(wire)
    trap = wire.trap(action, up=up, op=op, count=count)
    released = stage.holder.submit("release")
    trap.wait()
    back()
    released.succeeds()
    granted(stage, asked)
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
    # It does not stand in its own way.
    stage.holder.release()
    stage.lock.acquire()
    stage.lock.release()


def at_each_step(fault, **options):
    """`options` are those of the lock."""
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


# ---- nobody wants it any more

def leave_at_each_step(leave):
    """`leave` ends the acquire while the wire is frozen at that step."""
    @with_stage
    def one(stage, wire, contended, step, broken):
        up, op, count = step
        if contended:
            stage.holder.acquire()
        trap = wire.trap("freeze", up=up, op=op, count=count)
        asked = stage.lock.submit("acquire",
                                  wait=150 if leave == "timeout" else -1)
        trap.wait()
        if leave == "timeout":
            asked.fails("DEADLINE")
        elif leave == "cancel":
            stage.lock.do("cancel")
            asked.fails("CANCELLED")
        else:
            stage.lock.free()
            asked.fails("CLOSED")
        if broken:
            wire.drop()
        wire.thaw()
        stage.becomes(1 if contended else 0)
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
def a_release_comes_before_the_next_acquire(stage, wire):
    """Also when the connection breaks meanwhile: pending deletes go first."""
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


def a_process_that_is_killed_at_any_step_leaves_nothing():
    """Once its session has ended, that is."""
    with Worker() as worker, contextlib.ExitStack() as stack:
        far = worker.client(zk.connect, timeout=3 * T)
        places = []
        for contended, steps in ((False, ALONE), (True, QUEUED)):
            for up, op, count in steps:
                path = far.create("/killed-", flags=2).path
                if contended:
                    far.lock(path).acquire()
                wire = stack.enter_context(Relay(zk.connect))
                victim = Worker()
                near = victim.client(wire.address, timeout=SHORT)
                near.state("connected")
                trap = wire.trap("freeze", up=up, op=op, count=count)
                near.lock(path).submit("acquire")
                trap.wait()
                victim.kill()
                victim.close()
                wire.drop()
                places.append((path, contended))
        for path, contended in places:
            eventually(lambda: len(far.children(path).names) == contended,
                       path, SHORT / 1000 + 4)
        far.do("close")


# ---- holding, while the connection is gone

@with_stage
def a_short_break_is_told_and_survived(stage, wire):
    stage.lock.acquire()
    mark = wire.mark()
    wire.drop()
    told = stage.lock.event("suspended")
    assert told.deadline > told.at
    stage.near.state("connected")
    eventually(lambda: MULTI in wire.ops(mark))
    stage.near.do("sync", path="/")
    look = stage.lock.inspect()
    assert look.state == "held" and look.ok, look
    assert look.deadline >= told.deadline
    assert not stage.lock.lines_like("lock", "unsure")
    stage.lock.release()


def some_stop_as_soon_as_it_breaks():
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
    """The holder is told that it may not hold before anybody can know that it
    does not."""
    with Relay(zk.connect) as wire, Worker() as worker:
        far = worker.client(zk.connect, timeout=3 * T)
        near = worker.client(wire.address, timeout=SHORT,
                             one_session=one_session)
        path = far.create("/unsure-", flags=2).path
        lock, next_lock = near.lock(path), far.lock(path)
        grant = lock.acquire()
        asked = next_lock.submit("acquire")
        next_lock.wait_until_queued()
        wire.freeze()
        unsure = lock.event("unsure")
        assert not asked.is_done() and unsure.at < unsure.deadline, unsure
        other = asked.succeeds()
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
            near.do("close")
        far.do("close")
        assert len(lock.lines_like("lock", "lost")) == 1


def a_lease_that_runs_out_is_told_and_then_lost():
    unsure_then_lost(False)


def and_nothing_comes_after_a_final_session():
    unsure_then_lost(True)


def a_break_that_ends_in_time_is_no_loss():
    with Relay(zk.connect) as wire, Worker() as worker:
        near = worker.client(wire.address, timeout=SHORT, margin=2500)
        path = near.create("/doubt-", flags=2).path
        lock = near.lock(path)
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
        near.do("close")


def who_waits_when_its_session_ends_queues_anew():
    with Relay(zk.connect) as wire, Worker() as worker:
        far = worker.client(zk.connect, timeout=3 * T)
        near = worker.client(wire.address, timeout=SHORT)
        path = far.create("/anew-", flags=2).path
        holder = far.lock(path)
        locks = [near.lock(path), near.lock(path, fail_on_expiry=1)]
        holder.acquire()
        asked = [lock.submit("acquire") for lock in locks]
        for lock in locks:
            lock.wait_until_queued()
        old = locks[0].inspect().node
        wire.freeze()
        eventually(lambda: len(far.children(path).names) == 1)
        wire.drop()
        wire.thaw()
        asked[1].fails("SESSION_EXPIRED")
        assert locks[0].event("place_lost").err == "SESSION_EXPIRED"
        locks[0].wait_until_queued()
        new = locks[0].inspect().node
        assert new != old and new.rpartition("/")[2][:39] not in old
        holder.release()
        grant = asked[0].succeeds()
        assert far.get(grant.node).owner == near.facts().session
        locks[0].release()
        near.do("close")
        far.do("close")


def a_process_that_slept_knows_it_first():
    with Worker() as sleeper, Worker() as worker:
        far = worker.client(zk.connect, timeout=3 * T)
        path = far.create("/slept-", flags=2).path
        near = sleeper.client(zk.connect, timeout=SHORT)
        holder, waiter = near.lock(path), near.lock(path)
        holder.acquire()
        waiting = waiter.submit("acquire")
        waiter.wait_until_queued()
        other = far.lock(path)
        asked = other.submit("acquire")
        other.wait_until_queued()
        sleeper.stop()
        look = holder.submit("inspect")
        asked.succeeds()
        other.release()
        sleeper.cont()
        # The first thing it does: no grant from what waited in its socket.
        assert not look.succeeds().ok, look.succeeds()
        holder.event("lost")
        grant = waiting.succeeds()
        assert grant.token > asked.succeeds().token
        waiter.release()
        far.do("close")
        near.do("close")


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
        a_release_comes_before_the_next_acquire,
        a_short_break_is_told_and_survived,
        some_stop_as_soon_as_it_breaks,
        live.together(
            a_lease_that_runs_out_is_told_and_then_lost,
            and_nothing_comes_after_a_final_session,
            a_break_that_ends_in_time_is_no_loss,
            who_waits_when_its_session_ends_queues_anew,
            a_process_that_slept_knows_it_first,
            a_process_that_is_killed_at_any_step_leaves_nothing,
        ),
    )
