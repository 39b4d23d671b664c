# SPDX-License-Identifier: Apache-2.0
"""What the verbs of latchkey print when something is wrong: each message once,
whole, with its exit code."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run
import live
import relay

zk = command.serve()
HELP = "; latchkey %s --help shows the usage"


def says(code, text, *words, **options):
    """It ends with this code, and this is all that it prints."""
    done = run(*words, **options)
    assert (done.code, done.out, done.err) == (
        code, "", "latchkey: " + text + "\n"), (words, done)


def usage(text, *words):
    """The same with a usage error of the verb words[0]."""
    says(125, words[0] + ": " + text + HELP % words[0], *words)


# ---- options ---------------------------------------------------------------------

def options_may_stand_behind_operands():
    """They were taken for data: a persistent node that held "-e"."""
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
    # The order of options and operands is no matter of the environment.
    expect_exit(0, "ls", "/", "-z", zk.connect,
                env=dict(os.environ, LATCHKEY_ZK="127.0.0.1:1", POSIXLY_CORRECT="1"))
    assert expect_exit(0, "status", "/behind/lock", "--json").json()


def what_follows_two_dashes_is_data():
    expect_exit(0, "create", "--", "/dashes", "-e")
    assert expect_exit(0, "get", "/dashes").out == "-e"
    expect_exit(0, "set", "/dashes", "--", "--json")
    assert expect_exit(0, "get", "--", "/dashes").out == "--json"
    expect_exit(0, "set", "-v", "--", "/dashes", "-")
    assert expect_exit(0, "get", "/dashes").out == ""


def options_may_stand_before_the_verb():
    other = dict(os.environ, LATCHKEY_ZK="127.0.0.1:1")
    for before in (("-z", zk.connect), ("--zk=" + zk.connect, "--json"),
                   ("-T", "10", "-v", "-z", zk.connect)):
        assert "zookeeper" in expect_exit(0, *before, "ls", "/", env=other).out
    assert expect_exit(0, "--json", "ls", "-z", zk.connect, "/",
                       env=other).json()[0]["path"] == "/"
    for verb in ((), ("run",)):
        done = expect_exit(0, "-n", "-z", zk.connect, "-E", "7", *verb, "/before",
                           "echo", "-n", "x", env=other)
        assert done.out == "x", done
        assert expect_exit(0, "-z", zk.connect, *verb, "-n", "/before", "echo", "ls",
                           env=other).out == "ls\n"
    assert "usage: latchkey ls " in expect_exit(0, "-h", "ls").out
    # The last one counts.
    expect_exit(0, "-z", "127.0.0.1:1", "ls", "-z", zk.connect, "/")


def unknown_options_are_refused():
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "delete", "watch", "doctor"):
        usage("unknown option -Q", verb, "/x", "-Q")
        usage("unknown option --quite", verb, "--quite", "/x")
        says(125, verb + ": unknown option -n in front of the verb" +
             HELP % verb, "-n", verb, "/x")
    for verb in ("create", "set"):
        usage("unknown option -q (put -- before data that begins with -)",
              verb, "/x", "-q")
    usage("unknown option -Q", "acl", "/x", "-Q")
    usage("unknown option -Q", "run", "-Q", "/x", "true")
    usage("unknown option -\u00e9", "ls", "-\u00e9", "/x")
    usage("unknown option --\\x1b[31m", "ls", "--\x1b[31m", "/x")
    usage("options must stand before LOCK (put -- before a COMMAND that "
          "begins with -)",
          "run", "/x", "-n", "true")


# ---- usage -----------------------------------------------------------------------

def operands_are_counted():
    says(125, "no arguments are given; latchkey --help lists the commands")
    says(125, '"list" is neither a verb nor a path that begins with "/"; '
         "latchkey --help lists the verbs", "list", "/")
    for verb in ("status", "wait", "revoke", "run"):
        usage("LOCK is missing", verb)
    for verb in ("ls", "tree", "get", "stat", "create", "set", "delete",
                 "watch", "acl"):
        usage("PATH is missing", verb)
    usage("DATA is missing, or - for standard input", "set", "/x")
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "delete", "watch", "doctor"):
        usage("too many operands", verb, "/x", "/y")
    for verb in ("create", "set", "acl"):
        usage("too many operands", verb, "/x", "y", "z")


def set_needs_data():
    """It emptied the node, and left alone what a pipe would have given."""
    expect_exit(0, "create", "/kept", "data")
    usage("DATA is missing, or - for standard input", "set", "/kept")
    assert expect_exit(0, "get", "/kept").out == "data"
    expect_exit(0, "set", "/kept", "-", input="piped")
    assert expect_exit(0, "get", "/kept").out == "piped"
    expect_exit(0, "set", "/kept", "")
    assert expect_exit(0, "get", "/kept").out == ""


def paths_are_checked_before_a_server_is_asked():
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "create", "delete", "watch", "acl", "doctor"):
        for path, rule in (
                ("x", 'must begin with "/"'),
                ("/x/", 'must not end with "/"'),
                ("/x//y", 'must not contain "//"'),
                ("/x/../y", 'must not have "." or ".." between slashes'),
                ("/.", 'must not have "." or ".." between slashes')):
            says(125, '%s: path "%s" %s' % (verb, path, rule), verb, path,
                 "-z", "127.0.0.1:1")
        says(125, verb + ': path "/x\\x0a" holds bytes that ZooKeeper refuses: '
             "a path is UTF-8 without control characters", verb, "/x\n")
    says(125, 'set: path "x" must begin with "/"', "set", "x", "y")
    says(125, 'run: path "x" must begin with "/"', "run", "x", "true")
    # A sequential name may consist of its number.
    expect_exit(0, "create", "/sequential")
    assert expect_exit(0, "create", "-s", "/sequential/").out == \
        "/sequential/0000000000\n"
    says(125, 'create: path "/sequential//" must not contain "//"', "create", "-s",
         "/sequential//")


# ---- the way to a server ---------------------------------------------------------

DOCTOR = "; latchkey doctor tells more"
SILENT = "; the host is down, the server hangs, or a firewall drops packets"
VERBS = (("status",), ("wait",), ("revoke",), ("ls",), ("tree",), ("get",),
         ("stat",), ("create",), ("delete",), ("watch",), ("acl",), ("set",),
         ("run",))


def words(verb, path, *options):
    """A command line that needs a server."""
    last = {"set": ("data",), "run": ("true",)}.get(verb, ())
    return (verb, *options, path, *last)


CLOSED = "127.0.0.1:1"  # other ports are used by other tests
SOON = ("--connect-timeout", "0.9")


@contextlib.contextmanager
def listener(serve):
    """Where a server should be: serve(connection) is called for each guest."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        def attend():
            with contextlib.suppress(OSError):
                while True:
                    guest, _ = door.accept()
                    with guest:
                        serve(guest)
        threading.Thread(target=attend, daemon=True).start()
        yield "127.0.0.1:%d" % door.getsockname()[1]
        door.shutdown(socket.SHUT_RDWR)


