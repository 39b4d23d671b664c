# SPDX-License-Identifier: Apache-2.0
"""Every kind of lock and every --layout as the command sees them. KINDS is a
table of them, and each scenario runs for each row: run, status, wait and revoke
while the lock is free, held, waited for and granted. The functions below the
scenarios test what a single kind does.

A test of a row is called SCENARIO__KIND."""

import contextlib
import json
import re
import signal
import subprocess
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import live
import relay
from command import expect_exit, run, start

UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
CURATORS = "_c_" + UUID + r"-%s\d{10}"
KAZOOS = r"[0-9a-f]{32}__%s__\d{10}"

# A shell script that prints what latchkey says about the lock. After TERM it
# ends with 7, as soon as its standard input has ended.
JOB = """exec 2>/dev/null
sleep 600 & trap 'kill $!; read line; exit 7' TERM
echo $LATCHKEY_MODE $LATCHKEY_NODE $LATCHKEY_FENCING_TOKEN $LATCHKEY_SESSION
echo "$LATCHKEY_FENCING_TOKENS"
wait"""
SINGLE = "--layout=single"


class Kind:
    """A kind of lock. Options are those of `run` behind the layout, and nodes
    are regular expressions of what `status` shows: the path below the lock's."""

    def __init__(self, name, options, node, *, mode="exclusive", holders=1,
                 nodes=1, excludes=None, shares=(), waiter_node=None,
                 waiting=("node", "position", "holder"), label="%s",
                 missing=": no such node; the first use of the lock creates it"):
        self.name, self.options = name, options.split()
        # The options of the other verbs.
        self.layout = [word for word in self.options
                       if word.startswith("--layout")]
        self.node, self.mode = node, mode  # mode: $LATCHKEY_MODE
        # The number of runs that can hold the lock, and of nodes of each.
        self.holders, self.nodes = holders, nodes
        # The options of other runs while it is held so often.
        self.excludes = (options,) if excludes is None else excludes
        self.shares = shares
        # A run with the options excludes[0] waits: its node, and the members of
        # its event "waiting". Without a queue it has neither node nor position.
        self.waiter_node = waiter_node or node
        self.waiting = set(waiting)
        self.is_queued = "position" in waiting
        self.label = label      # what status shows of --id
        self.missing = missing  # what it says behind "free"


def permits(name, options, permit, waiter_node, **more):
    return Kind(name, options, permit, mode="permits", waiter_node=waiter_node,
                waiting=("node", "position"), **more)


def native(name, options, node, **more):
    """Names without a unique part, which stands behind the label."""
    return Kind(name, options, node, label="%s " + UUID, **more)


def sides(name, layout, reader, writer, make=Kind, mutex=()):
    """A reader and a writer. `mutex`: the options of one of the same path."""
    s, x = layout + " -s", layout + " -x"
    return [make(name + "reader", s, reader, mode="shared", excludes=(x, *mutex),
                 shares=(s,), waiter_node=writer),
            make(name + "writer", x, writer, excludes=(s, x, *mutex),
                 waiter_node=reader)]


KINDS = [
    Kind("mutex", "", CURATORS % "lock-", excludes=("", "-s", "-x")),
    *sides("", "", CURATORS % "__READ__", CURATORS % "__WRIT__", mutex=("",)),
    permits("permits", "-p 2", "leases/" + CURATORS % "lease-",
            "locks/" + CURATORS % "lock-", holders=2),
    permits("several-permits", "-p 3 --take 2", "leases/" + CURATORS % "lease-",
            "locks/" + CURATORS % "lock-", nodes=2, shares=("-p 3",)),
    Kind("latch", "--layout=latch", CURATORS % "latch-"),
    Kind("kazoo", "--layout=kazoo", KAZOOS % "lock"),
    *sides("kazoo-", "--layout=kazoo", KAZOOS % "rlock", KAZOOS % "lock"),
    permits("kazoo-permits", "--layout=kazoo -p 2", "[0-9a-f]{32}",
            "-__lock__/" + KAZOOS % "lock", holders=2),
    native("native", "--layout=native", r"seq-\d{10}",
           excludes=("--layout=native", "--layout=native-uuid")),
    native("native-unprefixed", "--layout=native:", r"\d{10}"),
    native("native-lock", "--layout=native:lock", r"lock\d{10}"),
    *sides("native-", "--layout=native", r"r-\d{10}", r"w-\d{10}", native),
    Kind("native-uuid", "--layout=native-uuid", UUID + r"-seq-\d{10}",
         excludes=("--layout=native-uuid", "--layout=native")),
    Kind("native-uuid-job", "--layout=native-uuid:job-", UUID + r"-job-\d{10}"),
    *sides("native-uuid-", "--layout=native-uuid", UUID + r"-r-\d{10}",
           UUID + r"-w-\d{10}"),
    Kind("single", SINGLE, "", waiting=("holder",), missing=""),
]
SINGLE_NODE = KINDS[-1]


