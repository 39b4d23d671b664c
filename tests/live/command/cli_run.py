# SPDX-License-Identifier: Apache-2.0
"""latchkey run: what COMMAND inherits, exit codes, identities, the choice of
servers, and usage errors."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run
import live

zk = command.serve()
folder = tempfile.TemporaryDirectory()
CLOSED_PORT = "127.0.0.1:1"  # no server listens there


def make_file(name, text, mode=0o600):
    path = os.path.join(folder.name, name)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def check_error_is_one_line(done, *words):
    """Check that latchkey has printed one line, with these words in it."""
    lines = done.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("latchkey: "), done
    for word in words:
        assert word in lines[0], (word, done)


# ---- COMMAND -----------------------------------------------------------------

def lock_is_held_while_command_runs_and_free_afterwards():
    # Otherwise latchkey would create the directory as a container, which the
    # server deletes when it is empty.
    expect_exit(0, "create", "/held")
    done = run("run", "-i", "me", "/held", "--", command.PROGRAM, "status",
               "--json", "/held")
    assert done.code == 1, done
    facts = json.loads(done.out)
    assert facts["state"] == "held", facts
    assert [c["label"] for c in facts["holders"]] == ["me"], facts
    assert command.children("/held") == []
    assert expect_exit(0, "status", "/held").out == "/held: free\n"


def exit_code_is_that_of_command():
    for code in (0, 1, 7, 255):
        done = run("run", "/code", "sh", "-c", "exit %d" % code)
        assert done.code == code and done.err == "", done
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1):
        done = run("run", "/code", "sh", "-c", "kill -%d $$" % number)
        assert done.code == 128 + number, done


def run_is_the_default_verb():
    done = expect_exit(3, "/bare", "sh", "-c", "echo $LATCHKEY_LOCK; exit 3")
    assert done.out == "/bare\n", done
    done = expect_exit(0, "-w", "5", "-i", "x", "/bare", "--", "echo", "-n", "hi")
    assert done.out == "hi", done


def command_finds_the_lock_in_its_environment():
    done = run("run", "/env", "sh", "-c",
               "env | grep ^LATCHKEY_; exec %s status --json /env"
               % command.PROGRAM)
    lines = done.out.splitlines()
    env = dict(line.split("=", 1) for line in lines[:-1])
    holder = json.loads(lines[-1])["holders"][0]
    assert env["LATCHKEY_LOCK"] == "/env"
    assert env["LATCHKEY_MODE"] == "exclusive"
    assert env["LATCHKEY_NODE"] == holder["node"]
    assert env["LATCHKEY_FENCING_TOKEN"] == holder["token"]
    assert env["LATCHKEY_SESSION"] == holder["session"]
    assert re.fullmatch("[0-9]+", env["LATCHKEY_FENCING_TOKEN"])
    assert re.fullmatch("0x[0-9a-f]+", env["LATCHKEY_SESSION"])


EXECUTE = """
import ctypes, os, sys
twice = [b"LATCHKEY_FENCING_TOKEN=1", b"LATCHKEY_LOCK=/foreign"] * 2
env = twice + [b"%s=%s" % item for item in os.environb.items()]
words = [word.encode() for word in sys.argv[1:]]
array = lambda items: (ctypes.c_char_p * (len(items) + 1))(*items, None)
ctypes.CDLL(None).execve(words[0], array(words), array(env))
"""


def variables_of_the_run_replace_all_earlier_ones():
    """Shells take the last of several variables with one name."""
    done = run("-c", EXECUTE, command.PROGRAM, "run", "/twice", "sh", "-c",
               "echo $LATCHKEY_LOCK; tr '\\0' '\\n' </proc/$$/environ",
               program=sys.executable)
    lines = done.out.splitlines()
    assert lines[0] == "/twice", done
    names = [line.partition("=")[0] for line in lines[1:]]
    assert names.count("LATCHKEY_FENCING_TOKEN") == 1, done
    assert names.count("LATCHKEY_LOCK") == 1, done


def tokens_grow():
    print_token = ("run", "/token", "sh", "-c", "echo $LATCHKEY_FENCING_TOKEN")
    first, second, third = [int(expect_exit(0, *print_token).out)
                            for _ in range(3)]
    assert first < second < third, (first, second, third)


def standard_input_reaches_command():
    text = "line\n" * 20000
    assert expect_exit(0, "run", "/in", "cat", input=text).out == text


def string_of_c_is_executed_by_the_shell():
    for words in (("run", "-c", "echo $0 $((1+1))", "/c"),
                  ("run", "/c", "-c", "echo $0 $((1+1))"),
                  ("/c", "--command", "echo $0 $((1+1))"),
                  ("--command=echo $0 $((1+1))", "/c")):
        done = expect_exit(0, *words, env=dict(os.environ, SHELL="/bin/sh"))
        assert done.out == "/bin/sh 2\n", done


def shell_of_c_comes_from_the_environment():
    shell = make_file("shell", "#!/bin/sh\necho \"arguments: $@\"\n",
                      mode=0o700)
    done = expect_exit(0, "/c", "-c", "a b", env=dict(os.environ, SHELL=shell))
    assert done.out == "arguments: -c a b\n", done
    without_shell = {k: v for k, v in os.environ.items() if k != "SHELL"}
    done = expect_exit(0, "/c", "-c", "echo x", env=without_shell)
    assert done.out == "x\n", done


def command_inherits_no_descriptor_of_latchkey():
    print_descriptors = command.python(
        "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))")
    without_latchkey = subprocess.run(
        print_descriptors, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        text=True).stdout
    done = expect_exit(0, "run", "/fd", *print_descriptors)
    assert done.out == without_latchkey, (done, without_latchkey)
    read, write = os.pipe()
    done = expect_exit(0, "run", "--events-fd", str(write), "/fd",
                       *print_descriptors, pass_fds=[write])
    assert done.out == without_latchkey, (done, without_latchkey)
    os.close(read)
    os.close(write)


def command_inherits_signal_mask_and_ignored_signals():
    # Prints the lines SigBlk and SigIgn: the mask and the ignored signals.
    print_signals = ["grep", "^Sig[BI]", "/proc/self/status"]

    def ignore_one_and_block_another():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    for prepare in (None, ignore_one_and_block_another):
        without_latchkey = subprocess.run(
            print_signals, stdout=subprocess.PIPE, text=True,
            preexec_fn=prepare).stdout
        done = expect_exit(0, "run", "/signals", *print_signals,
                           preexec_fn=prepare)
        assert done.out == without_latchkey, (done, without_latchkey)


def command_that_is_not_executable_is_126_and_missing_command_127():
    done = run("run", "/run", folder.name)
    assert done.code == 126, done
    check_error_is_one_line(done, folder.name)
    done = run("run", "/run", "no-such-command-here")
    assert done.code == 127, done
    check_error_is_one_line(done, "no-such-command-here", "PATH")
    assert command.children("/run") == []


# ---- identities and access lists ---------------------------------------------

def identities_come_from_a_file_and_acl_creator_keeps_others_out():
    auth = make_file("auth", "# mine\n\ndigest:me:se:cret\n")
    other = make_file("other", "digest:you:secret\n")
    with command.start("run", "--auth-file", auth, "--acl", "creator", "-i",
                       "secret", "/acl/own", "sleep", "60") as holder:
        live.eventually(lambda: run("status", "--auth-file", auth,
                                    "/acl/own").code == 1)
        done = run("status", "--auth-file", auth, "--json", "/acl/own")
        assert done.json()[0]["holders"][0]["label"] == "secret", done
        for words in (("--auth-file", other), ()):
            done = run("status", *words, "/acl/own")
            assert done.code == 125 and "--auth-file" in done.err, done
            done = run("run", "-n", *words, "/acl/own", "true")
            assert done.code == 125 and "access list" in done.err, done
        holder.terminate()
        assert holder.finish().code == 128 + signal.SIGTERM


def access_list_can_be_given_entry_by_entry():
    with command.start("run", "--acl", "ip:127.0.0.0/8:cdrwa,world:anyone:r",
                       "-i", "l", "/spelt/l", "sleep", "60") as holder:
        command.wait_until_held("/spelt/l")
        assert command.queue("/spelt/l") == (["l"], [])
        node = command.status("/spelt/l")["holders"][0]["node"]
        done = expect_exit(0, "acl", node)
        assert done.out.split() == ["ip:127.0.0.0/8:cdrwa", "world:anyone:r"], done
        holder.terminate()


def acl_creator_without_an_identity_is_refused():
    done = expect_exit(125, "run", "--acl", "creator", "/nobody", "true")
    assert "refuses the access list" in done.err, done


def auth_file_readable_by_others_gives_a_warning():
    auth = make_file("open-auth", "digest:a:b\n", mode=0o644)
    done = expect_exit(0, "run", "--auth-file", auth, "/warn", "true")
    check_error_is_one_line(done, "chmod 600")
    assert expect_exit(0, "run", "-q", "--auth-file", auth, "/warn", "true").err == ""


def refused_credentials_are_125():
    auth = make_file("strange-auth", "nobody-knows-this:x\n")
    for verb, *operands in (("run", "/strange", "true"), ("get", "/strange")):
        done = expect_exit(125, verb, "--auth-file", auth, *operands)
        assert "--auth-file" in done.err, done


def open_access_list_is_reported_under_v():
    assert ("create and delete in it; --acl creator with --auth-file or --cert "
            "restricts that\n") in expect_exit(0, "run", "-v", "/notice", "true").err
    assert expect_exit(0, "run", "/notice", "true").err == ""


# ---- servers ------------------------------------------------------------------

def servers_come_from_the_option_or_the_environment():
    env = dict(os.environ, LATCHKEY_ZK=CLOSED_PORT)
    expect_exit(0, "run", "-z", zk.connect, "/z", "true", env=env)
    done = expect_exit(125, "run", "--connect-timeout", "0.3", "/z", "true",
                       env=env)
    assert "127.0.0.1:1: Connection refused" in done.err, done
    assert "-z" in done.err, done


def default_server_is_localhost():
    """With -v the output names the server, whether one listens there or not."""
    env = {k: v for k, v in os.environ.items() if k != "LATCHKEY_ZK"}
    done = run("stat", "-v", "--connect-timeout", "0.3", "/", env=env)
    assert "127.0.0.1:2181" in done.err, done


def lock_path_is_below_the_chroot():
    expect_exit(0, "create", "/root", "")
    done = expect_exit(0, "run", "-z", zk.connect + "/root", "/inside", "sh", "-c",
                       "echo $LATCHKEY_LOCK; env -u LATCHKEY_ZK %s ls -z %s /root"
                       % (command.PROGRAM, zk.connect))
    assert done.out == "/inside\ninside\n", done


def negotiated_session_timeout_is_shown_under_v():
    done = expect_exit(0, "run", "-v", "-T", "500", "/timeout", "true")
    assert "60000 ms" in done.err, done


def no_session_within_the_connect_timeout_is_125():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        for words in (("--connect-timeout", "0.5"), ("-w", "0.5"),
                      ("-n", "--connect-timeout", "0.5")):
            done = expect_exit(125, "run", *words, "-z", address, "/l", "true")
            assert address in done.err, done
        for verb in ("get", "status"):
            expect_exit(125, verb, "--connect-timeout", "0.5", "-z", address, "/l")


def answer_as_http(listener):
    """Refuse each connection as a web server does, until `listener` is shut
    down."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def server_that_is_not_zookeeper_is_125():
    # The port stays in use until the command has ended: another server could
    # get it.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = "127.0.0.1:%d" % listener.getsockname()[1]
        web_server = threading.Thread(target=answer_as_http, args=(listener,))
        web_server.start()
        try:
            done = run("run", "-q", "--connect-timeout", "1", "-z", address,
                       "/l", "true")
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            web_server.join()
    assert done.code == 125, done
    check_error_is_one_line(done, "cannot connect to")


