# SPDX-License-Identifier: Apache-2.0
"""TLS in the command: options, environment, error messages, and the findings of
latchkey doctor."""

import contextlib
import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
from concurrent import futures

sys.path.append(sys.path[0] + "/../support")

import command
import differences
from command import expect_exit, run, start
import live
import zkserver

DOCTOR_ADVICE = "; latchkey doctor tells more"
HELP_ADVICE = "; latchkey %s --help shows the usage"
INSECURE_WARNING = ("--insecure: the server's certificate is not verified; an "
            "attacker on the network can read and change everything")
SHORT_TIMEOUT = ("--connect-timeout", "0.9")
VARIABLES = ("LATCHKEY_TLS_CACERT", "LATCHKEY_TLS_CERT", "LATCHKEY_TLS_KEY",
             "LATCHKEY_TLS_NAME", "LATCHKEY_TLS_CRL",
             "LATCHKEY_TLS_KEY_PASSWORD_FILE")
for name in VARIABLES:
    os.environ.pop(name, None)


def cert_file(name):
    return zk.certificate(name)


def environment(**variables):
    """The environment with these variables, named without LATCHKEY_."""
    return dict(os.environ, **{"LATCHKEY_" + name: value
                               for name, value in variables.items()})


def environment_with_all(value):
    """The environment with this value in all variables for TLS."""
    return dict(os.environ, **{name: value for name in VARIABLES})


def identity(name):
    """The options for the client certificate with this name."""
    return ("--cert", cert_file(name + ".crt"), "--key", cert_file(name + ".key"))


def expect_message(code, text, *words, **options):
    """Run the command, and check its exit code and that it prints this message
    and nothing else."""
    done = run(*words, **options)
    assert (done.code, done.out, done.err) == (
        code, "", "latchkey: " + text + "\n"), (words, done)


# What a command prints if the machine is too busy for its timeout.
TOO_LATE = re.compile("no reply within|no connection in time")


def expect_message_soon(text, *words, **options):
    """Check that connecting fails with this message and no other output. The
    command is run up to ten times as long as it says that a reply was late: on
    a busy machine the handshake may not end in time."""
    wanted = "latchkey: cannot connect to " + text + DOCTOR_ADVICE + "\n"
    for _ in range(10):
        done = run(*words, **options)
        if done.err == wanted or not TOO_LATE.search(done.err):
            break
    assert (done.code, done.out, done.err) == (125, "", wanted), (words, done)


def expect_listing(*words, **options):
    """Check that ls lists the root over TLS and prints nothing else."""
    done = expect_exit(0, *words, "ls", "/", **options)
    assert "zookeeper" in done.out.split() and done.err == "", done