def status(kind, path):
    """What `latchkey status --json` prints for the lock."""
    done = run("status", "--json", *kind.layout, path)
    (facts,) = done.json()
    assert done.code == (1 if facts["state"] == "held" else 0), done
    return facts


def start_run(path, options, *words):
    """A run of JOB. If it does not get the lock it ends, so that no read of its
    output waits for ever."""
    return start("run", "-w", str(command.SECONDS), *options, *words, path, "sh",
                 "-c", JOB, stdin=subprocess.PIPE)


def read_grant(process, path):
    """Wait for the lines of JOB; gives mode, node, token and session."""
    grant = process.stdout.readline().split()
    assert len(grant) == 4, grant
    assert process.stdout.readline() == "%s %s\n" % (grant[2], path), grant
    return grant


@contextlib.contextmanager
def held(kind, path):
    """As many runs as can hold the lock; gives them and their grants."""
    with contextlib.ExitStack() as stack:
        runs = [stack.enter_context(start_run(path, kind.options, "-i", "holder"))
                for _ in range(kind.holders)]
        yield runs, [read_grant(each, path) for each in runs]


def end(*processes):
    """End these runs of JOB with TERM, all at the same time."""
    for each in processes:
        each.terminate()
    for each in processes:
        done = each.finish()
        assert done.code == 7, done


def name_of(node, path):
    """The path of a node, below that of its lock."""
    return node[len(path):].removeprefix("/")


def check_holders(kind, path, lines):
    """Check what status shows of the holders: in JSON, which it gives, and in
    the lines."""
    facts = status(kind, path)
    holders = facts.pop("holders")
    assert facts == {"lock": path, "state": "held", "missing": False,
                     "waiters": []}, facts
    for holder, line in zip(holders, lines, strict=True):
        assert set(holder) == {"node", "token", "session", "label", "age_ms"}
        name, label = name_of(holder["node"], path), holder["label"]
        assert re.fullmatch(kind.node, name), name
        assert re.fullmatch(kind.label % "holder", label), label
        assert 0 <= holder["age_ms"] < command.SECONDS * 1000, holder
        (node,) = expect_exit(0, "stat", "--json", holder["node"]).json()
        assert node["czxid"] == holder["token"], (node, holder)
        assert node["ephemeral_owner"] == holder["session"], (node, holder)
        assert re.fullmatch(
            r"holds  %s  age \d+\.\d s  token %s  session %s  %s" % (
                label, node["czxid"], node["ephemeral_owner"],
                re.escape(name or path[1:])), line), line
    return holders


# ---- scenarios

def held_lock_excludes_others_and_is_shown(kind, path):
    done = expect_exit(0, "status", *kind.layout, path)
    assert done.out == "%s: free%s\n" % (path, kind.missing), done
    assert status(kind, path) == {"lock": path, "state": "free", "missing": True,
                                  "holders": [], "waiters": []}
    expect_exit(0, "wait", *kind.layout, path)
    with held(kind, path) as (runs, grants):
        done = expect_exit(1, "status", *kind.layout, path)
        head, *lines = done.out.splitlines()
        waiting = ", 0 waiting" if kind.is_queued else ""
        assert head == "%s: held%s" % (path, waiting), head
        holders = check_holders(kind, path, lines)
        for mode, node, token, session in grants:
            assert mode == kind.mode
            own = {holder["node"]: int(holder["token"]) for holder in holders
                   if holder["session"] == session}
            assert len(own) == kind.nodes, (own, session)
            assert node in own and int(token) == max(own.values()), (own, token)
        for options in kind.excludes:
            done = expect_exit(124, "run", "-n", *options.split(), path, "true")
            assert done.err.endswith("latchkey: %s: is held by another client; -w "
                                     "waits for it\n" % path), done
        for options in kind.shares:
            expect_exit(0, "run", "-n", *options.split(), path, "true")
        expect_exit(1, "wait", *kind.layout, "-w", "0", path)
        end(*runs)
    expect_exit(0, "run", "-n", *kind.options, path, "true")
    expect_exit(0, "status", *kind.layout, path)


