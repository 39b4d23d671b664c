# SPDX-License-Identifier: Apache-2.0
"""The calls of <latchkey/nodes.h> on a real server, with and without a chroot.
The connection is cut at each frame of a call. The reported outcome must be
true, nothing may be executed twice, and no node may be left that was not
reported."""

import functools
import itertools
import sys
from concurrent import futures

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG
from worker import Worker
from relay import CONNECT, CREATE2, DELETE, EXISTS, GET, MULTI, PING, SET, \
    Relay

AT_ONCE = 16  # number of cases that run at the same time
EPHEMERAL, SEQUENTIAL = 1, 2

# Cuts, as (from the client, forward the frame): a request that does not arrive, a
# request that arrives before the connection breaks, and a reply that is lost.
LOST, SENT, DONE = (True, False), (True, True), (False, False)
CUTS = (LOST, SENT, DONE)


class Stage:
    """A directory, with a client `direct`, and a client `tested` behind a relay, for
    which the directory may be the chroot."""

    def __init__(self, worker, wire, direct, chroot):
        self.wire, self.direct = wire, direct
        self.dir = direct.create("/nodes-", flags=SEQUENTIAL).path
        self.tested = worker.client(wire.address + (chroot and self.dir or ""),
                                    timeout=LONG)
        self.tested.state("connected")
        self.prefix = "" if chroot else self.dir

    def submit(self, verb, path, **options):
        return self.tested.submit(verb, path=self.prefix + path, **options)

    def trap(self, cut, nth):
        """Cut the connection at the nth frame from now."""
        up, forward = cut
        return self.wire.at_frame("cut", up=up, count=nth, forward=forward)

    def frames(self, mark):
        """The numbers of frames from the client (True) and to it (False)."""
        found = [f.up for f in self.wire.frames_since(mark)
                 if f.op not in (CONNECT, PING)]
        return {True: found.count(True), False: found.count(False)}

    # ---- the state of the server

    def node(self, path):
        """The result of exists()."""
        return self.direct.submit("exists", path=self.dir + path).result()

    def has(self, path):
        return self.node(path).err == "0"

    def names(self, path):
        return shared.names(self.direct, self.dir + path)

    def settle(self):
        """Wait until requests of the broken connection have been executed."""
        self.tested.do("sync", path="/")

    def end(self):
        self.wire.clear_traps()
        self.tested.do("close")


def in_all(test, cases):
    """Run test(stage, *case) for all cases, with and without a chroot. AT_ONCE
    cases run at the same time, since they mostly wait for connections. The
    cases are those of cases(run); it can call run(*case) to count the frames of
    a case without a cut."""
    with Worker() as worker:
        direct = worker.client(shared.connect_string(), timeout=LONG)

        def run(chroot, *case):
            with Relay(shared.connect_string()) as wire:
                stage = Stage(worker, wire, direct, chroot)
                try:
                    result = test(stage, *case)
                except AssertionError as e:
                    raise AssertionError("%s: %s" % ((chroot, *case), e))
                stage.end()
                return result

        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for chroot in (False, True):
                alone = functools.partial(run, chroot)
                list(pool.map(lambda case: run(chroot, *case),
                              cases(alone)))
        direct.do("close")


def each_frame(undisturbed):
    """All faults (cut, nth) of a call that has these numbers of frames without
    a fault."""
    return [(cut, nth) for cut in CUTS
            for nth in range(1, undisturbed[cut[0]] + 1)]


# ---- parents

