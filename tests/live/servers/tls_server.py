# SPDX-License-Identifier: Apache-2.0
"""script/server --tls and its certificates, checked with Python's TLS client, so
that the TLS tests of latchkey can rely on them.

The tests use the servers that are started at the end of this file: those of `want`
request a client certificate, those of `need` require one, and those of `bad` have
certificates that are not valid."""

import re
import socket
import ssl
import subprocess
import sys

sys.path.append(sys.path[0] + "/../support")

import differences
import frames
import live
import relay
import zkserver

SECONDS = 10  # the limit of each wait

# The X509_V_ERR_ codes of OpenSSL.
CERT_NOT_YET_VALID, CERT_HAS_EXPIRED, CERT_REVOKED = 9, 10, 23
CRL_HAS_EXPIRED, UNABLE_TO_GET_ISSUER_CERT = 12, 20
HOSTNAME_MISMATCH, IP_ADDRESS_MISMATCH = 62, 64


def host_and_port(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


class Peer:
    """Server n of `zk`. With `proxy`, connections to its TLS port go through this
    relay. `client` is the name of a client certificate, `ca` and `crl` those of
    files."""

    def __init__(self, zk, n=1, proxy=None):
        self.zk = zk
        self.plain_address = host_and_port(zk.addresses[n - 1])
        self.tls_address = host_and_port(
            proxy.address if proxy else zk.tls_addresses[n - 1])

    def context(self, ca="ca.crt", client=None, crl=None, **options):
        """The TLS context of a client; `options` are attributes of it."""
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
        """A TLS connection after its handshake. The server must have the name
        `name`, by default its address."""
        raw = socket.create_connection(self.tls_address, seconds)
        try:
            return self.context(**options).wrap_socket(
                raw, server_hostname=name or self.tls_address[0])
        except Exception:
            raw.close()
            raise

    def tls_version_of_session(self, **options):
        """Make and close a session; gives its TLS version."""
        with self.connect(**options) as s:
            run_session(s)
            return s.version()

    def check_refusal(self, **options):
        """Check that the server refuses the connection: in the handshake or,
        with TLS 1.3, after it. Gives OpenSSL's reason."""
        try:
            with self.connect(**options) as s:
                run_session(s)
        except ssl.SSLCertVerificationError:
            raise  # it is the client that refuses
        except (ssl.SSLError, OSError) as why:
            return str(why)
        raise AssertionError("the server accepts %s" % options)


def run_session(s):
    """Make a session, send whoAmI, and close the session; gives the identities of
    the client, as the reply to whoAmI encodes them, or b"" from servers without
    this request."""
    with frames.Session(s) as session:
        if not differences.has("WHO_AM_I"):
            return b""
        reply = session.call(frames.WHO_AM_I)
        assert reply.err == 0, reply
        return reply.body


def check_verification_fails(peer, code, **options):
    """Check that the client refuses the server's certificate with this code."""
    try:
        peer.connect(**options).close()
    except ssl.SSLCertVerificationError as why:
        assert why.verify_code == code, (why.verify_code, why)
    else:
        raise AssertionError("accepted, not refused: %s" % options)


def client_verifies_the_server_by_address_name_and_crl():
    peer = Peer(want)
    assert peer.tls_version_of_session() == "TLSv1.2"
    assert peer.tls_version_of_session(name="zookeeper.test") == "TLSv1.2"
    assert peer.tls_version_of_session(crl="crl.pem") == "TLSv1.2"


def wrong_ca_wrong_name_and_expired_crl_are_refused():
    peer = Peer(want)
    check_verification_fails(peer, UNABLE_TO_GET_ISSUER_CERT, ca="other-ca.crt")
    check_verification_fails(peer, HOSTNAME_MISMATCH, name="other.test")
    check_verification_fails(peer, IP_ADDRESS_MISMATCH, name="127.254.254.254")
    check_verification_fails(peer, CRL_HAS_EXPIRED, crl="crl-expired.pem")


def plain_port_serves_beside_the_tls_port():
    with socket.create_connection(Peer(want).plain_address, SECONDS) as s:
        run_session(s)
    assert live.four_letter_word(want.addresses[0], "ruok") == "imok"


def tls_at_the_plain_port_and_no_tls_at_the_tls_port_fail():
    peer = Peer(want)
    with socket.create_connection(peer.plain_address, SECONDS) as raw:
        try:
            peer.context().wrap_socket(raw, server_hostname=peer.plain_address[0])
        except (ssl.SSLError, OSError) as why:
            assert not isinstance(why, TimeoutError), why
        else:
            raise AssertionError("the plain port speaks TLS")
    with socket.create_connection(peer.tls_address, SECONDS) as s:
        try:
            run_session(s)
        except OSError as why:
            assert not isinstance(why, TimeoutError), why
        else:
            raise AssertionError("the TLS port speaks without TLS")


def servers_require_a_valid_client_certificate():
    # The key stores have an RSA key, a chain of CAs, and a name without address.
    rsa, chain, named = (Peer(need, n) for n in (1, 2, 3))
    assert rsa.tls_version_of_session(client="client") == "TLSv1.3"
    assert chain.tls_version_of_session(client="client-chain") == "TLSv1.3"
    check_verification_fails(named, IP_ADDRESS_MISMATCH, client="client")
    assert named.tls_version_of_session(client="client-rsa", name="zookeeper.test") == \
        "TLSv1.3"
    for client in (None, "client-other-ca", "client-expired", "client-early"):
        rsa.check_refusal(client=client)
        # With TLS 1.2 the refusal is a part of the handshake.
        why = rsa.check_refusal(client=client,
                          maximum_version=ssl.TLSVersion.TLSv1_2)
        assert "alert" in why or "EOF" in why, why


def revoked_client_is_refused():
    Peer(need).check_refusal(client="client-revoked")


def identity_of_a_client_is_its_subject():
    differences.need("WHO_AM_I")
    peer = Peer(need)
    with peer.connect(client="client-bob") as s:
        identities = run_session(s)
    assert b"CN=bob,O=latchkey" in identities, identities
    with peer.connect(client="client") as s:
        identities = run_session(s)
    assert b"CN=alice,O=latchkey" in identities, identities


# A record: type alert, version TLS 1.2, length 2; fatal (2), bad_certificate (42).
BAD_CERTIFICATE_ALERT = b"\x15\x03\x03\0\2\2\x2a"


def record_types(records, up):
    return [record.op for record in records if record.up == up]


def relay_parses_tls_records():
    """The TLS 1.2 handshake with a server that requests a client
    certificate."""
    with relay.Relay(want.tls_addresses[0], relay.RECORDS) as proxy:
        peer = Peer(want, proxy=proxy)
        peer.tls_version_of_session()
        records = proxy.frames_since()
        from_client = record_types(records, up=relay.UP)
        # ClientHello, Certificate, ClientKeyExchange; then Finished.
        assert from_client[:5] == [
            relay.HANDSHAKE, relay.HANDSHAKE, relay.HANDSHAKE,
            relay.CHANGE_CIPHER_SPEC, relay.HANDSHAKE], records
        assert relay.DATA in from_client, records
        assert relay.DATA in record_types(records, up=relay.DOWN), records
        # The same records are found if they arrive in small pieces. The sizes of
        # two sessions may differ by those of their signatures.
        size = sum(record.size for record in records if record.up)
        proxy.drip(1)
        peer.tls_version_of_session()
        proxy.drip(7, ms=1, down=False)
        peer.tls_version_of_session()
        proxy.drip(0)
        size_of_two = sum(record.size for record in
                          proxy.frames_since(len(records)) if record.up)
        assert abs(size_of_two / 2 - size) < 40, (size, size_of_two)


def relay_executes_each_action_in_a_handshake():
    end = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError)
    with relay.Relay(want.tls_addresses[0], relay.RECORDS) as proxy:
        peer = Peer(want, proxy=proxy)
        for up in (relay.UP, relay.DOWN):
            for action, errors in (
                    ("cut", end),
                    ("tear", end),
                    ("reset", (ConnectionResetError,)),
                    ("stall", (TimeoutError,)),
                    (b"HTTP/1.1 400\r\n\r\n", (ssl.SSLError,
                                               ConnectionResetError)),
                    (BAD_CERTIFICATE_ALERT, (ssl.SSLError,))):
                trap = proxy.at_frame(action, up=up)
                try:
                    # A handshake that stalls ends after this time.
                    peer.connect(seconds=.3 if action == "stall" else 20).close()
                except (ssl.SSLError, OSError) as why:
                    assert isinstance(why, errors), (action, up, repr(why))
                    if action == BAD_CERTIFICATE_ALERT and up == relay.DOWN:
                        assert "ALERT_BAD_CERTIFICATE" in why.reason, repr(why)
                else:
                    raise AssertionError("%s, %s: no effect" % (action, up))
                assert trap.is_executed()
        # After 3 bytes of the server's first record, on every connection.
        proxy.at_frame("reset", up=relay.DOWN, forward=3, lasting=True)
        for _ in range(2):
            try:
                peer.connect()
            except (ConnectionResetError, ssl.SSLError):
                pass
            else:
                raise AssertionError("no effect")
        proxy.clear_traps()
        peer.tls_version_of_session()


