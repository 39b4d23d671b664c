# SPDX-License-Identifier: Apache-2.0
"""script/server --tls and its certificates, checked with Python's TLS client, so
that the TLS tests of latchkey can rely on them."""

import re
import socket
import ssl
import struct
import subprocess
import sys

sys.path.append(sys.path[0] + "/../support")

import live
import relay
import zkserver

SECONDS = 10


def parts(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


class Peer:
    """A server: its address and certificates."""

    def __init__(self, zk, n=1, way=None):
        self.zk = zk
        self.plain = parts(zk.addresses[n - 1])
        self.secure = parts(way.address if way else zk.tls_addresses[n - 1])

    def context(self, ca="ca.crt", client=None, crl=None, **options):
        context = ssl.create_default_context(cafile=self.zk.certificate(ca))
        context.hostname_checks_common_name = False
        for name, value in options.items():
            setattr(context, name, value)
        if crl is not None:
            context.load_verify_locations(self.zk.certificate(crl))
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if client is not None:
            context.load_cert_chain(self.zk.certificate(client + ".crt"),
                                    self.zk.certificate(client + ".key"))
        return context

    def connect(self, name=None, seconds=SECONDS, **options):
        """A TLS connection after its handshake."""
        raw = socket.create_connection(self.secure, seconds)
        try:
            return self.context(**options).wrap_socket(
                raw, server_hostname=name or self.secure[0])
        except Exception:
            raw.close()
            raise

    def session(self, **options):
        """Make and close a session; gives the TLS version."""
        with self.connect(**options) as s:
            handshake(s)
            return s.version()

    def refuses(self, **options):
        """Check that the server refuses the connection: in the handshake or,
        with TLS 1.3, after it. Gives OpenSSL's reason."""
        try:
            with self.connect(**options) as s:
                handshake(s)
        except ssl.SSLCertVerificationError:
            raise
        except (ssl.SSLError, OSError) as why:
            return str(why)
        raise AssertionError("the server accepts %s" % options)


def receive(s, size):
    got = b""
    while len(got) < size:
        piece = s.recv(size - len(got))
        if not piece:
            raise ConnectionResetError("end after %d of %d bytes" % (
                len(got), size))
        got += piece
    return got


def frame(s):
    return receive(s, struct.unpack(">i", receive(s, 4))[0])


def send(s, body):
    s.sendall(struct.pack(">i", len(body)) + body)


def handshake(s):
    """Make a session, send whoAmI, and close it."""
    send(s, struct.pack(">iqiqi16sb", 0, 0, 5000, 0, 16, b"", 0))
    version, timeout, session = struct.unpack_from(">iiq", frame(s))
    assert version == 0 and timeout == 5000 and session != 0
    send(s, struct.pack(">ii", 1, 107))  # whoAmI
    xid, _, err = struct.unpack_from(">iqi", reply := frame(s))
    assert (xid, err) == (1, 0), reply
    send(s, struct.pack(">ii", 2, -11))
    xid, _, err = struct.unpack_from(">iqi", frame(s))
    assert (xid, err) == (2, 0)
    return reply[16:]


def verification_fails(peer, code, **options):
    """Check that the client refuses the server with X509_V_ERR_`code`."""
    try:
        peer.connect(**options).close()
    except ssl.SSLCertVerificationError as why:
        assert why.verify_code == code, (why.verify_code, why)
    else:
        raise AssertionError("accepted, not refused: %s" % options)


EARLY, EXPIRED, CRL_EXPIRED, ISSUER, REVOKED = 9, 10, 12, 20, 23
WRONG_NAME, WRONG_ADDRESS = 62, 64


def good_session_has_the_server_verified():
    peer = Peer(want)
    assert peer.session() == "TLSv1.2"
    assert peer.session(name="zookeeper.test") == "TLSv1.2"
    assert peer.session(crl="crl.pem") == "TLSv1.2"


def wrong_ca_and_wrong_name_are_refused():
    peer = Peer(want)
    verification_fails(peer, ISSUER, ca="other-ca.crt")
    verification_fails(peer, WRONG_NAME, name="other.test")
    verification_fails(peer, WRONG_ADDRESS, name="127.254.254.254")
    verification_fails(peer, CRL_EXPIRED, crl="crl-expired.pem")


def plain_port_serves_beside_it():
    with socket.create_connection(Peer(want).plain, SECONDS) as s:
        handshake(s)
    assert live.four_letter_word(want.addresses[0], "ruok") == "imok"


def tls_to_the_plain_port_and_plain_to_the_tls_port_end():
    peer = Peer(want)
    with socket.create_connection(peer.plain, SECONDS) as raw:
        try:
            peer.context().wrap_socket(raw, server_hostname=peer.plain[0])
        except (ssl.SSLError, OSError) as why:
            assert not isinstance(why, TimeoutError), why
        else:
            raise AssertionError("the plain port speaks TLS")
    with socket.create_connection(peer.secure, SECONDS) as s:
        try:
            handshake(s)
        except OSError as why:
            assert not isinstance(why, TimeoutError), why
        else:
            raise AssertionError("the TLS port speaks without TLS")


def client_certificate_is_needed():
    """Three servers with different key stores that require a client
    certificate."""
    rsa, chain, named = (Peer(need, n) for n in (1, 2, 3))
    assert rsa.session(client="client") == "TLSv1.3"
    assert chain.session(client="client-chain") == "TLSv1.3"
    verification_fails(named, WRONG_ADDRESS, client="client")
    assert named.session(client="client-rsa", name="zookeeper.test") == \
        "TLSv1.3"
    for client in (None, "client-other-ca", "client-expired", "client-early"):
        rsa.refuses(client=client)
        # With TLS 1.2 the refusal is a part of the handshake.
        why = rsa.refuses(client=client,
                          maximum_version=ssl.TLSVersion.TLSv1_2)
        assert "alert" in why or "EOF" in why, why


def revoked_client_is_refused_and_its_identity_is_its_subject():
    peer = Peer(need)
    peer.refuses(client="client-revoked")
    with peer.connect(client="client-bob") as s:
        identities = handshake(s)
    assert b"CN=bob,O=latchkey" in identities, identities
    with peer.connect(client="client") as s:
        identities = handshake(s)
    assert b"CN=alice,O=latchkey" in identities, identities


ALERT = b"\x15\x03\x03\0\2\2\x2a"  # a record: fatal, bad certificate


def types(records, up):
    return [f.op for f in records if f.up == up]


def relay_knows_records():
    """The TLS 1.2 handshake with a server that requests a client
    certificate."""
    with relay.Relay(want.tls_addresses[0], relay.RECORDS) as way:
        peer = Peer(want, way=way)
        peer.session()
        hello, cipher, data = (relay.HANDSHAKE, relay.CHANGE_CIPHER_SPEC,
                               relay.DATA)
        records = way.frames_since()
        assert types(records, True)[:5] == [
            hello, hello, hello, cipher, hello], records
        assert data in types(records, True), records
        assert data in types(records, False), records
        whole = sum(f.size for f in records if f.up)
        way.drip(1)
        peer.session()
        way.drip(7, 1, down=False)
        peer.session()
        way.drip(0)
        again = sum(f.size for f in way.frames_since(len(records)) if f.up)
        assert abs(again / 2 - whole) < 40, (whole, again)


def relay_misbehaves_in_a_handshake_as_asked():
    reset, timeout = ConnectionResetError, TimeoutError
    end = (ssl.SSLEOFError, ssl.SSLZeroReturnError, reset)
    with relay.Relay(want.tls_addresses[0], relay.RECORDS) as way:
        peer = Peer(want, way=way)
        for up in (True, False):
            for action, errors in (
                    ("cut", end),
                    ("tear", end),
                    ("reset", (reset,)),
                    ("stall", (timeout,)),
                    (b"HTTP/1.1 400\r\n\r\n", (ssl.SSLError, reset)),
                    (ALERT, (ssl.SSLError,))):
                trap = way.at_frame(action, up=up)
                try:
                    peer.connect(seconds=.3).close()
                except (ssl.SSLError, OSError) as why:
                    assert isinstance(why, errors), (action, up, repr(why))
                    assert up or action != ALERT or (
                        "ALERT_BAD_CERTIFICATE" in why.reason), repr(why)
                else:
                    raise AssertionError("%s, %s: no effect" % (action, up))
                assert trap.is_executed()
        trap = way.at_frame("reset", up=False, forward=3, lasting=True)
        for _ in range(2):
            try:
                peer.connect()
            except (ConnectionResetError, ssl.SSLError):
                pass
            else:
                raise AssertionError("no effect")
        way.clear_traps()
        peer.session()


def revoked_client_is_served_where_nobody_looks():
    peer = Peer(want)
    assert peer.session(client="client-revoked") == "TLSv1.2"
    assert peer.session() == "TLSv1.2"
    peer.refuses(client="client-other-ca")


def bad_servers_are_refused():
    for n, code, options in (1, EXPIRED, {}), (2, EARLY, {}), (
            3, REVOKED, {"crl": "crl.pem"}):
        verification_fails(Peer(bad, n), code, **options)
    assert Peer(bad, 3).session(crl="crl-empty.pem") == "TLSv1.2"


def key_store_is_read_again_after_a_restart():
    before, address = Peer(bad, 3), parts(bad.tls_addresses[2])
    assert before.session(name="zookeeper.test") == "TLSv1.2"
    with open(bad.certificate("server-cn.pem"), "rb") as f:
        store = f.read()
    with open(bad.certificate("server-revoked.pem"), "wb") as f:
        f.write(store)
    bad.kill(3)
    try:
        socket.create_connection(address, SECONDS).close()
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("who serves %s:%d?" % address)
    bad.start(3)
    verification_fails(Peer(bad, 3), WRONG_NAME, name="zookeeper.test")


def with_says_where_and_whom_to_trust():
    text = subprocess.run(
        [zkserver.SCRIPT, "with", "--tls", "--tls-client-auth", "need", "--",
         "sh", "-c", 'echo "$LATCHKEY_ZK" && ls "$LATCHKEY_TLS_CACERT" '
         '"$LATCHKEY_TLS_CERT" "$LATCHKEY_TLS_KEY"'],
        check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    assert re.fullmatch(r"tls://127\.[0-9.]+:2281", text[0]), text
    assert [line.rpartition("/")[2] for line in text[1:]] == [
        "ca.crt", "client.crt", "client.key"], text


def unusable_store_is_told():
    done = subprocess.run(
        [zkserver.SCRIPT, "with", "--tls", "--tls-cert", "nothing", "true"],
        stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "nothing.pem" in done.stderr, done


with zkserver.Server("--tls", "--tls-client-auth", "want") as want:
    live.run(
        good_session_has_the_server_verified,
        wrong_ca_and_wrong_name_are_refused,
        plain_port_serves_beside_it,
        tls_to_the_plain_port_and_plain_to_the_tls_port_end,
        revoked_client_is_served_where_nobody_looks,
        relay_knows_records,
        relay_misbehaves_in_a_handshake_as_asked,
    )
with zkserver.Server("--tls", "--tls-client-auth", "need", "--tls-crl",
                     "--tls-version", "1.3", "--tls-cert", "1=server-rsa",
                     "--tls-cert", "2=server-chain", "--tls-cert",
                     "3=server-name", servers=3) as need:
    live.run(
        client_certificate_is_needed,
        revoked_client_is_refused_and_its_identity_is_its_subject,
    )
with zkserver.Server("--tls", "--tls-cert", "1=server-expired", "--tls-cert",
                     "2=server-early", "--tls-cert", "3=server-revoked",
                     servers=3) as bad:
    live.run(
        bad_servers_are_refused,
        key_store_is_read_again_after_a_restart,
    )
live.run(
    with_says_where_and_whom_to_trust,
    unusable_store_is_told,
)
