# SPDX-License-Identifier: Apache-2.0
"""Scenarios that must hold for every kind of lock, on a real server.
tests/conformance/ has the same table for the model server.

A cell is one scenario with one kind of lock, and is called SCENARIO__KIND.
Arguments of the program name the cells, scenarios or kinds to test; --cells
lists the cells."""

import re
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG, SHORT, CountedClient, names, on_server, digest_identity, \
    wait_until_empty
from relay import CHILDREN, CREATE, CREATE2, CREATE_CONTAINER, DELETE, DOWN, \
    EVENT, GET, MULTI, REMOVE_WATCHES, UP, Relay
from worker import Worker

ANY = None  # any number of send() calls: it depends on how the replies arrive
READ_SIDE, WRITE_SIDE = 0, 1  # of a read-write lock
CURATOR, KAZOO, NATIVE, NATIVE_UUID, LATCH = range(5)  # layouts
# Regular expressions of names of nodes; the group is what an acquire chooses.
UUID = "([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"
CURATORS_LOCK = "_c_" + UUID + r"-lock-\d{10}"
KAZOOS_LOCK = r"([0-9a-f]{32})__lock__\d{10}"
# Permissions of access lists.
MAY_READ, MAY_CREATE, MAY_DELETE, MAY_ALL = 1, 4, 8, 31


class Kind:
    """A kind of lock: the functions that make a lock and a rival that excludes
    it, the directories, names and numbers of its nodes, and its requests."""

    def __init__(self, name, make_lock, queues, *, make_rival=None,
                 holder_nodes=1, waiter_nodes=1, deleted_queue_nodes=0,
                 contended=None, create=None, **costs):
        self.name = name
        self.make_lock, self.make_rival = make_lock, make_rival or make_lock
        # The directories of contender nodes, below `base`, and the regular
        # expressions of their names.
        self.queues, self.node_names = list(queues), queues
        self.holder_nodes = holder_nodes    # number of nodes of a holder
        self.waiter_nodes = waiter_nodes    # of a waiter behind a holder
        self.deleted_queue_nodes = deleted_queue_nodes  # by a grant
        # The directory in which lock and rival both have nodes.
        self.contended = contended or self.queues[-1]
        self.create = create    # creates the directories; None: as plain nodes
        # The requests of an acquire, a release, ...: (send() calls, *opcodes).
        # Without directories, the creates of contender nodes fail, and are
        # repeated when the directories have been created.
        self.costs = costs

    def create_directories(self, direct, base):
        """Create the directories as persistent nodes."""
        if self.create is not None:
            self.create(direct, base)
            return
        for queue in self.queues:
            parent = queue.rpartition("/")[0]
            if parent:
                direct.submit("create", path=base + parent).result()
            direct.create(base + queue)


# Functions that make a lock of a client in the directory `base`; `more` are
# options of a scenario.

def mutex(**options):
    return lambda client, base, **more: client.lock(
        base + "/l", **options, **more)


def side(number):
    return lambda client, base, **more: client.rwlock(
        base + "/l", **more)[number]


def semaphore(permits, **options):
    return lambda client, base, **more: client.semaphore(
        base + "/l", permits=permits, take=permits, **options, **more)


def multilock(client, base, **more):
    return client.multilock(*("x:%s/%s" % (base, m) for m in "abc"), **more)


def second_member(client, base, **more):
    return client.lock(base + "/b", **more)


def single(client, base, **more):
    return client.single(base + "/d/the-lock", spread=-1, **more)


def create_kazoo_directories(permits):
    def create(direct, base):
        direct.create(base + "/l", data=b"%d" % permits)
        direct.create(base + "/l-__lock__")
    return create


def mutex_kind(name, make_lock, node_name, create_directory=CREATE, **more):
    """`create_directory`: the opcode that creates a missing directory."""
    return Kind(
        name, make_lock, {"/l": node_name}, **more,
        acquire=(1, CREATE2, CHILDREN),
        release=(1, DELETE),
        acquire_without_directories=(
            2, CREATE2, CHILDREN, create_directory, create_directory, CREATE2,
            CHILDREN),
        wait=(2, CREATE2, CHILDREN, GET, GET),
        grant=(0,))  # the event alone tells the waiter that it is granted


