# SPDX-License-Identifier: Apache-2.0
"""The examples of other loops than libev: libuv.c, glib.c, libevent.c and
epoll.c. Each test runs for each of them. They need no libev."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + "/../support")

import command
import live
import relay
import tls
import zkserver
from live import NotTested, eventually

BUILD = os.environ.get("abs_top_builddir") or os.getcwd()
LOOPS = "libuv", "glib", "libevent", "epoll"
# How long locks are held, in ms. LONG is enough to stop the holder.
SHORT, LONG = 100, 3000
# How long an example tries that cannot connect, in ms: enough to fail once.
TRY = 5000


class Example:
    """The example for one loop, with a lock path of its own for each test."""

    def __init__(self, loop, test):
        self.program = os.path.join(BUILD, "examples", loop)
        self.lock = "/%s-%s" % (loop, test)
        if not os.path.exists(self.program):
            raise NotTested("built without " + loop)

    def start(self, hosts, hold=SHORT, timeout=60000, wrapper=(), **variables):
        """Start the example; `wrapper` is a command line that runs it."""
        program, *words = [*wrapper, self.program, hosts, self.lock, str(hold),
                           str(timeout)]
        # GLib's own allocator would hide leaks.
        return command.start(*words, program=program,
                             env={**os.environ, "G_SLICE": "always-malloc",
                                  **variables})

    def expect_line(self, process, text):
        """Check the next line of the output; gives the token if it has one."""
        line = process.stdout.readline().rstrip("\n")
        match = re.fullmatch(r"(.*: .*?)(\d*)", line)
        assert match and match[1] == self.lock + ": " + text, (
            line, process.poll() is not None and process.stderr.read())
        return int(match[2] or 0)

    def expect_success(self, process):
        """Check that the example acquires and releases the lock, and prints
        nothing else; sanitizers would write to standard error."""
        token = self.expect_line(process, "held, fencing token ")
        self.expect_line(process, "released")
        done = process.finish()
        assert done.code == 0 and done.out == "" and done.err == "", done
        return token

    def expect_failure(self, process, reason):
        done = process.finish()
        assert done.code == 1 and done.out == "", done
        assert re.fullmatch(re.escape(self.lock) + ": the deadline has passed. "
                            + reason + "\n", done.err), done


def for_each_loop(test):
    """The tests for live.run(), which run at the same time."""
    def make(loop):
        def run_test():
            test(Example(loop, test.__name__))
        run_test.__name__ = test.__name__ + "_" + loop
        return run_test
    return live.together(*map(make, LOOPS))


# Sockets that are bound and do not listen: nothing else can get their ports.
dead_sockets = []


def refused_addresses(count):
    """Addresses at which nothing listens."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    dead_sockets.extend(sockets)
    return ["127.0.0.1:%d" % each.getsockname()[1] for each in sockets]


# ---- servers and connections --------------------------------------------------

def lock_is_handed_to_the_next_process(example):
    hosts = tls.secure(zk.connect)
    with example.start(hosts, LONG) as first:
        token = example.expect_line(first, "held, fencing token ")
        first.send_signal(signal.SIGSTOP)
        with example.start(hosts) as second:
            example.expect_line(second, "waiting")
            first.send_signal(signal.SIGCONT)
            example.expect_line(first, "released")
            assert example.expect_success(second) > token
        assert first.finish().code == 0


def tls_connects_to_servers_with_a_trusted_certificate_only(example):
    hosts = "tls://" + ",".join(zk.tls_addresses)
    with example.start("tls://127.0.0.1:1", timeout=1) as process:
        if "not implemented" in process.finish().err:
            raise NotTested("built without OpenSSL")
    trusted, other = map(zk.certificate, ("ca.crt", "other-ca.crt"))
    with example.start(hosts, SSL_CERT_FILE=trusted) as process:
        example.expect_success(process)
    with example.start(hosts, timeout=TRY, SSL_CERT_FILE=other) as process:
        example.expect_failure(
            process, ".*: TLS: the server's certificate is refused.*")


def servers_that_refuse_are_skipped_and_tried_again(example):
    with relay.Relay(zk.connect) as wire:
        wire.refuse()
        hosts = ",".join([tls.secure(wire.address), *refused_addresses(4)])
        with example.start(hosts, timeout=TRY) as process:
            example.expect_failure(process, ".*: Connection refused")
        with example.start(hosts) as process:
            wire.accept()
            example.expect_success(process)


def holder_connects_again(example):
    with relay.Relay(zk.connect) as wire:
        with example.start(tls.secure(wire.address), LONG) as process:
            example.expect_line(process, "held, fencing token ")
            wire.drop()
            example.expect_line(process, "suspended")
            example.expect_line(process, "released")
            assert process.finish().code == 0
        assert wire.accepted == 2, wire.accepted