def a_create(stage, flags, fault):
    mark = stage.wire.mark()
    if fault is not None:
        trap = stage.trap(*fault)
    done = stage.submit("create_deep", "/x/y/n", data=b"1", flags=flags).result()
    if fault is None:
        assert done.err == "0", done
        return stage.frames(mark)
    trap.wait()
    assert done.err == "IN_DOUBT", done
    stage.settle()
    made = stage.names("/x/y")
    assert len(made) <= 1 and set(stage.names("")) <= {"x"}, made
    # The call can be repeated.
    again = stage.submit("create_deep", "/x/y/n", data=b"2",
                         flags=flags).result()
    if made and flags & SEQUENTIAL == 0:
        assert again.err == "NODE_EXISTS", again
        assert stage.direct.get(stage.dir + "/x/y/n").data == b"1"
    else:
        assert again.err == "0", again
        assert len(stage.names("/x/y")) == len(made) + 1
    return None


def creates(run):
    for flags in (0, SEQUENTIAL):
        for fault in each_frame(run(flags, None)):
            yield flags, fault


def create_with_parents_reports_its_outcome():
    in_all(a_create, creates)


# ---- trees

TREE = ("/t", "/t/a", "/t/a/1", "/t/a/2", "/t/b", "/t/b/c", "/t/b/c/d", "/t/e",
        "/tt")


def a_tree(stage, repeat, fault):
    for path in TREE:
        stage.direct.create(stage.dir + path)
    mark = stage.wire.mark()
    if fault is not None:
        trap = stage.trap(*fault)
    done = stage.submit("delete_deep", "/t", repeat=repeat).result()
    if fault is None:
        assert done.err == "0" and done.deleted == 8, done
        return stage.frames(mark)
    trap.wait()
    stage.settle()
    left = len([path for path in TREE[:-1] if stage.has(path)])
    assert done.deleted <= 8 - left, (done, left)
    if repeat:
        assert done.err == "0" and left == 0, (done, left)
    else:
        assert done.err in ("IN_DOUBT", "CONNECTION_LOSS", "NOT_SENT"), done
        again = stage.submit("delete_deep", "/t").result()
        assert again.err == ("0" if left > 0 else "NO_NODE"), (again, left)
    assert stage.names("") == ["tt"]
    return None


def trees(run):
    for repeat in (False, True):
        for fault in each_frame(run(repeat, None)):
            yield repeat, fault


def tree_is_deleted_despite_cuts():
    in_all(a_tree, trees)


# ---- reliable writes

class Write:
    """A reliable write of the node /n. If `there`, the node exists before."""

    def __init__(self, name, sole, **options):
        self.name, self.sole, self.options = name, sole, options
        self.there = name != "create_reliable"
        self.op = {"create_reliable": CREATE2, "set_reliable": SET,
                   "delete_reliable": DELETE}[name]
        self.certain = sole or options.get("flags") == EPHEMERAL

    def __repr__(self):
        return "%s sole=%s %s" % (self.name, self.sole, self.options)

    def recovery_ops(self):
        """The opcodes of its requests after a reconnect, which find out whether
        the write was executed."""
        parent = self.name == "create_reliable" and not self.sole
        return (MULTI, EXISTS, GET) if parent else (MULTI, GET)

    def submit(self, stage):
        if self.name == "delete_reliable":
            return stage.submit(self.name, "/n", sole=self.sole)
        return stage.submit(self.name, "/n", sole=self.sole, data=b"ours",
                            **self.options)

    def times(self, stage):
        """The number of times that the server has executed the write."""
        changes = stage.direct.get(stage.dir).cversion
        if self.name == "create_reliable":
            return changes
        if self.name == "delete_reliable":
            return changes - 1
        return stage.node("/n").version

    def check_true(self, stage, done):
        found = stage.node("/n")
        if self.name == "delete_reliable":
            assert found.err == "NO_NODE", found
        else:
            assert (found.mzxid, found.owner) == (done.mzxid, done.owner)
            assert stage.direct.get(stage.dir + "/n").data == b"ours"


WRITES = (Write("create_reliable", False), Write("create_reliable", True),
          Write("create_reliable", False, flags=EPHEMERAL),
          Write("set_reliable", False, version=0),
          Write("set_reliable", True, version=0),
          Write("set_reliable", True, version=-1),
          Write("delete_reliable", False), Write("delete_reliable", True))