@contextlib.contextmanager
def tls_front(certificate, trust=None, version=ssl.TLSVersion.TLSv1_2):
    """A TLS port with this certificate, in front of the server's plain port.
    `trust` is the CA of the client certificates that the port requires; None:
    it requires none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file(certificate + ".crt"),
                            cert_file(certificate + ".key"))
    context.maximum_version = version
    if trust is not None:
        context.load_verify_locations(cert_file(trust + ".crt"))
        context.verify_mode = ssl.CERT_REQUIRED

    def forward(connection):
        with connection, contextlib.suppress(OSError), \
                context.wrap_socket(connection, server_side=True) as tls, \
                socket.create_connection(host_and_port(zk.addresses[0])) as server:
            while True:
                # select() does not see bytes that TLS has already decrypted.
                if not tls.pending():
                    select.select([tls, server], [], [])
                if tls.pending() or select.select([tls], [], [], 0)[0]:
                    bytes_up = tls.recv(65536)
                    if not bytes_up:
                        return
                    server.sendall(bytes_up)
                if select.select([server], [], [], 0)[0]:
                    bytes_down = server.recv(65536)
                    if not bytes_down:
                        return
                    tls.sendall(bytes_down)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=forward, args=(server_socket.accept()[0],),
                                 daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as server_socket:
        threading.Thread(target=accept, daemon=True).start()
        yield "tls://127.0.0.1:%d" % server_socket.getsockname()[1]
        server_socket.shutdown(socket.SHUT_RDWR)


def host_and_port(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


# ---- options and environment ------------------------------------------------------

def each_option_and_tls_before_servers_select_tls():
    address = zk.tls_addresses[0]
    host = address.partition(":")[0]
    trust = ("--cacert", cert_file("ca.crt"))
    expect_listing("-z", "tls://" + address, *trust)
    expect_listing("-z", "tls://" + host, *trust)
    expect_listing("-z", address, *trust)
    expect_listing("-z", host, "--tls", *trust)
    expect_listing("--tls", *trust, "-z", "tls://" + address)
    # The options may follow the verb.
    assert expect_exit(0, "ls", "/", *trust, "-z", host).err == ""
    env = environment(TLS_CACERT=cert_file("ca.crt"), ZK=host)
    for options in (("--tls",), ("--tls-name", "zookeeper.test"),
                    ("--crl", cert_file("crl.pem")), identity("client")):
        expect_listing(*options, env=env)


def variables_configure_tls_and_do_not_select_it():
    address = zk.tls_addresses[0]
    env = environment(
        TLS_CACERT=cert_file("ca.crt"), TLS_CERT=cert_file("client.crt"),
        TLS_KEY=cert_file("client-encrypted.key"),
        TLS_KEY_PASSWORD_FILE=cert_file("client.password"),
        TLS_CRL=cert_file("crl.pem"), TLS_NAME="zookeeper.test")
    expect_listing("-z", "tls://" + address, env=env)
    expect_listing("--tls", "-z", address, env=env)
    expect_listing(env=dict(env, LATCHKEY_ZK="tls://" + address))
    # Without tls://, --tls or another option for TLS the connection is plain,
    # and the files of the variables are not read.
    line = ("latchkey: warning: %s is set, but TLS is not selected: the "
            "connection is not encrypted; tls:// in front of the servers or "
            "--tls selects TLS\n")
    env = environment_with_all("/nowhere")
    plain = ("-z", zk.connect)
    for words in (("ls", "/"), ("doctor",), ("run", "/plain", "true")):
        done = expect_exit(0, *plain, *words, env=env)
        assert done.err == line % "LATCHKEY_TLS_CACERT", (words, done)
    assert expect_exit(0, *plain, "run", "-q", "/plain", "true",
                       env=env).err == ""
    for name in VARIABLES:
        done = expect_exit(0, *plain, "ls", "/",
                           env=dict(os.environ, **{name: "/nowhere"}))
        assert done.err == line % name, done
    expect_message_soon("%s: the server closed the connection without a reply; it has "
                        "no quorum, or has reached maxClientCnxns, or expects TLS "
                        "(--tls)" % address,
                        "-z", address, *SHORT_TIMEOUT, "ls", "/")


def option_wins_over_its_variable():
    where = ("-z", zk.tls)
    wrong = environment_with_all("/nowhere")
    right = ("--cacert", cert_file("ca.crt"), "--crl", cert_file("crl.pem"),
             "--tls-name", "zookeeper.test")
    expect_listing(*where, *right, *identity("client"), "--key-password-file",
                   cert_file("client.password"), env=wrong)
    # If --cert is given, the variables for its key and password are ignored.
    expect_listing(*where, *right, "--cert", cert_file("client.pem"), env=wrong)
    expect_listing(*where, *right, "--key", cert_file("client.key"),
                   env=dict(wrong, LATCHKEY_TLS_CERT=cert_file("client.crt")))
    expect_message(125, "LATCHKEY_TLS_KEY: cannot read /nowhere: No such file or directory",
                   *where, *right, "ls", "/",
                   env=dict(wrong, LATCHKEY_TLS_CERT=cert_file("client.crt")))


def empty_variable_counts_as_unset():
    empty = environment_with_all("")
    expect_listing("-z", zk.tls, env=dict(empty, LATCHKEY_TLS_CACERT=cert_file("ca.crt")))
    expect_message_soon(NO_ISSUER % zk.tls_addresses[0], "-z", zk.tls, *SHORT_TIMEOUT, "ls", "/",
                        env=empty)


def insecure_prints_a_warning_each_time():
    where = ("-z", zk.tls, "--insecure")
    line = "latchkey: warning: " + INSECURE_WARNING + "\n"
    for words in (("ls", "/"), ("status", "/insecure"), ("doctor",),
                  ("run", "/insecure", "true"),
                  ("run", "-q", "/insecure", "true")):
        done = expect_exit(0, *where, *words)
        assert done.err == line, (words, done)
    for words in (("ls", "/"), ("run", "/insecure", "true")):
        first = expect_exit(0, *where, "--json", *words).err.splitlines()[0]
        facts = json.loads(first)
        assert (facts["event"], facts["reason"]) == ("warning", INSECURE_WARNING), facts


def insecure_accepts_any_certificate():
    for certificate in ("server-wrong-name", "server-other-ca", "server-self",
                        "server-expired"):
        with tls_front(certificate) as front:
            expect_exit(0, "--insecure", "--cacert", cert_file("ca.crt"), "-z", front,
                        "ls", "/")


def version_lists_tls_as_a_feature():
    assert "tls" in expect_exit(0, "--version").out.splitlines()[1].split(), run("-V")


# ---- invalid files and options -----------------------------------------------------

def system_without_cas_is_an_error_unless_other_cas_are_named():
    """As in an image without /etc."""
    env = dict(environment(), SSL_CERT_FILE="/nowhere", SSL_CERT_DIR="/nowhere")
    where = ("-z", "tls://" + zk.tls_addresses[0])
    for words in (("ls", "/"), ("run", "/x", "true"), ("doctor",)):
        expect_message(125, "the default of --cacert: /nowhere: No such file or "
                       "directory", *where, *words, env=env)
    trust = ("--cacert", cert_file("ca.crt"))
    for options in ((), ("--crl", cert_file("crl.pem")), identity("client")):
        expect_listing(*where, *trust, *options, env=env)
    assert expect_exit(0, *where, "--insecure", "ls", "/", env=env).out != ""


def wrong_file_is_named_before_connecting():
    where = ("-z", "tls://127.0.0.1:1")  # nothing listens there
    crt, key = cert_file("client.crt"), cert_file("client.key")
    encrypted, bobs_key = cert_file("client-encrypted.key"), cert_file("client-bob.key")
    for options, variables, text in (
            (("--cacert", "/nowhere"), {},
             "--cacert: cannot read /nowhere: No such file or directory"),
            (("--cacert", key), {}, "--cacert: %s: has no certificate" % key),
            (("--cacert", zk.dir), {},
             "--cacert: cannot read %s: Is a directory" % zk.dir),
            (("--crl", crt), {}, "--crl: %s: has no revocation list" % crt),
            (("--cert", key, "--key", key), {},
             "--cert: %s: has no certificate" % key),
            (("--cert", crt, "--key", bobs_key), {},
             "--key: %s: does not fit the certificate: key values mismatch" %
             bobs_key),
            (("--cert", crt), {}, "--cert: %s: has no private key; --key gives "
             "one" % crt),
            (("--cert", crt, "--key", crt), {},
             "--key: %s: has no private key" % crt),
            (("--cert", crt, "--key", cert_file("ca.crt")), {},
             "--key: %s: has no private key" % cert_file("ca.crt")),
            (("--cert", crt, "--key", encrypted), {},
             "--key: %s: has no key that can be read: bad password read; "
             "--key-password-file gives its password" % encrypted),
            (("--cert", crt, "--key", encrypted, "--key-password-file",
              "/nowhere"), {}, "--key-password-file: cannot read /nowhere: "
             "No such file or directory"),
            (("--key", key), {}, "--key needs a certificate: --cert or "
             "LATCHKEY_TLS_CERT"),
            (("--key-password-file", key), {}, "--key-password-file needs a "
             "certificate: --cert or LATCHKEY_TLS_CERT"),
            ((), {"TLS_CACERT": "/nowhere"}, "LATCHKEY_TLS_CACERT: cannot read "
             "/nowhere: No such file or directory"),
            ((), {"TLS_CRL": "/nowhere"}, "LATCHKEY_TLS_CRL: cannot read "
             "/nowhere: No such file or directory"),
            ((), {"TLS_CERT": "/nowhere"}, "LATCHKEY_TLS_CERT: cannot read "
             "/nowhere: No such file or directory"),
            ((), {"TLS_KEY": key}, "LATCHKEY_TLS_KEY needs a certificate: "
             "--cert or LATCHKEY_TLS_CERT")):
        for words in (("ls", "/"), ("run", "/x", "true"), ("doctor",)):
            expect_message(125, text, *where, *options, *words,
                           env=environment(**variables))
    done = run(*where, "--cert", crt, "--key", encrypted, "--key-password-file",
               crt, "ls", "/")
    assert done.err.startswith(
        "latchkey: --key: %s: has no key that can be read: " % encrypted), done
    assert done.err.endswith("; --key-password-file must hold its password\n")
    facts = json.loads(run(*where, "--json", "--cacert", "/nowhere", "ls",
                           "/").err)
    assert (facts["event"], facts["code"], facts["reason"]) == (
        "failed", 125, "--cacert: cannot read /nowhere: No such file or "
        "directory"), facts


def wrong_usage_is_named():
    expect_message(125, 'ls: --tls-name: "" is not a name that a certificate can have' +
                   HELP_ADVICE % "ls", "ls", "--tls-name", "", "/")
    expect_message(125, "ls: --cacert needs an argument: FILE" + HELP_ADVICE % "ls", "ls", "/",
                   "--cacert")
    expect_message(125, "fence: unknown option --tls" + HELP_ADVICE % "fence", "fence", "f", "1",
                   "--tls")
    expect_message(125, 'servers "http://zk1:2181": only tls:// may come before the '
                   "servers; -z takes host:port,host:port/chroot", "-z",
                   "http://zk1:2181", "ls", "/")


# ---- connections that fail --------------------------------------------------------

REFUSED = "%s: TLS: the server's certificate is refused: "
NO_ISSUER = (REFUSED + "no trusted CA has issued it (unable to get local "
                       "issuer certificate); --cacert must name the CA that "
                       "signed it (and the server must send the intermediate "
                       "certificates)")


def failed_connection_names_cause_and_remedy():
    trust = ("--cacert", cert_file("ca.crt"))
    crl = ("--crl", cert_file("crl.pem"))
    for certificate, options, text in (
            ("server-wrong-address", trust,
             "%s: TLS: the server's certificate is for 127.254.254.254, not "
             "for 127.0.0.1; name the server in -z as its certificate does, "
             "or use --tls-name"),
            ("server-dns-address", trust,
             "%s: TLS: the server's certificate is for DNS:127.0.0.1, not "
             "for IP:127.0.0.1; name the server in -z as its certificate does, "
             "or use --tls-name"),
            ("server-cn", trust,
             "%s: TLS: the server's certificate has no subjectAltName, which "
             "must have 127.0.0.1; name the server in -z as its certificate "
             "does, or use --tls-name"),
            ("server", (*trust, "--tls-name", "zk.example"),
             "%s: TLS: the server's certificate is for localhost, "
             "zookeeper.test, 127.0.0.1, " + zk.tls_addresses[0].partition(
                 ":")[0] + ", not for zk.example; name the server in -z as "
                 "its certificate does, or use --tls-name"),
            ("server", (), NO_ISSUER),
            ("server-other-ca", trust, NO_ISSUER),
            ("server-self", trust, REFUSED + "no trusted CA has issued it "
             "(self-signed certificate); "
             "--cacert must name the CA that "
             "signed it (and the server must "
             "send the intermediate "
             "certificates)"),
            ("server-expired", trust, REFUSED + "certificate has expired; "
             "renew the certificate, or "
             "correct the clock of this "
             "machine"),
            ("server-early", trust, REFUSED + "certificate is not yet valid; "
             "check the clock of this "
             "machine"),
            ("server-revoked", (*trust, *crl), REFUSED + "certificate revoked; its CA "
             "has revoked it: the server "
             "needs another certificate"),
            ("server", (*trust, "--crl", cert_file("crl-expired.pem")), REFUSED +
             "CRL has expired; the file of --crl needs the current list of each "
             "CA in the chain"),
            ("server-chain", (*trust, *crl), REFUSED + "unable to get "
             "certificate CRL; the file of --crl needs the current list of each "
             "CA in the chain"),
            ("server-purpose", trust, REFUSED + "unsuitable certificate "
             "purpose; the server's log says more")):
        with tls_front(certificate) as front, \
                futures.ThreadPoolExecutor(2) as pool:
            address = front.partition("//")[2]
            list(pool.map(lambda words: expect_message_soon(
                text % address, "-z", front, *options, *SHORT_TIMEOUT, *words), (
                    ("ls", "/"), ("run", "/x", "true"))))


def chain_is_accepted_if_crl_has_the_list_of_each_ca():
    with tls_front("server-chain") as front:
        expect_listing("-z", front, "--cacert", cert_file("ca.crt"), "--crl",
                       cert_file("crl-chain.pem"))


def insecure_ignores_the_lists_of_revocations():
    with tls_front("server-revoked") as front:
        done = run("ls", "-z", front, "--insecure", "--crl", "/no/such/file", "/")
        assert done.code == 0, done


def failed_connection_is_a_json_event():
    with tls_front("server-wrong-address") as front:
        for words in (("ls", "/"), ("run", "/x", "true")):
            line = run("-z", front, "--json", "--cacert", cert_file("ca.crt"), *SHORT_TIMEOUT,
                       *words).err.splitlines()[-1]
            facts = json.loads(line)
            assert facts["event"] == "failed" and facts["code"] == 125, facts
            assert "is for 127.254.254.254, not for 127.0.0.1; name the " \
                "server" in facts["reason"], facts


def port_without_tls_is_reported():
    plain = zk.addresses[0]
    expect_message_soon("%s: TLS: the server closed the connection instead of "
                        "answering: is this a port without TLS?; connect to its "
                        "secureClientPort, or do not select TLS" % plain,
                        "-z", "tls://" + plain, *SHORT_TIMEOUT, "--cacert",
                        cert_file("ca.crt"), "ls", "/")


def missing_or_refused_client_certificate_is_named():
    """With TLS 1.3 the server refuses the certificate after the handshake."""
    trust = ("--cacert", cert_file("ca.crt"))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with tls_front("server", trust="ca", version=version) as front:
            expect_listing("-z", front, *trust, *identity("client"))
            done = run("-z", front, *trust, *SHORT_TIMEOUT, "ls", "/")
            assert done.code == 125, done
            assert "TLS: the server wants a client certificate: " in done.err
            assert "; --cert and --key give one" + DOCTOR_ADVICE in done.err, done
            done = run("-z", front, *trust, *identity("client-other-ca"), *SHORT_TIMEOUT, "ls",
                       "/")
            assert done.code == 125, done
            assert "TLS: the server does not accept the client's " \
                "certificate: " in done.err, done
            assert "; its trust store must hold the CA of --cert, which must " \
                "be current and for clients" + DOCTOR_ADVICE in done.err, done


# ---- a lock -----------------------------------------------------------------------

def run_holds_a_lock_over_tls():
    where = ("-z", zk.tls, "--cacert", cert_file("ca.crt"), *identity("client"))
    os.environ["LATCHKEY_ZK"] = zk.connect
    with start("run", *where, "/tls/lock", "--", "sh", "-c",
               "echo $LATCHKEY_FENCING_TOKEN; exec sleep 600") as holder:
        first_token = int(holder.stdout.readline())
        done = run(*where, "-n", "/tls/lock", "true")
        assert (done.code, done.err) == (
            124, "latchkey: /tls/lock: is held by another client; -w waits "
                 "for it\n")
        with start("run", *where, "/tls/lock", "sh", "-c",
                   "echo $LATCHKEY_FENCING_TOKEN; exit 7") as waiter:
            command.wait_until_queued("/tls/lock", 2)
            # The lock is the same at the plain port.
            assert run("-n", "-z", zk.connect, "/tls/lock", "true").code == 124
            assert len(command.queue("/tls/lock")[1]) == 1
            holder.terminate()
            done = waiter.finish()
            assert done.code == 7 and int(done.out) > first_token, done
        assert holder.finish().code == 128 + signal.SIGTERM


def watch_and_get_work_over_tls():
    differences.need("PERSISTENT_WATCHES")
    where = ("-z", zk.tls, "--cacert", cert_file("ca.crt"), *identity("client"))
    expect_exit(0, *where, "create", "/tls-nodes")
    with start(*where, "watch", "/tls-nodes", "-n", "1") as process:
        assert process.stdout.readline() == "watching /tls-nodes\n"
        expect_exit(0, *where, "create", "/tls-nodes/x", "data")
        assert process.finish().out == "children /tls-nodes\n"
    assert expect_exit(0, *where, "get", "/tls-nodes/x").out == "data"


def subject_of_the_client_is_an_identity():
    where = ("-z", zk.tls, "--cacert", cert_file("ca.crt"))
    expect_exit(0, *where, *identity("client"), "create", "/tls-own", "x", "--acl",
                "creator")
    assert "x509:CN=alice,O=latchkey:" in expect_exit(
        0, *where, *identity("client"), "acl", "/tls-own").out
    assert expect_exit(0, *where, *identity("client"), "get", "/tls-own").out == "x"
    for options in ((), identity("client-bob")):
        assert run(*where, *options, "get", "/tls-own").code == 125


def acl_creator_is_refused_by_a_server_that_ignores_client_certificates():
    with zkserver.Server("--tls", "--tls-client-auth", "none") as server:
        done = expect_exit(125, "-z", "tls://" + server.tls_addresses[0], "--cacert",
                           server.certificate("ca.crt"), "--cert",
                           server.certificate("client.crt"), "--key",
                           server.certificate("client.key"), "create", "/own", "--acl",
                           "creator")
    assert done.err.endswith("neither --auth-file nor --cert is given (a server "
                             "with ssl.clientAuth=none ignores --cert)\n"), done


# ---- the doctor -------------------------------------------------------------------

ADVICE = {
    "name": "name the server in -z as its certificate does, or use --tls-name",
    "issuer": "--cacert must name the CA that signed it (and the server must "
              "send the intermediate certificates)",
    "expired": "renew the certificate, or correct the clock of this machine",
    "early": "check the clock of this machine",
    "revoked": "its CA has revoked it: the server needs another certificate",
    "crl": "the file of --crl needs the current list of each CA in the chain",
    "wanted": "--cert and --key give one",
    "refused": "its trust store must hold the CA of --cert, which must be "
    "current and for clients",
    "plain": "connect to its secureClientPort, or do not select TLS",
    "tls": "select it with tls:// in front of the servers or --tls; --cacert "
    "names the CA",
    "silent": "the server hangs, or this is not its secureClientPort"}


def run_doctor(*words, code, **options):
    """Run the doctor; gives its findings from JSON without the clocks, since
    interruptions are common on a busy machine."""
    done = run("doctor", "--json", *words, **options)
    assert done.code == code, done
    (facts,) = done.json()
    return [f for f in facts["findings"] if f["layer"] != "clocks"]


def layers_and_verdicts(findings):
    return [(f["layer"], f["verdict"]) for f in findings]


def doctor_shows_the_tls_connection():
    where = ("-z", zk.tls, "--cacert", cert_file("ca.crt"))
    findings = run_doctor(*where, *identity("client"), code=0)
    assert layers_and_verdicts(findings) == [
        (layer, "ok") for layer in ("tls", "server", "certificate", "session",
         "round-trip", "access")], findings
    tls, _, client = findings[:3]
    assert tls["tls_version"] == "TLSv1.2" and "AES" in tls["cipher"], tls
    assert tls["verified"] is True and tls["server"] == zk.tls[6:], tls
    certificate = tls["certificate"]
    assert certificate["subject"] == "CN=server,O=latchkey", tls
    assert certificate["issuer"] == "CN=test CA,O=latchkey", tls
    assert certificate["names"].startswith("localhost, zookeeper.test, 127."), tls
    assert certificate["not_before"] == "2020-01-01T00:00:00.000Z", tls
    assert certificate["not_after"] == "2049-12-31T23:59:59.000Z", tls
    assert 5000 < certificate["days_left"] < 9000, tls
    assert tls["text"].endswith(
        ", issued by CN=test CA,O=latchkey, expires in %d days, on 2049-12-31" %
        certificate["days_left"]), tls
    assert client["certificate"]["subject"] == "CN=alice,O=latchkey", client
    assert "text" in client and "password" not in json.dumps(findings)
    # Without a client certificate there is no finding `certificate`.
    assert "certificate" not in dict(layers_and_verdicts(run_doctor(*where, code=0)))
    with tls_front("server", version=ssl.TLSVersion.TLSv1_3) as front:
        findings = run_doctor("-z", front, *where[2:], code=0)
        assert findings[0]["tls_version"] == "TLSv1.3", findings


def doctor_warns_of_certificates_that_expire_soon():
    """The certificates of the server and of the client expire in ten days."""
    soon = os.path.join(zk.dir, "tls", "soon")  # without .key, .csr and .crt
    ca_crt, ca_key = cert_file("ca.crt"), cert_file("ca.key")
    for words in (
            ("req", "-new", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=soon",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", soon + ".key",
             "-out", soon + ".csr"),
            ("x509", "-req", "-in", soon + ".csr", "-CA", ca_crt, "-CAkey", ca_key,
             "-set_serial", "4711", "-days", "10", "-copy_extensions", "copy",
             "-out", soon + ".crt")):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    with tls_front("soon") as front:
        findings = run_doctor("-z", front, "--cacert", ca_crt, *identity("soon"), code=0)
        assert layers_and_verdicts(findings)[:3] == [
            ("tls", "note"), ("server", "ok"), ("certificate", "note")], findings
        for one in (findings[0], findings[2]):
            assert one["certificate"]["days_left"] in (9, 10), one
            assert one["advice"] == "renew the certificate", one


def doctor_reports_an_expired_client_certificate():
    client = run_doctor("-z", zk.tls, "--cacert", cert_file("ca.crt"),
                        *identity("client-expired"), code=1)[-1]
    assert (client["layer"], client["verdict"]) == ("certificate", "broken"), client
    assert client["text"].endswith("expired on 2021-01-01"), client


def doctor_names_the_fault_of_a_certificate():
    trust = ("--cacert", cert_file("ca.crt"))
    crl = ("--crl", cert_file("crl.pem"))
    issued = " (it is issued by CN=test CA,O=latchkey)"
    for certificate, options, text, advice in (
            ("server-wrong-address", trust,
             "the server's certificate is for 127.254.254.254, not for 127.0.0.1",
             "name"),
            ("server-dns-address", trust,
             "the server's certificate is for DNS:127.0.0.1, not for IP:127.0.0.1",
             "name"),
            ("server", (*trust, "--tls-name", "zk.example"),
             "the server's certificate is for localhost, zookeeper.test, "
             "127.0.0.1, %s, not for zk.example" %
             zk.tls_addresses[0].partition(":")[0], "name"),
            ("server", ("--cacert", cert_file("other-ca.crt")), "the server's certificate is "
             "refused: no trusted CA "
             "has issued it (unable to get "
             "local issuer certificate)" + issued, "issuer"),
            ("server-expired", trust, "the server's certificate is refused: "
             "certificate has expired "
             "(expired on 2021-01-01)", "expired"),
            ("server-early", trust, "the server's certificate is refused: "
             "certificate is not yet valid (not "
             "valid before 2050-01-01)",
             "early"),
            ("server-revoked", (*trust, *crl), "the server's certificate is "
             "refused: certificate "
             "revoked" + issued, "revoked"),
            ("server", (*trust, "--crl", cert_file("crl-expired.pem")), "the server's certificate is "
             "refused: CRL has expired" + issued, "crl")):
        with tls_front(certificate) as front:
            address = front.partition("//")[2]
            (one,) = run_doctor("-z", front, *options, code=1)
            assert (one["layer"], one["verdict"]) == ("tls", "broken"), one
            assert one["advice"] == ADVICE[advice], one
            assert one["text"] == address + ": " + text, one
            assert one["tls_version"] == "TLSv1.2", one
            assert one["certificate"]["subject"].endswith("O=latchkey"), one
            line = expect_exit(1, "doctor", "-z", front, *options).out.splitlines()[0]
            assert line.startswith("broken  tls          " + address), line
            assert line.endswith("; " + ADVICE[advice]), line


def doctor_names_a_missing_or_refused_client_certificate():
    trust = ("--cacert", cert_file("ca.crt"))
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with tls_front("server", trust="ca", version=version) as front:
            (one,) = run_doctor("-z", front, *trust, code=1)
            assert (one["layer"], one["advice"]) == ("tls", ADVICE["wanted"]), one
            assert "wants a client certificate: " in one["text"], one
            one, client = run_doctor("-z", front, *trust, *identity("client-other-ca"),
                                     code=1)
            assert (one["layer"], one["advice"]) == (
                "tls", ADVICE["refused"]), one
            assert client["certificate"]["issuer"] == "CN=other CA,O=latchkey"
            assert layers_and_verdicts(run_doctor("-z", front, *trust, *identity("client"),
                                     code=0))[0] == ("tls", "ok")


def doctor_finds_out_whether_the_port_expects_tls():
    plain, secure = zk.addresses[0], zk.tls_addresses[0]
    trust = ("--cacert", cert_file("ca.crt"))
    (one,) = run_doctor("-z", "tls://" + plain, *trust, code=1)
    assert one["layer"] == "tls" and one["advice"] == ADVICE["plain"], one
    assert one["text"] == "%s: %s does not use TLS: it is a plain TCP port" % (
        plain, plain), one
    # One of these two ports requires a client certificate.
    with tls_front("server-other-ca", trust="ca") as front:
        for address in (secure, front.partition("//")[2]):
            (one,) = run_doctor("-z", address, code=1)
            assert (one["layer"], one["advice"]) == ("tls", ADVICE["tls"]), one
            assert one["text"] == "%s: %s expects TLS, which is not selected" % (
                address, address), one


def doctor_reports_a_port_that_does_not_reply():
    trust = ("--cacert", cert_file("ca.crt"))
    with socket.create_server(("127.0.0.1", 0)) as server_socket:
        silent = "127.0.0.1:%d" % server_socket.getsockname()[1]
        (one,) = run_doctor("-z", "tls://" + silent, *trust, "--connect-timeout",
                            "1.5", code=1)
        assert (one["layer"], one["advice"]) == ("tls", ADVICE["silent"]), one
        assert one["text"] == "%s: %s accepts connections, but does not " \
            "complete a TLS handshake" % (silent, silent), one
        (one,) = run_doctor("-z", silent, "--connect-timeout", "1.5", code=1)
        assert one["layer"] == "answer", one
    (one,) = run_doctor("-z", "tls://127.0.0.1:1", *trust, code=1)
    assert (one["layer"], one["verdict"]) == ("port", "broken"), one


def doctor_reports_an_unverified_certificate():
    with tls_front("server-self") as front:
        one = run_doctor("-z", front, "--insecure", code=0)[0]
        assert (one["layer"], one["verdict"]) == ("tls", "note"), one
        assert one["verified"] is False, one
        assert "certificate not verified, for localhost" in one["text"], one


with zkserver.Server("--tls", "--tls-client-auth", "want", "--config",
                     "authProvider.x509=org.apache.zookeeper.server.auth."
                     "X509AuthenticationProvider") as zk:
    zk.tls = "tls://" + zk.tls_addresses[0]
    live.run(live.together(
        each_option_and_tls_before_servers_select_tls,
        variables_configure_tls_and_do_not_select_it,
        option_wins_over_its_variable,
        empty_variable_counts_as_unset,
        insecure_prints_a_warning_each_time,
        insecure_accepts_any_certificate),
        live.together(
        version_lists_tls_as_a_feature,
        system_without_cas_is_an_error_unless_other_cas_are_named,
        wrong_file_is_named_before_connecting,
        wrong_usage_is_named,
        insecure_ignores_the_lists_of_revocations,
        failed_connection_is_a_json_event,
        port_without_tls_is_reported,
        missing_or_refused_client_certificate_is_named),
        live.together(
        failed_connection_names_cause_and_remedy,
        chain_is_accepted_if_crl_has_the_list_of_each_ca,
        doctor_shows_the_tls_connection,
        doctor_warns_of_certificates_that_expire_soon,
        doctor_reports_an_expired_client_certificate,
        doctor_names_the_fault_of_a_certificate,
        doctor_names_a_missing_or_refused_client_certificate,
        doctor_finds_out_whether_the_port_expects_tls,
        doctor_reports_a_port_that_does_not_reply,
        doctor_reports_an_unverified_certificate),
        run_holds_a_lock_over_tls,
        watch_and_get_work_over_tls,
        subject_of_the_client_is_an_identity,
        acl_creator_is_refused_by_a_server_that_ignores_client_certificates)