def says_soon(text, *words):
    """The same, but not always at once: on a busy machine a server is not always
    tried in time."""
    wanted = "latchkey: " + text + "\n"
    for _ in range(10):
        done = run(*words)
        if done.err == wanted:
            break
    assert (done.code, done.out, done.err) == (125, "", wanted), (words, done)


def hang_up(guest):
    guest.recv(100)


def every_verb_says_why_it_cannot_connect():
    there = CLOSED
    for (verb,) in VERBS:
        says_soon("cannot connect to %s: Connection refused; nothing listens "
                  "there: start ZooKeeper, or correct -z%s" % (there, DOCTOR),
                  "-z", there, *words(verb, "/x", *SOON))


def connect_failures_name_the_likely_cause():
    closed = CLOSED
    with socket.create_server(("127.0.0.1", 0)) as door, \
            listener(hang_up) as closer, \
            listener(lambda guest: guest.sendall(b"HTTP/1.1 400 no\r\n\r\n")) \
            as web:
        silent = "127.0.0.1:%d" % door.getsockname()[1]
        for verb in ("ls", "run"):
            for servers, text in (
                    (silent, "%s: no reply within 0.9 s%s" % (silent, SILENT)),
                    (closer, closer + ": the server closed the connection "
                     "without a reply; it has no quorum, or has "
                     "reached maxClientCnxns, or expects "
                     "TLS (--tls)"),
                    (web, web + ": frame longer than receive_limit; that is not "
                     "the client port of a ZooKeeper server, or it expects "
                     "TLS (--tls)"),
                    ("localhost:" + closed.split(":")[1], None),
                    ("no-such-host.invalid", None)):
                if text is not None:
                    says_soon("cannot connect to " + text + DOCTOR, "-z",
                              servers, *words(verb, "/x", *SOON))
                    continue
                done = expect_exit(125, "-z", servers, *words(verb, "/x", *SOON))
                assert re.match(
                    "latchkey: cannot connect to (localhost:[0-9]+ at "
                    r"(127\.0\.0\.1|\[::1\]):[0-9]+: Connection refused; nothing|"
                    "no-such-host.invalid:2181: (no reply within|the name "
                    "cannot be resolved:)) .*latchkey doctor", done.err), done
            says_soon("cannot connect to any server: %s: Connection refused, "
                      "%s: the server closed the connection without a reply; "
                      "probably there is no quorum: start a majority of the "
                      "servers%s" %
                      (closed, closer, DOCTOR), "-z", closed + "," + closer,
                      *words(verb, "/x", *SOON))


