# SPDX-License-Identifier: Apache-2.0
"""A server that drops the requests that it does not know, and replies to later
ones, as RaftKeeper 2.3.0 does: a relay in front of ZooKeeper that drops them."""

import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import relay
import zkserver
from command import eventually, run, start

# create2, reconfig, checkWatches, removeWatches, createContainer, createTTL, SASL,
# getEphemerals, getAllChildrenNumber, setWatches2, addWatch, whoAmI.
UNKNOWN = {15, 16, 17, 18, 19, 21, 102, 103, 104, 105, 106, 107}
KINDS = ("", "-x", "-s", "-p 2", "--layout kazoo", "--layout native",
         "--layout single", "--layout latch", "-l /dropped/second")


def is_unknown(request):
    first_operation = request.body[8:12]
    return request.op in UNKNOWN or (
        request.op == relay.MULTI and
        first_operation == relay.CREATE2.to_bytes(4, "big"))


def loses(*ops):
    """What the relay drops: the next request of each of these opcodes."""
    left = list(ops)

    def is_lost(request):
        if request.op not in left:
            return False
        left.remove(request.op)
        return True

    return is_lost


def command(verb, *words):
    return run(verb, "-z", wire.address, *words)


def every_kind_of_lock_is_acquired():
    for n, options in enumerate(KINDS):
        done = command("run", *options.split(), "/dropped/%d" % n, "echo",
                       "done")
        assert (done.code, done.out) == (0, "done\n"), (options, done)
        assert "no reply to create" in done.err, (options, done)
        assert len(done.err.splitlines()) <= 10, (options, done)


def lock_is_held_by_one_and_has_the_czxid_of_its_node_as_token():
    script = "echo $LATCHKEY_FENCING_TOKEN $LATCHKEY_NODE; read line"
    with start("run", "-z", wire.address, "/dropped/one", "-c", script,
               stdin=-1) as holder:
        token, node = holder.stdout.readline().split()
        stat = command("stat", "--json", node).json()[0]
        assert stat["czxid"] == token, (stat, token)
        done = command("run", "-n", "/dropped/one", "echo", "acquired")
        assert done.code == 124 and done.out == "", done
        with start("run", "-z", wire.address, "/dropped/one",
                   "echo", "waited") as waiter:
            eventually(lambda: len(command("ls", "/dropped/one").out.split()) == 2)
            holder.communicate("\n", timeout=20)
            out, err = waiter.communicate(timeout=20)
            assert (waiter.returncode, out) == (0, "waited\n"), err


def leader_and_members_are_found():
    done = command("elect", "/dropped/leader", "echo", "leads")
    assert (done.code, done.out) == (0, "leads\n"), done
    # Its first requests are alone on the connection: the client notices that they
    # were dropped a third of the session timeout later.
    with start("join", "-z", wire.address, "-T", "3", "--name", "a",
               "/dropped/group", "sleep", "600") as member:
        eventually(lambda: command("ls", "/dropped/group").out == "a\n")
        (shown,) = command("members", "--json", "/dropped/group").json()
        assert [m["name"] for m in shown["members"]] == ["a"], shown
        member.terminate()
        member.wait(timeout=20)


def persistent_watch_is_refused():
    done = command("watch", "-T", "3", "/")
    assert done.code == 125 and "persistent watches" in done.err, done


def request_that_is_lost_once_is_sent_again():
    wire.drop_requests(loses(relay.CREATE2, relay.CREATE_CONTAINER))
    mark = wire.mark()
    done = command("run", "-v", "/once/lock", "true")
    assert done.code == 0, done
    assert "drops" not in done.err, done
    assert wire.ops(mark).count(relay.CREATE_CONTAINER) > 2, wire.ops(mark)
    wire.drop_requests(is_unknown)


def session_whose_close_gets_no_reply_is_closed():
    trap = wire.at_frame("cut", op=relay.CLOSE, forward=True)
    begin = time.monotonic()
    done = command("ls", "/")
    assert trap.is_executed() and done.code == 0 and done.err == "", done
    assert time.monotonic() - begin < 5


with zkserver.Server() as zk, relay.Relay(zk.connect) as wire:
    wire.drop_requests(is_unknown)
    live.run(
        every_kind_of_lock_is_acquired,
        lock_is_held_by_one_and_has_the_czxid_of_its_node_as_token,
        leader_and_members_are_found,
        persistent_watch_is_refused,
        request_that_is_lost_once_is_sent_again,
        session_whose_close_gets_no_reply_is_closed,
    )
