# SPDX-License-Identifier: Apache-2.0
"""What the verbs of latchkey print when something is wrong: each message once,
whole, with its exit code."""

import json
import os
import subprocess

import command
from command import expect, run
import live

zk = command.serve()
HELP = "; latchkey %s --help shows the form"


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
    expect(0, "create", "/behind", "x", "--acl", "world:anyone:crwd")
    assert expect(0, "acl", "/behind").out == "world:anyone:cdrw\n"
    with command.start("create", "/behind/e", "-e") as process:
        process.stdout.readline()
        facts = expect(0, "stat", "/behind/e", "--json").json()[0]
        assert facts["ephemeral_owner"] != "0x0", facts
        assert facts["data_length"] == 0, facts
        process.terminate()
    expect(0, "set", "/behind", "-V", "0", "y")
    expect(0, "set", "-V", "1", "/behind", "z", "-v")
    assert expect(0, "get", "/behind", "--json").json()[0]["data"] == "z"
    # The order of options and operands is no matter of the environment.
    expect(0, "ls", "/", "-z", zk.connect,
           env=dict(os.environ, LATCHKEY_ZK="127.0.0.1:1", POSIXLY_CORRECT="1"))
    assert expect(0, "status", "/behind/lock", "--json").json()


def what_follows_two_dashes_is_data():
    expect(0, "create", "--", "/dashes", "-e")
    assert expect(0, "get", "/dashes").out == "-e"
    expect(0, "set", "/dashes", "--", "--json")
    assert expect(0, "get", "--", "/dashes").out == "--json"
    expect(0, "set", "-v", "--", "/dashes", "-")
    assert expect(0, "get", "/dashes").out == ""


def options_may_stand_before_the_verb():
    other = dict(os.environ, LATCHKEY_ZK="127.0.0.1:1")
    for before in (("-z", zk.connect), ("--zk=" + zk.connect, "--json"),
                   ("-T", "10", "-v", "-z", zk.connect)):
        assert "zookeeper" in expect(0, *before, "ls", "/", env=other).out
    assert expect(0, "--json", "ls", "-z", zk.connect, "/",
                  env=other).json()[0]["path"] == "/"
    for verb in ((), ("run",)):
        done = expect(0, "-n", "-z", zk.connect, "-E", "7", *verb, "/before",
                      "echo", "-n", "x", env=other)
        assert done.out == "x", done
        assert expect(0, "-z", zk.connect, *verb, "-n", "/before", "echo", "ls",
                      env=other).out == "ls\n"
    assert "usage: latchkey ls " in expect(0, "-h", "ls").out
    # The last one counts.
    expect(0, "-z", "127.0.0.1:1", "ls", "-z", zk.connect, "/")


def unknown_options_are_refused():
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "delete", "watch", "doctor"):
        usage("unknown option -Q", verb, "/x", "-Q")
        usage("unknown option --quite", verb, "--quite", "/x")
        says(125, verb + ": unknown option -n in front of the verb" +
             HELP % verb, "-n", verb, "/x")
    for verb in ("create", "set"):
        usage("unknown option -q (-- goes in front of data that begin with -)",
              verb, "/x", "-q")
    usage("unknown option -Q", "acl", "/x", "-Q")
    usage("unknown option -Q", "run", "-Q", "/x", "true")
    usage("unknown option -\u00e9", "ls", "-\u00e9", "/x")
    usage("unknown option --\\x1b[31m", "ls", "--\x1b[31m", "/x")
    usage("options go before LOCK (and -- before a COMMAND that begins with -)",
          "run", "/x", "-n", "true")


# ---- usage -----------------------------------------------------------------------

def operands_are_counted():
    says(125, "the command line is empty; latchkey --help shows what there is")
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
    expect(0, "create", "/kept", "data")
    usage("DATA is missing, or - for standard input", "set", "/kept")
    assert expect(0, "get", "/kept").out == "data"
    expect(0, "set", "/kept", "-", input="piped")
    assert expect(0, "get", "/kept").out == "piped"
    expect(0, "set", "/kept", "")
    assert expect(0, "get", "/kept").out == ""


def paths_are_checked_before_a_server_is_asked():
    for verb in ("status", "wait", "revoke", "ls", "tree", "get", "stat",
                 "create", "delete", "watch", "acl", "doctor"):
        for path, rule in (
                ("x", 'must begin with "/"'),
                ("/x/", 'must not end with "/"'),
                ("/x//y", 'must not hold "//"'),
                ("/x/../y", 'must not have "." or ".." between slashes'),
                ("/.", 'must not have "." or ".." between slashes')):
            says(125, '%s: path "%s" %s' % (verb, path, rule), verb, path,
                 "-z", "127.0.0.1:1")
        says(125, verb + ': path "/x\\x0a" holds bytes that ZooKeeper refuses: '
             "a path is UTF-8 without control characters", verb, "/x\n")
    says(125, 'set: path "x" must begin with "/"', "set", "x", "y")
    says(125, 'run: path "x" must begin with "/"', "run", "x", "true")
    # A sequential name may consist of its number.
    expect(0, "create", "/sequential")
    assert expect(0, "create", "-s", "/sequential/").out == \
        "/sequential/0000000000\n"
    says(125, 'create: path "/sequential//" must not hold "//"', "create", "-s",
         "/sequential//")


# ---- access lists ----------------------------------------------------------------

def access_lists_are_checked():
    letters = (' is none of open, creator, scheme:id:perms with perms from the '
               'letters cdrwa')
    digest = (': "digest:bob:..." does not hold base64 of the SHA-1 of '
              "user:password, so nobody could use the node; put "
              "digest:USER:PASSWORD into a file for --auth-file, and say "
              "creator")
    expect(0, "create", "/acl")
    for wrong, text in (("world:anyone:x", ': "world:anyone:x"' + letters),
                        ("me", ': "me"' + letters),
                        ("digest:bob:secret:cdrwa", digest)):
        says(125, "create: --acl" + text, "create", "/acl/x", "--acl", wrong)
        says(125, "acl: SPEC" + text, "acl", "/acl", wrong)
        says(125, "--acl" + text, "run", "--acl", wrong, "/acl/l", "true")
    assert expect(0, "acl", "/acl").out == "world:anyone:cdrwa\n"
    assert expect(0, "ls", "/acl").out == ""


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
    failed(125, "run: there is no COMMAND to run" + HELP % "run",
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
        done = expect(0, "ls", "--json", "--auth-file", name, "/")
        (line,) = [json.loads(line) for line in done.err.splitlines()]
        assert line["event"] == "warning" and name in line["reason"], line
        done = expect(0, "ls", "--json", "-v", "/")
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
    access_lists_are_checked,
    with_json_errors_are_objects,
    events_say_why_a_run_did_not_begin,
    warnings_are_objects_too))
