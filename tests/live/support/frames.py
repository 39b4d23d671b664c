# SPDX-License-Identifier: Apache-2.0
"""Sessions of a test that sends and receives the frames itself, without latchkey.

    with frames.connect("127.1.2.3:2181") as session:
        session.call(frames.EXISTS, frames.text("/") + frames.NO_WATCH).err
"""

import collections
import socket
import struct

from relay import CHECK, CLOSE, CREATE, CREATE2, DELETE, EVENT_XID, EXISTS, GET, \
    MULTI, SET, SET_WATCHES

# Opcodes, beside those of relay.py.
SET_ACL, MULTI_READ = 7, 22
EPHEMERALS, DESCENDANTS, ADD_WATCH, WHO_AM_I = 103, 104, 106, 107

WATCH, NO_WATCH = b"\1", b"\0"
ANY_VERSION = struct.pack(">i", -1)
PERSISTENT = struct.pack(">i", 0)  # the mode of a watch
READ, DELETE_CHILDREN, ALL = 1, 8, 31  # permissions
TIMEOUT = 5000  # of sessions, in ms
SECONDS = 20

# `body` is what follows the header. `err` is None, and `body` empty, if the server
# has closed the connection.
Reply = collections.namedtuple("Reply", "zxid err body")
Event = collections.namedtuple("Event", "zxid type path")

CLOSED = Reply(None, None, b"")


def text(value):
    """A string or a buffer."""
    value = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(value)) + value


def acl(perms):
    """An access list that gives these permissions to all."""
    return struct.pack(">ii", 1, perms) + text("world") + text("anyone")


NULL_ACL = struct.pack(">i", -1)


def operation(opcode, body):
    """An operation of a multi."""
    return struct.pack(">i?i", opcode, False, -1) + body


END_OF_MULTI = struct.pack(">i?i", -1, True, -1)


class Session:
    """A session on a connected socket: a new one, or that of another object,
    which it resumes."""

    def __init__(self, sock, resumed=None):
        self._socket = sock
        self._stream = sock.makefile("rb")
        self._last_xid = 0
        self.events = []
        number, password = (0, b"") if resumed is None else (
            resumed.number, resumed.password)
        # Version, zxid, timeout, session, password, read_only.
        self._send(struct.pack(">iqiqi16s?", 0, 0, TIMEOUT, number, 16, password,
                               False))
        reply = self._receive()
        if not reply:
            raise ConnectionResetError("the server has closed the connection")
        timeout, self.number, _, self.password = struct.unpack_from(
            ">4xiqi16s", reply)
        assert self.number != 0 and timeout == TIMEOUT, timeout

    def _send(self, body):
        self._socket.sendall(struct.pack(">i", len(body)) + body)

    def _receive(self):
        """A frame without its length; b"": the connection has ended."""
        try:
            size = self._stream.read(4)
            return self._stream.read(struct.unpack(">i", size)[0]) if size else b""
        except ConnectionResetError:
            return b""

    def call(self, opcode, body=b""):
        """Send a request; gives its Reply. Events before it go to `events`."""
        self._last_xid += 1
        self._send(struct.pack(">ii", self._last_xid, opcode) + body)
        while frame := self._receive():
            xid, zxid, err = struct.unpack_from(">iqi", frame)
            if xid != EVENT_XID:
                assert xid == self._last_xid, frame
                return Reply(zxid, err, frame[16:])
            kind, _, size = struct.unpack_from(">iii", frame, 16)
            self.events.append(Event(zxid, kind, frame[28:28 + size].decode()))
        return CLOSED

    def close(self):
        self.call(CLOSE)
        self._stream.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()


def connect(address, resumed=None):
    """A session at "HOST:PORT"."""
    host, port = address.split(":")
    return Session(socket.create_connection((host, int(port)), SECONDS), resumed)
