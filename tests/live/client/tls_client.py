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

# Session timeouts in ms. A connection attempt may take a third of it.
TIMEOUT = 4000
LONG = 30000  # no test reaches it

ALL_PERMISSIONS = 31  # of an access list
UP, DOWN = True, False  # directions in a relay: to the server, to the client

# The options that name a file.
FILES = ("ca", "cert", "key", "password_file", "crl")

# The tests use two ensembles, which the end of this file starts:
# `good`: valid certificates, TLS 1.2, client certificates are optional
# `bad`: TLS 1.3, client certificates are required. The certificate of server 1
#        has expired, that of server 2 is not yet valid, and that of server 3 is
#        revoked; a client without a CRL accepts the last one.


class Server:
    """Server `n` of an ensemble. It makes clients of the server, and checks
    whether they can connect."""

    def __init__(self, zk, worker, n=1):
        self.zk, self.worker, self.n = zk, worker, n

    def client(self, hosts=None, timeout=TIMEOUT, certificate=None, **options):
        """A client of the server, or of `hosts`. `certificate` names the files of
        its certificate and key, without their suffixes."""
        options.setdefault("ca", "ca.crt")
        if certificate:
            options = {"cert": certificate + ".crt",
                       "key": certificate + ".key", **options}
        for name in FILES:
            if name in options and not os.path.isabs(options[name]):
                options[name] = self.zk.certificate(options[name])
        return self.worker.client(hosts or self.zk.tls_addresses[self.n - 1],
                                  timeout=timeout, **options)

    def expect_connection(self, **options):
        client = self.client(**options)
        client.wait_for_state("connected")
        assert client.do("sync", path="/").err == "0"
        client.do("close")

    def expect_failure(self, text, **options):
        """Check that all connection attempts fail with LK_ERR_TLS, and that the
        log names the reason `text`."""
        client = self.client(**options)
        # The client tries again after the first failure.
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
    server = Server(good, worker)
    server.expect_connection()
    server.expect_connection(server_name="zookeeper.test")
    server.expect_connection(crl="crl.pem")
    Server(good, worker, 2).expect_connection(server_name="localhost")
    server.expect_failure("not for other.test", server_name="other.test")
    server.expect_failure("not for 127.254.254.254",
                          server_name="127.254.254.254")
    server.expect_failure("unable to get local issuer", ca="other-ca.crt")
    server.expect_failure("CRL has expired", crl="crl-expired.pem")
    server.expect_failure("cannot read", ca="no-such-file")
    # Each CA of a chain needs a CRL.
    Server(good, worker, 2).expect_connection(crl="crl-chain.pem")
    Server(good, worker, 2).expect_failure("unable to get certificate CRL",
                                           crl="crl.pem")


@with_worker
def disabled_verification_is_logged_for_each_connection(worker):
    for options, text in (
            ({"any_name": 1, "server_name": "other.test"}, "name is not"),
            ({"any_certificate": 1, "ca": "other-ca.crt"},
             "certificate is not")):
        client = Server(good, worker).client(**options)
        client.wait_for_state("connected")
        warned = client.lines_like("log", "2")
        assert len(warned) == 1 and text in warned[0].text, warned
        client.do("close")


@with_worker
def bad_certificates_of_servers_are_refused(worker):
    Server(bad, worker, 1).expect_failure("certificate has expired")
    Server(bad, worker, 2).expect_failure("not yet valid")
    Server(bad, worker, 3).expect_failure("certificate revoked", crl="crl.pem")


@with_worker
def next_server_is_tried_after_a_bad_certificate(worker):
    client = Server(bad, worker).client(",".join(bad.tls_addresses),
                                        certificate="client")
    client.wait_for_state("connected")
    assert client.facts().server == bad.tls_addresses[2]
    client.do("close")


@with_worker
def replaced_files_are_read_at_the_next_attempt(worker):
    with tempfile.TemporaryDirectory() as folder:
        crl = os.path.join(folder, "crl.pem")
        shutil.copy(bad.certificate("crl.pem"), crl)
        client = Server(bad, worker, 3).client(certificate="client", crl=crl)
        eventually(lambda: client.lines_like("log"))
        shutil.copy(bad.certificate("crl-empty.pem"), crl + ".new")
        os.rename(crl + ".new", crl)
        client.wait_for_state("connected")
        client.do("close")


