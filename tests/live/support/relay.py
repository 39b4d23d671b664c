# SPDX-License-Identifier: Apache-2.0
"""A TCP relay that parses ZooKeeper's frames, for tests.

    with Relay("127.1.2.3:2181") as relay:
        connect to relay.address
        relay.freeze()              # forwards nothing, closes no connection
        relay.trap("cut", op=CREATE2)
        relay.requests()            # the requests of clients so far

A relay connects clients with a server. With frames=False it connects servers
with each other and forwards bytes without parsing them. With frames=RECORDS it
forwards TLS: its frames are the TLS records, and `op` is the type of a record.
All relays of a process share one thread; any thread may call the methods.
"""

import asyncio
import collections
import socket
import struct
import threading
import time

import tls

CREATE, DELETE, EXISTS, GET, SET = 1, 2, 3, 4, 5
SYNC, PING, CHILDREN, CHECK, MULTI, CREATE2 = 9, 11, 12, 13, 14, 15
REMOVE_WATCHES, CREATE_CONTAINER, AUTH, SET_WATCHES = 18, 19, 100, 101
CLOSE = -11
CONNECT = "connect"  # the first frame of each direction
EVENT = "event"

RECORDS = "records"
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23  # types of records

KEEP = 1 << 20  # bytes that one direction buffers before it stops reading

# One frame. `op` of a reply is the opcode of its request. `xid` and `err` are
# None in connect frames, and `err` in requests. `read` is the number of the
# read() that returned it: frames of a connection with the same number arrived
# together.
Frame = collections.namedtuple(
    "Frame", "at connection up read op xid err path size body")


