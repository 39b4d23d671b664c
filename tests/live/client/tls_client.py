# SPDX-License-Identifier: Apache-2.0
"""The client over TLS with real servers: verification, client certificates, and
handshakes that are slow, stalled or cut at any record."""

import os
import resource
import shutil
import sys
import tempfile

sys.path.append(sys.path[0] + "/../support")

import live
import relay
import zkserver
from live import NotTested, eventually
from worker import Worker

T = 4000        # a session timeout; a connection attempt takes a third of it
LONG = 30000    # a session timeout that no test reaches

FILES = ("ca", "cert", "key", "password_file", "crl")


class Peer:
    """Makes clients of server `n`, and checks whether they can connect."""

    def __init__(self, zk, worker, n=1):
        self.zk, self.worker, self.n = zk, worker, n

    def client(self, hosts=None, timeout=T, own=None, **options):
        """A client of the server, or of `hosts`. `own` names the files of its
        certificate and key, without their suffixes."""
        options.setdefault("ca", "ca.crt")
        if own:
            options = {"cert": own + ".crt", "key": own + ".key", **options}
        for name in FILES:
            if name in options and not os.path.isabs(options[name]):
                options[name] = self.zk.certificate(options[name])
        return self.worker.client(hosts or self.zk.tls_addresses[self.n - 1],
                                  timeout=timeout, **options)

    def succeeds(self, **options):
        client = self.client(**options)
        client.wait_for_state("connected")
        assert client.do("sync", path="/").err == "0"
        client.do("close")

    def refused(self, text, **options):
        """Check that all connection attempts fail with LK_ERR_TLS, and that the
        log names the reason `text`."""
        client = self.client(**options)
        lines = eventually(lambda: client.lines_like("log")[1:])
        for line in lines:
            assert " TLS " in line.text and text in line.text, line
        assert not client.lines_like("state", "connected")
        assert client.facts().trouble == "TLS"
        client.free()


def with_worker(test):
    def run():
        with Worker() as worker:
            test(worker)
    run.__name__ = test.__name__
    return run


# ---- verification of servers --------------------------------------------------

@with_worker
def servers_are_verified_by_chain_and_name(worker):
    peer = Peer(good, worker)
    peer.succeeds()
    peer.succeeds(server_name="zookeeper.test")
    peer.succeeds(crl="crl.pem")
    Peer(good, worker, 2).succeeds(server_name="localhost")
    peer.refused("not for other.test", server_name="other.test")
    peer.refused("not for 127.254.254.254", server_name="127.254.254.254")
    peer.refused("unable to get local issuer", ca="other-ca.crt")
    peer.refused("CRL has expired", crl="crl-expired.pem")
    peer.refused("cannot read", ca="no-such-file")
    # Each CA of a chain needs a CRL.
    Peer(good, worker, 2).succeeds(crl="crl-chain.pem")
    Peer(good, worker, 2).refused("unable to get certificate CRL",
                                  crl="crl.pem")


@with_worker
def disabled_verification_is_logged_for_each_connection(worker):
    for options, text in (
            ({"any_name": 1, "server_name": "other.test"}, "name is not"),
            ({"any_certificate": 1, "ca": "other-ca.crt"},
             "certificate is not")):
        client = Peer(good, worker).client(**options)
        client.wait_for_state("connected")
        warned = client.lines_like("log", "1")
        assert len(warned) == 1 and text in warned[0].text, warned
        client.do("close")


@with_worker
def bad_certificates_are_refused(worker):
    Peer(bad, worker, 1).refused("certificate has expired")
    Peer(bad, worker, 2).refused("not yet valid")
    Peer(bad, worker, 3).refused("certificate revoked", crl="crl.pem")


@with_worker
def next_server_is_tried_after_a_bad_certificate(worker):
    """The first certificate has expired, the second is not yet valid; the third
    is revoked by a CRL that is not used."""
    client = Peer(bad, worker).client(",".join(bad.tls_addresses),
                                      own="client")
    client.wait_for_state("connected")
    assert client.facts().server == bad.tls_addresses[2]
    client.do("close")


@with_worker
def replaced_files_are_read_at_the_next_attempt(worker):
    with tempfile.TemporaryDirectory() as folder:
        crl = os.path.join(folder, "crl.pem")
        shutil.copy(bad.certificate("crl.pem"), crl)
        client = Peer(bad, worker, 3).client(own="client", crl=crl)
        eventually(lambda: client.lines_like("log"))
        shutil.copy(bad.certificate("crl-empty.pem"), crl + ".new")
        os.rename(crl + ".new", crl)
        client.wait_for_state("connected")
        client.do("close")