def wrong_servers_are_shown():
    for servers, text in (
            ("", "no host is named"),
            (" , /x", "no host is named"),
            ("a:0", "a port is a number from 1 to 65535"),
            ("a,:1", "a host name is missing"),
            ("::1", "an IPv6 address needs brackets, as in [::1]:2181"),
            ("[::1", "a bracket is not closed, as in [::1]:2181"),
            ("a/b/", "what follows the first / must be a valid path (the "
             "chroot)")):
        for (verb,) in (*VERBS, ("doctor",)):
            prefix = "doctor: " if verb == "doctor" else ""
            says(125, prefix + 'servers "%s": %s; -z takes '
                 "host:port,host:port/chroot" % (servers, text),
                 "-z", servers, *words(verb, "/x", *SOON))


def files_of_tls_that_cannot_be_used_are_named():
    """Before any server is asked; the rest is in cli_tls.py."""
    text = "cannot read /nowhere: No such file or directory"
    if "tls" in run("--version").out.split():
        option, variable = "--cacert: " + text, "LATCHKEY_TLS_CACERT: " + text
    else:
        option = variable = ("this build of latchkey has no TLS: it was built "
                             "without OpenSSL")
    for (verb,) in (*VERBS, ("doctor",)):
        says(125, option, "--cacert", "/nowhere", "-z", CLOSED,
             *words(verb, "/x"))
    says(125, variable, "-z", "tls://" + CLOSED, "ls", "/",
         env=dict(os.environ, LATCHKEY_TLS_CACERT="/nowhere"))
    usage("unknown option --tls", "fence", "--tls", "f", "1")


def attempts_are_mentioned_after_a_second():
    """They were after ten, when there were no more."""
    there = CLOSED
    notice = ("no session yet: %s: Connection refused; trying for another 0.5 s"
              % there)
    more = ("-z", there, "--connect-timeout", "1.5")
    for verb in (("ls", "/"), ("run", "/x", "true")):
        done = run(*more, *verb)
        assert done.code == 125 and len(done.err.splitlines()) == 2, done
        assert done.err.splitlines()[0] == "latchkey: " + notice, done
    assert len(run(*more, "run", "-q", "/x", "true").err.splitlines()) == 1
    lines = [json.loads(line) for line in
             run("--json", *more, "ls", "/").err.splitlines()]
    assert [line["event"] for line in lines] == ["notice", "failed"], lines
    assert lines[0]["reason"] == notice, lines