def next_event(process, *members):
    """The next event that `run --json` prints, checked for these members."""
    event = json.loads(process.stderr.readline())
    assert set(event) == {"event", "time", "lock", *members}, event
    return event


def start_waiter(kind, path):
    """Start a run with the label "waiter"; gives it when it waits."""
    waiter = start_run(path, kind.excludes[0].split(), "--json", "-i", "waiter")
    event = next_event(waiter, *kind.waiting)
    assert event["event"] == "waiting", event
    assert event.get("position", 1) == 1, event
    if "holder" in kind.waiting:
        assert re.fullmatch(kind.label % "holder", event["holder"]), event
    return waiter


def waiters(kind, path):
    return [name_of(waiter["node"], path)
            for waiter in status(kind, path)["waiters"]]


def waiter_is_shown_and_granted(kind, path):
    layout = kind.layout
    with held(kind, path) as (runs, grants), \
            start("wait", *layout, path) as free:
        with start_waiter(kind, path) as waiter:
            if kind.is_queued:
                live.eventually(lambda: waiters(kind, path))
            waiter.terminate()
            assert waiter.finish().code == 128 + signal.SIGTERM
        assert waiters(kind, path) == []
        with start_waiter(kind, path) as waiter:
            if kind.is_queued:
                (name,) = live.eventually(lambda: waiters(kind, path))
                assert re.fullmatch(kind.waiter_node, name), name
            # A change of the data is no release.
            for _, node, *_ in grants:
                expect_exit(0, "set", node, "other")
            expect_exit(1, "wait", *layout, "-w", "0", path)
            assert free.poll() is None and waiter.poll() is None
            end(*runs)
            _, node, token, session = read_grant(waiter, path)
            grant = {"node": node, "token": token, "session": session}
            if kind.is_queued:  # else it may have been free for a moment
                assert free.poll() is None
            (now,) = expect_exit(0, "revoke", *layout, "--json", path).json()
            asked = {holder["node"]: holder["label"] for holder in now["asked"]}
            assert len(asked) == kind.nodes and node in asked, (asked, node)
            for label in asked.values():
                assert re.fullmatch(kind.label % "waiter", label), label
            done = waiter.finish()
            assert done.code == 7, done
            events = [json.loads(line) for line in done.err.splitlines()]
            assert [event["event"] for event in events] == [
                "acquired", "revoked", "notice", "released"], events
            for event in events:
                assert event["event"] == "notice" or \
                    grant.items() <= event.items(), (event, grant)
        assert free.finish().code == 0


def revoke_asks_all_holders_and_no_waiter(kind, path):
    layout = kind.layout
    done = expect_exit(1, "revoke", *layout, path)
    missing = ": no such node" if kind.missing else ""
    assert done.err == "latchkey: revoke %s: the lock is free%s\n" % (
        path, missing), done
    with held(kind, path) as (runs, _):
        holders = status(kind, path)["holders"]
        done = expect_exit(0, "revoke", *layout, path)
        assert done.out.splitlines() == [
            "asked  %s  %s" % (holder["label"],
                               name_of(holder["node"], path) or path[1:])
            for holder in holders], done
        # They have not released yet. The revocation has replaced the label in
        # the node, and must not be shown as one.
        head, *lines = expect_exit(1, "status", *layout, path).out.splitlines()
        assert len(lines) == len(holders)
        for line in lines:
            assert line.startswith("holds  (asked to release)  age "), line
        for holder in status(kind, path)["holders"]:
            assert holder["asked_to_release"] is True, holder
            assert "label" not in holder, holder
        options = kind.excludes[0].split()
        with start("run", *options, "-v", path, "echo", "in") as waiter:
            place = "position 1, " if kind.is_queued else ""
            message = "latchkey: waiting for %s: %sheld by another client\n" % (
                path, place)
            assert message in iter(waiter.stderr.readline, "")
            asked = expect_exit(0, "revoke", *layout, "--json", path).json()
            assert asked == [{"lock": path, "asked": [
                {"node": holder["node"], "asked_to_release": True}
                for holder in holders]}], asked
            for each in runs:
                done = each.finish()
                assert done.code == 7, done
                assert done.err == ("latchkey: %s: another client asked for the "
                                    "lock: sent TERM to COMMAND\n" % path), done
            done = waiter.finish()
            assert (done.code, done.out) == (0, "in\n"), done


