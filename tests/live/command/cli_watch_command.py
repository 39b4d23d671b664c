# SPDX-License-Identifier: Apache-2.0
"""latchkey watch PATH COMMAND: COMMAND runs with each state of a node."""

import json
import os
import signal
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
import relay
from command import expect_exit, run, start
from live import eventually

zk = command.serve("--tick", "200")  # no test stops or restarts this server
folder = tempfile.TemporaryDirectory()

# A COMMAND that prints, in brackets, what it gets.
SHOW = ("sh", "-c", 'echo "[$LATCHKEY_EVENT $LATCHKEY_PATH v$LATCHKEY_VERSION '
        '$(cat | tr "\\n" ,)]"')


def in_folder(name):
    return os.path.join(folder.name, name)


def read_line(process):
    return process.stdout.readline().rstrip("\n")


def shell(text):
    return ("sh", "-c", text)


def waits_for(path, after="", before=""):
    """A COMMAND that waits until the file exists."""
    return shell("%s; until [ -e %s ]; do sleep .02; done; %s" % (
        before or ":", path, after))


def appears(path):
    eventually(lambda: os.path.exists(path), path)


def make_file(path):
    with open(path, "w"):
        pass


# ---- states --------------------------------------------------------------------------

def command_gets_the_data_now_and_after_each_change():
    with start("watch", "/data", *SHOW) as process:
        assert read_line(process) == "[missing /data v ]"
        expect_exit(0, "create", "/data", "first")
        assert read_line(process) == "[data /data v0 first]"
        expect_exit(0, "create", "/data/child")  # is not reported
        expect_exit(0, "set", "/data", "")
        assert read_line(process) == "[data /data v1 ]"
        expect_exit(0, "delete", "-r", "/data")
        assert read_line(process) == "[missing /data v ]"
        expect_exit(0, "create", "/data", "again")
        assert read_line(process) == "[data /data v0 again]"
        process.terminate()
        done = process.finish()
        assert (done.code, done.out, done.err) == (0, "", ""), done


def command_gets_the_names_of_the_children():
    with start("watch", "--children", "/parent", *SHOW) as process:
        assert read_line(process) == "[missing /parent v ]"
        expect_exit(0, "create", "/parent", "data")
        assert read_line(process) == "[children /parent v0 ]"
        expect_exit(0, "create", "/parent/b")
        assert read_line(process) == "[children /parent v1 b,]"
        expect_exit(0, "set", "/parent", "is not reported")
        expect_exit(0, "create", "/parent/a")
        assert read_line(process) == "[children /parent v2 a,b,]"
        expect_exit(0, "delete", "/parent/b")
        assert read_line(process) == "[children /parent v3 a,]"
        process.terminate()
        assert process.finish().code == 0


def newer_states_replace_older_ones_while_command_runs():
    go = in_folder("newest")
    running = in_folder("newest.running")
    expect_exit(0, "create", "/newest", "0")
    text = ("mkdir %s || echo two at a time; cat; echo; "
            "until [ -e %s ]; do sleep .02; done; rmdir %s" % (
                running, go, running))
    with start("watch", "-n", "2", "/newest", *shell(text)) as process:
        assert read_line(process) == "0"
        for data in "123456789":
            expect_exit(0, "set", "/newest", data)
        time.sleep(.3)
        make_file(go)
        done = process.finish()
        assert (done.code, done.out, done.err) == (0, "9\n", ""), done


def change_without_a_connection_is_delivered():
    expect_exit(0, "create", "/lost", "0")
    with relay.Relay(zk.connect) as proxy, \
            start("watch", "-z", proxy.address, "/lost", *SHOW) as process:
        assert read_line(process) == "[data /lost v0 0]"
        proxy.refuse()
        proxy.drop()
        expect_exit(0, "set", "/lost", "1")
        proxy.accept()
        assert read_line(process) == "[data /lost v1 1]"
        process.terminate()
        assert process.finish().code == 0