def a_missing_chroot_is_named():
    """It was "no such node", or a lock that is free."""
    text = ("the chroot /no/root does not exist; latchkey create -p -z " +
            zk.connect + " /no/root creates it")
    where = ("-z", zk.connect + "/no/root")
    for (verb,) in VERBS:
        if verb in ("create", "watch"):
            continue
        prefix = "/x: " if verb == "run" else verb + ": "
        says(125, prefix + text, *where, *words(verb, "/x"))
    with command.start("watch", *where, "/") as process:
        assert process.stdout.readline() == "watching /\n"
        process.terminate()
        assert process.finish().err == "latchkey: warning: " + text + "\n"
    says(1, "create /x: the parent does not exist; -p creates missing parents",
         "create", *where, "/x")
    expect_exit(0, *re.search("create .*(?= creates it)", text)[0].split())
    assert expect_exit(0, "ls", *where, "/").out == ""


def a_lost_connection_is_named():
    """It was "connection lost (connection lost before the answer came)"."""
    with relay.Relay(zk.connect) as way, command.start(
            "run", "-z", way.address, "/lost", "sleep", "600") as process:
        command.wait_until_held("/lost")
        way.drop()
        lines = [process.stderr.readline() for _ in range(2)]
        assert lines == [
            "latchkey: connection to %s lost: the server closed the connection; "
            "reconnecting\n" % way.address,
            "latchkey: reconnected\n"], lines
        process.terminate()


def identities_that_do_not_work_are_named():
    with tempfile.TemporaryDirectory() as folder:
        def file(name, text):
            path = os.path.join(folder, name)
            with open(path, "w") as out:
                out.write(text)
            os.chmod(path, 0o600)
            return ("--auth-file", path)

        scheme = file("scheme", "no-such-scheme:x\n")
        line = file("line", "digest:me:secret\ndigest\n")
        refused = ("the server refuses the credentials; check the lines of "
                   "--auth-file" + DOCTOR)
        says(125, "ls /: " + refused, "ls", *scheme, "/")
        says(125, "set /: " + refused, "set", *scheme, "/", "x")
        says(125, "/x: " + refused, "run", *scheme, "/x", "true")
        says(125, "watch /x: " + refused, "watch", *scheme, "/x")
        # While the chroot is looked for, before the watch is set.
        says(125, "watch /x: " + refused, "watch", *scheme, "-z",
             zk.connect + "/none", "/x")
        for verb in (("ls", "/"), ("run", "/x", "true")):
            says(125, "--auth-file: a line of %s is not scheme:credentials, "
                 "such as digest:user:password" % line[1], *line, *verb)
            says(125, "--auth-file: cannot read %s: Is a directory" % folder,
                 "--auth-file", folder, *verb)
            says(125, "--auth-file: cannot read /nowhere: No such file or "
                 "directory", "--auth-file", "/nowhere", *verb)


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
            % (a, b, c, DOCTOR))
        # It serves on until it has noticed, and each attempt takes its time.
        live.eventually(lambda: run(
            "ls", "--connect-timeout", "1", "-z", ensemble.connect,
            "/").err == text)


# ---- nodes -----------------------------------------------------------------------

NOBODY = ("; --auth-file or --cert gives an identity that the access list "
          "names")


def nodes_that_are_not_there_are_named():
    for verb in ("ls", "tree", "get", "stat", "delete", "acl"):
        says(1, verb + " /none: no such node", verb, "/none")
    says(1, "ls /none: no such node", "ls", "-R", "/none")
    says(1, "set /none: no such node", "set", "/none", "x")
    says(1, "acl /none: no such node", "acl", "/none", "open")
    says(1, "delete /none: no such node", "delete", "-r", "/none")
    for kind in ((), ("-s",), ("-e",), ("-c",), ("-t", "60000")):
        says(1, "create /none/x: the parent does not exist; -p creates "
                "missing parents", "create", *kind, "/none/x")