def semaphore_kind(name, permits, queues, make_lock, first_requests=(),
                   **costs):
    # A queue node and a list of the queue; permit nodes and a list of them.
    until_queued = (*first_requests, CREATE2, CHILDREN, *permits * [CREATE2],
                    CHILDREN)
    if permits > 1:
        # A holder deletes its permits one by one. If the waiter lists between
        # two deletes, it has to list again.
        costs["grant_between"] = (3, CHILDREN, CHILDREN, REMOVE_WATCHES, DELETE)
    return Kind(
        name, make_lock, queues, holder_nodes=permits, waiter_nodes=permits + 1,
        deleted_queue_nodes=1,
        # A holder deletes its queue node and removes its watch.
        acquire=(2, *until_queued, REMOVE_WATCHES, DELETE),
        release=(1, *permits * [DELETE]),
        wait=(1, *until_queued),
        grant=(2, CHILDREN, REMOVE_WATCHES, DELETE), **costs)


DIRECTORIES = 3 * [CREATE_CONTAINER]  # the base, /l, and one below it
SEMAPHORE_QUEUES = {"/l/locks": CURATORS_LOCK,
                    "/l/leases": "_c_" + UUID + r"-lease-\d{10}"}
KAZOO_SEMAPHORE_QUEUES = {"/l-__lock__": KAZOOS_LOCK, "/l": "([0-9a-f]{32})"}

KINDS = [
    mutex_kind("mutex", mutex(), CURATORS_LOCK, CREATE_CONTAINER),
    mutex_kind("mutex-kazoo", mutex(layout=KAZOO), KAZOOS_LOCK),
    mutex_kind("mutex-native", mutex(layout=NATIVE), r"seq-\d{10}"),
    mutex_kind("mutex-native-uuid", mutex(layout=NATIVE_UUID, prefix="seq-"),
               UUID + r"-seq-\d{10}"),
    mutex_kind("mutex-latch", mutex(layout=LATCH),
               "_c_" + UUID + r"-latch-\d{10}", CREATE_CONTAINER),
    mutex_kind("read-side", side(READ_SIDE), "_c_" + UUID + r"-__READ__\d{10}",
               CREATE_CONTAINER, make_rival=side(WRITE_SIDE)),
    mutex_kind("write-side", side(WRITE_SIDE), "_c_" + UUID + r"-__WRIT__\d{10}",
               CREATE_CONTAINER, make_rival=side(READ_SIDE)),
    semaphore_kind(
        "semaphore", 1, SEMAPHORE_QUEUES, semaphore(1),
        acquire_without_directories=(
            ANY, *4 * [CREATE2, CHILDREN], *2 * DIRECTORIES, REMOVE_WATCHES,
            DELETE)),
    semaphore_kind(
        "semaphore-several", 2, SEMAPHORE_QUEUES, semaphore(2),
        acquire_without_directories=(
            ANY, *4 * [CREATE2, CHILDREN], *2 * [CREATE2], *3 * DIRECTORIES,
            REMOVE_WATCHES, DELETE)),
    semaphore_kind(
        "semaphore-kazoo", 1, KAZOO_SEMAPHORE_QUEUES, semaphore(1, layout=KAZOO),
        first_requests=(GET,), create=create_kazoo_directories(1),
        acquire_without_directories=(
            ANY, GET, *4 * [CREATE2, CHILDREN], CREATE, GET,
            *2 * [CREATE, CREATE], REMOVE_WATCHES, DELETE)),
    semaphore_kind(
        "semaphore-kazoo-several", 2, KAZOO_SEMAPHORE_QUEUES, semaphore(2, layout=KAZOO),
        first_requests=(GET,), create=create_kazoo_directories(2),
        acquire_without_directories=(
            ANY, GET, *4 * [CREATE2, CHILDREN], *2 * [CREATE2], CREATE, GET,
            *3 * [CREATE, CREATE], REMOVE_WATCHES, DELETE)),
    Kind("multi-lock", multilock, dict.fromkeys(("/a", "/b", "/c"), CURATORS_LOCK),
         make_rival=second_member,
         holder_nodes=3, waiter_nodes=2, contended="/b",
         acquire=(1, MULTI, *3 * [CHILDREN]),
         release=(1, *3 * [DELETE]),
         acquire_without_directories=(
             2, MULTI, *3 * [CHILDREN], *6 * [CREATE_CONTAINER], MULTI,
             *3 * [CHILDREN]),
         wait=(ANY, MULTI, *3 * [CHILDREN], GET, GET, DELETE),
         grant=(1, MULTI, CHILDREN)),
    Kind("single-node", single, {"/d": "the-lock"}, waiter_nodes=0,
         acquire=(1, CREATE2, GET),
         release=(1, DELETE),
         acquire_without_directories=(2, CREATE2, GET, CREATE, CREATE, CREATE2,
                                      GET),
         wait=(1, CREATE2, GET),
         grant=(1, CREATE2, GET)),
]


