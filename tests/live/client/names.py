# SPDX-License-Identifier: Apache-2.0
"""Servers given by name, with name servers and networks that fail: the command
connects as fast as it can, and jobs keep their locks. The test runs in network
and mount namespaces of its own, with a name server of its own."""

import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
import zkserver
from command import start

SESSION_S = 30  # the session timeout
PORT = 12181    # of all forwarders
A, AAAA = 1, 28

# ---- namespaces ---------------------------------------------------------------

ENTER = ["unshare", "--net", "--mount"]


def enter_namespaces():
    """Run this program again in namespaces; gives whether it runs there."""
    if os.environ.get("LATCHKEY_TEST_NAMESPACES") == "1":
        return True
    allowed = command.is_root() and shutil.which("ip") and subprocess.run(
        [*ENTER, "true"], stderr=subprocess.DEVNULL).returncode == 0
    if not allowed:
        return False
    os.environ["LATCHKEY_TEST_NAMESPACES"] = "1"
    os.execvp(ENTER[0], [*ENTER, sys.executable, *sys.argv])


def system(*words):
    subprocess.run(words, check=True)


class Files:
    """Files that take the place of those in /etc."""

    def __init__(self):
        self.dir = tempfile.mkdtemp()

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        is_new = not os.path.exists(path)
        with open(path, "w") as f:
            f.write(text)
        if is_new:
            system("mount", "--bind", path, "/etc/" + name)


def add_black_hole(*addresses):
    """Let packets to these addresses vanish: the neighbour has a hardware
    address that nobody has."""
    for n, address in enumerate(addresses):
        system("ip", "neigh", "replace", address, "lladdr",
               "02:00:00:00:00:%02x" % (n + 16), "dev", "hole", "nud",
               "permanent")


def prepare_network():
    system("ip", "link", "set", "lo", "up")
    system("ip", "link", "add", "hole", "type", "veth", "peer", "name", "pit")
    for interface in ("hole", "pit"):
        system("ip", "link", "set", interface, "up")
    system("ip", "addr", "add", "10.9.0.1/24", "dev", "hole")
    system("ip", "addr", "add", "fd09::1/64", "dev", "hole", "nodad")


# ---- the name server ----------------------------------------------------------

class NameServer:
    """A name server for *.test. `names` has the addresses of each name by type.
    A type with None, or a name in `silent`, is not answered."""

    def __init__(self, address):
        self.names, self.silent, self.queries = {}, set(), []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            query, client = self.socket.recvfrom(512)
            reply = self._reply(query)
            if reply:
                self.socket.sendto(reply, client)

    def _reply(self, query):
        end = query.index(0, 12) + 1
        kind, = struct.unpack(">H", query[end:end + 2])
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        name = ".".join(labels)
        self.queries.append((time.monotonic(), name, kind))
        known = self.names.get(name)
        if name in self.silent:
            return None
        addresses = [] if known is None else known.get(kind, [])
        if addresses is None:
            return None
        family = socket.AF_INET if kind == A else socket.AF_INET6
        records = b"".join(
            b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 1, len(packed)) + packed
            for packed in (socket.inet_pton(family, a) for a in addresses))
        flags = 0x8180 if known is not None else 0x8183  # no such name
        return (query[:2] + struct.pack(">HHHHH", flags, 1, len(addresses), 0, 0)
                + query[12:end + 4] + records)


# ---- servers ------------------------------------------------------------------

class Forwarder:
    """Forwards connections to an address, at PORT, to the server `to`."""

    def __init__(self, address, forwards=True, to=None):
        self.to = to or zk.connect
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.connections = []
        self.listener = socket.create_server((address, PORT), family=family)
        if forwards:
            threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        host, port = self.to.split(":")
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection((host, int(port)))
            self.connections.append((client, server))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=pair,
                                 daemon=True).start()

    @staticmethod
    def _copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def drop(self):
        """Close all connections."""
        for pair in self.connections:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


# ---- what the tests do --------------------------------------------------------

def seconds_of_command(connect, *options):
    """How long `latchkey ls` takes, which must succeed."""
    began = time.monotonic()
    done = command.run("ls", "-T", str(SESSION_S), *options, "-z", connect, "/")
    assert done.code == 0, done
    return time.monotonic() - began