def nodes_in_the_wrong_state_are_named():
    expect_exit(0, "create", "-p", "/state/child")
    for more in ((), ("-p",), ("-c",)):
        says(1, "create /state: the node exists already", "create", *more,
             "/state")
    says(1, "delete /state: the node has children; delete its children "
            "first, or use -r", "delete", "/state")
    version = "the node has another version; latchkey stat shows its version"
    says(1, "set /state: " + version, "set", "-V", "7", "/state", "x")
    says(1, "delete /state/child: " + version, "delete", "-V", "7",
         "/state/child")
    says(125, "delete: -V and -r exclude each other; give one of them",
         "delete", "-r", "-V", "7", "/state")
    for path in ("/", "/zookeeper", "/zookeeper/quota"):
        for more in ((), ("-r",)):
            says(125, "delete %s: the root and ZooKeeper's own nodes cannot be "
                 "deleted" % path, "delete", *more, path)
    with command.start("create", "-e", "/state/e") as process:
        process.stdout.readline()
        says(1, "create /state/e/x: an ephemeral node cannot have children; "
             "choose a path that is not below an ephemeral node", "create",
             "/state/e/x")
        process.terminate()
    says(125, "set /state: larger than the configured limit; servers accept "
              "1 MiB at most", "set", "/state", "-", input="x" * 1100000)


def kinds_of_nodes_that_exclude_each_other_are_named():
    for a, b in (("-c", "-e"), ("-c", "-s"), ("-t", "-e"), ("-t", "-c")):
        given = [a, "5", b] if a == "-t" else [a, b]
        says(125, "create: %s and %s exclude each other; latchkey create "
                  "--help explains them" % (a, b), "create", *given, "/kind")
    says(1, "stat /kind: no such node", "stat", "/kind")


def what_access_lists_forbid_is_named():
    not_allowed = "not allowed by the node's access list" + NOBODY
    parent = "not allowed by the access list of the parent" + NOBODY
    expect_exit(0, "create", "/shut")
    expect_exit(0, "create", "/shut/x")
    expect_exit(0, "create", "/open")
    expect_exit(0, "create", "--acl", "world:anyone:c", "/open/none")
    expect_exit(0, "acl", "/shut", "world:anyone:a")
    for verb in ("ls", "tree", "get"):
        says(125, "%s /shut: %s" % (verb, not_allowed), verb, "/shut")
    says(125, "set /shut: " + not_allowed, "set", "/shut", "x")
    says(125, "create /shut/y: " + parent, "create", "/shut/y")
    says(125, "delete /shut/x: " + parent, "delete", "/shut/x")
    says(125, "acl /open/none: " + not_allowed, "acl", "/open/none")
    says(125, "acl /open/none: " + not_allowed, "acl", "/open/none", "open")
    for verb in ("status", "wait", "revoke"):
        says(125, "%s /shut: %s" % (verb, not_allowed), verb, "/shut")
    lacks = (": its access list, or that of a parent node, does not permit "
             "READ, CREATE and DELETE" + NOBODY)
    # Below it, the list that forbids is not the lock's own.
    for lock in ("/shut", "/shut/lock"):
        says(125, lock + lacks, "run", lock, "true")
    for verb in ("ls", "tree"):
        done = run(*((verb, "-R") if verb == "ls" else (verb,)), "/open")
        assert done.code == 125 and done.err == (
            "latchkey: %s /open: 1 node not read: %s\n" %
            (verb, not_allowed)), done


