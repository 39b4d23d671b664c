# SPDX-License-Identifier: Apache-2.0
"""Runs tests with real servers over TLS: with LATCHKEY_TEST_TLS=1 the library
and the command under test use TLS. Other connections of the tests stay plain.

    LATCHKEY_TEST_TLS=1 python3 tests/live/locks/lock.py

Servers get a TLS port in addition to the plain one. Tests name the plain
addresses; workers and commands get the addresses of the TLS ports. Relays that
parse ZooKeeper's frames are TLS servers themselves, so they can read the frames.
The environment variable SSL_CERT_FILE names a file with the CAs of all servers."""

import atexit
import os
import shutil
import ssl
import tempfile

ON = os.environ.get("LATCHKEY_TEST_TLS") == "1"

_tls_addresses = {}     # the address of the TLS port, by that of the plain port
_ca_folder = None       # the folder of SSL_CERT_FILE; None before add_servers()
_relay_context = None   # the TLS context of relays; None before add_servers()


def _make_ca_file_and_relay_context(server_folder):
    """Make an empty file of CAs, and the TLS context of relays. The certificate
    of relays is that of the first server: it is valid for 127.0.0.1, the address
    of all relays."""
    global _ca_folder, _relay_context
    _ca_folder = tempfile.mkdtemp(prefix="latchkey-tls.")
    atexit.register(shutil.rmtree, _ca_folder, ignore_errors=True)
    os.environ["SSL_CERT_FILE"] = os.path.join(_ca_folder, "ca.crt")
    _relay_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _relay_context.load_cert_chain(os.path.join(server_folder, "server.pem"))


def add_servers(folder, addresses, tls_addresses):
    """Register the TLS ports of servers, and trust the CA in `folder`, the folder
    of their certificates."""
    if _ca_folder is None:
        _make_ca_file_and_relay_context(folder)
    _tls_addresses.update(zip(addresses, tls_addresses))
    with open(os.path.join(folder, "ca.crt")) as ca:
        with open(os.environ["SSL_CERT_FILE"], "a") as all_cas:
            all_cas.write(ca.read())


def relay_context():
    """The TLS context of all relays; None: relays use no TLS."""
    return _relay_context


def add_relay(address):
    """Register a relay, whose only port uses TLS."""
    _tls_addresses[address] = address


def secure(hosts):
    """The connect string for a client under test: `hosts` with the TLS ports of
    the servers, or unchanged if no server is registered."""
    servers, slash, chroot = hosts.partition("/")
    parts = servers.split(",")
    if not any(part in _tls_addresses for part in parts):
        return hosts
    return "tls://" + ",".join(_tls_addresses.get(part, part)
                               for part in parts) + slash + chroot