@contextlib.contextmanager
def job(path, connect):
    """A job with a lock that is held in the block. It must keep the lock."""
    with start("run", "-v", "-T", str(SESSION_S), "-z", connect, path,
               "sleep", "600") as process:
        for line in process.stderr:
            if "obtained" in line:
                break
        else:
            raise AssertionError("no lock: %s" % process.wait())
        yield process
        assert process.poll() is None, process.finish()
        process.terminate()
        err = process.finish().err
        assert "the lease is running out" not in err, err


@contextlib.contextmanager
def stopped(process):
    """The process does not run in the block."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def seconds_until_resumed(process):
    """How long the client of a job takes to resume its session."""
    began = time.monotonic()
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "resumed session" in line:
            return time.monotonic() - began
    raise AssertionError(lines)


def connects_in(limit_s, connect, *forwarders):
    """A command connects within this time, and so does a job again."""
    took_s = seconds_of_command(connect)
    assert took_s < limit_s, took_s
    with job("/" + connect.partition(":")[0], connect) as process:
        for each in forwarders:
            each.drop()
        took_s = seconds_until_resumed(process)
        assert took_s < limit_s, took_s


# ---- names --------------------------------------------------------------------

def queries_for_ipv6_may_be_dropped():
    ns.names["noaaaa.test"] = {A: ["127.0.0.2"], AAAA: None}
    connects_in(2, "noaaaa.test:%d" % PORT, Forwarder("127.0.0.2"))


def queries_for_ipv4_may_be_dropped():
    ns.names["noa.test"] = {A: None, AAAA: ["::1"]}
    connects_in(2, "noa.test:%d" % PORT, Forwarder("::1"))


def an_ipv6_address_may_be_a_black_hole():
    ns.names["hole6.test"] = {A: ["127.0.0.3"], AAAA: ["fd09::2"]}
    add_black_hole("fd09::2")
    forwarder = Forwarder("127.0.0.3")
    connects_in(2, "hole6.test:%d" % PORT, forwarder)
    for _ in range(5):
        took_s = seconds_of_command("hole6.test:%d" % PORT)
        assert took_s < 2, took_s


def all_addresses_of_a_name_may_be_replaced():
    """As when the pods of a headless service move: the old addresses become
    black holes, and the connection ends."""
    old = ["10.9.0.%d" % n for n in (2, 3, 4)]
    for address in old:
        system("ip", "addr", "add", address + "/32", "dev", "hole")
    before = [Forwarder(address) for address in old]
    ns.names["moves.test"] = {A: old}
    Forwarder("127.0.0.4")
    with job("/moves", "moves.test:%d" % PORT) as process:
        time.sleep(1.1)  # the name was looked up a second ago
        ns.names["moves.test"] = {A: ["127.0.0.4"]}
        with stopped(process):  # or it returns to an old address meanwhile
            for each in before:  # first, or the client would not be told
                each.drop()
            for address in old:
                system("ip", "addr", "del", address + "/32", "dev", "hole")
            add_black_hole(*old)
        took_s = seconds_until_resumed(process)
        assert took_s < 2, took_s


def name_server_may_fall_silent_when_the_connection_is_lost():
    ns.names["quiet.test"] = {A: ["127.0.0.5"]}
    forwarder = Forwarder("127.0.0.5")
    with job("/quiet", "quiet.test:%d" % PORT) as process:
        time.sleep(1.1)
        ns.silent.add("quiet.test")
        forwarder.drop()
        took_s = seconds_until_resumed(process)
        assert took_s < 2, took_s


def names_are_looked_up_once_a_second():
    """The server refuses, and the client asks for its name again and again."""
    ns.names["refuses.test"] = {A: ["127.0.0.6"]}
    with start("ls", "-T", "6", "--connect-timeout", "4", "-z",
               "refuses.test:%d" % PORT, "/") as process:
        assert process.finish().code == 125
    queries = [q for q in ns.queries if q[1] == "refuses.test" and q[2] == A]
    assert 2 <= len(queries) <= 6, len(queries)


def commands_start_beside_a_lookup_that_hangs():
    """run and elect fork while threads are in getaddrinfo()."""
    ns.silent.add("hangs.test")
    Forwarder("127.0.0.15")
    connect = "hangs.test:%d,127.0.0.15:%d" % (PORT, PORT)
    for verb in ("run", "elect"):
        for _ in range(20):  # until the name is tried first
            before = len(ns.queries)
            done = command.run(verb, "-z", connect, "/beside", "echo", "done")
            assert done.code == 0 and done.out == "done\n", done
            if any(q[1] == "hangs.test" for q in ns.queries[before:]):
                break
        else:
            raise AssertionError("the name was never tried first")


def doctor_names_the_family_that_is_not_answered():
    ns.names["half.test"] = {A: ["127.0.0.14"], AAAA: None}
    Forwarder("127.0.0.14")
    done = command.run("doctor", "-z", "half.test:%d" % PORT)
    assert done.code == 0, done
    assert "no name server answers queries for IPv6" in done.out, done
    ns.silent.add("gone.test")
    done = command.run("doctor", "--connect-timeout", "1", "-z",
                       "gone.test:%d" % PORT)
    assert done.code == 1 and "maxClientCnxns" not in done.out, done
    assert "name lookup does not complete" in done.out, done


# ---- servers in turn ----------------------------------------------------------

def one_of_two_servers_may_be_cut_off():
    Forwarder("127.0.0.7")
    add_black_hole("10.9.0.9")
    for _ in range(4):  # one of them is tried first at random
        took_s = seconds_of_command("10.9.0.9:%d,127.0.0.7:%d" % (PORT, PORT))
        assert took_s < 2, took_s


def one_of_two_servers_may_be_stopped():
    """The kernel of a stopped server accepts connections."""
    Forwarder("127.0.0.8")
    stopped = Forwarder("127.0.0.9", forwards=False)
    slow = 0
    for _ in range(10):
        took_s = seconds_of_command("127.0.0.9:%d,127.0.0.8:%d" % (PORT, PORT),
                                    "-T", "12")
        slow += took_s > 1
        assert took_s < 12 / 8 + 1, took_s
        if slow == 2:
            break
    assert slow > 0
    stopped.listener.close()


def an_address_may_not_complete_a_tls_handshake():
    """Another address follows after a second, or sooner if TCP fails."""
    if "tls" not in command.run("-V").out:
        raise live.NotTested("the command is built without TLS")
    with zkserver.Server("--tls") as secure:
        trust = ("--insecure", "--cacert",
                 os.path.join(secure.dir, "tls", "ca.crt"))
        stopped = Forwarder("127.0.0.16", forwards=False)
        Forwarder("127.0.0.17", to=secure.tls_addresses[0])
        add_black_hole("10.9.0.9")
        ns.names["tls1.test"] = {A: ["127.0.0.16", "127.0.0.17"]}
        ns.names["tls2.test"] = {A: ["10.9.0.9", "127.0.0.17"]}
        slow = 0
        for _ in range(12):
            took_s = seconds_of_command("tls://tls1.test:%d" % PORT, *trust)
            slow += took_s > 1
            assert took_s < 2.5, took_s
            took_s = seconds_of_command("tls://tls2.test:%d" % PORT, *trust)
            assert took_s < 1, took_s
            if slow == 2:
                break
        assert slow > 0
        stopped.listener.close()


# ---- the configuration of the system ------------------------------------------

def search_dot_is_understood():
    """systemd-resolved writes it, and containers copy it."""
    Forwarder("127.0.0.10")
    ns.names["short"] = {A: ["127.0.0.10"]}
    for text in ("search .", "search corp.test .", "options ndots:2\nsearch ."):
        files.write("resolv.conf", "nameserver 127.0.0.53\n%s\n" % text)
        took_s = seconds_of_command("short:%d" % PORT)
        assert took_s < 2, took_s
    files.write("resolv.conf", "nameserver 127.0.0.53\n")


NSS_MODULE = r"""
#include <errno.h>
#include <netdb.h>
#include <nss.h>
#include <string.h>
#include <sys/socket.h>