# ---- usage errors, help -------------------------------------------------------

def usage_errors_are_125_with_a_hint():
    for words, hint in (
            ((), "--help"),
            (("run",), "LOCK is missing"),
            (("run", "/l"), "COMMAND"),
            (("run", "/l", "--"), "COMMAND"),
            (("run", "l", "true"), "must begin with"),
            (("/l",), "COMMAND"),
            (("run", "/l", "-n", "true"), "options must stand before the path"),
            (("run", "/l", "-c"), "takes one STRING"),
            (("run", "/l", "-c", "a", "b"), "takes one STRING"),
            (("run", "-c", "a", "/l", "b"), "-c"),
            (("run", "-u", "/l", "true"), "unknown option -u"),
            (("run", "--stl", "/l", "true"), "unknown option --stl"),
            (("elects", "/l", "true"), "elects"),
            (("run", "-w", "abc", "/l", "true"), "abc"),
            (("run", "-w", "-1", "/l", "true"), "-1"),
            (("run", "-E", "256", "/l", "true"), "0 to 255"),
            (("run", "-T", "0", "/l", "true"), "more than 0"),
            (("run", "--on-lost", "cry", "/l", "true"), "ignore"),
            (("run", "--assurance", "hope", "/l", "true"), "quorum"),
            (("run", "--acl", "me", "/l", "true"), "creator"),
            (("run", "--events-fd", "99", "/l", "true"), "descriptor"),
            (("run", "--auth-file", "/nowhere", "/l", "true"), "/nowhere"),
            (("run", "-z", "host:0", "/l", "true"), "port"),
            (("run", "/l/", "true"), "path"),
            (("run", "/", "true"), "path"),
            (("run", "/a//b", "true"), "path")):
        done = expect_exit(125, *words)
        assert hint in done.err, (words, done)