class Cell:
    """A lock `lock` of the client `tested`, and a lock `rival` of the client
    `direct`. The client `direct` also changes nodes as an operator would."""

    def __init__(self, kind, worker, direct, base, hosts=None, timeout=LONG,
                 gap=None, **options):
        self.kind, self.worker, self.direct, self.base = kind, worker, direct, base
        kind.create_directories(direct, base)
        self.tested = worker.client(hosts or shared.connect_string(),
                                    timeout=timeout, gap=gap)
        self.tested.wait_for_state("connected")
        self.lock = kind.make_lock(self.tested, base, **options)
        self.rival = kind.make_rival(direct, base)

    def nodes(self):
        """The paths of all contender nodes."""
        return ["%s%s/%s" % (self.base, queue, name)
                for queue in self.kind.queues
                for name in names(self.direct, self.base + queue)]

    def nodes_of(self, client):
        session = client.facts().session
        found = [(path, self.direct.submit("exists", path=path).result())
                 for path in self.nodes()]
        return [path for path, node in found
                if node.err == "0" and node.owner == session]

    def wait_for_nodes(self, count):
        eventually(lambda: len(self.nodes()) == count, "%d nodes" % count)

    def hold(self, lock, count):
        """Acquire the lock, and wait until `count` nodes are left, since queue
        nodes are deleted after the grant. Gives the grant."""
        grant = lock.acquire()
        self.wait_for_nodes(count)
        return grant

    def let_rival_hold(self):
        self.rival.acquire()
        rival_is_member = self.kind.make_rival is second_member
        count = 1 if rival_is_member else self.kind.holder_nodes
        self.wait_for_nodes(count)
        return count

    def let_lock_wait(self):
        """Acquire `lock` while the rival holds; gives the number of nodes, and
        the pending acquire."""
        count = self.let_rival_hold() + self.kind.waiter_nodes
        pending = self.lock.submit("acquire")
        self.lock.wait_until_queued()
        self.wait_for_nodes(count)
        self.direct.do("sync", path="/")
        return count, pending

    def end(self):
        self.lock.free()
        self.rival.free()
        self.wait_for_nodes(0)
        eventually(lambda: self.tested.facts().unfinished == 0)
        self.tested.do("close")


def wait_for_queue_nodes(kind, direct, base):
    """Wait until the queue nodes that a grant deletes are gone, so that the
    next contender is the first in the queue."""
    if kind.deleted_queue_nodes:
        wait_until_empty(direct, base + kind.queues[0])


# ---- scenarios

SCENARIOS = []
# Scenarios that wait for heartbeats, reconnects, sweeps of the server or for the
# end of a session. Each is run with all kinds at the same time.
SLOW = []


def scenario(test):
    SCENARIOS.append(test)
    return test


def slow_scenario(test):
    SLOW.append(test)
    return scenario(test)


@scenario
def free_lock_is_acquired_with_these_requests(kind, worker, direct, base):
    kind.create_directories(direct, base)
    with CountedClient() as it:
        lock = kind.make_lock(it.client, base)
        for _ in range(3):
            it.reset_counts()
            lock.acquire()
            it.expect_requests(*kind.costs["acquire"])
            lock.release()
            it.expect_requests(*kind.costs["release"])