def a_write(stage, write, first, second):
    """Cut the connection at the write, and again at a request with which the
    client finds out whether the write was executed."""
    if write.there:
        stage.direct.create(stage.dir + "/n", data=b"before")
    stage.settle()  # a sync, so that the client knows a zxid after the create
    traps = [stage.wire.at_frame("cut", up=up, op=op, forward=forward)
             for (up, forward), op in
             ((first, write.op), second) if op is not None]
    done = write.submit(stage).result()
    for trap in traps:
        trap.wait()
    times = write.times(stage)
    assert times <= 1, times
    if write.certain or first == LOST:
        assert done.err == "0", done
    elif first == DONE:
        assert done.err == "IN_DOUBT" and times == 1, (done, times)
    else:
        assert done.err in ("0", "IN_DOUBT"), done
    if done.err == "0":
        assert times == 1, done
        write.check_true(stage, done)


def writes(_):
    for write in WRITES:
        for first in CUTS:
            yield write, first, (LOST, None)
            for cut, op in itertools.product((LOST, DONE), write.recovery_ops()):
                yield write, first, (cut, op)


def reliable_write_is_executed_once_and_reported():
    in_all(a_write, writes)


def a_first_write(stage, write, there, first):
    """The first write of a client, which knows no zxid, with and without an
    existing node."""
    if there:
        stage.direct.create(stage.dir + "/n", data=b"before")
    elif write.name != "create_reliable":
        return
    up, forward = first
    trap = stage.wire.at_frame("cut", up=up, op=write.op, forward=forward)
    done = write.submit(stage).result()
    trap.wait()
    if write.name == "create_reliable" and there:
        assert done.err in ("NODE_EXISTS", "IN_DOUBT"), done
        assert first != DONE or done.err == "NODE_EXISTS", done
        assert write.times(stage) == 1
        return
    times = write.times(stage)
    if done.err == "IN_DOUBT":
        # A client that knows no zxid cannot tell when the node was created.
        assert not write.certain or (times == 1 and write.sole), done
        return
    assert done.err == "0" and times == 1, (done, times)
    write.check_true(stage, done)


def first_writes(_):
    yield from itertools.product(WRITES, (False, True), CUTS)


def existing_node_is_not_taken_for_the_own():
    in_all(a_first_write, first_writes)


def reliable_write_ends_with_an_expired_session():
    """The reply is lost, and the session expires before the reconnect."""
    with Worker() as worker, Relay(shared.connect_string()) as wire:
        direct = worker.client(shared.connect_string(), timeout=LONG)
        path = direct.create("/ended-", flags=SEQUENTIAL).path
        tested = worker.client(wire.address, timeout=1000)
        tested.state("connected")
        tested.do("sync", path="/")
        pending = []
        for name, options in (("kept", {"sole": True}),
                              ("gone", {"flags": EPHEMERAL})):
            pending.append(tested.submit("create_reliable", data=b"ours",
                                         path="%s/%s" % (path, name),
                                         **options))
        trap = wire.at_frame("freeze", up=False, op=CREATE2)
        trap.wait()
        wire.drop()
        eventually(lambda: shared.names(direct, path) == ["kept"])
        wire.thaw()
        assert pending[0].succeeds().czxid == direct.get(path + "/kept").czxid
        pending[1].fails("SESSION_EXPIRED")
        assert shared.names(direct, path) == ["kept"]
        assert direct.get(path).cversion == 3  # two creates, one delete
        tested.do("close")
        direct.do("close")


with shared.serve("--tick", "500"):
    live.run(live.together(
        create_with_parents_reports_its_outcome,
        tree_is_deleted_despite_cuts,
        reliable_write_is_executed_once_and_reported,
        existing_node_is_not_taken_for_the_own,
        reliable_write_ends_with_an_expired_session,
    ))
