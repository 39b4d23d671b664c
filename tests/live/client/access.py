# SPDX-License-Identifier: Apache-2.0
"""Permissions of clients with identities of each scheme, on plain and TLS
ports. Every client of CLIENTS tries to read and to change every node of
NODES."""

import os
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/../support")

import command
import differences
from command import expect_exit, run
import live
import zkserver

FOLDER = tempfile.TemporaryDirectory()


def write_file(name, text):
    """Write a file that only its owner can read; gives its path."""
    path = os.path.join(FOLDER.name, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
              "w") as out:
        out.write(text)
    return path


JAAS = write_file("jaas.conf", """Server {
  org.apache.zookeeper.server.auth.DigestLoginModule required
    user_bob="secret"
    user_eve="other"
    user_ann="contrase\u00f1a";
};
""")

FEATURES = run("--version").out.split()
if "sasl" not in FEATURES:
    print("skipped: this latchkey was built without SASL")
    raise SystemExit(77)
HAS_TLS = "tls" in FEATURES
TLS_SERVER_OPTIONS = (
    "--tls", "--tls-client-auth", "want", "--config",
    "authProvider.x509=org.apache.zookeeper.server.auth."
    "X509AuthenticationProvider")
SASL = ("--sasl", JAAS)
if differences.has("FIPS_REFUSES_DIGEST_MD5"):
    SASL += ("--property", "zookeeper.fips-mode=false")
zk = command.serve(*SASL, *(TLS_SERVER_OPTIONS if HAS_TLS else ()))

FAILED = 125  # the exit code of the command for an error of its own

BOB = write_file("bob.auth", "sasl:bob:secret\n")
EVE = write_file("eve.auth", "sasl:eve:other\n")
WRONG_PASSWORD = write_file("wrong.auth", "sasl:bob:wrong\n")
# ZooKeeper 3.8.0 accepts an unknown user with the password of the previous user,
# and mixes up concurrent SASL exchanges (ZOOKEEPER-4839). Therefore these tests
# run one after the other.
WRONG_USER = write_file("nobody.auth", "sasl:nobody:else\n")
DIGEST = write_file("digest.auth", "digest:bob:secret\n")
WRONG_DIGEST = write_file("other.auth", "digest:bob:wrong\n")
SASL_AND_DIGEST = write_file(
    "both.auth", "# two\nsasl:bob:secret\ndigest:bob:secret\n")

# Each client: its name, its options, and the nodes whose access lists admit it;
# None: the server refuses its credentials.
PLAIN = ("-z", zk.connect)
CLIENTS = [
    ("nobody", PLAIN, {"open"}),
    ("digest", PLAIN + ("--auth-file", DIGEST), {"open", "digest"}),
    ("digest, another password", PLAIN + ("--auth-file", WRONG_DIGEST),
     {"open"}),
    ("sasl", PLAIN + ("--auth-file", BOB), {"open", "sasl"}),
    ("sasl, another user", PLAIN + ("--auth-file", EVE), {"open"}),
    ("sasl and digest", PLAIN + ("--auth-file", SASL_AND_DIGEST),
     {"open", "digest", "sasl"}),
    ("sasl, a wrong password", PLAIN + ("--auth-file", WRONG_PASSWORD), None),
    ("sasl, an unknown user", PLAIN + ("--auth-file", WRONG_USER), None),
]
# Each node, and the options with which a client creates it. The access list
# admits this client.
NODES = {
    "open": PLAIN + ("--acl", "open"),
    "digest": PLAIN + ("--auth-file", DIGEST, "--acl", "creator"),
    "sasl": PLAIN + ("--auth-file", BOB, "--acl", "sasl:bob:cdrwa"),
}
if HAS_TLS:
    TLS = ("-z", "tls://" + zk.tls_addresses[0], "--cacert",
           zk.certificate("ca.crt"))

    def with_certificate(name):
        return TLS + ("--cert", zk.certificate(name + ".crt"),
                      "--key", zk.certificate(name + ".key"))

    ALICE = with_certificate("client")  # its subject is CN=alice,O=latchkey
    OTHER_SUBJECT = with_certificate("client-bob")
    CLIENTS += [
        ("nobody, TLS", TLS, {"open"}),
        ("digest, TLS", TLS + ("--auth-file", DIGEST), {"open", "digest"}),
        ("sasl, TLS", TLS + ("--auth-file", BOB), {"open", "sasl"}),
        ("sasl, a wrong password, TLS", TLS + ("--auth-file", WRONG_PASSWORD),
         None),
        ("x509", ALICE, {"open", "x509"}),
        ("x509, another subject", OTHER_SUBJECT, {"open"}),
        ("x509, sasl and digest", ALICE + ("--auth-file", SASL_AND_DIGEST),
         {"open", "x509", "digest", "sasl"}),
        ("x509 and sasl with a wrong password",
         ALICE + ("--auth-file", WRONG_PASSWORD), None),
    ]
    NODES["x509"] = ALICE + ("--acl", "creator")