SCENARIOS = (held_lock_excludes_others_and_is_shown, waiter_is_shown_and_granted,
             revoke_asks_all_holders_and_no_waiter)


def cells(scenario):
    """The tests of a scenario, one for each kind."""
    def cell(kind):
        def test():
            scenario(kind, "/%s-%s" % (scenario.__name__, kind.name))
        test.__name__ = "%s__%s" % (scenario.__name__, kind.name.replace("-", "_"))
        return test
    return live.together(*map(cell, KINDS))


# ---- several locks

def wait_until_held(path, *layout):
    live.eventually(lambda: run("status", *layout, path).code == 1,
                    path + " is held")


def token_and_node_of_several_locks_are_those_of_the_operand():
    for lock, option_l in (("/t/a", "/t/b"), ("/t/b", "/t/a")):
        with start("run", "/t/a", "sleep", "600") as first_holder:
            wait_until_held("/t/a")
            with start("run", "--json", "-l", option_l, lock, "sh", "-c",
                       JOB) as a:
                live.eventually(lambda: command.status("/t/a")["waiters"])
                first_holder.terminate()
                _, node, token, _ = a.stdout.readline().split()
                lines = [a.stdout.readline() for _ in range(2)]
                tokens = {path: command.status(path)["holders"][0]["token"]
                          for path in (lock, option_l)}
                assert token == tokens[lock], (token, tokens)
                assert node.startswith(lock + "/"), node
                assert lines == ["%s %s\n" % (tokens[path], path)
                                 for path in (lock, option_l)], (lines, tokens)
                a.terminate()
                events = [json.loads(line) for line in
                          a.finish().err.splitlines()]
        (acquired,) = [e for e in events if e["event"] == "acquired"]
        assert (acquired["token"], acquired["node"]) == (token, node)
        # The node in /t/b was always created later than that in /t/a. So the
        # operand's token was once the smaller one and once the larger one.
        assert int(tokens["/t/a"]) < int(tokens["/t/b"]), tokens


def all_locks_are_acquired_or_none():
    for layout in ((), ("--layout", "native")):
        a, b, c, free = ["/l%d/%s" % (len(layout), name) for name in "abc0"]

        def is_busy(*words):
            return run("run", "-n", *layout, *words, "true").code == 124

        with start("run", *layout, "-l", b, "-l", "s:" + c, a, "sh", "-c",
                   JOB) as holder:
            assert holder.stdout.readline().split()[1].startswith(a + "/")
            assert is_busy(a) and is_busy(b)
            expect_exit(0, "run", "-n", *layout, "-s", c, "true")
            assert is_busy("-x", c)
            # a is held, so the free lock is not acquired either.
            assert is_busy("-l", a, free)
            expect_exit(0, "status", *layout, free)
            # The message names the lock that is held.
            done = run("run", *layout, "-v", "-w", "1", "-l", b, free, "true")
            assert "waiting for %s: position 1, held by " % b in done.err, done
            assert done.err.endswith(
                "latchkey: %s: is still held by another client\n" % b), done
            with start("run", *layout, "--json", "-l", b, free, "true") as waiter:
                waiting = json.loads(waiter.stderr.readline())
                assert (waiting["lock"], waiting["waits_for"]) == (free, b), waiting
                waiter.terminate()
                assert waiter.finish().code == 128 + signal.SIGTERM
            end(holder)
        for path in (a, b, c):
            expect_exit(0, "run", "-n", *layout, path, "true")
    # The same path twice is one lock.
    with start("run", "-l", "/same", "/same", "sh", "-c", JOB) as a:
        read_grant(a, "/same")
        end(a)


# ---- permits

