# SPDX-License-Identifier: Apache-2.0
"""The error messages of latchkey: each message in full, with its exit code."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import tempfile
import threading

sys.path.append(sys.path[0] + "/../support")

import command
import differences
from command import expect_exit, run
import live
import relay

zk = command.serve()
CLOSED = "127.0.0.1:1"  # a port on which nothing listens
HELP_ADVICE = "; latchkey %s --help shows the usage"


def expect_message(code, text, *words, **options):
    """Run the command, and check its exit code and that it prints this message
    and nothing else."""
    done = run(*words, **options)
    assert (done.code, done.out, done.err) == (
        code, "", "latchkey: " + text + "\n"), (words, done)


def expect_usage_error(text, *words):
    """Check that the verb words[0] reports this usage error."""
    expect_message(125, words[0] + ": " + text + HELP_ADVICE % words[0], *words)


# ---- options ---------------------------------------------------------------------

def options_may_follow_operands():
    expect_exit(0, "create", "/behind", "x", "--acl", "world:anyone:crwd")
    assert expect_exit(0, "acl", "/behind").out == "world:anyone:cdrw\n"
    with command.start("create", "/behind/e", "-e") as process:
        process.stdout.readline()
        facts = expect_exit(0, "stat", "/behind/e", "--json").json()[0]
        assert facts["ephemeral_owner"] != "0x0", facts
        assert facts["data_length"] == 0, facts
        process.terminate()
    expect_exit(0, "set", "/behind", "-V", "0", "y")
    expect_exit(0, "set", "-V", "1", "/behind", "z", "-v")
    assert expect_exit(0, "get", "/behind", "--json").json()[0]["data"] == "z"
    # POSIXLY_CORRECT has no influence.
    expect_exit(0, "ls", "/", "-z", zk.connect,
                env=dict(os.environ, LATCHKEY_ZK=CLOSED, POSIXLY_CORRECT="1"))
    assert expect_exit(0, "status", "/behind/lock", "--json").json()


def words_after_two_dashes_are_data():
    expect_exit(0, "create", "--", "/dashes", "-e")
    assert expect_exit(0, "get", "/dashes").out == "-e"
    expect_exit(0, "set", "/dashes", "--", "--json")
    assert expect_exit(0, "get", "--", "/dashes").out == "--json"
    expect_exit(0, "set", "-v", "--", "/dashes", "-")
    assert expect_exit(0, "get", "/dashes").out == ""


def options_may_precede_the_verb():
    env = dict(os.environ, LATCHKEY_ZK=CLOSED)
    for options in (("-z", zk.connect), ("--zk=" + zk.connect, "--json"),
                    ("-T", "10", "-v", "-z", zk.connect)):
        assert "zookeeper" in expect_exit(0, *options, "ls", "/", env=env).out
    assert expect_exit(0, "--json", "ls", "-z", zk.connect, "/",
                       env=env).json()[0]["path"] == "/"
    for verb in ((), ("run",)):
        done = expect_exit(0, "-n", "-z", zk.connect, "-E", "7", *verb, "/before",
                           "echo", "-n", "x", env=env)
        assert done.out == "x", done
        assert expect_exit(0, "-z", zk.connect, *verb, "-n", "/before", "echo", "ls",
                           env=env).out == "ls\n"
    assert "usage: latchkey ls " in expect_exit(0, "-h", "ls").out
    # The last -z takes effect.
    expect_exit(0, "-z", CLOSED, "ls", "-z", zk.connect, "/")


def unknown_options_are_refused():
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "delete", "watch", "doctor"):
        expect_usage_error("unknown option -Q", verb, "/x", "-Q")
        expect_usage_error("unknown option --quite", verb, "--quite", "/x")
        expect_message(125, verb + ": unknown option -n in front of the verb" +
                       HELP_ADVICE % verb, "-n", verb, "/x")
    for verb in ("create", "set"):
        expect_usage_error("unknown option -q (put -- before data that begins with -)",
                           verb, "/x", "-q")
    expect_usage_error("unknown option -Q", "acl", "/x", "-Q")
    expect_usage_error("unknown option -Q", "run", "-Q", "/x", "true")
    expect_usage_error("unknown option -\u00e9", "ls", "-\u00e9", "/x")
    expect_usage_error("unknown option --\\x1b[31m", "ls", "--\x1b[31m", "/x")
    expect_usage_error("options must stand before the path (put -- before a COMMAND that "
                       "begins with -)",
                       "run", "/x", "-n", "true")


# ---- usage -----------------------------------------------------------------------

def operands_are_counted():
    expect_message(125, "no arguments are given; latchkey --help lists the commands")
    expect_message(125, '"list" is neither a verb nor a path that begins with "/"; '
                   "latchkey --help lists the verbs", "list", "/")
    expect_message(125, '"true" is neither a verb nor a path that begins with "/" (/l is '
                   "the argument of --on); latchkey --help lists the verbs", "--on", "/l",
                   "true")
    for verb in ("status", "wait", "revoke", "run"):
        expect_usage_error("LOCK is missing", verb)
    for verb in ("ls", "tree", "get", "stat", "create", "set", "delete",
                 "watch", "acl"):
        expect_usage_error("PATH is missing", verb)
    expect_usage_error("DATA is missing, or - for standard input", "set", "/x")
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "delete", "doctor"):
        expect_usage_error("too many operands", verb, "/x", "/y")
    for verb in ("create", "set", "acl"):
        expect_usage_error("too many operands", verb, "/x", "y", "z")


def set_needs_data():
    expect_exit(0, "create", "/kept", "data")
    expect_usage_error("DATA is missing, or - for standard input", "set", "/kept")
    assert expect_exit(0, "get", "/kept").out == "data"
    expect_exit(0, "set", "/kept", "-", input="piped")
    assert expect_exit(0, "get", "/kept").out == "piped"
    expect_exit(0, "set", "/kept", "")
    assert expect_exit(0, "get", "/kept").out == ""


def paths_are_checked_before_connecting():
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "create", "delete", "watch", "acl", "doctor"):
        for path, rule in (
                ("x", 'must begin with "/"'),
                ("/x/", 'must not end with "/"'),
                ("/x//y", 'must not contain "//"'),
                ("/x/../y", 'must not have "." or ".." between slashes'),
                ("/.", 'must not have "." or ".." between slashes')):
            expect_message(125, '%s: path "%s" %s' % (verb, path, rule), verb, path,
                           "-z", CLOSED)
        expect_message(125, verb + ': path "/x\\x0a" holds bytes that ZooKeeper refuses: '
                       "a path is UTF-8 without control characters, and without "
                       "characters from U+D800 to U+F8FF or above U+FFEF", verb, "/x\n")
    expect_message(125, 'set: path "x" must begin with "/"', "set", "x", "y")
    expect_message(125, 'run: path "x" must begin with "/"', "run", "x", "true")
    # A sequential name may consist of its number.
    expect_exit(0, "create", "/sequential")
    assert expect_exit(0, "create", "-s", "/sequential/").out == \
        "/sequential/0000000000\n"
    expect_message(125, 'create: path "/sequential//" must not contain "//"', "create", "-s",
                   "/sequential//")


# ---- connections -----------------------------------------------------------------

DOCTOR_ADVICE = "; latchkey doctor tells more"
LIKELY_CAUSES_OF_SILENCE = "; the host is down, the server hangs, or a firewall drops packets"
VERBS = ("status", "wait", "revoke", "ls", "tree", "get", "stat", "create",
         "delete", "watch", "acl", "set", "run")


def line_with(verb, path, *options):
    """A command line with this verb, options and path, and with the operands
    that the verb needs behind the path."""
    operands = {"set": ("data",), "run": ("true",)}.get(verb, ())
    return (verb, *options, path, *operands)


SHORT_TIMEOUT = ("--connect-timeout", "0.9")


@contextlib.contextmanager
def listener(serve):
    """The address of a fake server, which calls serve(connection) for each
    connection."""
    with socket.create_server(("127.0.0.1", 0)) as server_socket:
        def accept():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server_socket.accept()
                    with connection:
                        serve(connection)
        threading.Thread(target=accept, daemon=True).start()
        yield "127.0.0.1:%d" % server_socket.getsockname()[1]
        server_socket.shutdown(socket.SHUT_RDWR)


# What a command prints if the machine is too busy for its timeout.
TOO_LATE = re.compile("no reply within|no connection in time")


def expect_message_soon(text, *words):
    """As expect_message(), but run the command up to ten times as long as it
    says that a reply was late: on a busy machine a connection attempt does not
    always end within the timeout."""
    wanted = "latchkey: " + text + "\n"
    for _ in range(10):
        done = run(*words)
        if done.err == wanted or not TOO_LATE.search(done.err):
            break
    assert (done.code, done.out, done.err) == (125, "", wanted), (words, done)


def hang_up(connection):
    connection.recv(100)


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, relay.LINGER_RESET)


def every_verb_reports_why_it_cannot_connect():
    for verb in VERBS:
        expect_message_soon("cannot connect to %s: Connection refused; nothing listens "
                            "there: start ZooKeeper, or correct -z%s" %
                            (CLOSED, DOCTOR_ADVICE),
                            "-z", CLOSED, *line_with(verb, "/x", *SHORT_TIMEOUT))


def connect_failures_name_the_likely_cause():
    with socket.create_server(("127.0.0.1", 0)) as server_socket, \
            listener(hang_up) as closer, listener(reset) as resetter, \
            listener(lambda connection: connection.sendall(b"HTTP/1.1 400 no\r\n\r\n")) \
            as web:
        silent = "127.0.0.1:%d" % server_socket.getsockname()[1]
        for verb in ("ls", "run"):
            for servers, text in (
                    (silent, "%s: no reply within 0.9 s%s" % (silent, LIKELY_CAUSES_OF_SILENCE)),
                    (closer, closer + ": the server closed the connection "
                     "without a reply; it has no quorum, or has "
                     "reached maxClientCnxns, or expects "
                     "TLS (--tls)"),
                    (resetter, resetter + ": the server closed the connection "
                     "without a reply; it has no quorum, or has "
                     "reached maxClientCnxns, or expects "
                     "TLS (--tls)"),
                    (web, web + ": malformed reply to the connect request; that "
                     "is not the client port of a ZooKeeper server, or it "
                     "expects TLS (--tls)")):
                expect_message_soon("cannot connect to " + text + DOCTOR_ADVICE, "-z",
                                    servers, *line_with(verb, "/x", *SHORT_TIMEOUT))
            expect_message_soon("cannot connect to any server: %s: Connection refused, "
                                "%s: the server closed the connection without a reply; "
                                "probably there is no quorum: start a majority of the "
                                "servers%s" %
                                (CLOSED, closer, DOCTOR_ADVICE), "-z", CLOSED + "," + closer,
                                *line_with(verb, "/x", *SHORT_TIMEOUT))


def connect_failures_name_the_host_and_its_address():
    for verb in ("ls", "run"):
        for servers, pattern in (
                ("localhost:1", r"localhost:1 at (127\.0\.0\.1|\[::1\]):1: "
                 "Connection refused; nothing"),
                ("no-such-host.invalid", r"no-such-host\.invalid:2181: "
                 "(no reply within|the name cannot be resolved:)")):
            done = expect_exit(125, "-z", servers,
                               *line_with(verb, "/x", *SHORT_TIMEOUT))
            assert re.match("latchkey: cannot connect to " + pattern +
                            " .*latchkey doctor", done.err), done


def wrong_connect_strings_are_quoted():
    for servers, text in (
            ("", "no host is named"),
            (" , /x", "no host is named"),
            ("a:0", "a port is a number from 1 to 65535"),
            ("a,:1", "a host name is missing"),
            ("::1", "an IPv6 address needs brackets, as in [::1]:2181"),
            ("[::1", "a bracket is not closed, as in [::1]:2181"),
            ("a/b/", "what follows the first / must be a valid path (the "
             "chroot)")):
        for verb in (*VERBS, "doctor"):
            prefix = "doctor: " if verb == "doctor" else ""
            expect_message(125, prefix + 'servers "%s": %s; -z takes '
                           "host:port,host:port/chroot" % (servers, text),
                           "-z", servers, *line_with(verb, "/x", *SHORT_TIMEOUT))


def unusable_tls_files_are_named():
    """The files are read before connecting. See also cli_tls.py."""
    text = "cannot read /nowhere: No such file or directory"
    if "tls" in run("--version").out.split():
        option, variable = "--cacert: " + text, "LATCHKEY_TLS_CACERT: " + text
    else:
        option = variable = ("this build of latchkey has no TLS: it was built "
                             "without OpenSSL")
    for verb in (*VERBS, "doctor"):
        expect_message(125, option, "--cacert", "/nowhere", "-z", CLOSED,
                       *line_with(verb, "/x"))
    expect_message(125, variable, "-z", "tls://" + CLOSED, "ls", "/",
                   env=dict(os.environ, LATCHKEY_TLS_CACERT="/nowhere"))
    expect_usage_error("unknown option --tls", "fence", "--tls", "f", "1")


def connection_attempts_are_reported_after_a_second():
    text = ("no session yet: %s: Connection refused; trying for another 0.5 s"
            % CLOSED)
    options = ("-z", CLOSED, "--connect-timeout", "1.5")
    for words in (("ls", "/"), ("run", "/x", "true")):
        done = run(*options, *words)
        assert done.code == 125, done
        notice, _ = done.err.splitlines()
        assert notice == "latchkey: " + text, done
    # With -q, only the final error is reported.
    assert len(run(*options, "run", "-q", "/x", "true").err.splitlines()) == 1
    notice, failed = [json.loads(line) for line in
                      run("--json", *options, "ls", "/").err.splitlines()]
    assert (notice["event"], failed["event"]) == ("notice", "failed")
    assert notice["reason"] == text, notice


def missing_chroot_is_named():
    text = ("the chroot /no/root does not exist; latchkey create -p -z " +
            zk.connect + " /no/root creates it")
    where = ("-z", zk.connect + "/no/root")
    for verb in VERBS:
        if verb == "watch":
            continue  # see below
        prefix = "/x: " if verb == "run" else verb + ": "
        expect_message(125, prefix + text, *where, *line_with(verb, "/x"))
    if differences.has("PERSISTENT_WATCHES"):
        with command.start("watch", *where, "/") as process:
            assert process.stdout.readline() == "watching /\n"
            process.terminate()
            assert process.finish().err == "latchkey: warning: " + text + "\n"
    expect_message(125, "create: " + text, "create", *where, "-p", "/x/y")
    expect_exit(0, *re.search("create .*(?= creates it)", text)[0].split())
    assert expect_exit(0, "ls", *where, "/").out == ""


def lost_connection_is_named():
    with relay.Relay(zk.connect) as proxy, command.start(
            "run", "-z", proxy.address, "/lost", "sleep", "600") as process:
        command.wait_until_held("/lost")
        time.sleep(0.3)  # a request under way would cause a reset
        proxy.drop()
        lines = [process.stderr.readline() for _ in range(2)]
        assert lines == [
            "latchkey: connection to %s lost: the server closed the connection; "
            "reconnecting\n" % proxy.address,
            "latchkey: reconnected\n"], lines
        process.terminate()


def refused_identities_are_named():
    with tempfile.TemporaryDirectory() as folder:
        def auth_file_option(name, text):
            path = os.path.join(folder, name)
            with open(path, "w") as out:
                out.write(text)
            os.chmod(path, 0o600)
            return ("--auth-file", path)

        wrong_scheme = auth_file_option("scheme", "no-such-scheme:x\n")
        wrong_line = auth_file_option("line", "digest:me:secret\ndigest\n")
        refused = ("the server refuses the credentials; check the lines of "
                   "--auth-file" + DOCTOR_ADVICE)
        expect_message(125, "ls /: " + refused, "ls", *wrong_scheme, "/")
        expect_message(125, "set /: " + refused, "set", *wrong_scheme, "/", "x")
        expect_message(125, "/x: " + refused, "run", *wrong_scheme, "/x", "true")
        expect_message(125, "watch /x: " + refused, "watch", *wrong_scheme, "/x")
        # The server refuses the identity while the command checks the chroot.
        expect_message(125, "watch /x: " + refused, "watch", *wrong_scheme, "-z",
                       zk.connect + "/none", "/x")
        for words in (("ls", "/"), ("run", "/x", "true")):
            expect_message(125, "--auth-file: a line of %s is not scheme:credentials, "
                           "such as digest:user:password" % wrong_line[1],
                           *wrong_line, *words)
            expect_message(125, "--auth-file: cannot read %s: Is a directory" % folder,
                           "--auth-file", folder, *words)
            expect_message(125, "--auth-file: cannot read /nowhere: No such file or "
                           "directory", "--auth-file", "/nowhere", *words)


def servers_without_quorum_are_named():
    with command.zkserver.Server(servers=3) as ensemble:
        a, b, c = ensemble.addresses
        ensemble.kill(2)
        ensemble.kill(3)
        text = (
            "latchkey: cannot connect to any server: %s: the server "
            "closed the connection without a reply, %s: Connection refused, %s: Connection "
            "refused; probably there is no quorum: start a majority of the "
            "servers%s\n"
            % (a, b, c, DOCTOR_ADVICE))
        # The remaining server replies until it notices that it has no quorum.
        live.eventually(lambda: run(
            "ls", "--connect-timeout", "1", "-z", ensemble.connect,
            "/").err == text)


# ---- nodes -----------------------------------------------------------------------

IDENTITY_ADVICE = ("; --auth-file or --cert gives an identity that the access list "
          "names")


def missing_nodes_are_named():
    for verb in ("ls", "tree", "get", "stat", "delete", "acl"):
        expect_message(1, verb + " /none: no such node", verb, "/none")
    expect_message(1, "ls /none: no such node", "ls", "-R", "/none")
    expect_message(1, "set /none: no such node", "set", "/none", "x")
    expect_message(1, "acl /none: no such node", "acl", "/none", "open")
    expect_message(1, "delete /none: no such node", "delete", "-r", "/none")
    for options in ((), ("-s",), ("-e",), ("-c",), ("-t", "60000")):
        expect_message(1, "create /none/x: the parent does not exist; -p creates "
                          "missing parents", "create", *options, "/none/x")


def wrong_states_of_nodes_are_named():
    expect_exit(0, "create", "-p", "/state/child")
    for options in ((), ("-p",), ("-c",)):
        expect_message(1, "create /state: the node exists already", "create", *options,
                       "/state")
    expect_message(1, "delete /state: the node has children; delete its children "
                      "first, or use -r", "delete", "/state")
    version = "the node has another version; latchkey stat shows its version"
    expect_message(1, "set /state: " + version, "set", "-V", "7", "/state", "x")
    expect_message(1, "delete /state/child: " + version, "delete", "-V", "7",
                   "/state/child")
    expect_message(125, "delete: -V and -r exclude each other; give one of them",
                   "delete", "-r", "-V", "7", "/state")
    for path in ("/", "/zookeeper", "/zookeeper/quota"):
        for options in ((), ("-r",)):
            expect_message(125, "delete %s: the root and ZooKeeper's own nodes cannot be "
                           "deleted" % path, "delete", *options, path)
    with command.start("create", "-e", "/state/e") as process:
        process.stdout.readline()
        expect_message(1, "create /state/e/x: an ephemeral node cannot have children; "
                       "choose a path that is not below an ephemeral node", "create",
                       "/state/e/x")
        process.terminate()
    expect_message(125, "set /state: the request is larger than --max-request allows; "
                   "jute.maxbuffer of the servers limits it, too (both are 1 MiB by "
                   "default)", "set", "/state", "-", input="x" * 1100000)


def contradictory_kinds_of_nodes_are_named():
    for first, second in (("-c", "-e"), ("-c", "-s"), ("-t", "-e"), ("-t", "-c")):
        options = [first, "5", second] if first == "-t" else [first, second]
        expect_message(125, "create: %s and %s exclude each other; latchkey create "
                            "--help explains them" % (first, second),
                       "create", *options, "/kind")
    expect_message(1, "stat /kind: no such node", "stat", "/kind")


def denied_permissions_are_named():
    not_allowed = "not allowed by the node's access list" + IDENTITY_ADVICE
    parent = "not allowed by the access list of the parent" + IDENTITY_ADVICE
    expect_exit(0, "create", "/shut")
    expect_exit(0, "create", "/shut/x")
    expect_exit(0, "create", "/open")
    expect_exit(0, "create", "--acl", "world:anyone:c", "/open/none")
    expect_exit(0, "acl", "/shut", "world:anyone:a")
    for verb in ("ls", "tree", "get"):
        expect_message(125, "%s /shut: %s" % (verb, not_allowed), verb, "/shut")
    expect_message(125, "set /shut: " + not_allowed, "set", "/shut", "x")
    expect_message(125, "create /shut/y: " + parent, "create", "/shut/y")
    expect_message(125, "delete /shut/x: " + parent, "delete", "/shut/x")
    expect_message(125, "acl /open/none: " + not_allowed, "acl", "/open/none")
    expect_message(125, "acl /open/none: " + not_allowed, "acl", "/open/none", "open")
    for verb in ("status", "wait", "revoke"):
        expect_message(125, "%s /shut: %s" % (verb, not_allowed), verb, "/shut")
    denied = (": its access list, or that of a parent node, does not permit "
              "READ, CREATE and DELETE" + IDENTITY_ADVICE)
    # For /shut/lock it is the parent's list that denies the request.
    for lock in ("/shut", "/shut/lock"):
        expect_message(125, lock + denied, "run", lock, "true")
    for words in (("ls", "-R", "/open"), ("tree", "/open")):
        done = run(*words)
        assert done.code == 125 and done.err == (
            "latchkey: %s /open: 1 node not read: %s\n" %
            (words[0], not_allowed)), done


def refused_access_lists_are_named():
    refused = ("the server refuses the access list: it does not know a scheme "
               "or an id in it, or the list is creator (auth) and neither "
               "--auth-file nor --cert is given (a server with "
               "ssl.clientAuth=none ignores --cert)")
    for spec in ("creator", "world:bob:r", "no-such-scheme:bob:r", "ip:bob:r"):
        expect_message(125, "acl /zookeeper: " + refused, "acl", "/zookeeper", spec)
        expect_message(125, "create /refused: " + refused, "create", "/refused", "--acl",
                       spec)
        expect_message(125, "/refused-lock: " + refused, "run", "--acl", spec,
                       "/refused-lock", "true")


def wrong_arguments_of_options_are_named():
    for text, *command_line in (
            ('--count: "0" is not a number of events, 1 or more', "watch", "-n",
             "0", "/x"),
            ('--ttl: "0" is not a number of milliseconds from 1 to '
             "1099511627775", "create", "-t", "0", "/x"),
            ('--node-version: "x" is not a version (0 and up; -1 is any)',
             "set", "-V", "x", "/x", "y"),
            ('--node-version: "-2" is not a version (0 and up; -1 is any)',
             "delete", "-V", "-2", "/x"),
            ('--session-timeout: "0" must be more than 0', "ls", "-T", "0",
             "/x"),
            ('--session-timeout: "x" is not a number of seconds, such as 10 or '
             "0.5", "ls", "-T", "x", "/x"),
            ('--session-timeout: "9999999999" is too long (24 days at most)', "ls", "-T", "9999999999", "/x"),
            ('--connect-timeout: "0" must be more than 0', "ls",
             "--connect-timeout", "0", "/x"),
            ('--max-request: "64" is out of range', "ls", "--max-request", "64", "/x"),
            ('--max-request: "65M" is out of range', "ls", "--max-request", "65M", "/x"),
            ('--max-reply: "2G" is out of range', "ls", "--max-reply", "2G", "/x"),
            ('--max-reply: "99999999999999999999" is out of range', "ls", "--max-reply",
             "99999999999999999999", "/x"),
            ('--max-reply: "16MB" is not a number of bytes, such as 65536 or 16M', "ls",
             "--max-reply", "16MB", "/x"),
            ('--wait: "-1" is not a number of seconds, such as 10 or 0.5',
             "wait", "-w", "-1", "/x"),
            ("--zk needs an argument: CONNECT", "ls", "/x", "-z"),
            ("--json takes no argument", "ls", "/x", "--json=yes"),
            ('--layout: "native:\\x1b" has bytes that ZooKeeper refuses: a prefix is UTF-8 '
             "without control characters, and without characters from U+D800 to U+F8FF "
             "or above U+FFEF", "run", "--layout", "native:\x1b", "/x",
             "true"),
            ('--layout: "x" is none of curator, kazoo, native[:PREFIX], '
             "native-uuid[:PREFIX], latch, single", "status", "--layout", "x", "/x")):
        expect_usage_error(text, *command_line)


def closed_input_is_named():
    """An empty file is no error."""
    expect_exit(0, "create", "/input", "data")
    for verb, path in (("set", "/input"), ("create", "/input2")):
        done = run("-c", 'exec "$@" - <&-', "sh", command.PROGRAM, verb, path,
                   program="sh")
        assert (done.code, done.err) == (
            125, "latchkey: cannot read standard input: Bad file descriptor\n"), done
    assert expect_exit(0, "get", "/input").out == "data"
    expect_exit(0, "set", "/input", "-", input="")
    assert expect_exit(0, "get", "/input").out == ""


def unwritable_output_is_named():
    expect_exit(0, "create", "/full", "data")
    expect_exit(0, "create", "/full/child")
    for verb in ("ls", "get", "stat", "tree", "acl", "status", "doctor"):
        with open("/dev/full", "w") as full:
            done = run(verb, "/full", stdout=full)
        assert (done.code, done.err) == (
            125, "latchkey: cannot write to standard output: No space left on "
            "device\n"), (verb, done)


# ---- run -------------------------------------------------------------------------

def usage_errors_of_run_are_named():
    for text, *arguments in (
            ("COMMAND is missing", "/x"),
            ("COMMAND is missing", "/x", "--"),
            ('the path must be below "/"', "/", "true"),
            ("-c after the path takes one STRING, and nothing may follow it", "/x", "-c"),
            ("-c after the path takes one STRING, and nothing may follow it", "/x", "-c", "a", "b"),
            ("-c STRING is the whole command: nothing may follow the path", "-c",
             "a", "/x", "b"),
            ('--lock: "/" is not a path below "/", with or without x: '
             "or s: before it", "-l", "/", "/x", "true"),
            ('--lock: "y" is not a path below "/", with or without x: '
             "or s: before it", "-l", "y", "/x", "true"),
            ('--permits: "0" is not a number of permits from 1 to 1000000',
             "-p", "0", "/x", "true"),
            ('--take: "0" is not a number of permits from 1 to 1000', "--take",
             "0", "/x", "true"),
            ("--take needs -p", "--take", "1", "/x", "true"),
            ("a path is given with two sides (-s, -x, s:, x: or none); give it "
             "once", "-l", "s:/x", "/x", "true"),
            ("--take asks for more permits than -p has", "-p", "1", "--take",
             "2", "/x", "true"),
            ("-p excludes -s, -x and -l", "-p", "1", "-s", "/x", "true"),
            ("-p needs --layout curator or kazoo", "-p", "1",
             "--layout", "native", "/x", "true"),
            ("-s and -x exclude a prefix of --layout: their names are r- and "
             "w-", "-s", "--layout", "native:a-", "/x", "true"),
            ("--max-hold and --on-lost ignore exclude each other",
             "--max-hold", "1", "--on-lost", "ignore", "/x", "true"),
            ("--min-hold is longer than --max-hold", "--max-hold", "1",
             "--min-hold", "2", "/x", "true"),
            ('--on-lost: "cry" is none of term, kill, stop, ignore',
             "--on-lost", "cry", "/x", "true"),
            ('--assurance: "hope" is none of quorum, sync, ping',
             "--assurance", "hope", "/x", "true"),
            ('--conflict-exit-code: "256" is not an exit code from 0 to 255',
             "-E", "256", "/x", "true"),
            ('--kill-after: "0" must be more than 0 (--on-lost kill kills at '
             "once)", "--kill-after", "0", "/x", "true"),
            ('--max-hold: "0" must be more than 0', "--max-hold", "0", "/x",
             "true"),
            ('--events-fd: "99" is not an open descriptor (in a shell: 3>FILE '
             "opens number 3)", "--events-fd", "99", "/x", "true")):
        expect_usage_error(text, "run", *arguments)
    with open("/dev/null") as null:
        expect_message(125, 'run: --events-fd: "0" is a descriptor that cannot be written '
                       "to" + HELP_ADVICE % "run", "run", "--events-fd", "0", "/x", "true",
                       stdin=null)


def failures_of_run_are_named():
    with command.start("run", "/busy", "sleep", "600") as process:
        command.wait_until_held("/busy")
        expect_message(124, "/busy: is held by another client; -w waits for it", "run", "-n",
                       "/busy", "true")
        expect_message(124, "/busy: is still held by another client", "run", "-w", "3",
                       "/busy", "true")
        process.terminate()
    expect_message(125, "--kill-after must be less than half the session timeout, "
                        "which is 10.000 s; -T requests another", "run", "-T", "10", "--kill-after",
                   "5", "/x", "true")
    expect_message(127, "cannot run /nowhere: No such file or directory; check the name "
                   "and PATH", "run", "/x", "/nowhere")
    expect_message(127, "cannot run no\\x1b\\x0asuch: No such file or directory; "
                   "check the name and PATH", "run", "/x", "no\x1b\nsuch")
    expect_message(126, "cannot run /" + 511 * "x" + "...: File name too long",
                   "run", "/x", "/" + 3000 * "x")
    expect_message(126, "cannot run /etc: Permission denied; it must be an executable "
                        "file", "run", "/x", "/etc")


# ---- locks, fence ----------------------------------------------------------------

def revoke_of_a_free_lock_is_named():
    expect_message(1, "revoke /nobody: the lock is free: no such node", "revoke",
                   "/nobody")
    expect_exit(0, "create", "/nobody")
    expect_message(1, "revoke /nobody: the lock is free", "revoke", "/nobody")


def reserved_lock_paths_are_named():
    expect_message(125, "run: cannot use /zookeeper/x: /zookeeper is reserved for "
                        "ZooKeeper; choose another path", "run", "/zookeeper/x", "true")


def errors_of_fence_are_named():
    expect_usage_error("FILE is missing", "fence")
    expect_usage_error("TOKEN is missing", "fence", "f")
    expect_usage_error("too many operands", "fence", "f", "1", "2")
    expect_usage_error("unknown option -Q", "fence", "f", "1", "-Q")
    for token in ("0", "x", "-1", "18446744073709551616"):
        expect_message(125, 'fence: TOKEN "%s" is not a decimal number from 1 to 2^64-1; '
                       "COMMAND of latchkey run has it in LATCHKEY_FENCING_TOKEN" % token,
                       "fence", "--", "f", token)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        expect_exit(0, "fence", path, "7")
        expect_message(1, "fence: %s: token 6 is refused: token 7 was seen, so the "
                          "lock has passed to another holder" % path, "fence", path, "6")
        expect_message(125, "fence: %s: cannot open it: Is a directory" % folder, "fence",
                       folder, "6")


# ---- errors of servers -------------------------------------------------------------

CREATE_TTL = 21  # the opcode

def writes_in_doubt_are_named():
    """A create with a TTL is in doubt: the node does not name the session that
    created it."""
    with relay.Relay(zk.connect) as proxy:
        proxy.at_frame("cut", op=CREATE_TTL)
        expect_message(125, "create /ttl: connection lost: the write may or may not have "
                            "been executed; read the node, and try again if it is not done" +
                       DOCTOR_ADVICE, "create", "-t", "60000", "-z", proxy.address, "/ttl")


def missing_replies_are_named():
    with relay.Relay(zk.connect) as proxy:
        proxy.at_frame("freeze", op=relay.GET)
        expect_message(125, "get /: the servers did not reply in time; try again" +
                       DOCTOR_ADVICE, "get", "-T", "2", "-z", proxy.address, "/")


def unsupported_nodes_and_quotas_are_named():
    differences.need("QUOTAS_ENFORCED")
    with command.zkserver.Server(
            "--property", "zookeeper.extendedTypesEnabled=false",
            "--property", "zookeeper.enforceQuota=true") as server:
        where = ("-z", server.connect)
        expect_message(125, "create /ttl: the server is too old; ZooKeeper 3.5.9 or "
                       "newer is needed, and for -t also "
                       "zookeeper.extendedTypesEnabled=true",
                       "create", *where, "-t", "5", "/ttl")
        expect_exit(0, "create", *where, "/q")
        expect_exit(0, "create", *where, "-p", "/zookeeper/quota/q/zookeeper_limits",
                    "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3")
        expect_exit(0, "create", *where, "/zookeeper/quota/q/zookeeper_stats",
                    "count=0,bytes=0")
        # The server counts nodes asynchronously.
        live.eventually(lambda: run("create", *where, "-s", "/q/x-").code != 0)
        expect_message(125, "create /q/x: quota exceeded; delete nodes there, or raise "
                       "the quota", "create", *where, "/q/x")


def larger_requests_and_replies_need_an_option():
    """And a server that accepts them; the default limits are in the library's
    tests."""
    request = ("the request is larger than --max-request allows; jute.maxbuffer of the "
               "servers limits it, too (both are 1 MiB by default)")
    reply = "the reply is larger than --max-reply allows; raise it (16M by default)"
    small_reply = dict(os.environ, LATCHKEY_MAX_REPLY="1K")
    expect_exit(0, "create", "/many")
    for i in range(12):
        expect_exit(0, "create", "/many/%0100d" % i)
    for verb in ("ls", "tree", "status", "members"):
        expect_message(125, "%s /many: %s" % (verb, reply), verb, "--max-reply", "1023K",
                       "--max-reply", "1K", "/many")
        expect_message(125, "%s /many: %s" % (verb, reply), verb, "/many",
                       env=small_reply)
    done = run("run", "--max-reply", "1K", "/many", "true")
    assert done.code == 125 and "/many: %s\n" % reply in done.err, done
    expect_exit(0, "ls", "--max-reply", "16M", "/many", env=small_reply)
    expect_message(125, 'LATCHKEY_MAX_REPLY: "1k" is not a number of bytes, such as '
                   "65536 or 16M", "ls", "/", env=dict(os.environ, LATCHKEY_MAX_REPLY="1k"))
    with command.zkserver.Server("--property", "jute.maxbuffer=4194304") as server:
        for data in ("x" * 2000000, "x" * 3000000):
            done = run("create", "-z", server.connect, "/%d" % len(data), "-", input=data)
            assert done.err == "latchkey: create /%d: %s\n" % (len(data), request), done
            expect_exit(0, "create", "-z", server.connect, "/%d" % len(data), "-",
                        input=data, env=dict(os.environ, LATCHKEY_MAX_REQUEST="4M"))
            expect_exit(0, "set", "-z", server.connect, "--max-request", "4194304",
                        "/%d" % len(data), "-", input=data)
            done = expect_exit(0, "get", "-z", server.connect, "/%d" % len(data))
            assert done.out == data


def writes_without_a_reply_are_in_doubt():
    """The replies to the writes are dropped, and those to their repetitions."""
    text = ("%s %s: the servers did not reply in time: the write may or may not have "
            "been executed; read the node, and try again if it is not done; latchkey "
            "doctor tells more")
    expect_exit(0, "create", "/doubt", "data")
    for words in (("set", "/doubt", "x"), ("create", "/doubt2"), ("delete", "/doubt")):
        with relay.Relay(zk.connect) as proxy:
            opcode = {"set": relay.SET, "create": relay.CREATE2,
                      "delete": relay.DELETE}[words[0]]
            proxy.at_frame(proxy.freeze, up=relay.DOWN, op=opcode)
            expect_message(125, text % words[:2], words[0], "-T", "1", "-z",
                           proxy.address, *words[1:])


def refused_tree_is_explained():
    done = run("delete", "-r", "/zookeeper/none")
    assert done.code == 125, done
    expect_exit(0, "create", "-p", "/tree/closed/sub")
    expect_exit(0, "acl", "/tree/closed", "world:anyone:ra")
    expect_message(125, "delete /tree: /tree/closed/sub: not allowed by its access list "
                   "or by that of its parent; --auth-file or --cert gives an identity "
                   "that the access list names", "delete", "-r", "/tree")


def parents_of_a_chroot_are_not_created_by_p():
    expect_message(1, "create: /: the chroot /no/such does not exist; latchkey create -p "
                   "-z %s /no/such creates it" % zk.connect, "create", "-p", "-z",
                   zk.connect + "/no/such", "/")
    expect_exit(0, "create", "-p", "/no/such")


def names_of_files_are_printable():
    expect_message(125, "--auth-file: cannot read /no?[1m: No such file or directory",
                   "ls", "--auth-file", "/no\x1b[1m", "/")


def servers_that_require_identities_are_named():
    differences.need("SCHEMES_ENFORCED")
    with command.zkserver.Server(
            "--property", "zookeeper.enforce.auth.enabled=true",
            "--property", "zookeeper.enforce.auth.schemes=digest") as server:
        where = ("-z", server.connect)
        text = ("the server requires authentication; --auth-file or "
                "--cert gives an identity" + DOCTOR_ADVICE)
        expect_message(125, "ls /: " + text, "ls", *where, "/")
        expect_message(125, "/x: " + text, "run", *where, "/x", "true")


def local_sessions_are_named():
    with command.zkserver.Server(
            "--config", "localSessionsEnabled=true",
            "--config", "localSessionsUpgradingEnabled=false",
            servers=3) as ensemble:
        expect_message(125, "create /e: ephemeral node on a local session; zoo.cfg needs "
                       "localSessionsUpgradingEnabled=true", "create", "-e", "-z",
                       ensemble.connect, "/e")


# ---- access lists ----------------------------------------------------------------

def access_lists_are_checked():
    letters = (' is none of open, creator, scheme:id:perms with perms from the '
               'letters cdrwa')
    digest = (': "digest:bob:..." is not base64 of the SHA-1 of '
              "user:password, so no client could use the node; put "
              "digest:USER:PASSWORD into a file for --auth-file, and use "
              "creator")
    expect_exit(0, "create", "/acl")
    for wrong, text in (("world:anyone:x", ': "world:anyone:x"' + letters),
                        ("me", ': "me"' + letters),
                        ("digest:bob:secret:cdrwa", digest)):
        expect_message(125, "create: --acl" + text, "create", "/acl/x", "--acl", wrong)
        expect_message(125, "acl: SPEC" + text, "acl", "/acl", wrong)
        expect_message(125, "--acl" + text, "run", "--acl", wrong, "/acl/l", "true")
    assert expect_exit(0, "acl", "/acl").out == "world:anyone:cdrwa\n"
    assert expect_exit(0, "ls", "/acl").out == ""


def error_before_the_supervisor_starts_is_not_sent_to_descriptor_0():
    """latchkey has no supervisor yet when it reports this error. If it took
    descriptor 0 for the supervisor's socket, bytes would arrive at the other
    end."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            expect_exit(125, "run", "--acl", "me", "/acl/l", "true", stdin=theirs)
        assert ours.recv(1) == b""  # the end of the stream