def change_during_an_expiry_is_delivered():
    expect_exit(0, "create", "/expired", "0")
    with relay.Relay(zk.connect) as proxy, \
            start("watch", "-T", "1", "-z", proxy.address, "/expired",
                  *SHOW) as process:
        assert read_line(process) == "[data /expired v0 0]"
        proxy.freeze()
        expect_exit(0, "set", "/expired", "1")
        time.sleep(3)
        proxy.drop()
        proxy.thaw()
        assert read_line(process) == "[data /expired v1 1]"
        process.terminate()
        assert process.finish().code == 0


# ---- input ---------------------------------------------------------------------------

BIG = "".join("%07d\n" % i for i in range(125000))  # 1,000,000 bytes


def create_big(path):
    done = expect_exit(0, "create", path, "-", input=BIG)
    assert done.err == ""


def long_input_delays_neither_heartbeats_nor_changes():
    """COMMAND does not read for longer than the session timeout."""
    create_big("/big")
    go = in_folder("big")
    out = in_folder("big.out")
    with relay.Relay(zk.connect) as proxy, \
            start("watch", "-T", "1", "-z", proxy.address, "/big",
                  *shell("if [ -e %s ]; then cat; else touch %s; sleep 3; "
                         "cat >%s; fi" % (go, go, out))) as process:
        appears(go)
        expect_exit(0, "set", "/big", "small\n")
        assert read_line(process) == "small"
        with open(out) as f:
            assert f.read() == BIG
        connections = {each.connection for each in proxy.frames_since()}
        assert len(connections) == 1, connections  # none was given up
        process.terminate()
        assert process.finish().code == 0


def command_that_does_not_read_ends_nothing():
    create_big("/unread")
    closed = in_folder("unread")
    for text in ("exit 0", "read line; exit 0",
                 "exec <&-; until [ -e %s ]; do sleep .02; done" % closed):
        with start("watch", "/unread", *shell(text + "; echo end")) as process:
            time.sleep(.2)
            make_file(closed)
            if "exit" not in text:
                assert read_line(process) == "end"
            expect_exit(0, "set", "/unread", "small")
            expect_exit(0, "set", "/unread", "-", input=BIG)
            time.sleep(.2)
            assert process.poll() is None
            process.terminate()
            done = process.finish()
            assert (done.code, done.err) == (0, ""), done


# ---- COMMAND -------------------------------------------------------------------------

def environment_is_that_of_latchkey_with_three_variables():
    text = ("import json, os, signal; print(json.dumps(dict(os.environ))); "
            "print(sorted(map(int, os.listdir('/proc/self/fd')))); "
            "print([int(n) for n in signal.pthread_sigmask("
            "signal.SIG_BLOCK, [])]); print(os.getpgrp() == os.getpid())")
    env = dict(os.environ, LATCHKEY_EVENT="old", LATCHKEY_EVENTS="kept",
               LATCHKEY_VERSION="old")
    expect_exit(0, "create", "/env")
    done = run("watch", "-n", "1", "/env", *command.python(text), env=env)
    assert (done.code, done.err) == (0, ""), done
    variables, descriptors, blocked, leads_group = done.out.splitlines()
    assert json.loads(variables) == dict(
        env, LATCHKEY_EVENT="data", LATCHKEY_PATH="/env",
        LATCHKEY_VERSION="0"), variables
    assert descriptors == "[0, 1, 2, 3]", descriptors  # 3 is of listdir()
    assert blocked == "[]" and leads_group == "True", done


def options_of_command_are_not_those_of_latchkey():
    expect_exit(0, "create", "/words")
    for dashes in (), ("--",):
        done = run("watch", "-n", "1", "/words", *dashes, "echo", "-r",
                   "--json", "--help", "--", "-n", "5")
        assert done.out == "-r --json --help -- -n 5\n", done
    # Without COMMAND, options may stand after PATH.
    done = run("watch", "/words", "--children", "-n", "1")
    assert (done.code, done.out) == (0, "\n"), done


