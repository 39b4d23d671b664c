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
from worker import EPHEMERAL, SEQUENTIAL, Worker
from relay import CONNECT, CREATE2, DELETE, DOWN, EXISTS, GET, MULTI, PING, SET, \
    UP, Relay

AT_ONCE = 16  # number of cases that run at the same time

# Cuts of the connection at a frame: (the frame's direction, whether the frame is
# forwarded before the cut).
REQUEST_LOST, REQUEST_ARRIVES, REPLY_LOST = (UP, False), (UP, True), (DOWN, False)
CUTS = (REQUEST_LOST, REQUEST_ARRIVES, REPLY_LOST)


class Stage:
    """A new directory and two clients: `direct`, and `tested` behind the relay
    `wire`. With `chroot` the directory is the root of `tested`. Methods take
    paths below the directory."""

    def __init__(self, worker, wire, direct, chroot):
        self.wire, self.direct = wire, direct
        self.dir = direct.create("/nodes-", flags=SEQUENTIAL).path
        self.tested = worker.client(
            wire.address + (self.dir if chroot else ""), timeout=LONG)
        self.tested.wait_for_state("connected")
        self.prefix = "" if chroot else self.dir

    def submit(self, verb, path, **options):
        return self.tested.submit(verb, path=self.prefix + path, **options)

    def cut_at_frame(self, cut, nth):
        """Cut the connection at the nth frame from now in the cut's direction."""
        up, forward = cut
        return self.wire.at_frame("cut", up=up, count=nth, forward=forward)

    def frame_counts(self, mark):
        """The numbers of frames in each direction since the mark."""
        directions = [f.up for f in self.wire.frames_since(mark)
                      if f.op not in (CONNECT, PING)]
        return {UP: directions.count(UP), DOWN: directions.count(DOWN)}

    # ---- the state of the server

    def node(self, path):
        """The result of exists()."""
        return self.direct.submit("exists", path=self.dir + path).result()

    def has(self, path):
        return self.node(path).err == "0"

    def names(self, path):
        return shared.names(self.direct, self.dir + path)

    def sync(self):
        """Wait until the server has executed all earlier requests of `tested`,
        also those of a broken connection."""
        self.tested.do("sync", path="/")

    def end(self):
        self.wire.clear_traps()  # a trap that is left must not cut the close
        self.tested.do("close")


def run_all_cases(check, cases):
    """Run check(stage, *case) for all cases, with and without a chroot. AT_ONCE
    cases run at the same time, since they mostly wait for connections. The
    function cases(run) gives the cases. Some of these functions call run(*case)
    for a case without a cut, which gives its numbers of frames."""
    with Worker() as worker:
        direct = worker.client(shared.connect_string(), timeout=LONG)

        def run(chroot, *case):
            with Relay(shared.connect_string()) as wire:
                stage = Stage(worker, wire, direct, chroot)
                try:
                    result = check(stage, *case)
                except AssertionError as e:
                    raise AssertionError("%s: %s" % ((chroot, *case), e))
                stage.end()
                return result

        with futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for chroot in (False, True):
                run_case = functools.partial(run, chroot)
                # list() raises the errors of the cases.
                list(pool.map(lambda case: run_case(*case), cases(run_case)))
        direct.do("close")


def faults_at_each_frame(frame_counts):
    """All faults (cut, nth) of a call that has these numbers of frames without
    a fault."""
    return [((up, forward), nth) for up, forward in CUTS
            for nth in range(1, frame_counts[up] + 1)]


# ---- parents

def check_create(stage, flags, fault):
    """Create a node with its parents. The connection is cut at the `fault`, a
    (cut, nth); if that is None, gives the numbers of frames."""
    mark = stage.wire.mark()
    if fault is not None:
        trap = stage.cut_at_frame(*fault)
    done = stage.submit("create_deep", "/x/y/n", data=b"1", flags=flags).result()
    if fault is None:
        assert done.err == "0", done
        return stage.frame_counts(mark)
    trap.wait()
    assert done.err == "IN_DOUBT", done
    stage.sync()
    made = stage.names("/x/y")
    assert len(made) <= 1 and set(stage.names("")) <= {"x"}, made
    # A second call creates a node, or finds that of the first call.
    again = stage.submit("create_deep", "/x/y/n", data=b"2",
                         flags=flags).result()
    if made and flags & SEQUENTIAL == 0:
        assert again.err == "NODE_EXISTS", again
        assert stage.direct.get(stage.dir + "/x/y/n").data == b"1"
    else:
        assert again.err == "0", again
        assert len(stage.names("/x/y")) == len(made) + 1
    return None


