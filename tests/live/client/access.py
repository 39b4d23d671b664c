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
from command import expect_exit, run
import live

FOLDER = tempfile.TemporaryDirectory()


def file(name, text):
    path = os.path.join(FOLDER.name, name)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
              "w") as out:
        out.write(text)
    return path


JAAS = file("jaas.conf", """Server {
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
zk = command.serve("--sasl", JAAS, *(
    ("--tls", "--tls-client-auth", "want", "--config",
     "authProvider.x509=org.apache.zookeeper.server.auth."
     "X509AuthenticationProvider") if "tls" in FEATURES else ()))

BOB = file("bob.auth", "sasl:bob:secret\n")
EVE = file("eve.auth", "sasl:eve:other\n")
WRONG_PASSWORD = file("wrong.auth", "sasl:bob:wrong\n")
# ZooKeeper 3.8.0 accepts an unknown user with the password of the previous user,
# and mixes up concurrent SASL exchanges (ZOOKEEPER-4839). Therefore these tests
# run one after the other.
WRONG_USER = file("nobody.auth", "sasl:nobody:else\n")
DIGEST = file("digest.auth", "digest:bob:secret\n")
OTHER_DIGEST = file("other.auth", "digest:bob:wrong\n")
BOTH = file("both.auth", "# two\nsasl:bob:secret\ndigest:bob:secret\n")

# Each client: its name, its options, and the nodes whose access lists admit it;
# None: the server refuses its credentials.
PLAIN = ("-z", zk.connect)
CLIENTS = [
    ("nobody", PLAIN, {"open"}),
    ("digest", PLAIN + ("--auth-file", DIGEST), {"open", "digest"}),
    ("digest, another password", PLAIN + ("--auth-file", OTHER_DIGEST),
     {"open"}),
    ("sasl", PLAIN + ("--auth-file", BOB), {"open", "sasl"}),
    ("sasl, another user", PLAIN + ("--auth-file", EVE), {"open"}),
    ("sasl and digest", PLAIN + ("--auth-file", BOTH),
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
if "tls" in FEATURES:
    TLS = ("-z", "tls://" + zk.tls_addresses[0], "--cacert",
           zk.certificate("ca.crt"))
    ALICE, OTHER = (TLS + ("--cert", zk.certificate(name + ".crt"),
                           "--key", zk.certificate(name + ".key"))
                    for name in ("client", "client-bob"))
    CLIENTS += [
        ("nobody, TLS", TLS, {"open"}),
        ("digest, TLS", TLS + ("--auth-file", DIGEST), {"open", "digest"}),
        ("sasl, TLS", TLS + ("--auth-file", BOB), {"open", "sasl"}),
        ("sasl, a wrong password, TLS", TLS + ("--auth-file", WRONG_PASSWORD),
         None),
        ("x509", ALICE, {"open", "x509"}),
        ("x509, another subject", OTHER, {"open"}),
        ("x509, sasl and digest", ALICE + ("--auth-file", BOTH),
         {"open", "x509", "digest", "sasl"}),
        ("x509, but a wrong password of sasl",
         ALICE + ("--auth-file", WRONG_PASSWORD), None),
    ]
    NODES["x509"] = ALICE + ("--acl", "creator")
REFUSED = "SASL DIGEST-MD5: the server refuses user or password"


def attempt(words, path):
    """What this client may do with the node: [read, set, create a child]."""
    return [run(verb, *words, *operands).code == 0
            for verb, *operands in (("get", path), ("set", path, "second"),
                                    ("create", "-s", path + "/child-"))]


def clients_have_the_permissions_of_the_access_lists():
    for name, words in NODES.items():
        expect_exit(0, "create", *words, "/" + name, "first")
    for client, words, admitted in CLIENTS:
        if admitted is None:
            done = expect_exit(125, "get", *words, "/open")
            assert REFUSED in done.err, (client, done)
            continue
        for name in NODES:
            expected = [name in admitted] * 3
            assert attempt(words, "/" + name) == expected, (client, name)
    if "tls" not in FEATURES:
        print("not tested: ports with TLS, as this latchkey has none")


def delete_permission_is_that_of_the_parent():
    """ZooKeeper checks the permission DELETE in the access list of the
    parent."""
    mine = ("create", "--auth-file", DIGEST, "--acl", "creator")
    expect_exit(0, "create", "/open-parent")
    expect_exit(0, *mine, "/open-parent/x")
    expect_exit(125, "get", "/open-parent/x")
    expect_exit(0, "delete", "/open-parent/x")
    expect_exit(0, *mine, "/my-parent")
    expect_exit(0, *mine, "/my-parent/x")
    expect_exit(125, "delete", "/my-parent/x")


def x509_ids_are_compared_literally():
    if "tls" not in FEATURES:
        raise live.NotTested("this latchkey has no TLS")
    for number, (subject, code) in enumerate((
            ("CN=alice,O=latchkey", 0), ("O=latchkey,CN=alice", 125),
            ("CN=alice, O=latchkey", 125))):
        path = "/letters-%d" % number
        expect_exit(0, "create", *ALICE, "--acl", "x509:%s:cdrwa" % subject, path)
        expect_exit(code, "get", *ALICE, path)


def refused_client_does_not_retry():
    """With -w the command could wait, but no later attempt would succeed."""
    done = expect_exit(125, "run", "--auth-file", WRONG_PASSWORD, "-w", "20",
                       "/lock", "true")
    assert done.err.count("\n") == 1 and REFUSED in done.err, done
    assert "--auth-file" in done.err, done


def password_may_be_any_utf8_text():
    auth = file("ann.auth", "sasl:ann:contrase\u00f1a\n")
    expect_exit(0, "ls", "--auth-file", auth, "/")


def doctor_names_the_step_of_sasl():
    def finding(*words, code):
        done = run("doctor", "--json", *words)
        assert done.code == code, done
        (facts,) = done.json()
        (one,) = [f for f in facts["findings"] if f["layer"] == "auth"]
        return one

    assert "SASL DIGEST-MD5 has succeeded" in finding(
        "--auth-file", BOB, code=0)["text"]
    one = finding("--auth-file", WRONG_PASSWORD, code=1)
    assert one["verdict"] == "broken" and REFUSED in one["text"], one
    assert "--auth-file" in one["advice"], one


def server_without_sasl_is_reported():
    with command.zkserver.Server() as other:
        done = expect_exit(125, "ls", "-z", other.connect, "--auth-file", BOB, "/")
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
    for words in ((), ("--auth-file", EVE)):
        done = run("run", *words, "-w", "5", queue + "/lock", "true")
        assert done.code == 125 and "access list" in done.err, done


def sasl_is_repeated_at_another_server():
    """The holder authenticates again after each reconnect."""
    with command.zkserver.Server("--sasl", JAAS, "--config",
                                 "sessionRequireClientSASLAuth=true",
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
    with command.zkserver.Server("--sasl", JAAS, "--config",
                                 "sessionRequireClientSASLAuth=true") as other:
        where = ("-z", other.connect)
        for words in ((), ("--auth-file", DIGEST)):
            done = expect_exit(125, "ls", *where, *words, "/")
            assert "requires authentication" in done.err, done
        assert "zookeeper" in expect_exit(
            0, "ls", *where, "--auth-file", BOB, "/").out
        done = expect_exit(125, "ls", *where, "--auth-file", WRONG_PASSWORD, "/")
        assert REFUSED in done.err, done
        done = run("doctor", "--json", *where)
        assert done.code == 1 and "requires auth" in done.out, done
        assert run("doctor", *where, "--auth-file", BOB).code == 0


live.run(
    clients_have_the_permissions_of_the_access_lists,
    delete_permission_is_that_of_the_parent,
    x509_ids_are_compared_literally,
    refused_client_does_not_retry,
    password_may_be_any_utf8_text,
    doctor_names_the_step_of_sasl,
    lock_nodes_have_sasl_access_lists,
    server_without_sasl_is_reported,
    server_that_requires_sasl_refuses_other_clients,
    sasl_is_repeated_at_another_server)
