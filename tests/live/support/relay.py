# SPDX-License-Identifier: Apache-2.0
"""A TCP relay that parses ZooKeeper's frames, for tests.

    with Relay("127.1.2.3:2181") as relay:
        connect to relay.address
        relay.freeze()              # forwards nothing, closes no connection
        relay.at_frame("cut", op=CREATE2)   # when it arrives
        relay.requests()            # the requests of clients so far

A relay accepts connections of clients, and connects to a server for each. With
UNPARSED it forwards bytes that are not split into frames, as between servers.
With RECORDS it forwards TLS: its frames are the TLS records, and the `op` of a
frame is the type of the record.

UP is the direction from the client to the server, DOWN the other.
All relays of a process share one thread; any thread may call the methods.
"""

import asyncio
import collections
import selectors
import socket
import struct
import threading
import time

import tls

# Opcodes. CONNECT and EVENT are the `op` of frames that have no opcode.
CREATE, DELETE, EXISTS, GET, SET = 1, 2, 3, 4, 5
SYNC, PING, CHILDREN, CHECK, MULTI, CREATE2 = 9, 11, 12, 13, 14, 15
REMOVE_WATCHES, CREATE_CONTAINER, AUTH, SET_WATCHES = 18, 19, 100, 101
CLOSE = -11
CONNECT = "connect"  # the first frame of each direction
EVENT = "event"
EVENT_XID = -1  # in the frame

# What a relay parses.
ZOOKEEPER_FRAMES, RECORDS, UNPARSED = "frames", "records", "unparsed"
RECORD_TYPES = CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, DATA = 20, 21, 22, 23

UP, DOWN = True, False

READ_SIZE = 1 << 18         # bytes that one read() returns at most
MAX_QUEUED_BYTES = 1 << 20  # with more in its queue, a direction stops reading
MAX_BODY = 512              # bytes of a frame's body that the log keeps

# For SO_LINGER: struct linger {on, 0 s}. close() then sends a RST.
LINGER_RESET = struct.pack("ii", 1, 0)

# One frame. `at` is the time.monotonic() of its arrival, `connection` the number
# of its connection, and `up` its direction, UP or DOWN. `read` is the number of the
# read() that returned the frame: frames of one connection and direction with the
# same `read` arrived together. The `op` of a reply is the opcode of its request.
# `xid` is None in connect frames; `err` is None in connect frames and in requests.
# `path` is None in replies. `size` counts all bytes of the frame, and `body` has
# the first MAX_BODY bytes after the length.
Frame = collections.namedtuple(
    "Frame", "at connection up read op xid err path size body")


_selector = selectors.DefaultSelector


def delay_precisely():
    """Let delays not round up to whole milliseconds, as epoll does. For
    programs with fewer than 500 connections; to be called before the first
    relay."""
    global _selector
    _selector = selectors.SelectSelector


class _Loop:
    """The event loop of all relays, in a thread of its own."""

    def __init__(self):
        self.loop = asyncio.SelectorEventLoop(_selector())
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, function, *args):
        """Call the function in the thread of the loop; gives its result."""
        async def call():
            result = function(*args)
            return await result if asyncio.iscoroutine(result) else result

        return asyncio.run_coroutine_threadsafe(
            call(), self.loop).result(timeout=30)


_the_loop = None
_the_loop_lock = threading.Lock()


def _in_loop(function, *args):
    """Call the function in the thread of the event loop, which the first call
    starts; gives the function's result."""
    global _the_loop
    with _the_loop_lock:  # tests that run together call this at the same time
        if _the_loop is None:
            _the_loop = _Loop()
    return _the_loop.run(function, *args)


