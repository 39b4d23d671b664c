# SPDX-License-Identifier: Apache-2.0
"""A switch for tests with real servers: with LATCHKEY_TEST_TLS=1 the library
and the command under test use TLS. Other connections of the tests stay plain.

    LATCHKEY_TEST_TLS=1 python3 tests/live/locks/lock.py

Servers get a TLS port in addition to the plain one. Tests name the plain
addresses; workers and commands get the addresses of the TLS ports. Relays that
parse ZooKeeper's frames are TLS servers, so they read the decrypted frames.
SSL_CERT_FILE names the CAs."""

import atexit
import os
import shutil
import ssl
import tempfile

ON = os.environ.get("LATCHKEY_TEST_TLS") == "1"

_ports = {}         # plain address: address of the TLS port
_own = None         # the folder of SSL_CERT_FILE
_context = None     # the TLS context of relays


def _begin(folder):
    """Relays get the certificate of the first server, which has the address
    127.0.0.1."""
    global _own, _context
    _own = tempfile.mkdtemp(prefix="latchkey-tls.")
    atexit.register(shutil.rmtree, _own, ignore_errors=True)
    os.environ["SSL_CERT_FILE"] = os.path.join(_own, "ca.crt")
    _context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _context.load_cert_chain(os.path.join(folder, "server.pem"))


def add_servers(folder, addresses, secure):
    """Register the TLS ports of servers, and trust the CA in `folder`."""
    if _own is None:
        _begin(folder)
    _ports.update(zip(addresses, secure))
    with open(os.path.join(folder, "ca.crt")) as one:
        with open(os.environ["SSL_CERT_FILE"], "a") as all_of_them:
            all_of_them.write(one.read())


def for_relay():
    """The TLS context of a relay; None: no TLS."""
    return _context


def add_relay(address):
    _ports[address] = address


def secure(hosts):
    """The connect string of a client under test: with the TLS ports of the
    servers, if they have some."""
    servers, slash, chroot = hosts.partition("/")
    parts = servers.split(",")
    if not any(part in _ports for part in parts):
        return hosts
    return "tls://" + ",".join(_ports.get(part, part)
                               for part in parts) + slash + chroot