# ---- --json ----------------------------------------------------------------------

def with_json_errors_are_objects():
    def expect_failure(code, reason, *words, lock=None):
        done = run(*words)
        (line,) = done.err.splitlines()
        facts = json.loads(line)
        assert facts.pop("time").endswith("Z"), facts
        wanted = {"event": "failed", "reason": reason, "code": code}
        if lock is not None:
            wanted["lock"] = lock
        assert (done.code, done.out, facts) == (code, "", wanted), done

    expect_failure(125, "ls: unknown option -Q" + HELP_ADVICE % "ls", "ls", "-Q", "/", "--json")
    expect_failure(125, "ls: unknown option -n in front of the verb" + HELP_ADVICE % "ls",
           "--json", "-n", "ls", "/")
    expect_failure(125, "run: unknown option -Q" + HELP_ADVICE % "run", "run", "-Q", "--json",
           "/x", "true")
    expect_failure(125, '"list" is neither a verb nor a path that begins with "/"; '
           "latchkey --help lists the verbs", "list", "--json")
    expect_failure(125, "get: PATH is missing" + HELP_ADVICE % "get", "--json", "get")
    expect_failure(1, "get /none: no such node", "get", "/none", "--json")
    expect_failure(1, "set /none: no such node", "set", "/none", "x", "--json")
    expect_failure(1, "delete /none: no such node", "delete", "/none", "--json")
    expect_failure(125, 'run: path "x" must begin with "/"', "run", "--json", "x", "y")
    expect_failure(125, "run: COMMAND is missing" + HELP_ADVICE % "run",
           "run", "--json", "/x", lock="/x")
    for words in (("ls", "/x"), ("doctor", "/x"), ("status", "/x"),
                  ("wait", "/x"), ("revoke", "/x"), ("set", "/x", "data")):
        done = run(*words, "--json", "-z", "host:0")
        assert done.code == 125 and done.out == "", done
        (line,) = done.err.splitlines()
        facts = json.loads(line)
        assert "port" in facts["reason"] and facts["code"] == 125, facts