def status_tells_the_holder_of_a_permit_from_the_waiters():
    """The holder's node in leases is younger than the queue nodes of the
    waiters, and it is still reported as the holder."""
    jobs = [start("run", "-i", str(n), "-p", "1", "/four", "sh", "-c", JOB)
            for n in range(4)]
    live.eventually(lambda: len(command.status("/four")["waiters"]) == 3)
    for waiting in (3, 2, 1, 0):
        # leases has the holder's node, and that of the first waiter if any.
        permits = 2 if waiting > 0 else 1
        live.eventually(
            lambda: len(command.children("/four/leases")) == permits)
        assert expect_exit(1, "status", "/four").out.startswith(
            "/four: held, %d waiting\n" % waiting)
        (holder,), waiters = command.queue("/four")
        assert len(waiters) == waiting and holder not in waiters, (
            holder, waiters)
        job = jobs[int(holder)]
        assert read_grant(job, "/four")[0] == "permits"
        expect_exit(0, "revoke", "/four")
        assert job.finish().code == 7
        if waiting > 0:
            wait_until_held("/four")
    expect_exit(1, "revoke", "/four")


def another_number_of_permits_is_reported():
    with contextlib.ExitStack() as stack:
        def hold(*options, path):
            process = stack.enter_context(start("run", *options, path, "sh", "-c", JOB))
            read_grant(process, path)
            return process

        many = [hold("-p", "3", path="/many") for _ in range(3)]
        few = hold("-p", "1", path="/few")
        waiter = stack.enter_context(start("run", "-p", "1", "/many", "true"))
        # With the same number there is no warning. Holders are counted a second
        # after the acquire.
        done = run("run", "-p", "1", "-w", "2", "/few", "true")
        assert done.code == 124 and "warning" not in done.err, done
        assert waiter.stderr.readline() == (
            "latchkey: warning: /many: other clients hold 3 permits, but "
            "-p says 1; all clients must use the same number\n")
        end(*many, few)
        done = waiter.finish()
        assert (done.code, done.err) == (0, ""), done


def signal_ends_a_run_whose_permit_check_is_unanswered():
    """While a run waits for permits, it checks the holders' number of permits."""
    with start("run", "-p", "1", "/asked", "sh", "-c", JOB) as a, \
            relay.Relay(zk.connect) as proxy:
        read_grant(a, "/asked")
        # The waiter lists the queue and the permits, and a second later the
        # permits again.
        check = proxy.at_frame("freeze", op=relay.CHILDREN, count=3)
        with start("run", "-p", "1", "-z", proxy.address, "/asked",
                   "true") as waiter:
            check.wait()
            assert command.status("/asked")["waiters"]
            waiter.terminate()
            done = waiter.finish()
            assert done.code == 128 + signal.SIGTERM, done
        end(a)


def node_of_a_kazoo_semaphore_has_its_number_of_permits():
    with start("run", "--layout", "kazoo", "-p", "2", "/two", "sh", "-c",
               JOB) as a:
        read_grant(a, "/two")
        assert expect_exit(0, "get", "/two").out == "2"
        done = expect_exit(125, "run", "-n", "--layout", "kazoo", "-p", "3", "/two",
                           "true")
        assert "number of permits" in done.err, done
        # Without --layout the permit is not shown, but not ignored either.
        done = expect_exit(0, "status", "/two")
        assert "not shown are the nodes of another" in done.err, done
        end(a)


# ---- nodes of other kinds and layouts

def mutex_beside_nodes_named_as_those_of_a_semaphore_is_held():
    for name in "locks", "leases":
        expect_exit(0, "create", "-p", "/mutex/" + name)
    with start("run", "/mutex", "sh", "-c", JOB) as a:
        read_grant(a, "/mutex")
        assert expect_exit(1, "status", "/mutex").out.startswith(
            "/mutex: held, 0 waiting\n")
        expect_exit(1, "wait", "-w", "0", "/mutex")
        end(a)
    assert expect_exit(0, "status", "/mutex").out.startswith("/mutex: free")