class _Loop:
    """The one thread of all relays."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, function, *args):
        async def call():
            result = function(*args)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(
            call(), self.loop).result(30)


_the_loop = None
_making = threading.Lock()


def _loop():
    global _the_loop
    with _making:  # tests that run together call this at the same time
        if _the_loop is None:
            _the_loop = _Loop()
        return _the_loop


class Trap:
    """An action at a certain frame; see Relay.trap()."""

    def __init__(self, action, up, op, count, forward, lasting):
        self.action, self.up, self.op = action, up, op
        self.count, self.forward, self.lasting = count, forward, lasting
        self._seen = collections.Counter()
        self._hit = threading.Event()

    def wait(self, seconds=20):
        """Wait until the action was executed."""
        assert self._hit.wait(seconds), "no frame for the trap at %s" % (
            self.op,)

    def has_hit(self):
        return self._hit.is_set()

    def takes(self, frame):
        if frame.up != self.up or (self.has_hit() and not self.lasting):
            return False
        if self.op is None and frame.op == CONNECT:
            return False
        if self.op is not None and frame.op != self.op:
            return False
        of = frame.connection if self.lasting else None
        self._seen[of] += 1
        return self._seen[of] == self.count

    def ends(self):
        """Whether the connection forwards nothing after the action."""
        return self.action in ("cut", "tear", "reset", "stall")

    def first(self, piece):
        """The bytes of the frame that are forwarded before the action."""
        if self.action == "tear":
            return piece[:len(piece) // 2]
        if self.forward is True:
            return piece
        return piece[:self.forward] if self.forward else b""

    def rest(self, piece):
        """The bytes that are forwarded after the action."""
        if isinstance(self.action, bytes):
            return self.action
        return b"" if self.ends() else piece[len(self.first(piece)):]

    def spring(self):
        self._hit.set()


class _Side:
    """One direction of one connection: reader, queue, writer."""

    def __init__(self, connection, up, reader, writer):
        self.connection, self.up = connection, up
        self.reader, self.writer = reader, writer
        self.queue = asyncio.Queue()
        self.kept = 0       # number of bytes in the queue
        self.reads = 0
        self.rest = b""
        self.first = True

    async def read(self):
        """Split the input into frames and queue them; None: end of file."""
        try:
            while piece := await self.reader.read(1 << 18):
                self.reads += 1
                self.take(piece)
                while self.kept > KEEP:
                    await asyncio.sleep(.01)
        except OSError:
            pass
        if self.rest and self.connection.relay.frames == RECORDS:
            self.put(time.monotonic(), self.rest, None)
        self.queue.put_nowait((time.monotonic(), None, None))

    def take(self, piece):
        now = time.monotonic()
        if not self.connection.relay.frames:
            self.put(now, self.signed(piece), None)
            return
        self.rest += piece
        if self.connection.relay.frames == RECORDS:
            self.take_records(now)
            return
        while len(self.rest) >= 4:
            size, = struct.unpack_from(">i", self.rest)
            if len(self.rest) < 4 + size:
                break
            if self.first and self.up:
                self.limit_timeout()
            frame = self.frame(self.rest[4:4 + size])
            self.connection.relay.log.append(frame)
            self.put(now, self.rest[:4 + size], frame)
            self.rest = self.rest[4 + size:]

    def take_records(self, now):
        """Split the input into TLS records: type, version, length, data. Input
        that is no record is one frame."""
        while self.rest:
            size = len(self.rest)
            if self.rest[0] in (CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA):
                if size < 5:
                    return
                size = 5 + struct.unpack_from(">H", self.rest, 3)[0]
            if len(self.rest) < size:
                return
            piece, self.rest = self.rest[:size], self.rest[size:]
            frame = Frame(now, self.connection.number, self.up, self.reads,
                          piece[0], None, None, None, size, piece[5:517])
            self.connection.relay.log.append(frame)
            self.put(now, piece, frame)

    def limit_timeout(self):
        """Shorten the timeout in the connect request of a resumed session:
        version, zxid, timeout, session, password."""
        most = self.connection.relay.most_timeout
        _, _, timeout, session = struct.unpack_from(">iqiq", self.rest, 4)
        if most is not None and session != 0 and timeout > most:
            self.rest = self.rest[:16] + struct.pack(">i", most) + \
                self.rest[20:]
            self.connection.shortens = True

    def put(self, now, piece, frame):
        """Queue a piece to be forwarded."""
        self.kept += len(piece)
        self.queue.put_nowait((now, piece, frame))

    def signed(self, piece):
        """A server's first bytes to another server hold its election address;
        replace it by that of the relay."""
        sign = self.connection.relay.sign
        if sign is None or not self.up or not self.first:
            return piece
        self.rest += piece
        if len(self.rest) < 20:
            return b""
        head = self.rest[:16]
        size, = struct.unpack_from(">i", self.rest, 16)
        if len(self.rest) < 20 + size:
            return b""
        self.first = False
        tail = self.rest[20 + size:]
        return head + struct.pack(">i", len(sign)) + sign.encode() + tail

    def frame(self, body):
        op = xid = err = path = None
        if self.first:
            self.first = False
            op = CONNECT
        elif self.up:
            xid, op = struct.unpack_from(">ii", body)
            path = _text(body, 8)
            self.connection.pending[xid] = op
        else:
            xid, _, err = struct.unpack_from(">iqi", body)
            if xid == -1:
                op, path = EVENT, _text(body, 24)
            else:
                op = self.connection.pending.pop(xid, None)
        return Frame(time.monotonic(), self.connection.number, self.up,
                     self.reads, op, xid, err, path, len(body) + 4,
                     body[:512])

    async def write(self):
        relay = self.connection.relay
        while True:
            at, piece, frame = await self.queue.get()
            if self.up or not self.connection.shortens:
                late = at + relay.delays[self.up] - time.monotonic()
                if late > 0:
                    await asyncio.sleep(late)
                await relay.gates[self.up].wait()
            if piece is None:
                break
            trap = frame and relay.sprung(frame)
            self.kept -= len(piece)
            try:
                if not trap:
                    await self.carry(piece)
                else:
                    await self.carry(trap.first(piece))
                    if await self.spring(trap):
                        return
                    if rest := trap.rest(piece):
                        await relay.gates[self.up].wait()
                        await self.carry(rest)
            except OSError:
                break
            if not self.up:
                self.connection.shortens = False
        self.connection.end()

    async def carry(self, piece):
        """Forward a piece; in small parts if drip() was called."""
        size, pause = self.connection.relay.drips[self.up] or (len(piece), 0)
        while piece:
            self.writer.write(piece[:size])
            await self.writer.drain()
            piece = piece[size:]
            if piece:
                await asyncio.sleep(pause)

    async def spring(self, trap):
        """Execute the action. True: the connection forwards nothing more."""
        if trap.action in ("cut", "tear"):
            self.connection.end()
        elif trap.action == "reset":
            self.connection.end(reset=True)
        elif trap.action == "stall":
            self.connection.stall()
        elif trap.action == "freeze":
            self.connection.relay.shut(True, True)
        elif not isinstance(trap.action, bytes):
            await asyncio.get_running_loop().run_in_executor(
                None, trap.action)
        trap.spring()
        return trap.ends()


def _text(body, at):
    """The Jute string at `at`; None if the body is too short."""
    if len(body) < at + 4:
        return None
    size, = struct.unpack_from(">i", body, at)
    if size < 0 or len(body) < at + 4 + size:
        return None
    return body[at + 4:at + 4 + size].decode("utf-8", "replace")


class _Connection:
    def __init__(self, relay, number, client, server):
        self.relay, self.number, self.pending = relay, number, {}
        self.shortens = False  # a shortened connect request has no reply yet
        self.writers = [client[1], server[1]]
        self.sides = [_Side(self, True, client[0], server[1]),
                      _Side(self, False, server[0], client[1])]
        self.tasks = [asyncio.ensure_future(work) for side in self.sides
                      for work in (side.read(), side.write())]

    def end(self, reset=False):
        self.relay.connections.discard(self)
        for writer in self.writers:
            if reset:
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER,
                    struct.pack("ii", 1, 0))
                writer.transport.abort()
            writer.close()
        self.stall()

    def stall(self):
        """Stop reading and forwarding."""
        me = asyncio.current_task()
        for task in self.tasks:
            if task is not me:
                task.cancel()


class Relay:
    def __init__(self, target, frames=True):
        self.lead_to(target)
        self.frames = frames
        self.sign = None        # see _Side.signed()
        self.log = []           # of Frame, in the order of arrival
        self.connections = set()
        self.accepted = 0
        self.traps = []
        self.most_timeout = None    # see limit_timeout()
        self.delays = {True: 0.0, False: 0.0}
        self.drips = {True: None, False: None}  # (bytes, pause in s)
        self.port = 0
        self.server = None
        self.tls = tls.for_relay() if frames is True else None
        self.gates = {}
        self.opening = {}       # accepted, not connected to the target: tasks
        _loop().run(self._start)
        self.address = "127.0.0.1:%d" % self.port
        if self.tls:
            tls.add_relay(self.address)

    async def _start(self):
        self.gates = {True: asyncio.Event(), False: asyncio.Event()}
        self._thaw()
        await self._listen()

    async def _listen(self):
        if self.server is None:
            self.server = await asyncio.start_server(
                self._accepted, "127.0.0.1", self.port, limit=1 << 18,
                backlog=1024, ssl=self.tls)
            self.port = self.server.sockets[0].getsockname()[1]

    async def _accepted(self, reader, writer):
        self.accepted += 1
        number = self.accepted
        me = asyncio.current_task()
        self.opening[writer] = me
        try:
            # A frozen relay accepts, but does not connect to the target.
            await self.gates[True].wait()
            server = await self._call()
        except (OSError, asyncio.CancelledError):
            writer.close()
            return
        finally:
            self.opening.pop(writer, None)
        self.connections.add(_Connection(self, number, (reader, writer),
                                         server))

    async def _call(self):
        """Connect to the target; between servers, retry for two seconds. A
        server would take a connection that closes at once for a failed peer and
        start an election."""
        end = time.monotonic() + (0 if self.frames else 2)
        while True:
            try:
                return await asyncio.open_connection(*self.target,
                                                     limit=1 << 18)
            except OSError:
                if time.monotonic() >= end:
                    raise
                await asyncio.sleep(.02)

    def sprung(self, frame):
        for trap in list(self.traps):
            if trap.takes(frame):
                if not trap.lasting:
                    self.traps.remove(trap)
                return trap
        return None

    def shut(self, up, down):
        if up:
            self.gates[True].clear()
        if down:
            self.gates[False].clear()

    def _thaw(self):
        for gate in self.gates.values():
            gate.set()

    def _drop(self, closing=False):
        for writer, task in list(self.opening.items()):
            writer.close()
            task.cancel()
        for connection in list(self.connections):
            if closing or not connection.shortens:
                connection.end()

    async def _refuse(self):
        if self.server is not None:
            self.server.close()
            await self.server.wait_closed()
            self.server = None

    async def _close(self):
        await self._refuse()
        self._drop(True)

    # ---- the interface of tests

    def lead_to(self, target):
        """Set the target of new connections."""
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))

    def freeze(self, up=True, down=True):
        """Stop forwarding in these directions; buffer what arrives."""
        _loop().run(self.shut, up, down)

    def thaw(self):
        """Forward the buffered bytes, and all later ones."""
        _loop().run(self._thaw)

    def drop(self):
        """Close all connections; buffered bytes are lost."""
        _loop().run(self._drop)

    def refuse(self):
        """Refuse new connections; open ones stay."""
        _loop().run(self._refuse)

    def accept(self):
        """Accept connections again, at the same address."""
        _loop().run(self._listen)

    def delay(self, ms, up=True, down=True):
        """Forward everything `ms` later in these directions."""
        for way, wanted in ((True, up), (False, down)):
            if wanted:
                self.delays[way] = ms / 1000

    def drip(self, size, ms=0, up=True, down=True):
        """Forward `size` bytes at a time in these directions, with a pause
        between them. A size of 0: whole frames again."""
        for way, wanted in ((True, up), (False, down)):
            if wanted:
                self.drips[way] = (size, ms / 1000) if size else None

    def limit_timeout(self, ms):
        """From now on limit the timeout of resumed sessions, as a server with a
        smaller maxSessionTimeout does; None: no limit. drop() spares a
        connection until its client has the reply with the new timeout: the
        client could not know it otherwise."""
        self.most_timeout = ms

    def is_shortening(self):
        """Whether a reply with a shortened timeout is still under way."""
        return any(c.shortens for c in list(self.connections))

    def trap(self, action, up=True, op=None, count=1, forward=False,
             lasting=False):
        """Execute `action` at the `count`-th frame from now in one direction.
        Only frames with the opcode `op` count; None: all but the handshake.

        Actions: "cut" (close the connection), "tear" (close it after half of
        the frame), "reset" (close it with RST), "stall" (keep it open, and
        forward nothing more, not even its end), "freeze" (the whole relay), a
        function to call, or bytes to forward instead of the frame.

        `forward`: True forwards the frame before the action, a number its first
        bytes. Otherwise a function and "freeze" forward it after the action,
        and the other actions drop it. `lasting`: execute the action on each
        connection, at its `count`-th frame.
        """
        trap = Trap(action, up, op, count, forward, lasting)
        _loop().run(self.traps.append, trap)
        return trap

    def clear_traps(self):
        _loop().run(self.traps.clear)

    def mark(self):
        """A position in the log, for the functions below."""
        return _loop().run(lambda: len(self.log))

    def frames_since(self, mark=0):
        return _loop().run(lambda: self.log[mark:])

    def requests(self, mark=0, pings=False):
        """Frames from clients, without handshakes and, by default, pings."""
        return [f for f in self.frames_since(mark)
                if f.up and f.op != CONNECT and (pings or f.op != PING)]

    def ops(self, mark=0):
        """The opcodes of requests()."""
        return [f.op for f in self.requests(mark)]

    def events(self, mark=0):
        """Watch events to clients."""
        return [f for f in self.frames_since(mark) if f.op == EVENT]

    def close(self):
        _loop().run(self._close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
