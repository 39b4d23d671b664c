# SPDX-License-Identifier: Apache-2.0
"""What all tests with real servers use: eventually() waits, missing() skips,
Ensemble has its servers behind relays, and run() runs the tests."""

import atexit
import os
import random
import socket
import sys
import time
import traceback
from concurrent import futures

import worker
import relay
import zkserver


def eventually(condition, what="it", seconds=worker.SECONDS):
    """Call `condition()` until its value is true; gives this value. `what` is
    named in the error after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, "%s: not within %g s" % (what, seconds)
        time.sleep(0.02)


def missing(what):
    """Exit the test because `what` is not installed: skipped, or failed if
    LATCHKEY_REQUIRE_SERVER=1."""
    needed = os.environ.get("LATCHKEY_REQUIRE_SERVER") == "1"
    print("%s: %s" % ("missing" if needed else "skipped", what))
    sys.exit(1 if needed else 77)


class NotTested(Exception):
    """Raised by a test that cannot run on this machine, with the reason."""


def four_letter_word(address, word):
    """The reply of a server to a four-letter word, as "mntr"."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as s:
        s.sendall(word.encode())
        reply = b""
        while more := s.recv(65536):
            reply += more
    return reply.decode()


def version_at(address):
    """The version that a server itself names."""
    first = four_letter_word(address, "srvr").split("\n")[0]
    return first.split("version: ")[1].split("-")[0]


def watch_count(address):
    """The number of watches of a server, from mntr: wchs counts data watches
    only."""
    facts = dict(line.split("\t", 1)
                 for line in four_letter_word(address, "mntr").splitlines())
    return int(facts["zk_watch_count"])


class Ensemble:
    """An ensemble whose servers are connected through relays with each other and
    with clients. Clients connect to server n at `client_relays[n].address`, and
    `zk` controls the processes of the servers."""

    def __init__(self, *options, servers=3):
        numbers = range(1, servers + 1)
        # The ensembles of tests that run at the same time have different hosts.
        hosts = {n: "127.%d.%d.%d" % (random.randint(1, 254),
                                      random.randint(0, 255),
                                      random.randint(1, 254))
                 for n in numbers}
        # server_relays[n, m] is the pair of relays from server n to server m: for
        # replication and for elections.
        self.server_relays = {}
        peers = []
        for n in numbers:
            for m in numbers:
                if n == m:
                    continue
                replication, elections = (
                    relay.Relay("%s:%d" % (hosts[m], port), relay.UNPARSED)
                    for port in (2888, 3888))
                self.server_relays[n, m] = replication, elections
                peers += ["--peer", "%d:%d=%s:%d" % (
                    n, m, replication.address, elections.port)]
        for (n, m), (_, elections) in self.server_relays.items():
            # Server m connects to n at the address that n sends to m: at the
            # relay from m to n.
            _, back = self.server_relays[m, n]
            elections.election_address = back.address
        self.zk = zkserver.Server("--address", ",".join(hosts.values()),
                                  *peers, *options, servers=servers)
        self.client_relays = {n: relay.Relay(self.zk.addresses[n - 1])
                              for n in numbers}
        self.connect = ",".join(each.address
                                for each in self.client_relays.values())
        self.separated = []  # relays that forward nothing

    def cut_off(self, n):
        """Separate server n from the other servers."""
        for (source, target), relays in self.server_relays.items():
            if n in (source, target):
                for each in relays:
                    each.freeze()
                self.separated += relays

    def heal(self):
        """Close the separated connections and allow new ones. The others stay, so
        the servers that have a quorum keep their leader."""
        for each in self.separated:
            each.drop()
            each.thaw()
        self.separated = []

    def close(self):
        self.zk.close()
        for relays in [*self.server_relays.values(),
                       self.client_relays.values()]:
            for each in relays:
                each.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _print_last_lines(workers):
    """Print the beginnings of the last lines of each worker."""
    for each in workers:
        print("---- worker %d, its last lines:" % each.process.pid)
        for line in list(each.last_lines)[-40:]:
            print("    " + line.rstrip()[:150])


def say(text):
    """Print a line in one write, since tests that run together print, too."""
    print(text + "\n", end="", flush=True)


def _run_one(test):
    """Run the test and print its result; gives False if it has failed."""
    began = time.monotonic()
    try:
        test()
    except NotTested as why:
        say("not tested: %s: %s" % (test.__name__, why))
        return True
    except Exception:
        say("%s: FAILED, %.1f s\n%s" % (
            test.__name__, time.monotonic() - began, traceback.format_exc()))
        return False
    say("%s: ok, %.1f s" % (test.__name__, time.monotonic() - began))
    return True


def option(name, default):
    """The value of the argument --NAME=VALUE, with the type of the default."""
    prefix = "--%s=" % name
    values = [a[len(prefix):] for a in sys.argv[1:] if a.startswith(prefix)]
    return type(default)(values[-1]) if values else default


def together(*tests):
    """Tests for run() to run at the same time. They must not stop or restart the
    server that they share."""
    return tests


_names = set()  # of all tests that run() was called with


def _refuse_unknown_names(wanted):
    unknown = sorted(set(wanted) - _names)
    if unknown:
        print("no test has the name", *unknown, flush=True)
        os._exit(1)  # the only way to exit with a code from here


def run(*tests):
    """Run these test functions, one after the other until one fails. A tuple of
    together() runs at the same time. If the program has arguments without "-"
    in front, only the tests with these names run."""
    wanted = [a for a in sys.argv[1:] if not a.startswith("-")]
    if not _names:
        atexit.register(_refuse_unknown_names, wanted)
    for group in tests:
        _names.update(test.__name__ for test in
                      (group if isinstance(group, tuple) else (group,)))
        group = [test for test in (group if isinstance(group, tuple)
                                   else (group,))
                 if not wanted or test.__name__ in wanted]
        if not group:
            continue
        with futures.ThreadPoolExecutor(len(group)) as pool:
            failed = list(pool.map(_run_one, group)).count(False)
        workers = list(worker.Worker.not_closed)
        worker.Worker.not_closed.clear()
        if failed:
            _print_last_lines(workers)
            print("%d failed; the rest was not run" % failed)
            sys.exit(1)