@scenario
def missing_directories_are_created_with_these_requests(kind, worker, direct,
                                                        base):
    with CountedClient() as it:
        lock = kind.make_lock(it.client, base)
        it.reset_counts()
        lock.acquire()
        it.expect_requests(*kind.costs["acquire_without_directories"])
        lock.release()


@scenario
def held_lock_is_waited_for_and_granted_with_these_requests(kind, worker,
                                                            direct,
                                                            base):
    kind.create_directories(direct, base)
    holder = kind.make_rival(direct, base)
    with CountedClient() as it:
        lock = kind.make_lock(it.client, base)
        for _ in range(3):
            holder.acquire()
            wait_for_queue_nodes(kind, direct, base)
            it.reset_counts()
            pending = lock.submit("acquire")
            lock.wait_until_queued()
            it.expect_requests(*kind.costs["wait"])
            holder.release()
            pending.succeeds()
            it.expect_one_of(kind.costs["grant"],
                             kind.costs.get("grant_between",
                                            kind.costs["grant"]))
            lock.release()
            it.expect_requests(*kind.costs["release"])


@scenario
def holder_knows_its_node_its_token_and_its_deadline(kind, worker, direct,
                                                     base):
    cell = Cell(kind, worker, direct, base, data=b"label")
    tokens = []
    for _ in range(2):
        grant = cell.hold(cell.lock, kind.holder_nodes)
        node = direct.get(grant.node)
        assert node.data.startswith(b"label"), node
        assert node.owner == cell.tested.facts().session
        now = cell.lock.inspect()
        assert (now.state, now.ok, now.count) == ("held", 1, 1), now
        assert now.token == grant.token
        assert 0 < now.deadline - now.at <= LONG, now
        czxids = [direct.do("exists", path=path).czxid for path in cell.nodes()]
        assert max(czxids) == grant.token, (czxids, grant)
        # A transaction creates all nodes with one czxid.
        if MULTI in kind.costs["acquire"]:
            assert min(czxids) == grant.token, (czxids, grant)
        tokens.append(grant.token)
        cell.lock.release()
        now = cell.lock.inspect()
        assert (now.state, now.token) == ("idle", 0), now
        cell.wait_for_nodes(0)
    assert tokens[0] < tokens[1]
    cell.end()


@scenario
def nodes_have_the_names_that_other_clients_use(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base)

    def unique_parts():
        parts = set()
        for path in cell.nodes_of(cell.tested):
            queue, _, name = path[len(base):].rpartition("/")
            match = re.fullmatch(kind.node_names[queue], name)
            assert match, path
            parts.update(match.groups())
        return parts

    used = set()
    for _ in range(2):
        _, pending = cell.let_lock_wait()
        parts = unique_parts()
        cell.rival.release()
        pending.succeeds()
        cell.wait_for_nodes(kind.holder_nodes)
        parts |= unique_parts()
        assert parts.isdisjoint(used), (parts, used)
        used |= parts
        cell.lock.release()
        cell.wait_for_nodes(0)
    cell.end()


@scenario
def waiters_are_granted_in_the_order_of_their_requests(kind, worker, direct,
                                                       base):
    clients = [worker.client(shared.connect_string(), timeout=LONG)
               for _ in range(5)]
    locks, pending = [], []
    # Locks and rivals alternate; lock n is requested after lock n - 1.
    for n in range(20):
        make = kind.make_lock if n % 2 else kind.make_rival
        locks.append(make(clients[n % 5], base))
        pending.append(locks[n].submit("acquire"))
        if n == 0:
            pending[0].succeeds()
            continue
        waiting = locks[n].wait_until_queued()
        if kind.make_rival is kind.make_lock and not kind.deleted_queue_nodes:
            assert waiting.position == n, waiting
    tokens = []
    for n, lock in enumerate(locks):
        tokens.append(pending[n].succeeds().token)
        assert not any(later.is_done() for later in pending[n + 1:])
        lock.release()
    assert tokens == sorted(tokens) and len(set(tokens)) == 20, tokens
    for client in clients:
        client.do("close")