REFUSED_MESSAGE = "SASL DIGEST-MD5: the server refuses user or password"


def permissions_of(options, path):
    """Whether a client with these options may do this with the node: [read it,
    change it, create a child]."""
    return [run(verb, *options, *operands).code == 0
            for verb, *operands in (("get", path), ("set", path, "second"),
                                    ("create", "-s", path + "/child-"))]


def clients_have_the_permissions_of_the_access_lists():
    for name, options in NODES.items():
        expect_exit(0, "create", *options, "/" + name, "first")
    for client, options, admitting_nodes in CLIENTS:
        if admitting_nodes is None:
            done = expect_exit(FAILED, "get", *options, "/open")
            assert REFUSED_MESSAGE in done.err, (client, done)
            continue
        for name in NODES:
            is_admitted = name in admitting_nodes
            assert permissions_of(options, "/" + name) == [is_admitted] * 3, (
                client, name)
    if not HAS_TLS:
        print("not tested: ports with TLS, as this latchkey has none")


def delete_permission_is_that_of_the_parent():
    """ZooKeeper checks the permission DELETE in the access list of the
    parent."""
    create_own = ("create", "--auth-file", DIGEST, "--acl", "creator")
    expect_exit(0, "create", "/open-parent")
    expect_exit(0, *create_own, "/open-parent/x")
    expect_exit(FAILED, "get", "/open-parent/x")
    expect_exit(0, "delete", "/open-parent/x")
    expect_exit(0, *create_own, "/own-parent")
    expect_exit(0, *create_own, "/own-parent/x")
    expect_exit(FAILED, "delete", "/own-parent/x")


def x509_ids_are_compared_literally():
    if not HAS_TLS:
        raise live.NotTested("this latchkey has no TLS")
    for path, subject, code in (
            ("/as-in-certificate", "CN=alice,O=latchkey", 0),
            ("/other-order", "O=latchkey,CN=alice", FAILED),
            ("/with-space", "CN=alice, O=latchkey", FAILED)):
        expect_exit(0, "create", *ALICE, "--acl", "x509:%s:cdrwa" % subject, path)
        expect_exit(code, "get", *ALICE, path)


def refused_client_does_not_retry():
    """The command fails at once, although -w allows it to wait, since no later
    attempt would succeed."""
    done = expect_exit(FAILED, "run", "--auth-file", WRONG_PASSWORD, "-w", "20",
                       "/lock", "true")
    assert done.err.count("\n") == 1 and REFUSED_MESSAGE in done.err, done
    assert "--auth-file" in done.err, done


def password_may_be_any_utf8_text():
    auth = write_file("ann.auth", "sasl:ann:contrase\u00f1a\n")
    expect_exit(0, "ls", "--auth-file", auth, "/")


def doctor_reports_whether_sasl_succeeds():
    def auth_finding(*options, code):
        done = run("doctor", "--json", *options)
        assert done.code == code, done
        (facts,) = done.json()
        (finding,) = [f for f in facts["findings"] if f["layer"] == "auth"]
        return finding

    success = auth_finding("--auth-file", BOB, code=0)
    assert "SASL DIGEST-MD5 has succeeded" in success["text"], success
    refusal = auth_finding("--auth-file", WRONG_PASSWORD, code=1)
    assert refusal["verdict"] == "broken", refusal
    assert REFUSED_MESSAGE in refusal["text"], refusal
    assert "--auth-file" in refusal["advice"], refusal


