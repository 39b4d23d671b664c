# SPDX-License-Identifier: Apache-2.0
"""One switch for tests with real servers: with LATCHKEY_TEST_TLS=1 the library
and the command under test speak TLS, and what the tests do by other means
stays plain.

    LATCHKEY_TEST_TLS=1 python3 tests/live/locks/lock.py

Servers get a TLS port beside the plain one. Tests go on naming the plain
addresses; workers and commands are given those of the TLS ports. Relays that
know ZooKeeper's frames are TLS servers: clients speak TLS with them, and they
read what it carries. CAs are found with SSL_CERT_FILE, as the system's are."""

import atexit
import os
import shutil
import ssl
import tempfile

ON = os.environ.get("LATCHKEY_TEST_TLS") == "1"

_ports = {}         # a plain address: where the same is served with TLS
_own = None         # the folder for the next two
_context = None     # of relays


def _begin(folder):
    """With the first server's certificate, which has 127.0.0.1."""
    global _own, _context
    _own = tempfile.mkdtemp(prefix="latchkey-tls.")
    atexit.register(shutil.rmtree, _own, ignore_errors=True)
    os.environ["SSL_CERT_FILE"] = os.path.join(_own, "ca.crt")
    _context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _context.load_cert_chain(os.path.join(folder, "server.pem"))


def add_servers(folder, addresses, secure):
    """They have a CA of their own, which is trusted from now on."""
    if _own is None:
        _begin(folder)
    _ports.update(zip(addresses, secure))
    with open(os.path.join(folder, "ca.crt")) as one:
        with open(os.environ["SSL_CERT_FILE"], "a") as all_of_them:
            all_of_them.write(one.read())


def for_relay():
    """The context of a relay, which serves TLS; None: it does not."""
    return _context


def add_relay(address):
    _ports[address] = address


def secure(hosts):
    """What a client under test is given for a connect string."""
    servers, slash, chroot = hosts.partition("/")
    parts = servers.split(",")
    if not any(part in _ports for part in parts):
        return hosts
    return "tls://" + ",".join(_ports.get(part, part)
                               for part in parts) + slash + chroot