@scenario
def release_wakes_one_of_a_hundred(kind, worker, direct, base):
    kind.create_directories(direct, base)
    holder = kind.make_lock(direct, base)
    holder.acquire()
    wire, locks, pending = shared.crowd(
        worker, lambda client: kind.make_lock(client, base), 100)
    with wire:
        mark = wire.mark()
        holder.release()
        pending[0].succeeds()
        if kind.deleted_queue_nodes:  # wait until the queue node of the holder is deleted
            eventually(lambda: len(names(direct, base + kind.queues[0])) == 99)
        direct.do("sync", path="/")
        # The clients that delete their own queue nodes get events, too.
        deleting = {f.connection for f in wire.requests(mark)
                    if f.op == DELETE}
        notified = shared.connections_notified_since(wire, mark)
        assert len(notified - deleting) == 1, (notified, deleting)
        assert len(shared.lists_since(wire, mark)) <= 3
        for n in (1, 2, 3):
            mark = wire.mark()
            locks[n - 1].release()
            pending[n].succeeds()
            assert len(shared.connections_notified_since(wire, mark)) <= 3
            assert not pending[n + 1].is_done()
        for lock in reversed(locks):
            lock.free()
        eventually(lambda: not any(names(direct, base + queue)
                                   for queue in kind.queues))


@scenario
def try_of_a_held_lock_is_busy_and_leaves_nothing(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base)
    count = cell.let_rival_hold()
    watches = live.watch_count(shared.connect_string())
    cell.lock.submit("acquire", wait=0).fails("BUSY")
    eventually(lambda: cell.tested.facts().unfinished == 0)
    eventually(lambda: live.watch_count(shared.connect_string()) == watches)
    cell.wait_for_nodes(count)
    cell.rival.release()
    cell.lock.submit("acquire", wait=0).succeeds()
    cell.end()


@scenario
def timeout_ends_the_wait_and_leaves_nothing(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base)
    count = cell.let_rival_hold()
    watches = live.watch_count(shared.connect_string())
    cell.lock.submit("acquire", wait=200).fails("DEADLINE")
    eventually(lambda: cell.tested.facts().unfinished == 0)
    eventually(lambda: live.watch_count(shared.connect_string()) == watches)
    cell.wait_for_nodes(count)
    cell.end()


@scenario
def cancel_ends_the_acquire_before_it_returns(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base)
    count, pending = cell.let_lock_wait()
    cell.lock.do("cancel")
    pending.fails("CANCELLED")
    cell.lock.do("cancel")  # there is no acquire, so this has no effect
    cell.wait_for_nodes(count - kind.waiter_nodes)
    cell.end()


@scenario
def freed_lock_is_released_and_its_calls_end(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base)
    count, pending = cell.let_lock_wait()
    cell.lock.free()
    pending.fails("CLOSED")
    cell.wait_for_nodes(count - kind.waiter_nodes)
    cell.rival.free()
    cell.wait_for_nodes(0)
    cell.tested.do("close")


@scenario
def second_acquire_is_counted_or_refused(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base)
    grant = cell.lock.acquire()
    if kind.deleted_queue_nodes:  # a semaphore
        cell.lock.submit("acquire").fails("DEADLOCK")
    else:
        assert cell.lock.acquire().token == grant.token
        assert cell.lock.inspect().count == 2
        cell.lock.release()
    waiting = cell.rival.submit("acquire")
    cell.rival.wait_until_queued()
    assert cell.lock.inspect().state == "held" and not waiting.is_done()
    cell.lock.release()
    waiting.succeeds()
    cell.lock.submit("release").fails("NOT_HELD")
    cell.end()