def create_cases(run):
    for flags in (0, SEQUENTIAL):
        for fault in faults_at_each_frame(run(flags, None)):
            yield flags, fault


def create_with_parents_reports_its_outcome():
    run_all_cases(check_create, create_cases)


# ---- trees

DELETED = ("/t", "/t/a", "/t/a/1", "/t/a/2", "/t/b", "/t/b/c", "/t/b/c/d", "/t/e")


def check_delete(stage, repeat, fault):
    """Delete /t and all nodes below it, and not its neighbour /tt. `fault` as for
    check_create()."""
    for path in (*DELETED, "/tt"):
        stage.direct.create(stage.dir + path)
    mark = stage.wire.mark()
    if fault is not None:
        trap = stage.cut_at_frame(*fault)
    done = stage.submit("delete_deep", "/t", repeat=repeat).result()
    if fault is None:
        assert done.err == "0" and done.deleted == len(DELETED), done
        return stage.frame_counts(mark)
    trap.wait()
    stage.sync()
    left = len([path for path in DELETED if stage.has(path)])
    assert done.deleted <= len(DELETED) - left, (done, left)
    if repeat:
        assert done.err == "0" and left == 0, (done, left)
    else:
        assert done.err in ("IN_DOUBT", "CONNECTION_LOSS", "NOT_SENT"), done
        again = stage.submit("delete_deep", "/t").result()
        assert again.err == ("0" if left > 0 else "NO_NODE"), (again, left)
    assert stage.names("") == ["tt"]
    return None


def delete_cases(run):
    for repeat in (False, True):
        for fault in faults_at_each_frame(run(repeat, None)):
            yield repeat, fault


def tree_is_deleted_despite_cuts():
    run_all_cases(check_delete, delete_cases)


# ---- reliable writes

class Write:
    """A reliable write of the node /n."""

    def __init__(self, name, sole=False, **options):
        self.name, self.sole, self.options = name, sole, options
        self.is_create = name == "create_reliable"
        self.op = {"create_reliable": CREATE2, "set_reliable": SET,
                   "delete_reliable": DELETE}[name]
        # Whether the client can always find out if the write was executed.
        self.is_never_in_doubt = sole or options.get("flags") == EPHEMERAL

    def __repr__(self):
        return "%s sole=%s %s" % (self.name, self.sole, self.options)

    def recovery_ops(self):
        """The opcodes of the requests with which the client finds out, after a
        reconnect, whether the write was executed."""
        if self.is_create and not self.sole:
            return MULTI, EXISTS, GET
        return MULTI, GET

    def submit(self, stage):
        if self.name == "delete_reliable":
            return stage.submit(self.name, "/n", sole=self.sole)
        return stage.submit(self.name, "/n", sole=self.sole, data=b"ours",
                            **self.options)

    def executions(self, stage):
        """How often the server has executed the write."""
        creates_and_deletes = stage.direct.get(stage.dir).cversion
        if self.is_create:
            return creates_and_deletes
        if self.name == "delete_reliable":
            return creates_and_deletes - 1  # without the create before the test
        return stage.node("/n").version

    def check_effect(self, stage, done):
        """Check that the node is as the result `done` reports it."""
        found = stage.node("/n")
        if self.name == "delete_reliable":
            assert found.err == "NO_NODE", found
        else:
            assert (found.mzxid, found.owner) == (done.mzxid, done.owner)
            assert stage.direct.get(stage.dir + "/n").data == b"ours"


ANY_VERSION = -1
WRITES = (Write("create_reliable"), Write("create_reliable", sole=True),
          Write("create_reliable", flags=EPHEMERAL),
          Write("set_reliable", version=0),
          Write("set_reliable", sole=True, version=0),
          Write("set_reliable", sole=True, version=ANY_VERSION),
          Write("delete_reliable"), Write("delete_reliable", sole=True))


