# SPDX-License-Identifier: Apache-2.0
"""A TCP relay that parses ZooKeeper's frames, for tests.

    with Relay("127.1.2.3:2181") as relay:
        connect to relay.address
        relay.freeze()              # forwards nothing, closes no connection
        relay.trap("cut", op=CREATE2)
        relay.requests()            # the requests of clients so far

A relay accepts connections of clients, and connects to a server for each. With
frames=False it stands between servers, and forwards bytes without parsing them.
With frames=RECORDS it forwards TLS: its frames are the TLS records, and the `op`
of a frame is the type of the record.

"Up" is the direction from the client to the server, "down" the other.
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

MAX_QUEUED_BYTES = 1 << 20  # with more in its queue, a direction stops reading

# One frame. The `op` of a reply is the opcode of its request. `xid` is None in
# connect frames; `err` is None in connect frames and in requests. `read` is the
# number of the read() that returned the frame: frames of one connection and
# direction with the same `read` arrived together.
Frame = collections.namedtuple(
    "Frame", "at connection up read op xid err path size body")


class _Loop:
    """The event loop of all relays, in a thread of its own."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, function, *args):
        """Call the function in the thread of the loop; gives its result."""
        async def call():
            result = function(*args)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(
            call(), self.loop).result(30)


_the_loop = None
_the_loop_lock = threading.Lock()


def _loop():
    """The event loop; the first call starts it."""
    global _the_loop
    with _the_loop_lock:  # tests that run together call this at the same time
        if _the_loop is None:
            _the_loop = _Loop()
        return _the_loop


class Trap:
    """An action at a certain frame; see Relay.trap()."""

    def __init__(self, action, up, op, count, forward, lasting):
        self.action, self.up, self.op = action, up, op
        self.count, self.forward, self.lasting = count, forward, lasting
        self._seen = collections.Counter()  # matching frames; see takes()
        self._hit = threading.Event()

    def wait(self, seconds=20):
        """Wait until the action was executed."""
        assert self._hit.wait(seconds), "no frame for the trap at %s" % (
            self.op,)

    def has_hit(self):
        return self._hit.is_set()

    def takes(self, frame):
        """Count the frame if it matches; gives whether it is the one at which
        the action is executed. A lasting trap counts each connection alone."""
        if frame.up != self.up or (self.has_hit() and not self.lasting):
            return False
        if self.op is None and frame.op == CONNECT:
            return False
        if self.op is not None and frame.op != self.op:
            return False
        counter = frame.connection if self.lasting else None
        self._seen[counter] += 1
        return self._seen[counter] == self.count

    def ends_connection(self):
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
        if self.ends_connection():
            return b""
        return piece[len(self.first(piece)):]

    def note_hit(self):
        self._hit.set()


class _Side:
    """One direction of one connection. read() queues the input, and write()
    takes it off the queue and forwards it, perhaps later."""

    def __init__(self, connection, up, reader, writer):
        self.connection, self.up = connection, up
        self.reader, self.writer = reader, writer
        self.queue = asyncio.Queue()  # (time of arrival, bytes, Frame or None)
        self.queued_bytes = 0
        self.reads = 0      # number of read() calls so far
        self.rest = b""     # input that is no complete frame yet
        self.first = True   # the first frame was not received yet

    async def read(self):
        """Queue the input, split into frames. At its end the bytes in the queue
        are None."""
        try:
            while piece := await self.reader.read(1 << 18):
                self.reads += 1
                self.take(piece)
                while self.queued_bytes > MAX_QUEUED_BYTES:
                    await asyncio.sleep(.01)
        except OSError:
            pass
        if self.rest and self.connection.relay.frames == RECORDS:
            self.put(time.monotonic(), self.rest, None)
        self.queue.put_nowait((time.monotonic(), None, None))

    def take(self, piece):
        """Queue the complete frames of the input, including this piece."""
        now = time.monotonic()
        if not self.connection.relay.frames:
            self.put(now, self.with_relays_address(piece), None)
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
        """Queue the complete TLS records of the input. A record consists of type
        (1 byte), version (2), length (2) and data. Input that does not begin
        with a known type is taken as one frame."""
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
        """Shorten the timeout in the connect request of a resumed session. The
        request consists of version, zxid, timeout, session and password, and a
        new session has the id 0."""
        most = self.connection.relay.most_timeout
        _, _, timeout, session = struct.unpack_from(">iqiq", self.rest, 4)
        if most is not None and session != 0 and timeout > most:
            self.rest = self.rest[:16] + struct.pack(">i", most) + \
                self.rest[20:]
            self.connection.shortens = True

    def put(self, now, piece, frame):
        """Queue a piece; `frame` is the frame that it is, or None."""
        self.queued_bytes += len(piece)
        self.queue.put_nowait((now, piece, frame))

    def with_relays_address(self, piece):
        """Gives the bytes to forward for the piece. The first bytes that a
        server sends to another server contain its election address; this
        replaces it by that of the relay, so that the other server connects
        through the relay, too. Until the address is complete, nothing is
        forwarded."""
        address = self.connection.relay.election_address
        if address is None or not self.up or not self.first:
            return piece
        self.rest += piece
        if len(self.rest) < 20:  # protocol version, server id, and a length
            return b""
        head = self.rest[:16]
        size, = struct.unpack_from(">i", self.rest, 16)
        if len(self.rest) < 20 + size:
            return b""
        self.first = False
        tail = self.rest[20 + size:]
        return head + struct.pack(">i", len(address)) + address.encode() + tail

    def frame(self, body):
        """The Frame with this body, the bytes after its length."""
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
        """Forward what is in the queue, and end the connection after it."""
        relay = self.connection.relay
        while True:
            at, piece, frame = await self.queue.get()
            # The reply with a shortened timeout is never held back.
            if self.up or not self.connection.shortens:
                late = at + relay.delays[self.up] - time.monotonic()
                if late > 0:
                    await asyncio.sleep(late)
                await relay.gates[self.up].wait()
            if piece is None:
                break
            trap = frame and relay.trap_for(frame)
            self.queued_bytes -= len(piece)
            try:
                if not trap:
                    await self.carry(piece)
                else:
                    await self.carry(trap.first(piece))
                    if await self.execute_action(trap):
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

    async def execute_action(self, trap):
        """Execute the action of the trap; gives whether the connection forwards
        nothing more."""
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
        trap.note_hit()
        return trap.ends_connection()