def access_lists_that_the_server_refuses_are_named():
    refused = ("the server refuses the access list: it does not know a scheme "
               "or an id in it, or the list is creator (auth) and neither "
               "--auth-file nor --cert is given (a server with "
               "ssl.clientAuth=none ignores --cert)")
    for spec in ("creator", "world:bob:r", "no-such-scheme:bob:r", "ip:bob:r"):
        says(125, "acl /zookeeper: " + refused, "acl", "/zookeeper", spec)
        says(125, "create /refused: " + refused, "create", "/refused", "--acl",
             spec)
        says(125, "/refused-lock: " + refused, "run", "--acl", spec,
             "/refused-lock", "true")


def numbers_out_of_range_are_named():
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
            ('--wait: "-1" is not a number of seconds, such as 10 or 0.5',
             "wait", "-w", "-1", "/x"),
            ("--zk needs an argument: CONNECT", "ls", "/x", "-z"),
            ("--json takes no argument", "ls", "/x", "--json=yes"),
            ('--layout: "x" is none of curator, kazoo, native[:PREFIX], '
             "native-uuid[:PREFIX]", "status", "--layout", "x", "/x")):
        usage(text, *command_line)


def output_that_cannot_be_written_is_named():
    expect_exit(0, "create", "/full", "data")
    expect_exit(0, "create", "/full/child")
    for verb in ("ls", "get", "stat", "tree", "acl", "status", "doctor"):
        with open("/dev/full", "w") as full:
            done = run(verb, "/full", stdout=full)
        assert (done.code, done.err) == (
            125, "latchkey: cannot write to standard output: No space left on "
            "device\n"), (verb, done)


# ---- run -------------------------------------------------------------------------