def events_report_why_a_run_failed_to_start():
    """The failure is an event on the descriptor for events, and a line on
    standard error."""
    done = subprocess.run(
        [command.PROGRAM, "run", "--json", "--events-fd", "1", "-z", "host:0",
         "/x", "true"], capture_output=True, text=True)
    facts = json.loads(done.stdout)
    assert done.returncode == 125 and facts["event"] == "failed", done
    assert facts["lock"] == "/x" and facts["code"] == 125, done
    assert done.stderr == "latchkey: " + facts["reason"] + "\n", done


def with_json_warnings_and_notices_are_objects():
    name = "auth-%d" % os.getpid()
    with open(name, "w") as file:
        file.write("digest:me:secret\n")
    os.chmod(name, 0o644)  # others can read the password: a warning
    try:
        done = expect_exit(0, "ls", "--json", "--auth-file", name, "/")
        (line,) = [json.loads(line) for line in done.err.splitlines()]
        assert line["event"] == "warning" and name in line["reason"], line
        done = expect_exit(0, "ls", "--json", "-v", "/")
        lines = [json.loads(line) for line in done.err.splitlines()]
        assert {line["event"] for line in lines} == {"notice"}, lines
    finally:
        os.unlink(name)


live.run(live.together(
    options_may_follow_operands,
    words_after_two_dashes_are_data,
    options_may_precede_the_verb,
    unknown_options_are_refused,
    operands_are_counted,
    set_needs_data,
    paths_are_checked_before_connecting,
    every_verb_reports_why_it_cannot_connect,
    connect_failures_name_the_likely_cause,
    connect_failures_name_the_host_and_its_address,
    wrong_connect_strings_are_quoted,
    unusable_tls_files_are_named,
    connection_attempts_are_reported_after_a_second,
    missing_chroot_is_named,
    lost_connection_is_named,
    refused_identities_are_named,
    missing_nodes_are_named,
    wrong_states_of_nodes_are_named,
    contradictory_kinds_of_nodes_are_named,
    denied_permissions_are_named,
    refused_access_lists_are_named,
    wrong_arguments_of_options_are_named,
    closed_input_is_named,
    unwritable_output_is_named,
    usage_errors_of_run_are_named,
    failures_of_run_are_named,
    revoke_of_a_free_lock_is_named,
    reserved_lock_paths_are_named,
    errors_of_fence_are_named,
    writes_in_doubt_are_named,
    writes_without_a_reply_are_in_doubt,
    refused_tree_is_explained,
    parents_of_a_chroot_are_not_created_by_p,
    names_of_files_are_printable,
    missing_replies_are_named,
    access_lists_are_checked,
    error_before_the_supervisor_starts_is_not_sent_to_descriptor_0,
    with_json_errors_are_objects,
    events_report_why_a_run_failed_to_start,
    with_json_warnings_and_notices_are_objects),
    servers_without_quorum_are_named,
    unsupported_nodes_and_quotas_are_named,
    larger_requests_and_replies_need_an_option,
    servers_that_require_identities_are_named,
    local_sessions_are_named)