def failed_command_is_reported_and_runs_again():
    expect_exit(0, "create", "/fails", "3")
    with start("watch", "/fails", *shell("exit $(cat)")) as process:
        line = process.stderr.readline()
        assert line == (
            "latchkey: warning: watch /fails: COMMAND has ended with code 3; it "
            "is run again after the next change\n"), line
        expect_exit(0, "set", "/fails", "0")
        expect_exit(0, "set", "/fails", "4")
        assert "ended with code 4" in process.stderr.readline()
        process.terminate()
        done = process.finish()
        assert (done.code, done.err) == (0, ""), done


def n_ends_watch_with_the_code_of_the_last_run():
    expect_exit(0, "create", "/count", "exit 5")
    done = run("watch", "-n", "1", "/count", "sh")
    assert (done.code, done.err) == (5, ""), done
    with start("watch", "-n", "2", "/count", "sh") as process:
        assert "with code 5" in process.stderr.readline()
        expect_exit(0, "set", "/count", "kill -KILL $$")
        done = process.finish()
        assert (done.code, done.err) == (128 + signal.SIGKILL, ""), done


def command_that_cannot_be_executed_ends_watch():
    expect_exit(0, "create", "/exec")
    done = run("watch", "/exec", "no-such-command")
    assert (done.code, done.err) == (
        127, "latchkey: watch: cannot run no-such-command: No such file or "
        "directory; check the name and PATH\n"), done
    path = in_folder("not-executable")
    make_file(path)
    done = run("watch", "--json", "/exec", path)
    (failure,) = [json.loads(line) for line in done.err.splitlines()]
    assert done.code == 126 and failure["code"] == 126, done
    assert failure["event"] == "failed" and path in failure["reason"], done


def unreadable_node_ends_watch_after_command():
    go = in_folder("secret")
    expect_exit(0, "create", "/secret", "x")
    with relay.Relay(zk.connect) as proxy, start(
            "watch", "-z", proxy.address, "/secret",
            *waits_for(go, before="echo begin", after="echo end")) as process:
        assert read_line(process) == "begin"
        expect_exit(0, "acl", "/secret", "world:anyone:w")
        proxy.drop()  # the next connection begins with a read
        time.sleep(.5)
        assert process.poll() is None
        make_file(go)
        done = process.finish()
        assert done.code == 125 and done.out == "end\n", done
        assert "watch /secret: not allowed" in done.err, done
    for option in (), ("--children",):
        done = expect_exit(125, "watch", *option, "/secret", "true")
        assert "watch /secret: " in done.err, done


# ---- signals -------------------------------------------------------------------------

SLOW_END = shell("trap 'sleep .3; echo ended; exit 3' TERM; echo begin; "
                 "while :; do sleep .02; done")


def signals_end_command_and_then_watch():
    expect_exit(0, "create", "/signal")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with start("watch", "/signal", *SLOW_END) as process:
            assert read_line(process) == "begin"
            process.send_signal(number)
            process.send_signal(number)
            done = process.finish()
            assert (done.code, done.out) == (0, "ended\n"), done
            assert "latchkey" not in done.err, done
    # Between two runs there is no COMMAND to wait for.
    with start("watch", "/signal", *shell("echo end")) as process:
        assert read_line(process) == "end"
        time.sleep(.1)
        process.terminate()
        assert process.finish().code == 0


def term_reaches_the_process_group_of_command():
    expect_exit(0, "create", "/group")
    with start("watch", "/group",
               *shell("sleep 600 & echo $!; wait")) as process:
        child = int(read_line(process))
        process.terminate()
        assert process.finish().code == 0
        eventually(lambda: not command.is_running(child), "end of the child")