def revoked_client_is_served_by_a_server_without_crl():
    peer = Peer(want)
    assert peer.tls_version_of_session(client="client-revoked") == "TLSv1.2"
    assert peer.tls_version_of_session() == "TLSv1.2"
    peer.check_refusal(client="client-other-ca")


def expired_early_and_revoked_servers_are_refused():
    check_verification_fails(Peer(bad, 1), CERT_HAS_EXPIRED)
    check_verification_fails(Peer(bad, 2), CERT_NOT_YET_VALID)
    check_verification_fails(Peer(bad, 3), CERT_REVOKED, crl="crl.pem")
    assert Peer(bad, 3).tls_version_of_session(crl="crl-empty.pem") == "TLSv1.2"


def key_store_is_read_again_after_a_restart():
    peer = Peer(bad, 3)
    assert peer.tls_version_of_session(name="zookeeper.test") == "TLSv1.2"
    with open(bad.certificate("server-cn.pem"), "rb") as f:
        store = f.read()
    with open(bad.certificate("server-revoked.pem"), "wb") as f:
        f.write(store)
    bad.kill(3)
    try:
        socket.create_connection(peer.tls_address, SECONDS).close()
    except ConnectionRefusedError:
        pass
    else:
        raise AssertionError("a killed server serves %s:%d" % peer.tls_address)
    bad.start(3)
    check_verification_fails(peer, HOSTNAME_MISMATCH, name="zookeeper.test")