@slow_scenario
def holder_whose_node_is_deleted_loses_the_lock_once(kind, worker, direct,
                                                     base):
    cell = Cell(kind, worker, direct, base, timeout=SHORT)
    for n in range(kind.holder_nodes):
        cell.hold(cell.lock, kind.holder_nodes)
        direct.do("delete", path=cell.nodes_of(cell.tested)[n])
        assert cell.lock.wait_for_event("lost").err == "NO_NODE"
        now = cell.lock.inspect()
        assert now.state == "lost" and not now.ok
        cell.lock.submit("acquire").fails("STATE")
        cell.wait_for_nodes(0)  # the lock deletes its other nodes
        cell.lock.submit("release").fails("LOST")
        assert cell.lock.inspect().state == "idle"
    # A heartbeat also watches the nodes that were held for its interval. The second
    # one has done so, and an event reports the deletion before the third.
    heartbeat_interval = SHORT / 1000 / 4  # s
    cell.hold(cell.lock, kind.holder_nodes)
    time.sleep(heartbeat_interval * 2.5)
    direct.do("delete", path=cell.nodes_of(cell.tested)[0])
    cell.lock.wait_for_event("lost", seconds=heartbeat_interval / 2)
    cell.lock.submit("release").fails("LOST")
    assert len(cell.lock.lines_like("lock", "lost")) == kind.holder_nodes + 1
    cell.end()


@slow_scenario
def verify_and_guarded_write_need_the_lock(kind, worker, direct, base):
    data = base + "/data"
    direct.create(data, data=b"0")
    # A reply proves the session if its request was sent at least half a tick
    # after an earlier reply. The session lease records one such reply for each
    # 48th of the session timeout.
    cell = Cell(kind, worker, direct, base, timeout=12000, gap=250)
    lock = cell.lock
    lock.submit("verify").fails("NOT_HELD")
    lock.submit("guarded", path=data, data=b"x").fails("NOT_HELD")
    cell.hold(lock, kind.holder_nodes)
    deadline = lock.inspect().deadline
    time.sleep(.3)
    cell.tested.do("sync", path="/")
    time.sleep(.3)
    lock.do("verify")
    assert lock.inspect().deadline > deadline
    done = lock.do("guarded", path=data, data=b"1", version=0)
    assert (done.count, done.version) == (1, 1)
    lock.submit("guarded", path=data, data=b"x", version=0).fails("BAD_VERSION")
    lock.submit("guarded", path=base + "/nowhere", data=b"x").fails("NO_NODE")
    assert lock.inspect().state == "held"
    direct.do("delete", path=cell.nodes_of(cell.tested)[0])
    lock.submit("guarded", path=data, data=b"x").fails("LOST")
    assert direct.get(data).data == b"1"
    lock.submit("release").fails("LOST")
    cell.wait_for_nodes(0)
    cell.hold(lock, kind.holder_nodes)
    direct.do("delete", path=cell.nodes_of(cell.tested)[0])
    for _ in range(2):
        lock.submit("verify").fails("LOST")
    lock.submit("release").fails("LOST")
    assert len(lock.lines_like("lock", "lost")) == 2
    cell.end()


@slow_scenario
def waiter_whose_node_is_deleted_queues_again(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base, timeout=SHORT)
    # The node of the multi-lock's held member is tested in multilock.py.
    first = 1 if kind.make_rival is second_member else 0
    for n in range(first, kind.waiter_nodes):
        count, pending = cell.let_lock_wait()
        old = cell.nodes_of(cell.tested)[n]
        direct.do("delete", path=old)
        # The nodes of a semaphore behind its queue nodes are those of permits.
        is_permit_node = 0 < kind.deleted_queue_nodes <= n
        if not is_permit_node:
            assert cell.lock.wait_for_event("place_lost").err == "NO_NODE"
        eventually(lambda: len(cell.nodes()) == count and
                   old not in cell.nodes())
        assert not pending.is_done()
        cell.rival.release()
        pending.succeeds()
        cell.lock.release()
        cell.wait_for_nodes(0)
    cell.end()


@scenario
def change_of_a_nodes_data_is_no_release(kind, worker, direct, base):
    cell = Cell(kind, worker, direct, base)
    _, pending = cell.let_lock_wait()
    for n in range(3):
        for path in cell.nodes():
            direct.do("set", path=path, data=b"%d" % n)
    direct.do("sync", path="/")
    cell.tested.do("sync", path="/")
    assert not pending.is_done() and cell.rival.inspect().ok
    cell.rival.release()
    pending.succeeds()
    cell.end()