@with_worker
def tls_to_a_plain_port_and_plain_to_a_tls_port_fail(worker):
    Server(good, worker).expect_failure("is this a port without TLS?",
                                        hosts=good.addresses[0])
    client = worker.client(good.tls_addresses[0], timeout=TIMEOUT)
    eventually(lambda: client.lines_like("log")[1:])
    assert not client.lines_like("state", "connected")
    client.free()


# ---- client certificates -------------------------------------------------------

@with_worker
def client_connects_with_a_valid_certificate_only(worker):
    server = Server(bad, worker, 3)
    for name in ("client", "client-rsa", "client-chain"):
        server.expect_connection(certificate=name)
    server.expect_connection(certificate="client", key="client-encrypted.key",
                             password_file="client.password")
    server.expect_connection(certificate="client-rsa", key="client-pkcs1.key")
    server.expect_connection(cert="client.pem")
    server.expect_failure("wants a client certificate")
    for name in ("client-revoked", "client-expired", "client-early",
                 "client-other-ca"):
        server.expect_failure("does not accept the client's certificate",
                              certificate=name)
    # ca.crt does not begin with the password.
    server.expect_failure("no key that can be read", certificate="client",
                          key="client-encrypted.key", password_file="ca.crt")
    server.expect_failure("does not fit the certificate", certificate="client",
                          key="client-bob.key")


@with_worker
def client_certificate_is_an_identity(worker):
    """The scheme is x509, and the id is the subject, CN=alice,O=latchkey. The
    client does not call lk_add_auth()."""
    server = Server(good, worker)
    alice = server.client(certificate="client")
    bob = server.client(certificate="client-bob")
    stranger = server.client()
    for client in (alice, bob, stranger):
        client.wait_for_state("connected")
    alice.create("/x509", data=b"1",
                 acl="%d:x509:CN=alice,O=latchkey" % ALL_PERMISSIONS)
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


def count_records(worker, zk, n):
    """The number of records in each direction until a client has a session."""
    with relay.Relay(zk.tls_addresses[n - 1], relay.RECORDS) as wire:
        client = Server(zk, worker, n).client(wire.address,
                                              certificate="client")
        client.wait_for_state("connected")
        directions = [frame.up for frame in wire.frames_since()]
        client.do("close")
    counts = {UP: directions.count(UP), DOWN: directions.count(DOWN)}
    assert min(counts.values()) > 2, counts
    return counts


def act_at_each_record(worker, zk, n, actions, directions=(UP, DOWN)):
    """Execute each action at each record of a client's first connection, up to
    the connect response, and check that a later connection succeeds. `actions`
    are pairs of the arguments `action` and `forward` of Relay.at_frame()."""
    counts = count_records(worker, zk, n)
    cases = []
    for up in directions:
        for count in range(1, counts[up] + 1):
            for action, forward in actions:
                wire = relay.Relay(zk.tls_addresses[n - 1], relay.RECORDS)
                cases.append((wire, wire.at_frame(action, up=up, count=count,
                                                  forward=forward),
                              (action, forward, up, count)))
    try:
        server = Server(zk, worker, n)
        clients = [server.client(wire.address, certificate="client")
                   for wire, _, _ in cases]
        for client, (wire, trap, case) in zip(clients, cases):
            client.wait_for_state("connected")
            assert client.do("sync", path="/", repeat=1).err == "0", case
            # The action was executed, and the client has connected again.
            eventually(lambda w=wire, t=trap:
                       t.is_executed() and w.accepted > 1,
                       case)
        for close in [client.submit("close") for client in clients]:
            close.succeeds()
    finally:
        for wire, _, _ in cases:
            wire.close()


@with_worker
def handshake_may_be_cut_at_each_record(worker):
    actions = (("cut", False), ("tear", False), ("reset", True))
    act_at_each_record(worker, good, 1, actions)
    act_at_each_record(worker, bad, 3, actions)