@with_worker
def tls_to_a_plain_port_and_plain_to_a_tls_port_fail(worker):
    Peer(good, worker).refused("is this a port without TLS?",
                               hosts=good.addresses[0])
    client = worker.client(good.tls_addresses[0], timeout=T)
    eventually(lambda: client.lines_like("log")[1:])
    assert not client.lines_like("state", "connected")
    client.free()


# ---- client certificates -------------------------------------------------------

@with_worker
def client_certificate_is_sent_if_required(worker):
    peer = Peer(bad, worker, 3)
    for own in ("client", "client-rsa", "client-chain"):
        peer.succeeds(own=own)
    peer.succeeds(own="client", key="client-encrypted.key",
                  password_file="client.password")
    peer.succeeds(own="client-rsa", key="client-pkcs1.key")
    peer.succeeds(cert="client.pem")
    peer.refused("wants a client certificate")
    for own in ("client-revoked", "client-expired", "client-early",
                "client-other-ca"):
        peer.refused("does not accept the client's certificate", own=own)
    peer.refused("no key that can be read", own="client",
                 key="client-encrypted.key", password_file="ca.crt")
    peer.refused("does not fit the certificate", own="client",
                 key="client-bob.key")


@with_worker
def client_certificate_is_an_identity(worker):
    """The id is CN=alice,O=latchkey of the scheme x509, without
    lk_add_auth()."""
    peer = Peer(good, worker)
    alice = peer.client(own="client")
    bob = peer.client(own="client-bob")
    stranger = peer.client()
    for client in (alice, bob, stranger):
        client.wait_for_state("connected")
    alice.create("/x509", data=b"1", acl="31:x509:CN=alice,O=latchkey")
    assert alice.get("/x509").data == b"1"
    for client in (bob, stranger):
        client.submit("get", path="/x509").fails("NO_AUTH")
        client.submit("set", path="/x509", data=b"2").fails("NO_AUTH")
    alice.do("delete", path="/x509")
    alice.create("/creator", acl="creator")
    bob.submit("get", path="/creator").fails("NO_AUTH")
    alice.do("delete", path="/creator")
    for client in (alice, bob, stranger):
        client.do("close")


# ---- failing handshakes ------------------------------------------------------

ALERT = b"\x15\x03\x03\0\2\2\x28"     # the record of a fatal handshake_failure
GARBAGE = b"HTTP/1.1 400 Bad Request\r\n\r\n"


def records_of_a_handshake(worker, zk, n):
    """(number of records from the client, number of records to it) until the
    client has a session."""
    with relay.Relay(zk.tls_addresses[n - 1], relay.RECORDS) as wire:
        client = Peer(zk, worker, n).client(wire.address, own="client")
        client.wait_for_state("connected")
        ways = [frame.up for frame in wire.frames_since()]
        client.do("close")
    assert ways.count(True) > 2 and ways.count(False) > 2, ways
    return ways.count(True), ways.count(False)


def at_each_record(worker, zk, n, actions, ways=(True, False)):
    """Execute each action at each record of a client's first connection, up to
    the connect response, and check that a later connection succeeds. `ways` are
    the directions of the records: True is from the client."""
    counts = dict(zip((True, False), records_of_a_handshake(worker, zk, n)))
    cases = []
    for up in ways:
        for at in range(1, counts[up] + 1):
            for action, forward in actions:
                wire = relay.Relay(zk.tls_addresses[n - 1], relay.RECORDS)
                cases.append((wire, wire.at_frame(action, up=up, count=at,
                                                  forward=forward),
                              (action, forward, up, at)))
    try:
        clients = [Peer(zk, worker, n).client(wire.address, own="client")
                   for wire, _, _ in cases]
        for client, (wire, trap, case) in zip(clients, cases):
            client.wait_for_state("connected")
            assert client.do("sync", path="/", repeat=1).err == "0", case
            eventually(lambda w=wire, t=trap:
                       t.is_executed() and w.accepted > 1,
                       case)
        pending = [client.submit("close") for client in clients]
        for a in pending:
            a.succeeds()
    finally:
        for wire, _, _ in cases:
            wire.close()


# The servers `good` use TLS 1.2, the servers `bad` TLS 1.3. The certificate of
# the third server of `bad` is revoked, but valid for a client without a CRL.
@with_worker
def handshake_may_be_cut_at_each_record(worker):
    actions = (("cut", False), ("tear", False), ("reset", True))
    at_each_record(worker, good, 1, actions)
    at_each_record(worker, bad, 3, actions)


@with_worker
def handshake_may_get_stuck_at_each_record(worker):
    at_each_record(worker, good, 1, (("stall", 3),))
    at_each_record(worker, bad, 3, (("stall", 3),))