def check_acquire_without(denied, kind, direct, base):
    """Acquire without the permission `denied`, once for each directory."""
    perms = MAY_ALL & ~denied
    for number, limited in enumerate(kind.queues):
        below = direct.create("%s/%d-%d" % (base, perms, number)).path
        kind.create_directories(direct, below)
        direct.do("delete", path=below + limited)
        direct.create(below + limited, acl="%d:world:anyone" % perms)
        kind.make_lock(direct, below).submit("acquire").fails("NO_AUTH")
        eventually(lambda: direct.facts().unfinished == 0)
        for queue in kind.queues:
            direct.do("delete", path=below + queue)  # only without children


@scenario
def acquire_without_create_permission_fails_and_leaves_nothing(
        kind, worker, direct, base):
    check_acquire_without(MAY_CREATE, kind, direct, base)


@scenario
def acquire_without_read_permission_fails_and_leaves_nothing(
        kind, worker, direct, base):
    check_acquire_without(MAY_READ, kind, direct, base)


@scenario
def node_without_delete_permission_is_left_and_that_is_reported(
        kind, worker, direct, base):
    limited = base + kind.contended
    kind.create_directories(direct, base)
    direct.do("delete", path=limited)
    direct.create(limited, acl="%d:world:anyone" % (MAY_ALL & ~MAY_DELETE))
    tested = worker.client(shared.connect_string(), timeout=LONG)
    lock, rival = kind.make_lock(tested, base), kind.make_rival(direct, base)
    lock.acquire()
    wait_for_queue_nodes(kind, direct, base)
    pending = rival.submit("acquire")
    rival.wait_until_queued()
    lock.submit("release").fails("NO_AUTH")
    left = tested.wait("left_behind").path
    assert left.startswith(limited + "/"), left
    assert not pending.is_done()
    tested.do("close")
    pending.succeeds()
    rival.submit("release").fails("NO_AUTH")


@scenario
def unreadable_holder_is_waited_for(kind, worker, direct, base):
    secret, acl = digest_identity("amy")
    amy = worker.client(shared.connect_string(), timeout=LONG)
    amy.do("auth", scheme="digest", auth=secret)
    kind.create_directories(direct, base)
    holder = kind.make_rival(amy, base, acl=acl % MAY_ALL, parent_acl="open")
    node = holder.acquire().node
    direct.submit("get", path=node).fails("NO_AUTH")
    lock = kind.make_lock(direct, base)
    pending = lock.submit("acquire")
    lock.wait_until_queued()
    # A change of the directory is no release.
    unrelated = direct.create(node.rpartition("/")[0] + "/unrelated").path
    direct.do("delete", path=unrelated)
    direct.do("sync", path="/")
    assert not pending.is_done()
    holder.release()
    pending.succeeds()
    lock.release()
    amy.do("close")


@slow_scenario
def deleted_containers_lose_no_acquire(kind, worker, direct, base):
    directories = kind.costs["acquire_without_directories"].count(
        CREATE_CONTAINER)
    with Relay(shared.connect_string()) as wire:
        clients = [worker.client(wire.address, timeout=LONG)
                   for _ in range(2)]
        locks = [kind.make_lock(client, base) for client in clients]
        created, end = 0, time.monotonic() + 20
        while created < 2 * directories and time.monotonic() < end:
            for cycle in [lock.submit("cycle", turns=60) for lock in locks]:
                done = cycle.succeeds()
                assert (done.granted, done.failed) == (60, 0), done
            time.sleep(.35)  # longer than --container-check of the server
            created = wire.ops().count(CREATE_CONTAINER)
        assert created >= 2 * directories, "the server deleted no directory"
        for client in clients:
            client.do("close")