def usage_of_run_is_named():
    for text, *more in (
            ("COMMAND is missing", "/x"),
            ("COMMAND is missing", "/x", "--"),
            ('LOCK must be a path below "/"', "/", "true"),
            ("-c after LOCK takes one STRING, and nothing may follow it", "/x", "-c"),
            ("-c after LOCK takes one STRING, and nothing may follow it", "/x", "-c", "a", "b"),
            ("-c STRING is the whole command: nothing may follow LOCK", "-c",
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
        usage(text, "run", *more)
    with open("/dev/null") as null:
        says(125, 'run: --events-fd: "0" is a descriptor that cannot be written '
             "to" + HELP % "run", "run", "--events-fd", "0", "/x", "true",
             stdin=null)


def ends_of_run_are_named():
    with command.start("run", "/busy", "sleep", "600") as process:
        command.wait_until_held("/busy")
        says(124, "/busy: is held by another client; -w waits for it", "run", "-n",
             "/busy", "true")
        says(124, "/busy: is still held by another client", "run", "-w", "0.3",
             "/busy", "true")
        process.terminate()
    says(125, "--kill-after must be less than half the session timeout, "
              "which is 10.000 s; -T requests another", "run", "-T", "10", "--kill-after",
         "5", "/x", "true")
    says(127, "cannot run /nowhere: No such file or directory; check the name "
         "and PATH", "run", "/x", "/nowhere")
    says(126, "cannot run /etc: Permission denied; it must be an executable "
              "file", "run", "/x", "/etc")


# ---- locks, fence ----------------------------------------------------------------

def locks_that_nobody_holds_are_named():
    says(1, "revoke /nobody: the lock is free: no such node", "revoke",
         "/nobody")
    expect_exit(0, "create", "/nobody")
    says(1, "revoke /nobody: the lock is free", "revoke", "/nobody")
    says(125, "run: cannot lock /zookeeper/x: /zookeeper is reserved for "
              "ZooKeeper; choose another path", "run", "/zookeeper/x", "true")


def errors_of_fence_are_named():
    usage("FILE is missing", "fence")
    usage("TOKEN is missing", "fence", "f")
    usage("too many operands", "fence", "f", "1", "2")
    usage("unknown option -Q", "fence", "f", "1", "-Q")
    for token in ("0", "x", "-1", "18446744073709551616"):
        says(125, 'fence: TOKEN "%s" is not a decimal number from 1 to 2^64-1; '
             "COMMAND of latchkey run has it in LATCHKEY_FENCING_TOKEN" % token,
             "fence", "--", "f", token)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f")
        expect_exit(0, "fence", path, "7")
        says(1, "fence: %s: token 6 is refused: token 7 was seen, so the "
                "lock has passed to another holder" % path, "fence", path, "6")
        says(125, "fence: %s: cannot open it: Is a directory" % folder, "fence",
             folder, "6")


# ---- what servers refuse ---------------------------------------------------------

def lost_writes_are_named():
    """A node with a TTL is not known by its session, so it is in doubt."""
    with relay.Relay(zk.connect) as way:
        way.trap("cut", op=21)
        says(125, "create /ttl: connection lost: the write may or may not have "
                  "been executed; read the node, and try again if it is not done" + DOCTOR, "create", "-t",
             "60000", "-z", way.address, "/ttl")


def servers_that_do_not_answer_in_time_are_named():
    with relay.Relay(zk.connect) as way:
        way.trap("freeze", op=4)
        says(125, "get /: the servers did not reply in time; try again" +
             DOCTOR, "get", "-T", "2", "-z", way.address, "/")


def servers_that_lack_something_are_named():
    with command.zkserver.Server(
            "--property", "zookeeper.extendedTypesEnabled=false",
            "--property", "zookeeper.enforceQuota=true") as other:
        where = ("-z", other.connect)
        says(125, "create /ttl: the server does not support nodes of this "
             "kind; -c needs ZooKeeper "
             "3.5.1 or newer, -t also zookeeper.extendedTypesEnabled=true",
             "create", *where, "-t", "5", "/ttl")
        expect_exit(0, "create", *where, "/q")
        expect_exit(0, "create", *where, "-p", "/zookeeper/quota/q/zookeeper_limits",
                    "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3")
        expect_exit(0, "create", *where, "/zookeeper/quota/q/zookeeper_stats",
                    "count=0,bytes=0")
        # The server goes by what it has counted, which takes its time.
        live.eventually(lambda: run("create", *where, "-s", "/q/x-").code != 0)
        says(125, "create /q/x: quota exceeded; delete nodes there, or raise "
             "the quota", "create", *where, "/q/x")


def servers_that_insist_on_identities_are_named():
    with command.zkserver.Server(
            "--property", "zookeeper.enforce.auth.enabled=true",
            "--property", "zookeeper.enforce.auth.schemes=digest") as other:
        where = ("-z", other.connect)
        insists = ("the server requires authentication; --auth-file or "
                   "--cert gives an identity" + DOCTOR)
        says(125, "ls /: " + insists, "ls", *where, "/")
        says(125, "/x: " + insists, "run", *where, "/x", "true")


def local_sessions_are_named():
    with command.zkserver.Server(
            "--config", "localSessionsEnabled=true",
            "--config", "localSessionsUpgradingEnabled=false",
            servers=3) as other:
        says(125, "create /e: ephemeral node on a local session; zoo.cfg needs "
             "localSessionsUpgradingEnabled=true", "create", "-e", "-z",
             other.connect, "/e")


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
        says(125, "create: --acl" + text, "create", "/acl/x", "--acl", wrong)
        says(125, "acl: SPEC" + text, "acl", "/acl", wrong)
        says(125, "--acl" + text, "run", "--acl", wrong, "/acl/l", "true")
    # There is no supervisor yet, which would be told goodbye.
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            expect_exit(125, "run", "--acl", "me", "/acl/l", "true", stdin=theirs)
        assert ours.recv(1) == b""
    assert expect_exit(0, "acl", "/acl").out == "world:anyone:cdrwa\n"
    assert expect_exit(0, "ls", "/acl").out == ""


# ---- --json ----------------------------------------------------------------------

def with_json_errors_are_objects():
    def failed(code, reason, *words, lock=None):
        done = run(*words)
        (line,) = done.err.splitlines()
        facts = json.loads(line)
        assert facts.pop("time").endswith("Z"), facts
        wanted = {"event": "failed", "reason": reason, "code": code}
        if lock is not None:
            wanted["lock"] = lock
        assert (done.code, done.out, facts) == (code, "", wanted), done

    failed(125, "ls: unknown option -Q" + HELP % "ls", "ls", "-Q", "/", "--json")
    failed(125, "ls: unknown option -n in front of the verb" + HELP % "ls",
           "--json", "-n", "ls", "/")
    failed(125, "run: unknown option -Q" + HELP % "run", "run", "-Q", "--json",
           "/x", "true")
    failed(125, '"list" is neither a verb nor a path that begins with "/"; '
           "latchkey --help lists the verbs", "list", "--json")
    failed(125, "get: PATH is missing" + HELP % "get", "--json", "get")
    failed(1, "get /none: no such node", "get", "/none", "--json")
    failed(1, "set /none: no such node", "set", "/none", "x", "--json")
    failed(1, "delete /none: no such node", "delete", "/none", "--json")
    failed(125, 'run: path "x" must begin with "/"', "run", "--json", "x", "y")
    failed(125, "run: COMMAND is missing" + HELP % "run",
           "run", "--json", "/x", lock="/x")
    for verb in (("ls",), ("doctor",), ("status",), ("wait",), ("revoke",),
                 ("set", "/x")):
        (line,) = expect_json(verb)
        assert "port" in line["reason"] and line["code"] == 125, line


def expect_json(verb):
    done = run(*verb, "/x", "--json", "-z", "host:0")
    assert done.code == 125 and done.out == "", done
    return [json.loads(line) for line in done.err.splitlines()]


def events_say_why_a_run_did_not_begin():
    """On the descriptor for events; for people it is a line."""
    done = subprocess.run(
        [command.PROGRAM, "run", "--json", "--events-fd", "1", "-z", "host:0",
         "/x", "true"], capture_output=True, text=True)
    facts = json.loads(done.stdout)
    assert done.returncode == 125 and facts["event"] == "failed", done
    assert facts["lock"] == "/x" and facts["code"] == 125, done
    assert done.stderr == "latchkey: " + facts["reason"] + "\n", done


def warnings_are_objects_too():
    name = "auth-%d" % os.getpid()
    with open(name, "w") as file:
        file.write("digest:me:secret\n")
    os.chmod(name, 0o644)
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
    options_may_stand_behind_operands,
    what_follows_two_dashes_is_data,
    options_may_stand_before_the_verb,
    unknown_options_are_refused,
    operands_are_counted,
    set_needs_data,
    paths_are_checked_before_a_server_is_asked,
    every_verb_says_why_it_cannot_connect,
    connect_failures_name_the_likely_cause,
    wrong_servers_are_shown,
    files_of_tls_that_cannot_be_used_are_named,
    attempts_are_mentioned_after_a_second,
    a_missing_chroot_is_named,
    a_lost_connection_is_named,
    identities_that_do_not_work_are_named,
    nodes_that_are_not_there_are_named,
    nodes_in_the_wrong_state_are_named,
    kinds_of_nodes_that_exclude_each_other_are_named,
    what_access_lists_forbid_is_named,
    access_lists_that_the_server_refuses_are_named,
    numbers_out_of_range_are_named,
    output_that_cannot_be_written_is_named,
    usage_of_run_is_named,
    ends_of_run_are_named,
    locks_that_nobody_holds_are_named,
    errors_of_fence_are_named,
    lost_writes_are_named,
    servers_that_do_not_answer_in_time_are_named,
    access_lists_are_checked,
    with_json_errors_are_objects,
    events_say_why_a_run_did_not_begin,
    warnings_are_objects_too),
    servers_without_quorum_are_named,
    servers_that_lack_something_are_named,
    servers_that_insist_on_identities_are_named,
    local_sessions_are_named)