def with_sets_the_address_and_the_files_of_tls():
    text = subprocess.run(
        [zkserver.SCRIPT, "with", "--tls", "--tls-client-auth", "need", "--",
         "sh", "-c", 'echo "$LATCHKEY_ZK" && ls "$LATCHKEY_TLS_CACERT" '
         '"$LATCHKEY_TLS_CERT" "$LATCHKEY_TLS_KEY"'],
        check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    assert re.fullmatch(r"tls://127\.[0-9.]+:2281", text[0]), text
    assert [line.rpartition("/")[2] for line in text[1:]] == [
        "ca.crt", "client.crt", "client.key"], text


def missing_key_store_is_reported():
    done = subprocess.run(
        [zkserver.SCRIPT, "with", "--tls", "--tls-cert", "nothing", "true"],
        stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "nothing.pem" in done.stderr, done


with zkserver.Server("--tls", "--tls-client-auth", "want") as want:
    live.run(
        client_verifies_the_server_by_address_name_and_crl,
        wrong_ca_wrong_name_and_expired_crl_are_refused,
        plain_port_serves_beside_the_tls_port,
        tls_at_the_plain_port_and_no_tls_at_the_tls_port_fail,
        revoked_client_is_served_by_a_server_without_crl,
        relay_parses_tls_records,
        relay_executes_each_action_in_a_handshake,
    )
with zkserver.Server("--tls", "--tls-client-auth", "need", "--tls-crl",
                     "--tls-version", "1.3", "--tls-cert", "1=server-rsa",
                     "--tls-cert", "2=server-chain", "--tls-cert",
                     "3=server-name", servers=3) as need:
    live.run(
        servers_require_a_valid_client_certificate,
        revoked_client_is_refused,
        identity_of_a_client_is_its_subject,
    )
with zkserver.Server("--tls", "--tls-cert", "1=server-expired", "--tls-cert",
                     "2=server-early", "--tls-cert", "3=server-revoked",
                     servers=3) as bad:
    live.run(
        expired_early_and_revoked_servers_are_refused,
        key_store_is_read_again_after_a_restart,
    )
live.run(
    with_sets_the_address_and_the_files_of_tls,
    missing_key_store_is_reported,
)