def check_breaks(up, kind, worker, direct, base):
    """Break the connection once at each request of an acquire and a release, and
    of a grant to a waiter: at the request if `up`, else at the reply."""
    breaks = [(is_held, op, ops[:at].count(op) + 1)
              for is_held, ops in (
                  (False, kind.costs["acquire"][1:] + kind.costs["release"][1:]),
                  (True, kind.costs["grant"][1:]))
              for at, op in enumerate(ops)]
    if not up:
        breaks.append((True, EVENT, 1))
    for number, (is_held, op, count) in enumerate(breaks):
        below = direct.create("%s/%d" % (base, number)).path
        with Relay(shared.connect_string()) as wire:
            cell = Cell(kind, worker, direct, below, hosts=wire.address)
            if is_held:
                _, pending = cell.let_lock_wait()
            trap = wire.at_frame("cut", up=up, op=op, count=count)
            if is_held:
                cell.rival.release()
            else:
                pending = cell.lock.submit("acquire")
            assert pending.succeeds().token == cell.lock.inspect().token
            cell.rival.submit("acquire", wait=0).fails("BUSY")
            cell.lock.release()
            trap.wait()
            cell.end()


@slow_scenario
def break_before_any_request_loses_no_node_and_no_place(kind, worker, direct,
                                                        base):
    check_breaks(UP, kind, worker, direct, base)


@slow_scenario
def break_after_any_request_loses_no_node_and_no_place(kind, worker, direct,
                                                       base):
    check_breaks(DOWN, kind, worker, direct, base)


@slow_scenario
def dead_holder_makes_room(kind, worker, direct, base):
    dying = Worker()
    client = dying.client(shared.connect_string(), timeout=SHORT)
    kind.make_rival(client, base).acquire()
    waiter = kind.make_lock(direct, base)
    pending = waiter.submit("acquire")
    waiter.wait_until_queued()
    dying.kill()
    dying.close()
    pending.succeeds(seconds=SHORT / 1000 + 2)
    waiter.release()


# Scenarios that do not apply to a kind, with the reason.
EXCEPTIONS = {
    ("waiters_are_granted_in_the_order_of_their_requests", "multi-lock"):
        "a rival that wants one member overtakes those that wait for another",
    ("waiters_are_granted_in_the_order_of_their_requests", "single-node"):
        "without a queue there is no order",
    ("release_wakes_one_of_a_hundred", "read-side"):
        "readers are granted together",
    ("release_wakes_one_of_a_hundred", "single-node"):
        "all waiters are notified, and few try: locks/single.py",
    ("waiter_whose_node_is_deleted_queues_again", "single-node"):
        "a waiter has no node",
    ("acquire_without_read_permission_fails_and_leaves_nothing",
     "single-node"): "the directory is not read",
    ("unreadable_holder_is_waited_for", "single-node"):
        "it is an error: locks/single.py",
    **{("deleted_containers_lose_no_acquire", kind.name):
       "its directories are no containers"
       for kind in KINDS
       if CREATE_CONTAINER not in kind.costs["acquire_without_directories"]},
}


def make_cell(test, kind):
    @on_server
    def cell(worker, direct, base):
        test(kind, worker, direct, base)
    cell.__name__ = "%s__%s" % (test.__name__, kind.name.replace("-", "_"))
    return cell


def all_cells():
    return [(test, kind) for test in SCENARIOS for kind in KINDS]


def list_cells():
    for test, kind in all_cells():
        print(test.__name__, kind.name,
              EXCEPTIONS.get((test.__name__, kind.name), ""), sep="\t")


def wanted_cells():
    """The cells that the arguments of the program name, for live.run()."""
    words = set(sys.argv[1:])
    sys.argv[1:] = []  # live.run() would take the words for names of tests
    cells = [(test, kind, make_cell(test, kind)) for test, kind in all_cells()
             if (test.__name__, kind.name) not in EXCEPTIONS]
    cells = [(test, cell) for test, kind, cell in cells
             if not words or words & {test.__name__, kind.name, cell.__name__}]
    return [cell for test, cell in cells if test not in SLOW] + [
        live.together(*(cell for test, cell in cells if test is slow))
        for slow in SLOW]


def main():
    known = {(test.__name__, kind.name) for test, kind in all_cells()}
    assert set(EXCEPTIONS) <= known, set(EXCEPTIONS) - known
    if "--cells" in sys.argv:
        list_cells()
        return
    cells = wanted_cells()
    with shared.serve("--tick", "500", "--container-check", "300"):
        live.run(*cells)


if __name__ == "__main__":
    main()