def nodes_of_another_lock_kind_are_reported():
    """Another kind of lock is recognised by the names of its nodes."""
    foreign_permit = "leases/0123456789abcdef0123456789abcdef"
    for number, (node, options, reported) in enumerate((
            ("seq-0000000007", (), "seq-0000000007"),
            ("x-latch-0000000000", ("-s",), "x-latch-0000000000"),
            ("leases/x", (), "leases"),
            ("_c_0-lock-0000000000", ("--layout", "native"),
             "_c_0-lock-0000000000"),
            ("_c_0-lock-0000000000", ("-p", "2"), "_c_0-lock-0000000000"),
            (foreign_permit, ("-p", "2"), foreign_permit))):
        lock = "/beside%d" % number
        expect_exit(0, "create", "-p", lock + "/" + node)
        done = expect_exit(0, "run", *options, lock, "true")
        assert done.err == (
            "latchkey: warning: %s belongs to another kind of lock or "
            "another --layout, and perhaps does not wait for this lock; "
            "use the same options everywhere, or another path\n" %
            (lock + "/" + reported)), done
        done = expect_exit(0, "run", "-q", *options, lock, "true")
        assert not done.err, done


def children_of_other_names_are_no_contenders():
    for name in ("seq-1", "x-seq-0000000001", "lock-0000000001", "config"):
        expect_exit(0, "create", "-p", "/others/" + name)
    expect_exit(0, "status", "--layout", "native", "/others")
    # Curator's layout, the default, has nodes named lock- and a number.
    expect_exit(1, "status", "/others")
    expect_exit(0, "run", "-n", "--layout", "native", "/others", "true")
    assert len(command.children("/others")) == 4


def locks_with_a_prefix_can_be_in_the_root():
    layout = ("--layout", "native:job-")
    with start("run", *layout, "/", "sh", "-c", JOB) as a:
        read_grant(a, "/")
        expect_exit(124, "run", "-n", *layout, "/", "true")
        expect_exit(1, "wait", "-w", "0", *layout, "/")
        end(a)
    for name in "curator", "kazoo", "latch", "native:", "single":
        done = expect_exit(125, "run", "--layout", name, "/", "true")
        assert 'the path must be below "/"' in done.err, done


# ---- single nodes

def node_deleted_before_the_grant_is_created_again():
    lock = "/again"
    with relay.Relay(zk.connect) as proxy:
        # The create and a read of the node leave together.
        trap = proxy.at_frame(
            lambda: live.eventually(lambda: run("delete", lock).code == 0),
            op=relay.GET)
        with start("run", SINGLE, "-z", proxy.address, lock, "echo",
                   "in") as process:
            trap.wait()
            done = process.finish()
    assert (done.code, done.out) == (0, "in\n"), done
    assert done.err == ("latchkey: the own node is gone (no such node); trying "
                        "again\n"), done


def missing_parent_is_created_and_mentioned():
    lock = "/mentioned/lock"
    done = expect_exit(0, "run", SINGLE, "-v", "-i", "me", lock, command.PROGRAM,
                       "get", lock)
    assert done.out == "me", done
    assert "if this run creates the parent of the lock's node, every client " \
        "may create and delete in it" in done.err, done
    (parent,) = expect_exit(0, "stat", "--json", "/mentioned").json()
    assert (parent["ephemeral_owner"], parent["num_children"]) == ("0x0", 0), parent


def node_of_another_program_is_a_holder():
    lock = "/foreign"
    with start("create", "-e", lock, "other program") as other:
        assert other.stdout.readline() == lock + "\n"
        (holder,) = status(SINGLE_NODE, lock)["holders"]
        assert holder["label"] == "other program", holder
        expect_exit(124, "run", SINGLE, "-n", lock, "true")
        with start("run", SINGLE, lock, "echo", "in") as waiter, \
                start("wait", SINGLE, lock) as other_waiter:
            assert waiter.poll() is None
            other.terminate()
            assert waiter.finish().out == "in\n"
            assert other_waiter.finish().code == 0


def node_that_cannot_be_read_is_reported():
    lock = "/hidden"
    with start("create", "-e", "--acl", "world:anyone:cdwa", lock) as other:
        assert other.stdout.readline() == lock + "\n"
        done = expect_exit(1, "status", SINGLE, lock)
        assert done.out == lock + ": held\nholds  (not readable)  hidden\n", done
        assert status(SINGLE_NODE, lock)["holders"] == [{"node": lock}]
        done = expect_exit(125, "run", SINGLE, lock, "true")
        assert "does not permit READ" in done.err, done
        expect_exit(125, "wait", SINGLE, lock)
        other.terminate()