def unusable_auth_files_are_125_with_a_hint():
    wrong = make_file("wrong-auth", "digest\n")
    done = expect_exit(125, "run", "--auth-file", wrong, "/l", "true")
    assert "digest:user:password" in done.err, done
    large = make_file("large-auth", "digest:u:%s\n" % ("p" * (1 << 20)))
    done = expect_exit(125, "run", "--auth-file", large, "/l", "true")
    assert large in done.err and "limit" in done.err, done


def each_verb_has_version():
    for verb in ("run", "get", "set", "delete", "fence"):
        done = expect_exit(0, verb, "--version")
        assert done.out.startswith("latchkey "), (verb, done)


def help_and_version_are_0():
    assert "usage: latchkey run" in expect_exit(0, "--help").out
    assert "--kill-after" in expect_exit(0, "run", "-h").out
    for words in (("-V",), ("run", "--version"), ("--version",)):
        assert re.match(r"latchkey [0-9]+\.[0-9]+\.[0-9]+\nfeatures: ",
                        expect_exit(0, *words).out)


live.run(
    lock_is_held_while_command_runs_and_free_afterwards,
    exit_code_is_that_of_command,
    run_is_the_default_verb,
    command_finds_the_lock_in_its_environment,
    variables_of_the_run_replace_all_earlier_ones,
    tokens_grow,
    standard_input_reaches_command,
    string_of_c_is_executed_by_the_shell,
    shell_of_c_comes_from_the_environment,
    command_inherits_no_descriptor_of_latchkey,
    command_inherits_signal_mask_and_ignored_signals,
    command_that_is_not_executable_is_126_and_missing_command_127,
    identities_come_from_a_file_and_acl_creator_keeps_others_out,
    access_list_can_be_given_entry_by_entry,
    acl_creator_without_an_identity_is_refused,
    auth_file_readable_by_others_gives_a_warning,
    refused_credentials_are_125,
    open_access_list_is_reported_under_v,
    servers_come_from_the_option_or_the_environment,
    default_server_is_localhost,
    lock_path_is_below_the_chroot,
    negotiated_session_timeout_is_shown_under_v,
    no_session_within_the_connect_timeout_is_125,
    server_that_is_not_zookeeper_is_125,
    usage_errors_are_125_with_a_hint,
    unusable_auth_files_are_125_with_a_hint,
    each_verb_has_version,
    help_and_version_are_0)
