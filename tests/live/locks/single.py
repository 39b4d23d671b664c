# SPDX-License-Identifier: Apache-2.0
"""What the single-node lock alone does, on a real server: waiters without a queue,
a delete in doubt, and a holder that cannot be read."""

import sys

sys.path.append(sys.path[0] + "/../support")

import live
import locks as shared
from live import eventually
from locks import LONG, on_server
from relay import CREATE2, DELETE, DOWN, GET, MULTI, UP, Relay


def wait_until_gone(direct, path):
    eventually(lambda: direct.submit("exists", path=path).result().err ==
               "NO_NODE", "%s is gone" % path)


@on_server
def waiters_acquire_one_after_the_other(worker, direct, base):
    path = base + "/lock"
    clients = [worker.client(shared.connect_string(), timeout=LONG)
               for _ in range(4)]
    # `spread` and `poll` in ms; a spread of -1 is none.
    all_options = [{}, {"spread": -1}, {"poll": 20},
                   {"poll": 50, "spread": -1}]
    cycles = [client.single(path, **options).submit("cycle", turns=25)
              for client in clients for options in all_options]
    for cycle in cycles:
        done = cycle.succeeds()
        assert (done.granted, done.failed) == (25, 0), done
    wait_until_gone(direct, path)
    for client in clients:
        client.do("close")


@on_server
def spread_makes_few_waiters_create_after_a_release(worker, direct, base):
    path = base + "/lock"
    holder = direct.single(path)
    holder.acquire()
    wire, locks, pending = shared.crowd(
        worker, lambda client: client.single(path, spread=500), 30)
    mark = wire.mark()
    holder.release()
    eventually(lambda: any(acquire.is_done() for acquire in pending))
    eventually(lambda: wire.ops(mark).count(GET) >= 30)
    creates = wire.ops(mark).count(CREATE2)
    assert creates <= 10, "%d creates" % creates
    for lock in locks:
        lock.free()
    wait_until_gone(direct, path)
    wire.close()


@on_server
def delete_in_doubt_does_not_delete_the_next_holders_node(worker, direct, base):
    for up in (UP, DOWN):
        path = "%s/lock-%d" % (base, up)
        with Relay(shared.connect_string()) as wire:
            client = worker.client(wire.address, timeout=LONG)
            lock, other = [each.single(path, spread=-1)
                           for each in (client, direct)]
            lock.acquire()
            pending = other.submit("acquire")
            other.wait_until_queued()
            trap = wire.at_frame("cut", up=up, op=DELETE)
            released = lock.submit("release")
            trap.wait()
            wire.refuse()
            if up:  # the server did not receive the delete: an operator deletes
                direct.do("delete", path=path)
            token = pending.succeeds().token
            mark = wire.mark()
            wire.accept()
            released.succeeds()
            assert DELETE not in wire.ops(mark), wire.ops(mark)
            assert MULTI in wire.ops(mark)
            assert direct.do("exists", path=path).czxid == token
            assert other.inspect().ok == 1
            other.release()
            client.do("close")


@on_server
def unreadable_holder_is_an_error(worker, direct, base):
    _, acl = shared.digest_identity("me")
    all_permissions = 31
    direct.create(base + "/lock", acl=acl % all_permissions)
    direct.single(base + "/lock").submit("acquire").fails("NO_AUTH")


with shared.serve("--tick", "500", "--container-check", "300") as _zk:
    live.run(
        spread_makes_few_waiters_create_after_a_release,
        live.together(
            waiters_acquire_one_after_the_other,
            delete_in_doubt_does_not_delete_the_next_holders_node,
            unreadable_holder_is_an_error))