@with_worker
def handshake_may_get_stuck_at_each_record(worker):
    after_three_bytes = (("stall", 3),)
    act_at_each_record(worker, good, 1, after_three_bytes)
    act_at_each_record(worker, bad, 3, after_three_bytes)


@with_worker
def invalid_replies_to_a_handshake_fail_the_attempt(worker):
    act_at_each_record(worker, good, 1, (
        (ALERT, False), (GARBAGE, False), (b"", False)), directions=(DOWN,))
    for reply, text in ((GARBAGE, "does not speak TLS"),
                       (ALERT, "handshake failure")):
        with relay.Relay(good.tls_addresses[0], relay.RECORDS) as wire:
            wire.at_frame(reply, up=DOWN, lasting=True)
            Server(good, worker).expect_failure(text, hosts=wire.address)


@with_worker
def slow_handshakes_succeed(worker):
    with relay.Relay(good.tls_addresses[0], relay.RECORDS) as wire:
        wire.drip(1)  # one byte at a time
        client = Server(good, worker).client(wire.address, timeout=LONG)
        client.wait_for_state("connected")
        client.create("/slow", data=b"x" * 3000)
        assert client.get("/slow").data == b"x" * 3000
        wire.drip(3, 1)  # three bytes in a millisecond
        client.do("sync", path="/")
        client.do("delete", path="/slow")
        assert wire.accepted == 1
        client.do("close")


@with_worker
def session_continues_after_a_broken_record(worker):
    with relay.Relay(good.tls_addresses[0], relay.RECORDS) as wire:
        client = Server(good, worker).client(wire.address, timeout=LONG)
        client.wait_for_state("connected")
        session = client.facts().session
        client.create("/data")
        for action, up, count in (("tear", UP, 1), ("tear", DOWN, 1),
                                  ("tear", DOWN, 3), ("reset", DOWN, 2),
                                  ("cut", UP, 2)):
            trap = wire.at_frame(action, up=up, op=relay.DATA, count=count)
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

def client_connects_with_five_thousand_open_descriptors():
    """The client must not use select(), which cannot wait for descriptors above
    1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 5200  # 5000, and those of the client
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise NotTested("no more than %d descriptors are allowed" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    try:
        with Worker() as worker:
            opened = worker.submit("descriptors", "-", count=5000).succeeds()
            assert opened.last >= 5000, opened
            server = Server(good, worker)
            server.expect_connection(certificate="client")
            server.expect_failure("not for other.test", server_name="other.test")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@with_worker
def session_and_lock_move_to_another_server(worker):
    client = Server(good, worker).client(",".join(good.tls_addresses),
                                       timeout=LONG, certificate="client")
    client.wait_for_state("connected")
    session = client.facts().session
    lock = client.lock("/moves")
    token = lock.acquire().token
    for _ in range(2):
        address = client.facts().server
        n = good.tls_addresses.index(address) + 1
        good.kill(n)
        client.wait_for_state("suspended")
        client.wait_for_state("connected")
        client.do("sync", path="/", repeat=1)
        good.start(n)
        good.wait()
        assert client.facts().session == session
        assert client.facts().server != address
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
        session_continues_after_a_broken_record,
        client_connects_with_five_thousand_open_descriptors,
    )
    with zkserver.Server("--tls", "--tick", "500", "--tls-client-auth", "need",
                         "--tls-crl", "--tls-version", "1.3",
                         "--tls-cert", "1=server-expired",
                         "--tls-cert", "2=server-early",
                         "--tls-cert", "3=server-revoked", servers=3) as bad:
        live.run(
            bad_certificates_of_servers_are_refused,
            next_server_is_tried_after_a_bad_certificate,
            replaced_files_are_read_at_the_next_attempt,
            client_connects_with_a_valid_certificate_only,
            handshake_may_be_cut_at_each_record,
            handshake_may_get_stuck_at_each_record,
        )
    live.run(session_and_lock_move_to_another_server)
