# SPDX-License-Identifier: Apache-2.0
"""What the servers of this test do, as server_differences.def says: requests of
sessions that latchkey has no part in."""

import struct
import sys

sys.path.append(sys.path[0] + "/../support")

import differences
import frames
import live
import zkserver
from frames import text

NO_NODE, NO_AUTH, INVALID_ACL, MARSHALLING = -101, -102, -114, -5
UNIMPLEMENTED, SESSION_MOVED = -6, -118


def create(session, path, perms=frames.ALL):
    """Create a node with this permissions for all; gives the Reply."""
    return session.call(frames.CREATE, text(path) + text("") + frames.acl(perms) +
                        struct.pack(">i", 0))


def set_data(session, path):
    reply = session.call(frames.SET, text(path) + text("x") + frames.ANY_VERSION)
    assert reply.err == 0, reply
    return reply.zxid


def requests_are_known_from_a_version_on():
    no_reads = frames.END_OF_MULTI
    for name, opcode, body in (
            ("MULTI_READ", frames.MULTI_READ, no_reads),
            ("EPHEMERALS_OF_SESSION", frames.EPHEMERALS, text("/")),
            ("COUNT_OF_DESCENDANTS", frames.DESCENDANTS, text("/")),
            ("PERSISTENT_WATCHES", frames.ADD_WATCH,
             text("/") + frames.PERSISTENT),
            ("WHO_AM_I", frames.WHO_AM_I, b"")):
        session = frames.connect(zk.connect)
        reply = session.call(opcode, body)
        if differences.has(name):
            assert reply.err == 0, (name, reply)
            session.close()
        else:
            assert reply.err == UNIMPLEMENTED, (name, reply)
            assert session.call(frames.EXISTS, text("/") + frames.NO_WATCH) == \
                frames.CLOSED, name


def null_access_list_is_refused():
    with frames.connect(zk.connect) as session:
        reply = session.call(frames.CREATE, text("/null-acl") + text("") +
                             frames.NULL_ACL + struct.pack(">i", 0))
        assert reply.err == (
            INVALID_ACL if differences.has("NULL_ACCESS_LIST_IS_INVALID")
            else MARSHALLING), reply


def create_in_a_multi_has_a_stat():
    with frames.connect(zk.connect) as session:
        reply = session.call(frames.MULTI, frames.operation(
            frames.CREATE2, text("/in-multi") + text("") + frames.acl(frames.ALL) +
            struct.pack(">i", 0)) + frames.END_OF_MULTI)
        kind, _, err = struct.unpack_from(">i?i", reply.body)
        assert (reply.err, err) == (0, 0), reply
        assert kind == (frames.CREATE2 if differences.has("STAT_OF_CREATE_IN_MULTI")
                        else frames.CREATE), reply


def reads_and_events_need_permission():
    with frames.connect(zk.connect) as session, \
            frames.connect(zk.connect) as other:
        create(session, "/unread")
        reply = session.call(frames.GET, text("/unread") + frames.WATCH)
        assert reply.err == 0, reply
        other.call(frames.SET_ACL, text("/unread") +
                   frames.acl(frames.ALL & ~frames.READ) + frames.ANY_VERSION)
        set_data(other, "/unread")
        reply = session.call(frames.EXISTS, text("/unread") + frames.NO_WATCH)
        assert reply.err == (NO_AUTH if differences.has("EXISTS_NEEDS_READ")
                             else 0), reply
        assert len(session.events) == (
            0 if differences.has("EVENTS_NEED_READ") else 1), session.events


def delete_of_a_missing_node_needs_permission():
    with frames.connect(zk.connect) as session:
        create(session, "/undeletable", frames.ALL & ~frames.DELETE_CHILDREN)
        reply = session.call(frames.DELETE, text("/undeletable/none") +
                             frames.ANY_VERSION)
        assert reply.err == (NO_AUTH if differences.has("DELETE_ASKS_THE_PARENT_FIRST")
                             else NO_NODE), reply


def missed_event_needs_permission():
    with frames.connect(zk.connect) as session:
        create(session, "/missed")
        set_data(session, "/missed")
        session.call(frames.SET_ACL, text("/missed") +
                     frames.acl(frames.ALL & ~frames.READ) + frames.ANY_VERSION)
        no_paths = struct.pack(">i", 0)
        reply = session.call(frames.SET_WATCHES, struct.pack(">qi", 0, 1) +
                             text("/missed") + no_paths + no_paths)
        assert reply.err == 0, reply
        assert len(session.events) == (
            0 if differences.has("MISSED_EVENTS_NEED_READ") else 1), session.events


def event_has_the_zxid_of_its_change():
    with frames.connect(zk.connect) as session:
        create(session, "/zxid")
        session.call(frames.GET, text("/zxid") + frames.WATCH)
        zxid = set_data(session, "/zxid")
        session.call(frames.EXISTS, text("/") + frames.NO_WATCH)
        (event,) = session.events
        assert event.zxid == (zxid if differences.has("EVENTS_HAVE_ZXIDS")
                              else -1), event


def persistent_watch_and_one_shot_watch_of_a_path():
    differences.need("PERSISTENT_WATCHES")
    with frames.connect(zk.connect) as session:
        create(session, "/modes")
        assert session.call(frames.ADD_WATCH,
                            text("/modes") + frames.PERSISTENT).err == 0
        session.call(frames.GET, text("/modes") + frames.WATCH)
        for _ in range(3):
            set_data(session, "/modes")
        session.call(frames.EXISTS, text("/") + frames.NO_WATCH)
        # Before, the one-shot watch has replaced the persistent one.
        assert len(session.events) == (
            3 if differences.has("WATCH_MODES_ARE_SEPARATE") else 1), session.events


def multi_of_a_moved_session_is_refused():
    check = frames.operation(frames.CHECK, text("/") + frames.ANY_VERSION)
    with zkserver.Server(servers=3) as three:
        at_follower = frames.connect(three.addresses[three.follower() - 1])
        assert at_follower.call(frames.MULTI, check + frames.END_OF_MULTI).err == 0
        frames.connect(three.addresses[three.leader() - 1], resumed=at_follower)
        reply = at_follower.call(frames.MULTI, check + frames.END_OF_MULTI)
        if differences.has("MOVED_SESSION_CLOSES_ITS_MULTI"):
            assert reply == frames.CLOSED, reply
        else:
            _, _, err = struct.unpack_from(">i?i", reply.body)
            assert (reply.err, err) == (0, SESSION_MOVED), reply


with zkserver.Server() as zk:
    live.run(requests_are_known_from_a_version_on,
             null_access_list_is_refused,
             create_in_a_multi_has_a_stat,
             reads_and_events_need_permission,
             delete_of_a_missing_node_needs_permission,
             missed_event_needs_permission,
             event_has_the_zxid_of_its_change,
             persistent_watch_and_one_shot_watch_of_a_path)
live.run(multi_of_a_moved_session_is_refused)