def _text(body, at):
    """The Jute string at `at`; None if the body is too short."""
    if len(body) < at + 4:
        return None
    size, = struct.unpack_from(">i", body, at)
    if size < 0 or len(body) < at + 4 + size:
        return None
    return body[at + 4:at + 4 + size].decode("utf-8", "replace")


class _Connection:
    """A connection of a client, and the one to the server for it."""

    def __init__(self, relay, number, client, server):
        self.relay, self.number = relay, number
        self.pending = {}       # opcodes of requests without a reply, by xid
        self.shortens = False   # a shortened connect request has no reply yet
        self.writers = [client[1], server[1]]
        self.sides = [_Side(self, True, client[0], server[1]),
                      _Side(self, False, server[0], client[1])]
        self.tasks = [asyncio.ensure_future(work) for side in self.sides
                      for work in (side.read(), side.write())]

    def end(self, reset=False):
        """Close both connections; with `reset`, by a RST."""
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
    """A relay to `target`, "HOST:PORT". See the head of this file."""

    def __init__(self, target, frames=True):
        self.lead_to(target)
        self.frames = frames
        # Between servers: see _Side.with_relays_address(). None: leave it.
        self.election_address = None
        self.log = []           # of Frame, in the order of arrival
        self.connections = set()
        self.accepted = 0       # number of connections so far
        self.traps = []
        self.most_timeout = None    # see limit_timeout(); None: no limit
        # Of each direction, True for up: the delay in s, and the drip as
        # (bytes at a time, pause in s) or None.
        self.delays = {True: 0.0, False: 0.0}
        self.drips = {True: None, False: None}
        self.port = 0           # any free port, until the relay listens
        self.server = None
        self.tls = tls.for_relay() if frames is True else None
        self.gates = {}         # events of each direction, not set if frozen
        # The tasks of accepted connections that wait for the one to the target,
        # by their writers.
        self.opening = {}
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
            server = await self._connect_to_target()
        except (OSError, asyncio.CancelledError):
            writer.close()
            return
        finally:
            self.opening.pop(writer, None)
        self.connections.add(_Connection(self, number, (reader, writer),
                                         server))

    async def _connect_to_target(self):
        """Connect to the target. Between servers this is retried for two
        seconds: if the relay closed the connection at once, the server would
        take its peer for failed and start an election."""
        end = time.monotonic() + (0 if self.frames else 2)
        while True:
            try:
                return await asyncio.open_connection(*self.target,
                                                     limit=1 << 18)
            except OSError:
                if time.monotonic() >= end:
                    raise
                await asyncio.sleep(.02)

    def trap_for(self, frame):
        """The trap whose action is executed at this frame, or None."""
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
        """Close the connections, as drop(); with `closing`, all of them."""
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
        smaller maxSessionTimeout does; None: no limit. drop() leaves a
        connection open until its client has the reply with the new timeout,
        since otherwise the client would not know the timeout."""
        self.most_timeout = ms

    def is_shortening(self):
        """Whether a client has not received its shortened timeout yet."""
        return any(c.shortens for c in list(self.connections))

    def trap(self, action, up=True, op=None, count=1, forward=False,
             lasting=False):
        """Execute `action` at the `count`-th frame from now in one direction.
        Only frames with the opcode `op` are counted; None: all frames except
        the handshake.

        Actions:
        "cut"       close the connection
        "tear"      close the connection after half of the frame
        "reset"     close the connection with RST
        "stall"     keep the connection open, and forward nothing more, not even
                    its end
        "freeze"    freeze() the whole relay
        a function  call it
        bytes       forward these bytes instead of the frame

        If `forward` is True, the frame is forwarded before the action; if it is
        a number, as many bytes of the frame. Otherwise a function and "freeze"
        forward the frame after the action, and the other actions drop it. With
        `lasting` the action is executed on each connection, at the `count`-th
        frame of this connection.
        """
        trap = Trap(action, up, op, count, forward, lasting)
        _loop().run(self.traps.append, trap)
        return trap

    def clear_traps(self):
        _loop().run(self.traps.clear)

    def mark(self):
        """The present end of the log, for the functions below: they give the
        frames after it."""
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