@with_worker
def invalid_replies_to_a_handshake_fail_the_attempt(worker):
    at_each_record(worker, good, 1, (
        (ALERT, False), (GARBAGE, False), (b"", False)), ways=(False,))
    for said, text in ((GARBAGE, "does not speak TLS"),
                       (ALERT, "handshake failure")):
        with relay.Relay(good.tls_addresses[0], relay.RECORDS) as wire:
            wire.at_frame(said, up=False, lasting=True)
            Peer(good, worker).refused(text, hosts=wire.address)


@with_worker
def slow_handshakes_succeed(worker):
    with relay.Relay(good.tls_addresses[0], relay.RECORDS) as wire:
        wire.drip(1)
        client = Peer(good, worker).client(wire.address, timeout=LONG)
        client.wait_for_state("connected")
        client.create("/slow", data=b"x" * 3000)
        assert client.get("/slow").data == b"x" * 3000
        wire.drip(3, 1)
        client.do("sync", path="/")
        client.do("delete", path="/slow")
        assert wire.accepted == 1
        client.do("close")


@with_worker
def broken_record_leaves_requests_in_doubt(worker):
    """Outstanding writes end with IN_DOUBT, and the session continues."""
    with relay.Relay(good.tls_addresses[0], relay.RECORDS) as wire:
        client = Peer(good, worker).client(wire.address, timeout=LONG)
        client.wait_for_state("connected")
        session = client.facts().session
        client.create("/data")
        for action, up, at in (("tear", True, 1), ("tear", False, 1),
                               ("tear", False, 3), ("reset", False, 2),
                               ("cut", True, 2)):
            trap = wire.at_frame(action, up=up, op=relay.DATA, count=at)
            for n in range(4):
                if trap.is_executed():
                    break
                client.submit("set", path="/data", data=b"%d" % n).result()
            trap.wait()
            client.do("sync", path="/", repeat=1)
            assert client.facts().session == session
        client.do("delete", path="/data")
        client.do("close")


# ---- many descriptors, other servers ------------------------------------------

def five_thousand_descriptors_are_open():
    """The client must not use select(), which cannot wait for descriptors above
    1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 5200:
        raise NotTested("no more than %d descriptors are allowed" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 5200), hard))
    try:
        with Worker() as worker:
            opened = worker.submit("descriptors", "-", count=5000).succeeds()
            assert opened.last >= 5000, opened
            peer = Peer(good, worker)
            peer.succeeds(own="client")
            peer.refused("not for other.test", server_name="other.test")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@with_worker
def session_moves_to_another_server(worker):
    """The session and its lock survive when servers are killed in turn."""
    client = Peer(good, worker).client(",".join(good.tls_addresses),
                                       timeout=LONG, own="client")
    client.wait_for_state("connected")
    session = client.facts().session
    lock = client.lock("/moves")
    token = lock.acquire().token
    seen = []
    for _ in range(2):
        server = client.facts().server
        n = good.tls_addresses.index(server) + 1
        seen.append(server)
        good.kill(n)
        client.wait_for_state("suspended")
        client.wait_for_state("connected")
        client.do("sync", path="/", repeat=1)
        good.start(n)
        good.wait()
        assert client.facts().session == session
        assert client.facts().server != server
        assert lock.inspect().token == token
    assert not lock.lines_like("lock", "lost")
    lock.release()
    client.do("close")


with zkserver.Server("--tls", "--tick", "500", "--tls-client-auth", "want",
                     "--tls-crl", "--tls-cert", "2=server-chain",
                     "--tls-cert", "3=server-rsa", servers=3) as good:
    live.run(
        servers_are_verified_by_chain_and_name,
        disabled_verification_is_logged_for_each_connection,
        tls_to_a_plain_port_and_plain_to_a_tls_port_fail,
        client_certificate_is_an_identity,
        invalid_replies_to_a_handshake_fail_the_attempt,
        slow_handshakes_succeed,
        broken_record_leaves_requests_in_doubt,
        five_thousand_descriptors_are_open,
    )
    with zkserver.Server("--tls", "--tick", "500", "--tls-client-auth", "need",
                         "--tls-crl", "--tls-version", "1.3",
                         "--tls-cert", "1=server-expired",
                         "--tls-cert", "2=server-early",
                         "--tls-cert", "3=server-revoked", servers=3) as bad:
        live.run(
            bad_certificates_are_refused,
            next_server_is_tried_after_a_bad_certificate,
            replaced_files_are_read_at_the_next_attempt,
            client_certificate_is_sent_if_required,
            handshake_may_be_cut_at_each_record,
            handshake_may_get_stuck_at_each_record,
        )
    live.run(session_moves_to_another_server)