def stopped_command_is_ended():
    expect_exit(0, "create", "/stopped")
    with start("watch", "/stopped",
               *shell("echo $$; kill -STOP $$; sleep 600")) as process:
        pid = int(read_line(process))
        eventually(lambda: command.is_stopped(pid), "stop")
        began = time.monotonic()
        process.terminate()
        assert process.finish().code == 0
        assert time.monotonic() - began < 9  # KILL was not needed
        assert not command.is_running(pid)


def tstp_and_cont_are_passed_on():
    expect_exit(0, "create", "/tstp")
    with start("watch", "/tstp", *shell("echo $$; exec sleep 600"),
               start_new_session=False) as process:
        pid = int(read_line(process))
        process.send_signal(signal.SIGTSTP)
        eventually(lambda: command.is_stopped(process.pid), "stop of latchkey")
        eventually(lambda: command.is_stopped(pid), "stop of COMMAND")
        process.send_signal(signal.SIGCONT)
        eventually(lambda: not command.is_stopped(pid), "end of the stop")
        process.terminate()
        assert process.finish().code == 0


def command_that_ignores_term_is_killed():
    expect_exit(0, "create", "/stubborn")
    with start("watch", "/stubborn",
               *shell("trap '' TERM; echo $$; while :; do sleep 1; done")) as process:
        pid = int(read_line(process))
        began = time.monotonic()
        process.terminate()
        time.sleep(1)
        assert command.is_running(pid)
        assert process.finish().code == 0
        assert time.monotonic() - began > 9
        assert not command.is_running(pid)


def killed_latchkey_leaves_no_command():
    expect_exit(0, "create", "/killed")
    with start("watch", "/killed", *shell("echo $$; exec sleep 600")) as process:
        pid = int(read_line(process))
        process.kill()
        process.wait(command.SECONDS)
        eventually(lambda: not command.is_running(pid), "end of COMMAND")


def hup_that_nohup_ignores_does_not_end_watch():
    expect_exit(0, "create", "/nohup", "0")
    with start("watch", "/nohup", *SHOW, preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN)) as process:
        assert read_line(process) == "[data /nohup v0 0]"
        process.send_signal(signal.SIGHUP)
        expect_exit(0, "set", "/nohup", "1")
        assert read_line(process) == "[data /nohup v1 1]"
        process.terminate()
        assert process.finish().code == 0


# ---- usage ---------------------------------------------------------------------------

def usage_errors_are_125():
    for words, text in (
            (("-r", "/x", "true"), "-r and COMMAND exclude each other"),
            (("-r", "--children", "/x"), "-r and --children exclude each other"),
            (("/x", "--"), "COMMAND is missing"),
            (("/x", "-n", "1", "true"),
             "options must stand before PATH if COMMAND follows (put -- before a "
             "COMMAND that begins with -)"),
            (("/x", "-Q", "true"), "unknown option -Q")):
        done = expect_exit(125, "watch", *words)
        assert done.err == (
            "latchkey: watch: %s; latchkey watch --help shows the usage\n" %
            text), done


live.run(live.together(
    command_gets_the_data_now_and_after_each_change,
    command_gets_the_names_of_the_children,
    newer_states_replace_older_ones_while_command_runs,
    change_without_a_connection_is_delivered,
    change_during_an_expiry_is_delivered,
    long_input_delays_neither_heartbeats_nor_changes,
    command_that_does_not_read_ends_nothing,
    environment_is_that_of_latchkey_with_three_variables,
    options_of_command_are_not_those_of_latchkey,
    failed_command_is_reported_and_runs_again,
    n_ends_watch_with_the_code_of_the_last_run,
    command_that_cannot_be_executed_ends_watch,
    unreadable_node_ends_watch_after_command,
    signals_end_command_and_then_watch,
    term_reaches_the_process_group_of_command,
    stopped_command_is_ended,
    tstp_and_cont_are_passed_on,
    command_that_ignores_term_is_killed,
    killed_latchkey_leaves_no_command,
    hup_that_nohup_ignores_does_not_end_watch,
    usage_errors_are_125))