def node_that_is_not_ephemeral_holds_until_it_is_deleted():
    lock = "/stays"
    warning = ("latchkey: warning: /stays is not ephemeral, so no session holds "
               "it: the lock is held until a client deletes the node\n")
    expect_exit(0, "create", lock, "settings")
    head, line = expect_exit(1, "status", SINGLE, lock).out.splitlines()
    assert head == lock + ": held", head
    assert "  session none: not ephemeral  stays" in line, line
    (holder,) = status(SINGLE_NODE, lock)["holders"]
    assert holder["ephemeral"] is False and holder["session"] == "0x0", holder
    done = expect_exit(1, "wait", SINGLE, "-w", "1", lock)
    assert done.err == warning, done
    done = expect_exit(125, "revoke", SINGLE, lock)
    assert done.err == (
        "latchkey: revoke %s: the node is not ephemeral, so no client of the "
        "lock has created it; latchkey delete deletes it\n" % lock), done
    assert (done.out, expect_exit(0, "get", lock).out) == ("", "settings"), done
    done = expect_exit(124, "run", SINGLE, "-n", lock, "true")
    assert done.err == (warning + "latchkey: %s: is held by another client\n"
                        % lock), done
    done = expect_exit(124, "run", SINGLE, "-w", "1", "-q", lock, "true")
    assert done.err == "", done
    with start("run", SINGLE, lock, "echo", "in") as waiter:
        assert waiter.stderr.readline() == warning
        expect_exit(0, "delete", lock)
        done = waiter.finish()
        assert (done.code, done.out, done.err) == (0, "in\n", ""), done


def candidates_of_a_single_node_lead_one_after_the_other():
    path = "/elect"
    words = ("elect", SINGLE, path, "sh", "-c", JOB)
    with start(*words) as leader:
        _, _, term, _ = read_grant(leader, path)
        (holder,) = status(SINGLE_NODE, path)["holders"]
        assert holder["token"] == term, (holder, term)
        with start(*words) as candidate:
            end(leader)
            _, _, next_term, _ = read_grant(candidate, path)
            assert int(next_term) > int(term)
            end(candidate)
    assert status(SINGLE_NODE, path)["state"] == "free"


# ---- usage

def options_that_exclude_each_other_are_refused():
    """The other usage errors are in cli_messages.py."""
    done = expect_exit(125, "run", "-p", "2", "-l", "/y", "/x", "true")
    assert "-p excludes -s, -x and -l" in done.err, done
    for words in (("-s",), ("-x",), ("-p", "2"), ("-p", "2", "--take", "1"),
                  ("--take", "1"), ("-l", "/y")):
        done = expect_exit(125, "run", SINGLE, *words, "/x", "true")
        assert done.err == (
            "latchkey: run: --layout single excludes -s, -x, -p, --take and -l; "
            "latchkey run --help shows the usage\n"), (words, done)
    for verb in ("run", "elect", "status", "wait", "revoke"):
        operands = ("/x", "true") if verb in ("run", "elect") else ("/x",)
        for layout in ("single:prefix", "kazoo:x"):
            done = expect_exit(125, verb, "--layout", layout, *operands)
            assert "is followed by a prefix" in done.err, done


with command.serve("--tick", "1000") as zk:
    live.run(
        *map(cells, SCENARIOS),
        live.together(
            token_and_node_of_several_locks_are_those_of_the_operand,
            all_locks_are_acquired_or_none,
            status_tells_the_holder_of_a_permit_from_the_waiters,
            another_number_of_permits_is_reported,
            signal_ends_a_run_whose_permit_check_is_unanswered,
            node_of_a_kazoo_semaphore_has_its_number_of_permits,
            mutex_beside_nodes_named_as_those_of_a_semaphore_is_held,
            nodes_of_another_lock_kind_are_reported,
            children_of_other_names_are_no_contenders,
            locks_with_a_prefix_can_be_in_the_root,
            node_deleted_before_the_grant_is_created_again,
            missing_parent_is_created_and_mentioned,
            node_of_another_program_is_a_holder,
            node_that_cannot_be_read_is_reported,
            node_that_is_not_ephemeral_holds_until_it_is_deleted,
            candidates_of_a_single_node_lead_one_after_the_other,
            options_that_exclude_each_other_are_refused))