def check_write(stage, write, cut, recovery_fault):
    """Cut the connection at the write, and again at a request of the recovery:
    `recovery_fault` is (cut, opcode), or None if the recovery is not disturbed."""
    if not write.is_create:
        stage.direct.create(stage.dir + "/n", data=b"before")
    stage.sync()  # a sync, so that the client knows a zxid after the create
    faults = [(cut, write.op)]
    if recovery_fault is not None:
        faults.append(recovery_fault)
    traps = [stage.wire.at_frame("cut", up=up, op=op, forward=forward)
             for (up, forward), op in faults]
    done = write.submit(stage).result()
    for trap in traps:
        trap.wait()
    executions = write.executions(stage)
    assert executions <= 1, executions
    if write.is_never_in_doubt or cut == REQUEST_LOST:
        assert done.err == "0", done
    elif cut == REPLY_LOST:
        assert done.err == "IN_DOUBT" and executions == 1, (done, executions)
    else:
        assert done.err in ("0", "IN_DOUBT"), done
    if done.err == "0":
        assert executions == 1, done
        write.check_effect(stage, done)


def write_cases(_):
    for write, cut in itertools.product(WRITES, CUTS):
        yield write, cut, None
        for recovery_fault in itertools.product((REQUEST_LOST, REPLY_LOST),
                                                write.recovery_ops()):
            yield write, cut, recovery_fault


def reliable_write_is_executed_once_and_reported():
    run_all_cases(check_write, write_cases)


def check_first_write(stage, write, exists, cut):
    """The first write of a client, which knows no zxid. `exists`: whether the node
    exists before the write."""
    if exists:
        stage.direct.create(stage.dir + "/n", data=b"before")
    up, forward = cut
    trap = stage.wire.at_frame("cut", up=up, op=write.op, forward=forward)
    done = write.submit(stage).result()
    trap.wait()
    executions = write.executions(stage)
    if write.is_create and exists:
        assert executions == 1  # the create before the test
        if cut == REPLY_LOST:
            assert done.err == "NODE_EXISTS", done
        else:
            assert done.err in ("NODE_EXISTS", "IN_DOUBT"), done
        return
    if done.err == "IN_DOUBT":
        # A client that knows no zxid cannot tell when the node was created.
        assert not write.is_never_in_doubt or (
            executions == 1 and write.sole), done
        return
    assert done.err == "0" and executions == 1, (done, executions)
    write.check_effect(stage, done)


def first_write_cases(_):
    for write, exists, cut in itertools.product(WRITES, (False, True), CUTS):
        if exists or write.is_create:
            yield write, exists, cut


def existing_node_is_not_taken_for_the_one_created():
    run_all_cases(check_first_write, first_write_cases)


def reliable_write_of_an_expired_session_completes():
    """The replies to two creates are lost, and the session expires before the
    reconnect. The node that is not ephemeral remains, and its create succeeds."""
    with Worker() as worker, Relay(shared.connect_string()) as wire:
        direct = worker.client(shared.connect_string(), timeout=LONG)
        path = direct.create("/ended-", flags=SEQUENTIAL).path
        tested = worker.client(wire.address, timeout=1000)
        tested.wait_for_state("connected")
        tested.do("sync", path="/")
        trap = wire.at_frame(lambda: wire.freeze(up=False), up=DOWN, op=CREATE2)
        pending = []
        for name, options in (("persistent", {"sole": True}),
                              ("ephemeral", {"flags": EPHEMERAL})):
            pending.append(tested.submit("create_reliable", data=b"ours",
                                         path="%s/%s" % (path, name),
                                         **options))
        trap.wait()
        eventually(lambda: len(shared.names(direct, path)) == 2)
        wire.freeze()
        wire.drop()
        eventually(lambda: shared.names(direct, path) == ["persistent"])
        wire.thaw()
        node = direct.get(path + "/persistent")
        assert pending[0].succeeds().czxid == node.czxid
        pending[1].fails("SESSION_EXPIRED")
        assert shared.names(direct, path) == ["persistent"]
        assert direct.get(path).cversion == 3  # two creates, one delete
        tested.do("close")
        direct.do("close")


with shared.serve("--tick", "500"):
    live.run(live.together(
        create_with_parents_reports_its_outcome,
        tree_is_deleted_despite_cuts,
        reliable_write_is_executed_once_and_reported,
        existing_node_is_not_taken_for_the_one_created,
        reliable_write_of_an_expired_session_completes,
    ))