def refusal_of_the_mechanism_is_not_about_the_password():
    differences.need("FIPS_REFUSES_DIGEST_MD5")
    with zkserver.Server("--sasl", JAAS) as other:
        where = ("-z", other.connect, "--auth-file", BOB)
        advice = "zookeeper.fips-mode=false on the servers permits DIGEST-MD5"
        done = expect_exit(FAILED, "ls", *where, "/")
        assert done.err.startswith(
            "latchkey: SASL DIGEST-MD5: the server refuses the mechanism, as in "
            "FIPS mode; " + advice), done
        done = run("doctor", *where)
        assert done.code == 1 and advice in done.out, done


def server_without_sasl_is_reported():
    with zkserver.Server() as other:
        done = expect_exit(FAILED, "ls", "-z", other.connect, "--auth-file",
                           BOB, "/")
        assert "the server does not support SASL" in done.err, done


def lock_nodes_have_sasl_access_lists():
    """--acl creator gives the contender node the SASL id, as with Curator."""
    queue = "/queue-of-bob"
    expect_exit(0, "create", "--auth-file", BOB, "--acl", "sasl:bob:cdrwa", queue)
    done = expect_exit(0, "run", "--auth-file", BOB, "--acl", "creator",
                       queue + "/lock", "--", "sh", "-c",
                       "echo $LATCHKEY_FENCING_TOKEN; "
                       + command.PROGRAM + " acl --auth-file " + BOB
                       + " $LATCHKEY_NODE")
    token, acl = done.out.splitlines()[:2]
    assert int(token) > 0 and "sasl:bob:cdrwa" in acl, done
    for options in ((), ("--auth-file", EVE)):
        done = run("run", *options, "-w", "5", queue + "/lock", "true")
        assert done.code == FAILED and "access list" in done.err, done


def holder_authenticates_again_after_each_reconnect():
    with zkserver.Server(*SASL, "--config", "sessionRequireClientSASLAuth=true",
                         servers=3) as ensemble:
        expect_exit(0, "create", "-z", ensemble.connect, "--auth-file", BOB,
                    "--acl", "sasl:bob:cdrwa", "/mine")
        with command.start("run", "-v", "-z", ensemble.connect, "--auth-file",
                           BOB, "--acl", "creator", "/mine/lock", "--", "sh",
                           "-c", "echo held; read line; exit 7",
                           stdin=subprocess.PIPE) as holder:
            assert holder.stdout.readline() == "held\n"
            for n in (1, 2, 3):
                ensemble.restart(n)
                ensemble.wait()
            out, err = holder.communicate("go\n", command.SECONDS)
            assert holder.returncode == 7, (out, err)
            assert err.count("authenticated by SASL DIGEST-MD5") >= 2, err


def server_that_requires_sasl_refuses_other_clients():
    with zkserver.Server(*SASL, "--config",
                         "sessionRequireClientSASLAuth=true") as other:
        where = ("-z", other.connect)
        for options in ((), ("--auth-file", DIGEST)):
            done = expect_exit(FAILED, "ls", *where, *options, "/")
            assert "requires authentication" in done.err, done
        assert "zookeeper" in expect_exit(
            0, "ls", *where, "--auth-file", BOB, "/").out
        done = expect_exit(FAILED, "ls", *where, "--auth-file", WRONG_PASSWORD,
                           "/")
        assert REFUSED_MESSAGE in done.err, done
        done = run("doctor", "--json", *where)
        assert done.code == 1 and "requires auth" in done.out, done
        assert run("doctor", *where, "--auth-file", BOB).code == 0


live.run(
    clients_have_the_permissions_of_the_access_lists,
    delete_permission_is_that_of_the_parent,
    x509_ids_are_compared_literally,
    refused_client_does_not_retry,
    password_may_be_any_utf8_text,
    doctor_reports_whether_sasl_succeeds,
    lock_nodes_have_sasl_access_lists,
    refusal_of_the_mechanism_is_not_about_the_password,
    server_without_sasl_is_reported,
    server_that_requires_sasl_refuses_other_clients,
    holder_authenticates_again_after_each_reconnect)