/* The buffer gets two empty lists, the address, and the name. */
struct room {
  char *list[2];
  char *none[1];
  unsigned char address[4];
  char name[32];
};

enum nss_status _nss_lktest_gethostbyname2_r(const char *name, int family,
                                             struct hostent *out, char *buffer,
                                             size_t size, int *error, int *h)
{
  struct room *r = (struct room *)buffer;

  if (strcmp(name, "zk.module") != 0 || family != AF_INET) {
    *error = ENOENT;
    *h = HOST_NOT_FOUND;
    return NSS_STATUS_NOTFOUND;
  }
  if (size < sizeof *r) {
    *error = ERANGE;
    *h = NETDB_INTERNAL;
    return NSS_STATUS_TRYAGAIN;
  }
  memcpy(r->address, "\177\0\0\013", 4);
  strcpy(r->name, name);
  r->list[0] = (char *)r->address;
  r->list[1] = r->none[0] = NULL;
  *out = (struct hostent){.h_name = r->name, .h_aliases = r->none,
                          .h_addrtype = AF_INET, .h_length = 4,
                          .h_addr_list = r->list};
  return NSS_STATUS_SUCCESS;
}
"""


def names_of_a_module_of_the_name_service_switch_are_found():
    if not shutil.which("cc") or not shutil.which("getent"):
        raise live.NotTested("no compiler, or no getent")
    source = os.path.join(files.dir, "module.c")
    with open(source, "w") as f:
        f.write(NSS_MODULE)
    system("cc", "-shared", "-fPIC", "-o",
           os.path.join(files.dir, "libnss_lktest.so.2"), source)
    Forwarder("127.0.0.11")
    files.write("nsswitch.conf", "hosts: files lktest dns\n")
    os.environ["LD_LIBRARY_PATH"] = files.dir
    try:
        if subprocess.run(["getent", "ahostsv4", "zk.module"],
                          stdout=subprocess.DEVNULL).returncode != 0:
            raise live.NotTested("the C library does not load modules")
        took_s = seconds_of_command("zk.module:%d" % PORT)
        assert took_s < 2, took_s
    finally:
        del os.environ["LD_LIBRARY_PATH"]
        files.write("nsswitch.conf", "hosts: files dns\n")


def the_hosts_file_names_one_family_only():
    """A query for IPv6 alone would find the machine of a search domain."""
    Forwarder("127.0.0.12")
    ns.names["pinned.corp.test"] = {A: ["10.9.0.9"], AAAA: ["fd09::2"]}
    files.write("hosts", "127.0.0.12 pinned\n")
    files.write("resolv.conf", "nameserver 127.0.0.53\nsearch corp.test\n")
    took_s = seconds_of_command("pinned:%d" % PORT)
    assert took_s < 0.25, took_s  # no other address was tried first
    files.write("resolv.conf", "nameserver 127.0.0.53\n")


def the_first_of_two_name_servers_may_be_dead():
    """The C library waits 5 s for it. The lookups of all names run together."""
    Forwarder("127.0.0.13")
    dead = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    dead.bind(("127.0.0.54", 53))
    files.write("resolv.conf",
                "nameserver 127.0.0.54\nnameserver 127.0.0.53\n")
    names = ["n%d.test" % n for n in range(5)]
    ns.names.update((name, {A: ["127.0.0.13"]}) for name in names)
    took_s = seconds_of_command(",".join("%s:%d" % (n, PORT) for n in names))
    assert took_s < 8, took_s
    files.write("resolv.conf", "nameserver 127.0.0.53\n")


if not enter_namespaces():
    print("not tested: no right to make namespaces, or no ip(8)")
    sys.exit(0)
files = Files()
files.write("resolv.conf", "nameserver 127.0.0.53\n")
files.write("nsswitch.conf", "hosts: files dns\n")
files.write("hosts", "127.0.0.1 localhost\n")
prepare_network()
ns = NameServer("127.0.0.53")
with zkserver.Server() as zk:
    live.run(live.together(
        queries_for_ipv6_may_be_dropped,
        queries_for_ipv4_may_be_dropped,
        an_ipv6_address_may_be_a_black_hole,
        all_addresses_of_a_name_may_be_replaced,
        name_server_may_fall_silent_when_the_connection_is_lost,
        names_are_looked_up_once_a_second,
        commands_start_beside_a_lookup_that_hangs,
        doctor_names_the_family_that_is_not_answered,
        one_of_two_servers_may_be_cut_off,
        one_of_two_servers_may_be_stopped))
    live.run(an_address_may_not_complete_a_tls_handshake,
             search_dot_is_understood,
             names_of_a_module_of_the_name_service_switch_are_found,
             the_hosts_file_names_one_family_only,
             the_first_of_two_name_servers_may_be_dead)