def waiter_connects_again(example):
    with relay.Relay(zk.connect) as wire:
        with example.start(tls.secure(zk.connect), LONG) as first:
            example.expect_line(first, "held, fencing token ")
            first.send_signal(signal.SIGSTOP)
            # A waiter reads the node of its predecessor.
            reset = wire.at_frame("reset", op=relay.GET)
            with example.start(tls.secure(wire.address)) as second:
                reset.wait()
                eventually(lambda: wire.accepted == 2)
                wire.drop()
                eventually(lambda: wire.accepted == 3)
                example.expect_line(second, "waiting")
                first.send_signal(signal.SIGCONT)
                example.expect_line(first, "released")
                example.expect_success(second)
            assert first.finish().code == 0


def client_is_freed_while_it_connects(example):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent_address = "127.0.0.1:%d" % silent.getsockname()[1]
        with example.start(silent_address, timeout=500) as process:
            example.expect_failure(process, "")


# ---- names --------------------------------------------------------------------

class Names:
    """A name server that knows no name, for programs in a mount namespace. With
    `silent` it does not reply."""

    def __init__(self, silent=False):
        if not command.is_root():
            raise NotTested("only root can replace /etc/hosts")
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Tests that run at the same time have different name servers.
        self.socket.bind(("127.%d.%d.%d" % (random.randint(1, 254),
                                            random.randint(0, 255),
                                            random.randint(1, 254)), 53))
        if not silent:
            threading.Thread(target=self._reply, daemon=True).start()

    def _reply(self):
        """Reply to each query with the error NXDOMAIN."""
        try:
            while True:
                query, client = self.socket.recvfrom(512)
                self.socket.sendto(query[:2] + b"\x81\x83" + query[4:6] +
                                   bytes(6) + query[12:], client)
        except OSError:
            return

    def wrapper(self, *hosts):
        """The command line that runs a program with this name server, and these
        lines in /etc/hosts."""
        folder = tempfile.mkdtemp(dir=folder_of_names)
        with open(os.path.join(folder, "hosts"), "w") as f:
            f.write("".join(line + "\n" for line in hosts))
        with open(os.path.join(folder, "resolv.conf"), "w") as f:
            f.write("nameserver %s\noptions timeout:8 attempts:1\n" %
                    self.socket.getsockname()[0])
        words = ["unshare", "--mount", "sh", "-c",
                 'cd "$1" && mount --bind hosts /etc/hosts && '
                 'mount --bind resolv.conf /etc/resolv.conf && shift && '
                 'exec "$@"', "-", folder]
        if subprocess.run([*words, "true"],
                          stderr=subprocess.DEVNULL).returncode != 0:
            raise NotTested("no right to replace /etc/hosts")
        return words

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def all_addresses_of_a_name_are_tried(example):
    host, _, port = zk.connect.partition(":")
    name = "zookeeper.test"
    addresses = [host, "127.254.1.1", "127.254.1.2", "::1"]
    with Names() as names:
        # The order in which a resolver gives them is its own.
        for order in addresses, addresses[::-1]:
            wrapper = names.wrapper(*[each + " " + name for each in order])
            with example.start(name + ":" + port, wrapper=wrapper) as process:
                example.expect_success(process)


def unknown_name_is_an_error(example):
    with Names() as names:
        with example.start("unknown.test", timeout=TRY,
                           wrapper=names.wrapper()) as process:
            example.expect_failure(process, "unknown.test:2181: .+")


def lookups_without_a_reply_are_given_up(example):
    """A client is freed during a lookup; another one goes on to the next server,
    after an eighth of two thirds of its session timeout."""
    with Names(silent=True) as names:
        with example.start("slow.test", timeout=1000,
                           wrapper=names.wrapper()) as process:
            example.expect_failure(process, "")
        slow = ["slow.test:%d" % port for port in range(1, 8)]
        with example.start(",".join([*slow, zk.connect]),
                           wrapper=names.wrapper()) as process:
            example.expect_success(process)


with zkserver.Server(*([] if tls.ON else ["--tls"])) as zk, \
        tempfile.TemporaryDirectory() as folder_of_names:
    live.run(*map(for_each_loop, (
        lock_is_handed_to_the_next_process,
        tls_connects_to_servers_with_a_trusted_certificate_only,
        servers_that_refuse_are_skipped_and_tried_again,
        holder_connects_again,
        waiter_connects_again,
        client_is_freed_while_it_connects,
        all_addresses_of_a_name_are_tried,
        unknown_name_is_an_error,
        lookups_without_a_reply_are_given_up)))