class Trap:
    """An action at a certain frame; see Relay.at_frame()."""

    def __init__(self, action, up, op, count, forward, lasting):
        self.action, self.up, self.op = action, up, op
        self.count, self.forward, self.lasting = count, forward, lasting
        self._seen = collections.Counter()  # matching frames; see count_frame()
        self._executed = threading.Event()

    def wait(self, seconds=20):
        """Wait until the action was executed."""
        assert self._executed.wait(seconds), "no frame for the trap at %s" % (
            self.op,)

    def is_executed(self):
        return self._executed.is_set()

    def count_frame(self, frame):
        """Count the frame if it matches; gives whether it is the one at which
        the action is executed. A lasting trap counts each connection alone."""
        if frame.up != self.up or (self.is_executed() and not self.lasting):
            return False
        if self.op is None and frame.op == CONNECT:
            return False
        if self.op is not None and frame.op != self.op:
            return False
        counter = frame.connection if self.lasting else "all connections"
        self._seen[counter] += 1
        return self._seen[counter] == self.count

    def ends_connection(self):
        """Whether the connection forwards nothing after the action."""
        return self.action in ("cut", "tear", "reset", "stall")

    def part_before_action(self, piece):
        """The bytes of the frame that are forwarded before the action."""
        if self.action == "tear":
            return piece[:len(piece) // 2]
        if self.forward is True:
            return piece
        return piece[:int(self.forward)]  # a number of bytes; False: none

    def part_after_action(self, piece):
        """The bytes that are forwarded after the action."""
        if isinstance(self.action, bytes):
            return self.action
        if self.ends_connection():
            return b""
        return piece[len(self.part_before_action(piece)):]

    def note_executed(self):
        self._executed.set()


class _Direction:
    """One direction of one connection. read() queues the input, and write()
    takes it off the queue and forwards it, perhaps later."""

    def __init__(self, connection, up, reader, writer):
        self.connection, self.up = connection, up
        self.reader, self.writer = reader, writer
        self.queue = asyncio.Queue()  # (time of arrival, bytes, Frame or None)
        self.queued_bytes = 0
        self.reads = 0              # number of read() calls so far
        self.incomplete = b""       # input that is no complete frame yet
        self.expects_first = True   # the first frame was not received yet

    async def read(self):
        """Queue the input, split into frames. At its end the bytes in the queue
        are None."""
        try:
            while piece := await self.reader.read(READ_SIZE):
                self.reads += 1
                self.queue_frames(piece)
                while self.queued_bytes > MAX_QUEUED_BYTES:
                    await asyncio.sleep(.01)
        except OSError:
            pass
        # The beginning of a TLS record is forwarded, that of a frame is not.
        if self.incomplete and self.connection.relay.parsed == RECORDS:
            self.queue_piece(time.monotonic(), self.incomplete, None)
        now = time.monotonic()
        if self.up:
            self.connection.relay.closed_at[self.connection.number] = now
        self.queue.put_nowait((now, None, None))

    def queue_frames(self, piece):
        """Queue the complete frames of the input, including this piece."""
        now = time.monotonic()
        if self.connection.relay.parsed == UNPARSED:
            self.queue_piece(now, self.with_relays_address(piece), None)
            return
        self.incomplete += piece
        if self.connection.relay.parsed == RECORDS:
            self.queue_records(now)
            return
        while len(self.incomplete) >= 4:
            size, = struct.unpack_from(">i", self.incomplete)
            if len(self.incomplete) < 4 + size:
                break
            if self.expects_first and self.up:
                self.shorten_timeout()
            frame = self.parse_frame(self.incomplete[4:4 + size])
            self.connection.relay.log.append(frame)
            self.queue_piece(now, self.incomplete[:4 + size], frame)
            self.incomplete = self.incomplete[4 + size:]

    def queue_records(self, now):
        """Queue the complete TLS records of the input. A record consists of type
        (1 byte), version (2), length (2) and data. Input that does not begin
        with a known type is taken as one frame."""
        while self.incomplete:
            size = len(self.incomplete)
            if self.incomplete[0] in RECORD_TYPES:
                if size < 5:
                    return
                size = 5 + struct.unpack_from(">H", self.incomplete, 3)[0]
            if len(self.incomplete) < size:
                return
            piece = self.incomplete[:size]
            self.incomplete = self.incomplete[size:]
            frame = Frame(now, self.connection.number, self.up, self.reads,
                          op=piece[0], xid=None, err=None, path=None, size=size,
                          body=piece[5:5 + MAX_BODY])
            self.connection.relay.log.append(frame)
            self.queue_piece(now, piece, frame)

    def shorten_timeout(self):
        """Shorten the timeout in the connect request of a resumed session. The
        request consists of version, zxid, timeout, session and password, and a
        new session has the id 0."""
        limit = self.connection.relay.timeout_limit
        request = self.incomplete
        length, version, zxid, timeout, session = struct.unpack_from(
            ">iiqiq", request)
        if limit is not None and session != 0 and timeout > limit:
            self.incomplete = struct.pack(
                ">iiqi", length, version, zxid, limit) + request[20:]
            self.connection.is_shortening = True
            self.connection.relay.shortened_at = time.monotonic()

    def queue_piece(self, now, piece, frame):
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
        if address is None or not self.up or not self.expects_first:
            return piece
        self.incomplete += piece
        # Protocol version (8 bytes), server id (8), length (4) and address.
        if len(self.incomplete) < 20:
            return b""
        head = self.incomplete[:16]
        size, = struct.unpack_from(">i", self.incomplete, 16)
        if len(self.incomplete) < 20 + size:
            return b""
        self.expects_first = False
        tail = self.incomplete[20 + size:]
        return head + struct.pack(">i", len(address)) + address.encode() + tail

    def parse_frame(self, body):
        """The Frame with this body, the bytes after its length."""
        op = xid = err = path = None
        if self.expects_first:
            self.expects_first = False
            op = CONNECT
        elif self.up:
            xid, op = struct.unpack_from(">ii", body)
            path = _text(body, 8)  # after xid and opcode
            self.connection.pending[xid] = op
        else:
            xid, _, err = struct.unpack_from(">iqi", body)
            if xid == EVENT_XID:
                # After the header of 16 bytes, the event's type and the state.
                op, path = EVENT, _text(body, 24)
            else:
                op = self.connection.pending.pop(xid, None)
        return Frame(time.monotonic(), self.connection.number, self.up,
                     self.reads, op, xid, err, path, size=4 + len(body),
                     body=body[:MAX_BODY])

    async def write(self):
        """Forward what is in the queue, and end the connection after it."""
        relay = self.connection.relay
        while True:
            arrival, piece, frame = await self.queue.get()
            # The reply with a shortened timeout is forwarded at once, even by a
            # frozen relay.
            if self.up or not self.connection.is_shortening:
                pause = arrival + relay.delays[self.up] - time.monotonic()
                if pause > 0:
                    await asyncio.sleep(pause)
                await relay.thawed[self.up].wait()
            if piece is None:
                break
            self.queued_bytes -= len(piece)
            if frame and self.up and relay.dropped(frame):
                continue
            trap = relay.take_trap_at(frame) if frame else None
            try:
                if not trap:
                    await self.forward(piece)
                else:
                    await self.forward(trap.part_before_action(piece))
                    if await self.execute_action(trap):
                        return
                    if rest := trap.part_after_action(piece):
                        await relay.thawed[self.up].wait()
                        await self.forward(rest)
            except OSError:
                break
            if not self.up:
                self.connection.is_shortening = False
        self.connection.end()

    async def forward(self, piece):
        """Forward a piece; in small parts if Relay.drip() was called."""
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
            self.connection.relay._freeze(up=True, down=True)
        elif not isinstance(trap.action, bytes):  # part_after_action() has bytes
            await asyncio.get_running_loop().run_in_executor(
                None, trap.action)
        trap.note_executed()
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
    """A connection of a client, and the one to the server for it. `client` and
    `server` are (StreamReader, StreamWriter) each."""

    def __init__(self, relay, number, client, server):
        self.relay, self.number = relay, number
        self.pending = {}       # opcodes of requests without a reply, by xid
        # Whether a shortened connect request was sent and has no reply yet.
        self.is_shortening = False
        self.writers = [client[1], server[1]]
        self.directions = [_Direction(self, UP, client[0], server[1]),
                           _Direction(self, DOWN, server[0], client[1])]
        self.tasks = [asyncio.ensure_future(work)
                      for direction in self.directions
                      for work in (direction.read(), direction.write())]

    def end(self, reset=False):
        """Close both connections; with `reset`, by a RST."""
        self.relay.connections.discard(self)
        for writer in self.writers:
            if reset:
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
                writer.transport.abort()
            writer.close()
        self.stall()

    def stall(self):
        """Stop reading and forwarding."""
        this_task = asyncio.current_task()
        for task in self.tasks:
            if task is not this_task:
                task.cancel()


class Relay:
    """A relay to `target`, "HOST:PORT". See the head of this file."""

    def __init__(self, target, parsed=ZOOKEEPER_FRAMES):
        self.lead_to(target)
        self.parsed = parsed
        # Between servers, the address that replaces that of the server; see
        # _Direction.with_relays_address(). None: it is not replaced.
        self.election_address = None
        self.log = []           # of Frame, in the order of arrival
        # When clients have closed connections, by the connection's number.
        self.closed_at = {}
        self.connections = set()
        self.accepted = 0       # number of connections so far
        self.traps = []         # those that are lasting or not executed yet
        self.dropped = lambda request: False    # see drop_requests()
        self.shortened_at = 0       # when a timeout was shortened last
        self.timeout_limit = None   # in ms; see limit_timeout(); None: no limit
        self.delays = {UP: 0.0, DOWN: 0.0}  # in s; see delay()
        # (bytes at a time, pause in s), or None; see drip()
        self.drips = {UP: None, DOWN: None}
        self.port = 0           # any free port, until the relay listens
        self.listener = None    # an asyncio.Server; None: connections are refused
        self.placeholder = None     # keeps the port while they are refused
        self.tls_context = None
        if parsed == ZOOKEEPER_FRAMES:
            self.tls_context = tls.relay_context()
        self.thawed = {}        # an asyncio.Event for UP and one for DOWN
        # Connections of clients while the relay connects to the target:
        # the task that connects, by the writer to the client.
        self.opening = {}
        _in_loop(self._start)
        self.address = "127.0.0.1:%d" % self.port
        if self.tls_context:
            tls.add_relay(self.address)

    async def _start(self):
        self.thawed = {UP: asyncio.Event(), DOWN: asyncio.Event()}
        self._thaw()
        await self._listen()

    async def _listen(self):
        self._leave_port()
        if self.listener is None:
            self.listener = await asyncio.start_server(
                self._serve_client, "127.0.0.1", self.port, limit=READ_SIZE,
                backlog=1024, ssl=self.tls_context)
            self.port = self.listener.sockets[0].getsockname()[1]

    async def _serve_client(self, reader, writer):
        self.accepted += 1
        number = self.accepted
        this_task = asyncio.current_task()
        self.opening[writer] = this_task
        try:
            # A frozen relay accepts, but does not connect to the target.
            await self.thawed[UP].wait()
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
        end = time.monotonic()
        if self.parsed == UNPARSED:
            end += 2
        while True:
            try:
                return await asyncio.open_connection(*self.target,
                                                     limit=READ_SIZE)
            except OSError:
                if time.monotonic() >= end:
                    raise
                await asyncio.sleep(.02)

    def take_trap_at(self, frame):
        """Count the frame for the traps, up to the one whose action is executed
        at it; gives that trap, or None."""
        for trap in list(self.traps):
            if trap.count_frame(frame):
                if not trap.lasting:
                    self.traps.remove(trap)
                return trap
        return None

    def _freeze(self, up, down):
        if up:
            self.thawed[UP].clear()
        if down:
            self.thawed[DOWN].clear()

    def _thaw(self):
        for event in self.thawed.values():
            event.set()

    def _drop(self, even_shortening=False):
        """Close the connections, without those whose client has not received its
        shortened timeout. With `even_shortening`, close these, too."""
        for writer, task in list(self.opening.items()):
            writer.close()
            task.cancel()
        for connection in list(self.connections):
            if even_shortening or not connection.is_shortening:
                connection.end()

    async def _stop_listening(self):
        self.listener.close()
        await self.listener.wait_closed()
        self.listener = None

    async def _refuse(self):
        if self.listener is None:
            return
        await self._stop_listening()
        # Else a server of another test could get the port.
        self.placeholder = socket.socket()
        self.placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # A process that another test starts keeps the listener open from its
        # fork to its exec. Until then the port is in use.
        end = time.monotonic() + 2
        while True:
            try:
                self.placeholder.bind(("127.0.0.1", self.port))
                return
            except OSError:
                if time.monotonic() >= end:
                    raise
                await asyncio.sleep(.005)

    def _leave_port(self):
        if self.placeholder is not None:
            self.placeholder.close()
            self.placeholder = None

    async def _close(self):
        if self.listener is not None:
            await self._stop_listening()
        self._leave_port()
        self._drop(even_shortening=True)

    # ---- the interface of tests

    def lead_to(self, target):
        """Set the target of new connections."""
        host, _, port = target.rpartition(":")
        self.target = (host, int(port))

    def freeze(self, up=True, down=True):
        """Stop forwarding in these directions; buffer what arrives."""
        _in_loop(self._freeze, up, down)

    def thaw(self):
        """Forward the buffered bytes, and all later ones."""
        _in_loop(self._thaw)

    def drop(self):
        """Close all connections, except as limit_timeout() says. Buffered bytes
        are lost."""
        _in_loop(self._drop)

    def refuse(self):
        """Refuse new connections; open ones stay."""
        _in_loop(self._refuse)

    def accept(self):
        """Accept connections again, at the same address."""
        _in_loop(self._listen)

    def delay(self, ms, up=True, down=True):
        """Forward everything `ms` later in these directions."""
        for direction, wanted in ((UP, up), (DOWN, down)):
            if wanted:
                self.delays[direction] = ms / 1000

    def drip(self, size, ms=0, up=True, down=True):
        """Forward `size` bytes at a time in these directions, with a pause of
        `ms` between them. A size of 0: whole frames again."""
        for direction, wanted in ((UP, up), (DOWN, down)):
            if wanted:
                self.drips[direction] = (size, ms / 1000) if size else None

    def limit_timeout(self, ms):
        """From now on limit the timeout of resumed sessions, as a server with a
        smaller maxSessionTimeout does; None: no limit. drop() leaves a
        connection open until its client has the reply with the new timeout,
        since otherwise the client would not know the timeout."""
        self.timeout_limit = ms

    def at_frame(self, action, up=True, op=None, count=1, forward=False,
                 lasting=False):
        """Execute `action` when the `count`-th frame from now arrives in one
        direction; gives the Trap, which can wait for it. Only frames with the
        opcode `op` are counted; None: all frames except CONNECT.

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
        a number, so many bytes of the frame are. Otherwise a function and
        "freeze" forward the frame after the action, and the other actions drop
        it. With `lasting` the action is executed on each connection, at the
        `count`-th frame of this connection.
        """
        trap = Trap(action, up, op, count, forward, lasting)
        _in_loop(self.traps.append, trap)
        return trap

    def drop_requests(self, dropped):
        """Do not forward the requests for which the function `dropped` gives
        True for their Frame."""
        self.dropped = dropped

    def clear_traps(self):
        _in_loop(self.traps.clear)

    def mark(self):
        """The number of frames in the log. The functions below take it, and give
        the frames that arrived after this call."""
        return _in_loop(lambda: len(self.log))

    def frames_since(self, mark=0):
        return _in_loop(lambda: self.log[mark:])

    def requests(self, mark=0, pings=False):
        """Frames from clients, without handshakes and, by default, pings."""
        return [f for f in self.frames_since(mark)
                if f.up and f.op != CONNECT and (pings or f.op != PING)]

    def ops(self, mark=0):
        """The opcodes of requests()."""
        return [f.op for f in self.requests(mark)]

    def awaits_replies(self):
        """Whether a request on an open connection has no reply yet."""
        return _in_loop(lambda: any(c.pending for c in self.connections))

    def events(self, mark=0):
        """Watch events to clients."""
        return [f for f in self.frames_since(mark) if f.op == EVENT]

    def close(self):
        _in_loop(self._close)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
