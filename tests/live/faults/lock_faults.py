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
from worker import SEQUENTIAL, Worker
from relay import CHILDREN, CREATE2, DELETE, DOWN, EVENT, GET, MULTI, UP, \
    Relay

LONG = 30000    # session timeouts in ms
MEDIUM = 10000
SHORT = 4000

# The frames of an acquire without and with waiting, of a grant, and of a release:
# (direction, opcode, the n-th of this opcode).
ACQUIRE_FREE = [(UP, CREATE2, 1), (UP, CHILDREN, 1),
                (DOWN, CREATE2, 1), (DOWN, CHILDREN, 1)]
ACQUIRE_HELD = ACQUIRE_FREE + [(UP, GET, 1), (UP, GET, 2),
                               (DOWN, GET, 1), (DOWN, GET, 2)]
GRANT = [(DOWN, EVENT, 1), (UP, MULTI, 1), (DOWN, MULTI, 1)]
RELEASE = [(UP, DELETE, 1), (DOWN, DELETE, 1)]

NATIVE = 2  # a lk_layout without a UUID in the node names


class TwoLocks:
    """Two locks for the same path: `rival` of the client `direct` without a
    relay, and `lock` of the client `tested` behind a relay."""

    def __init__(self, worker, wire, options):
        self.direct = worker.client(zk.connect, timeout=LONG)
        self.tested = worker.client(wire.address, timeout=MEDIUM)
        self.direct.wait_for_state("connected")
        self.tested.wait_for_state("connected")
        self.path = self.direct.create("/faults-", flags=SEQUENTIAL).path
        self.rival = self.direct.lock(self.path, **options)
        self.lock = self.tested.lock(self.path, **options)

    def queue(self):
        return sorted(self.direct.do("children", path=self.path,
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


def with_two_locks(test):
    """The options of the resulting function are those of the locks."""
    def run_test(*args, **options):
        with Relay(zk.connect) as wire, Worker() as worker:
            locks = TwoLocks(worker, wire, options)
            test(locks, wire, *args)
            locks.end()
    run_test.__name__ = test.__name__
    return run_test


# ---- faults: each gives (action of the trap, function that ends the fault)

def do_nothing():
    pass


def cut(wire):
    return "cut", do_nothing


def tear(wire):
    return "tear", do_nothing


def freeze(wire):
    """The relay forwards nothing for 0.1 s, then closes the connection."""
    def end_fault():
        time.sleep(.1)
        wire.drop()
        wire.thaw()
    return "freeze", end_fault


def kill(wire):
    pid = zk.pid()

    def end_fault():
        zk.kill()  # script/server must know that the server is not running
        zk.start()
    return lambda: os.kill(pid, signal.SIGKILL), end_fault


def stop(wire):
    pid = zk.pid()

    def end_fault():
        time.sleep(.3)
        os.kill(pid, signal.SIGCONT)
    return lambda: os.kill(pid, signal.SIGSTOP), end_fault


def check_grant(locks, pending):
    """Check that the acquire succeeds, and that its node is the only one."""
    grant = pending.succeeds()
    assert locks.queue() == [grant.node.rpartition("/")[2]], grant
    node = locks.direct.do("get", path=grant.node, repeat=1)
    assert node.czxid == grant.token
    assert node.owner == locks.tested.facts().session


@with_two_locks
def check_acquire_of_a_free_lock(locks, wire, fault, step):
    up, op, count = step
    action, end_fault = fault(wire)
    trap = wire.at_frame(action, up=up, op=op, count=count)
    pending = locks.lock.submit("acquire")
    trap.wait()
    end_fault()
    check_grant(locks, pending)
    locks.lock.release()


@with_two_locks
def check_acquire_of_a_held_lock(locks, wire, fault, step):
    up, op, count = step
    locks.rival.acquire()
    action, end_fault = fault(wire)
    trap = wire.at_frame(action, up=up, op=op, count=count)
    pending = locks.lock.submit("acquire")
    trap.wait()
    end_fault()
    locks.lock.wait_until_queued()
    assert not pending.is_done()
    locks.wait_for_contenders(2)
    assert locks.rival.inspect().ok
    locks.rival.release()
    check_grant(locks, pending)
    locks.lock.release()


@with_two_locks
def check_grant_to_a_waiter(locks, wire, fault, step):
    up, op, count = step
    locks.rival.acquire()
    pending = locks.lock.submit("acquire")
    # The lock reports its position before the watch is set, so count replies.
    eventually(lambda: [f.op for f in wire.frames_since()
                        if not f.up].count(GET) == 2)
    action, end_fault = fault(wire)
    trap = wire.at_frame(action, up=up, op=op, count=count)
    released = locks.rival.submit("release")
    trap.wait()
    end_fault()
    released.succeeds()
    check_grant(locks, pending)
    assert locks.lock.inspect().ok
    locks.lock.release()


@with_two_locks
def check_release(locks, wire, fault, step):
    up, op, count = step
    locks.lock.acquire()
    waiting = locks.rival.submit("acquire")
    locks.rival.wait_until_queued()
    action, end_fault = fault(wire)
    trap = wire.at_frame(action, up=up, op=op, count=count)
    released = locks.lock.submit("release")
    trap.wait()
    end_fault()
    waiting.succeeds()
    released.succeeds()
    # The lock must not wait for a node that it created itself.
    locks.rival.release()
    locks.lock.acquire()
    locks.lock.release()


def at_each_step(fault, **options):
    """A test of the fault at each step; `options` are those of the locks."""
    def test():
        for check, steps in (
                (check_acquire_of_a_free_lock, ACQUIRE_FREE),
                (check_acquire_of_a_held_lock, ACQUIRE_HELD),
                (check_grant_to_a_waiter, GRANT),
                (check_release, RELEASE)):
            for step in steps:
                try:
                    check(fault, step, **options)
                except Exception:
                    print("%s: %s %s at %s" % (test.__name__, check.__name__,
                                               fault.__name__, step))
                    raise
    test.__name__ = "mutex_survives_%s_at_each_step" % fault.__name__
    for option, value in options.items():
        test.__name__ += "_with_%s_%s" % (option, value)
    return test


# ---- cancel, timeout, free

def end_acquire_at_each_step(how):
    """A test in which a "cancel", a "timeout" or a "free" ends the acquire while
    the relay is frozen, once at each step."""
    @with_two_locks
    def check_step(locks, wire, contended, step, broken):
        up, op, count = step
        if contended:
            locks.rival.acquire()
        trap = wire.at_frame("freeze", up=up, op=op, count=count)
        pending = locks.lock.submit("acquire",
                                    wait=150 if how == "timeout" else -1)
        trap.wait()
        if how == "timeout":
            pending.fails("DEADLINE")
        elif how == "cancel":
            locks.lock.do("cancel")
            pending.fails("CANCELLED")
        else:
            locks.lock.free()
            pending.fails("CLOSED")
        if broken:
            wire.drop()
        wire.thaw()
        locks.wait_for_contenders(1 if contended else 0)
        if how != "free":
            assert locks.lock.inspect().state == "idle"
            assert locks.lock.inspect().token == 0
        if contended:
            assert locks.rival.inspect().ok
            locks.rival.release()

    def test():
        for broken in (False, True):
            for contended, steps in ((False, ACQUIRE_FREE), (True, ACQUIRE_HELD)):
                for step in steps:
                    try:
                        check_step(contended, step, broken)
                    except Exception:
                        print("%s: at %s, contended %s, broken %s" % (
                            test.__name__, step, contended, broken))
                        raise
    test.__name__ = "%s_at_each_step_leaves_no_node" % how
    return test


@with_two_locks
def release_is_executed_before_the_next_acquire(locks, wire):
    """The client sends pending deletes before other requests, also after the
    connection has broken."""
    for up in (UP, DOWN):
        locks.lock.acquire()
        old = locks.lock.inspect().node
        trap = wire.at_frame("cut", up=up, op=DELETE)
        again = locks.lock.submit("reacquire")
        trap.wait()
        grant = again.succeeds()
        assert grant.node != old
        assert locks.queue() == [grant.node.rpartition("/")[2]]
        locks.lock.release()
    assert not locks.lock.lines_like("lock", "waiting")


def process_killed_at_any_step_leaves_no_node():
    """The nodes of the killed process are deleted when its session expires."""
    with Worker() as worker, contextlib.ExitStack() as stack:
        direct = worker.client(zk.connect, timeout=LONG)
        queues = []     # (path, whether a rival holds the lock)
        for contended, steps in ((False, ACQUIRE_FREE), (True, ACQUIRE_HELD)):
            for up, op, count in steps:
                path = direct.create("/killed-", flags=SEQUENTIAL).path
                if contended:
                    direct.lock(path).acquire()
                wire = stack.enter_context(Relay(zk.connect))
                killed = Worker()
                tested = killed.client(wire.address, timeout=SHORT)
                tested.wait_for_state("connected")
                trap = wire.at_frame("freeze", up=up, op=op, count=count)
                tested.lock(path).submit("acquire")
                trap.wait()
                killed.kill()
                killed.close()
                wire.drop()
                queues.append((path, contended))
        for path, contended in queues:
            left = 1 if contended else 0
            eventually(lambda: len(direct.children(path).names) == left,
                       path, SHORT / 1000 + 4)
        direct.do("close")


# ---- broken connections of a holder

@with_two_locks
def short_break_suspends_the_lock_only(locks, wire):
    locks.lock.acquire()
    mark = wire.mark()
    wire.drop()
    suspended = locks.lock.wait_for_event("suspended")
    assert suspended.deadline > suspended.at
    locks.tested.wait_for_state("connected")
    eventually(lambda: MULTI in wire.ops(mark))
    locks.tested.do("sync", path="/")
    now = locks.lock.inspect()
    assert now.state == "held" and now.ok, now
    assert now.deadline >= suspended.deadline
    assert not locks.lock.lines_like("lock", "unsure")
    locks.lock.release()


def suspended_lock_with_unsure_early_is_unsure_at_once():
    with Relay(zk.connect) as wire, Worker() as worker:
        client = worker.client(wire.address, timeout=MEDIUM)
        lock = client.lock("/careful", unsure_early=1)
        lock.acquire()
        wire.drop()
        lock.wait_for_event("unsure")
        lock.wait_for_event("held")
        assert lock.inspect().ok
        lock.release()
        client.do("close")


def check_unsure_then_lost(one_session):
    """Check that the holder is notified before its lease deadline, and that the
    next client is granted only after the deadline. `one_session`: the client
    does not begin a new session."""
    with Relay(zk.connect) as wire, Worker() as worker:
        direct = worker.client(zk.connect, timeout=LONG)
        tested = worker.client(wire.address, timeout=SHORT,
                               one_session=one_session)
        path = direct.create("/unsure-", flags=SEQUENTIAL).path
        lock, next_lock = tested.lock(path), direct.lock(path)
        grant = lock.acquire()
        pending = next_lock.submit("acquire")
        next_lock.wait_until_queued()
        wire.freeze()
        unsure = lock.wait_for_event("unsure")
        assert not pending.is_done() and unsure.at < unsure.deadline, unsure
        next_grant = pending.succeeds()
        assert unsure.deadline < next_grant.at
        assert next_grant.token > grant.token
        now = lock.inspect()
        assert not now.ok and now.state in ("unsure", "lost"), now
        lost = lock.wait_for_event("lost")
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


def separated_holder_is_unsure_and_then_lost():
    check_unsure_then_lost(one_session=False)


def separated_holder_with_one_session_is_unsure_and_then_lost():
    check_unsure_then_lost(one_session=True)


def reconnect_before_expiry_renews_an_unsure_lock():
    with Relay(zk.connect) as wire, Worker() as worker:
        tested = worker.client(wire.address, timeout=SHORT, margin=2500)
        path = tested.create("/renewed-", flags=SEQUENTIAL).path
        lock = tested.lock(path)
        token = lock.acquire().token
        wire.freeze()
        lock.wait_for_event("unsure")
        wire.drop()
        wire.thaw()
        lock.wait_for_event("held")
        now = lock.inspect()
        assert now.ok and now.state == "held" and now.token == token
        assert not lock.lines_like("lock", "lost")
        lock.release()
        tested.do("close")


def waiter_whose_session_expired_queues_again():
    with Relay(zk.connect) as wire, Worker() as worker:
        direct = worker.client(zk.connect, timeout=LONG)
        tested = worker.client(wire.address, timeout=SHORT)
        path = direct.create("/anew-", flags=SEQUENTIAL).path
        holder = direct.lock(path)
        waiter = tested.lock(path)
        failing_waiter = tested.lock(path, fail_on_expiry=1)
        holder.acquire()
        pending = waiter.submit("acquire")
        failing = failing_waiter.submit("acquire")
        waiter.wait_until_queued()
        failing_waiter.wait_until_queued()
        old = waiter.inspect().node
        wire.freeze()
        eventually(lambda: len(direct.children(path).names) == 1)
        wire.drop()
        wire.thaw()
        failing.fails("SESSION_EXPIRED")
        assert waiter.wait_for_event("place_lost").err == "SESSION_EXPIRED"
        waiter.wait_until_queued()
        new = waiter.inspect().node
        new_uuid = new.rpartition("/")[2][:len("_c_") + 36]
        assert new_uuid not in old, (old, new)
        holder.release()
        grant = pending.succeeds()
        assert direct.get(grant.node).owner == tested.facts().session
        waiter.release()
        tested.do("close")
        direct.do("close")


def stopped_process_is_not_sure_when_it_continues():
    with Worker() as stopped_process, Worker() as worker:
        direct = worker.client(zk.connect, timeout=LONG)
        path = direct.create("/stopped-", flags=SEQUENTIAL).path
        tested = stopped_process.client(zk.connect, timeout=SHORT)
        holder, waiter = tested.lock(path), tested.lock(path)
        holder.acquire()
        waiting = waiter.submit("acquire")
        waiter.wait_until_queued()
        rival = direct.lock(path)
        rival_waiting = rival.submit("acquire")
        rival.wait_until_queued()
        stopped_process.stop()
        inspect = holder.submit("inspect")
        rival_grant = rival_waiting.succeeds()
        rival.release()
        stopped_process.cont()
        # The process checks the clock before it reads replies from the socket.
        assert not inspect.succeeds().ok
        holder.wait_for_event("lost")
        grant = waiting.succeeds()
        assert grant.token > rival_grant.token
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
        end_acquire_at_each_step("cancel"),
        end_acquire_at_each_step("timeout"),
        end_acquire_at_each_step("free"),
        release_is_executed_before_the_next_acquire,
        short_break_suspends_the_lock_only,
        suspended_lock_with_unsure_early_is_unsure_at_once,
        live.together(
            separated_holder_is_unsure_and_then_lost,
            separated_holder_with_one_session_is_unsure_and_then_lost,
            reconnect_before_expiry_renews_an_unsure_lock,
            waiter_whose_session_expired_queues_again,
            stopped_process_is_not_sure_when_it_continues,
            process_killed_at_any_step_leaves_no_node,
        ),
    )
