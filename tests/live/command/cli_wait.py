# SPDX-License-Identifier: Apache-2.0
"""latchkey run: waiting for the lock, and the ends of a wait."""

import json
import os
import pty
import re
import signal
import socket
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run, start
import live
import relay

zk = command.serve()
CLOSED_PORT = "127.0.0.1:1"  # no server listens there


def start_holder(lock, label="holder"):
    """Start a run that holds the lock until its `with` block ends."""
    process = start("run", "-i", label, lock, "sleep", "600")
    command.wait_until_held(lock)
    return process


def start_waiter(lock, contenders, *words, job=("echo", "mine"), **options):
    """Start a run of the command `job` that waits for the lock; returns when
    the lock has so many contenders."""
    process = start("run", *words, lock, *job, **options)
    command.wait_until_queued(lock, contenders)
    return process


def n_and_w_0_do_not_wait_for_a_held_lock():
    with start_holder("/n"):
        for words in (("-n",), ("--nb",), ("--nonblock",), ("-w", "0"),
                      ("-w", ".0"), ("--timeout=0",)):
            done = run("run", *words, "/n", "true")
            assert done.code == 124 and "held by another" in done.err, done
        assert len(command.children("/n")) == 1


def holder_without_a_session_is_warned_of():
    """Another program has created a node that looks like a contender's, and that
    no end of a session deletes."""
    node = "/left/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000"
    expect_exit(0, "create", "-p", node)
    warning = ("latchkey: warning: %s is not ephemeral, so no session holds it: "
               "the lock is held until a client deletes the node\n" % node)
    for words in (), ("-v",):
        done = expect_exit(124, "run", *words, "-w", "1", "/left", "true")
        assert done.err.count(warning) == 1, done
    done = expect_exit(124, "run", "-q", "-w", "1", "/left", "true")
    assert done.err == "", done


def n_and_w_0_acquire_a_free_lock():
    expect_exit(0, "run", "-n", "/free", "true")
    expect_exit(0, "run", "-w", "0", "/free", "true")


def w_ends_the_wait_after_its_time():
    with start_holder("/w"):
        done = run("run", "-w", "3", "/w", "true")
        assert done.code == 124 and "still held" in done.err, done
        assert len(command.children("/w")) == 1


def status_shows_the_label_of_a_waiter():
    with start_holder("/label"):
        with start_waiter("/label", 2, "-w", "600", "-i", "waiter") as waiter:
            assert command.queue("/label") == (["holder"], ["waiter"])
            waiter.terminate()


def exit_code_for_a_held_lock_can_be_chosen():
    with start_holder("/e"):
        for code in (0, 1, 255):
            done = run("run", "-n", "-E", str(code), "/e", "true")
            assert done.code == code, done
        done = run("run", "-w", "2.5", "--conflict-exit-code=7", "/e", "true")
        assert done.code == 7, done


def locks_are_granted_in_queue_order():
    with tempfile.NamedTemporaryFile("r") as grants:
        with start_holder("/fifo") as holder:
            waiters = [
                start_waiter("/fifo", n + 2, "-i", str(n), job=(
                    "sh", "-c", "echo %d >> %s" % (n, grants.name)))
                for n in range(4)]
            assert command.queue("/fifo") == (["holder"], ["0", "1", "2", "3"])
            holder.terminate()
            for waiter in waiters:
                assert waiter.finish().code == 0
        assert grants.read() == "0\n1\n2\n3\n"
    assert command.children("/fifo") == []


def v_prints_position_and_holder():
    with start_holder("/v"):
        with start_waiter("/v", 2) as first, start_waiter("/v", 3, "-v") as second:
            lines = iter(second.stderr.readline, "")
            line = next(l for l in lines if "waiting for /v" in l)
            assert line == ("latchkey: waiting for /v: position 2, held by "
                            "holder\n"), line
            first.terminate()
            first.finish()
            line = next(l for l in lines if "waiting for /v" in l)
            assert "position 1, held by holder" in line, line
            second.terminate()
            second.finish()


def run_on_a_terminal(*words, until=None):
    """Execute `latchkey run WORDS` with a terminal as standard error; gives the
    output there up to the bytes `until`, or all of it if that is None."""
    command.skip_without_terminals()
    master, slave = pty.openpty()
    output = b""
    with start("run", *words, stderr=slave) as process:
        os.close(slave)
        try:
            while until is None or until not in output:
                output += os.read(master, 4096)
        except OSError:
            assert until is None, output  # latchkey has closed the terminal
        process.terminate()
        process.finish()
    os.close(master)
    return output.decode()


def terminal_shows_the_position_without_v():
    with start_holder("/tty"):
        output = run_on_a_terminal("/tty", "true", until=b"held by")
        assert "position 1" in output, output


def terminal_shows_control_characters_of_a_label_escaped():
    with start_holder("/escape", "red\x1b[31m"):
        output = run_on_a_terminal("/escape", "true", until=b"[31m")
        assert "red\\x1b[31m" in output and "\x1b" not in output, output


def q_prints_nothing():
    with start_holder("/q"):
        assert run_on_a_terminal("-q", "-w", "3", "/q", "true") == ""
        done = run("run", "-q", "-v", "-w", "3", "/q", "true")
        assert (done.code, done.err) == (124, ""), done
        done = run("run", "-q", "-n", "/q", "true")
        assert (done.code, done.err) == (124, ""), done


def wait_without_a_terminal_prints_nothing():
    with start_holder("/silent") as holder:
        with start_waiter("/silent", 2) as waiter:
            holder.terminate()
            done = waiter.finish()
            assert (done.code, done.err) == (0, ""), done


def signals_end_the_wait_and_leave_no_node():
    for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
        number = getattr(signal, "SIG" + name)
        lock = "/ended-by-" + name
        with start_holder(lock):
            with start_waiter(lock, 2) as waiter:
                waiter.send_signal(number)
                done = waiter.finish()
                # latchkey itself dies of INT and QUIT, so that a shell that
                # started it ends, too.
                dies = name in ("INT", "QUIT")
                assert done.code == (-number if dies else 128 + number), (
                    name, done)
                assert "SIG" + name in done.err, done
                assert done.out == "", done
                assert len(command.children(lock)) == 1


def signals_end_a_connection_attempt():
    with start("run", "-z", CLOSED_PORT, "--connect-timeout", "600", "-v",
               "/l", "true") as process:
        process.stderr.readline()  # reports the failed connection attempt
        process.send_signal(signal.SIGTERM)
        assert process.finish().code == 128 + signal.SIGTERM


def n_does_not_wait_for_a_silent_server():
    with relay.Relay(zk.connect) as proxy:
        proxy.at_frame("freeze")  # at the first request of the session
        done = run("run", "-n", "-z", proxy.address, "--connect-timeout", "3",
                   "/silent", "true")
        assert done.code == 125 and "did not reply in time" in done.err, done


def waits_for_a_lock(proxy, mark):
    """Whether a client has read the node of a holder since the mark, and all its
    requests have replies."""
    frames = proxy.frames_since(mark)
    replies = {(f.connection, f.xid) for f in frames if not f.up}
    requests = [f for f in frames if f.up and f.op != relay.PING]
    return relay.GET in [f.op for f in requests] and all(
        (f.connection, f.xid) in replies for f in requests)


W_SECONDS = 6


def close_after_w(proxy, code, verb, *operands):
    """Run the verb with -w at a server that stops answering; gives the time from
    closeSession to the end of the connection, in seconds."""
    mark, begun = proxy.mark(), time.monotonic()
    with start(verb, "-z", proxy.address, "-v", "-w", str(W_SECONDS),
               *operands) as waiter:
        live.eventually(lambda: waits_for_a_lock(proxy, mark))
        proxy.freeze()
        done = waiter.finish()
    frames = proxy.frames_since(mark)
    proxy.drop()
    proxy.thaw()
    assert done.code == code, done
    # The relay notes the time of a frame even if it does not forward it. Its
    # times do not include the start and the end of the process.
    (connect,) = [f for f in frames if f.up and f.op == relay.CONNECT]
    (close,) = [f for f in frames if f.up and f.op == relay.CLOSE]
    assert close.at - begun >= W_SECONDS, (verb, close.at - begun)
    # The session would be lost after 20 s.
    assert close.at - connect.at < W_SECONDS + 8, (verb, close.at - connect.at)
    return live.eventually(
        lambda: proxy.closed_at.get(close.connection)) - close.at


def deadline_of_w_holds_when_the_server_stops_answering():
    with relay.Relay(zk.connect) as proxy, start_holder("/hung"):
        for words in ((124, "run", "/hung", "true"), (1, "wait", "/hung")):
            # Closing the session takes 0.2 s, and 1.5 s without -w.
            took = close_after_w(proxy, *words)
            assert took < 1.4, (words, took)


def lock_is_not_said_to_be_held_by_servers_that_do_not_reply():
    with start_holder("/mute"):
        for layout in ((), ("--layout", "single")):
            lock = "/mute" if not layout else "/mute-node"
            for words in (("run", "-E", "0"), ("wait",)):
                with relay.Relay(zk.connect) as proxy:
                    proxy.at_frame("freeze")  # at the first request
                    operands = [lock] + ["true"] * (words[0] == "run")
                    done = run(*words, "-w", "1.5", "-z", proxy.address,
                               *layout, *operands)
                    assert done.code == 125, done
                    assert "did not reply in time" in done.err, done


def lock_seen_held_before_a_long_silence_is_not_said_to_be_held():
    with relay.Relay(zk.connect) as proxy, start_holder("/silence"):
        for words in (("run", "-E", "0", "-T", "4"), ("wait", "-T", "4")):
            mark = proxy.mark()
            operands = ["/silence"] + ["true"] * (words[0] == "run")
            # Longer than 2/3 of the session timeout, and too short for its end.
            with start(*words, "-w", "4", "-z", proxy.address,
                       *operands) as waiter:
                live.eventually(lambda: waits_for_a_lock(proxy, mark))
                proxy.freeze()
                done = waiter.finish()
            proxy.drop()
            proxy.thaw()
            assert done.code == 125, done
            assert "did not reply in time" in done.err, done


def w_of_the_wait_command_includes_the_time_to_connect():
    begun = time.monotonic()
    done = run("wait", "-w", "0.5", "--connect-timeout", "60", "-z",
               CLOSED_PORT, "/x")
    assert done.code == 125 and time.monotonic() - begun < 30, done


def refused_connection_is_reported_after_a_second():
    for words in ((), ("-w", "60")):
        begun = time.monotonic()
        with start("run", *words, "-z", CLOSED_PORT, "/x",
                   "true") as process:
            line = process.stderr.readline()
            assert 0.9 < time.monotonic() - begun < 4, line
            # The connect timeout is 10 s, whatever -w says.
            assert line == ("latchkey: no session yet: 127.0.0.1:1: "
                            "Connection refused; trying for another 9 s\n"), line
            process.terminate()
            assert process.finish().err == (
                "latchkey: ended by SIGTERM while waiting\n")
    done = run("run", "-q", "--connect-timeout", "1.5", "-z", CLOSED_PORT,
               "/x", "true")
    assert done.code == 125 and "no session yet" not in done.err, done


def server_that_does_not_reply_is_mentioned_after_five_seconds():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        begun = time.monotonic()
        with start("get", "-z", address, "/x") as process:
            line = process.stderr.readline()
            assert 4.9 < time.monotonic() - begun < 8, line
            assert line == ("latchkey: no session yet: %s: no reply within 5 "
                            "s; trying for another 5 s\n" % address), line
            process.terminate()


def cron_job_that_finds_the_lock_busy_prints_nothing():
    """The example of the manual, where cron would mail any output."""
    with start_holder("/nightly"):
        for options in (("-n",), ("-w", "3")):
            done = run("run", "-q", *options, "-E", "0", "/nightly", "--",
                       "echo", "ran")
            assert (done.code, done.out, done.err) == (0, "", ""), done
    source = os.environ.get("abs_top_srcdir", ".")
    with open(os.path.join(source, "man/latchkey.1")) as f:
        assert "latchkey run -q -n -E 0 /locks/nightly" in f.read()


def zookeepers_own_nodes_are_refused_as_locks():
    for words in (("/zookeeper", "true"), ("/zookeeper/quota", "true"),
                  ("-l", "s:/zookeeper/l", "/l", "true"),
                  ("-z", zk.connect + "/zookeeper", "/l", "true")):
        done = expect_exit(125, "run", *words)
        assert "/zookeeper is reserved for ZooKeeper" in done.err, done
    done = run("run", "--json", "/zookeeper", "true")
    assert json.loads(done.err)["code"] == 125, done


def missing_lock_directory_is_reported_as_free():
    done = expect_exit(0, "status", "/none")
    assert done.out == ("/none: free: no such node; the first use of the "
                        "lock creates it\n"), done
    assert command.status("/none") == {
        "lock": "/none", "state": "free", "missing": True, "holders": [],
        "waiters": []}
    done = expect_exit(0, "wait", "/none")
    assert done.err == ("latchkey: wait /none: no such node, so the lock is "
                        "free\n"), done
    done = run("revoke", "/none")
    assert (done.code, done.err) == (
        1, "latchkey: revoke /none: the lock is free: no such node\n"), done
    expect_exit(0, "create", "/there")
    assert command.status("/there")["missing"] is False
    assert expect_exit(0, "wait", "/there").err == ""
    assert run("revoke", "/there").err == (
        "latchkey: revoke /there: the lock is free\n")
    expect_exit(0, "status", "--layout", "kazoo", "/none")


def other_signals_do_not_end_the_wait():
    with start_holder("/on") as holder:
        with start_waiter("/on", 2) as waiter:
            waiter.send_signal(signal.SIGWINCH)
            waiter.send_signal(signal.SIGCONT)
            command.stop_and_cont(waiter.pid)
            waiter.send_signal(signal.SIGTSTP)
            # TSTP stops the waiter only if its process group is not orphaned.
            waiter.send_signal(signal.SIGCONT)
            holder.terminate()
            done = waiter.finish()
            assert (done.code, done.out) == (0, "mine\n"), done


def signals_that_nohup_ignores_stay_ignored():
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with start_holder("/nohup") as holder:
        with start_waiter("/nohup", 2, preexec_fn=ignore) as waiter:
            waiter.send_signal(signal.SIGHUP)
            holder.terminate()
            assert waiter.finish().code == 0


def waiter_survives_a_server_restart():
    with start_holder("/restart") as holder:
        with start_waiter("/restart", 2) as waiter:
            zk.restart()
            zk.wait()
            command.wait_until_queued("/restart", 2)
            holder.terminate()
            done = waiter.finish()
            assert (done.code, done.out) == (0, "mine\n"), done
            assert "lost: " in done.err, done


def waiter_whose_node_was_deleted_queues_again():
    with start_holder("/anew") as holder:
        with start_waiter("/anew", 2, "-i", "me") as waiter:
            deleted = command.status("/anew")["waiters"][0]["node"]
            expect_exit(0, "delete", deleted)
            live.eventually(lambda: any(
                c["node"] != deleted
                for c in command.status("/anew")["waiters"]))
            holder.terminate()
            done = waiter.finish()
            assert done.code == 0, done
            assert "lost the place in the queue" in done.err, done


def replies_too_slow_for_the_session_timeout_are_named():
    with relay.Relay(zk.connect) as proxy:
        proxy.delay(700, up=False)
        done = run("run", "-T", "2", "-w", "6", "-z", proxy.address, "/slow", "true")
        assert done.code == 125, done
        first = done.err.splitlines()[0]
        assert re.fullmatch(
            "latchkey: warning: /slow: a reply takes (0.[7-9]|1.)[0-9]* s, and a lock needs "
            "replies within a quarter of the session timeout, which is 2 s; raise -T",
            first), done
        assert done.err.count("a reply takes") == 1, done
        done = run("run", "-T", "6", "-w", "20", "-z", proxy.address, "/slow", "true")
        assert (done.code, done.err) == (0, ""), done


live.run(
    live.together(
        n_and_w_0_do_not_wait_for_a_held_lock,
        n_and_w_0_acquire_a_free_lock,
        w_ends_the_wait_after_its_time,
        status_shows_the_label_of_a_waiter,
        holder_without_a_session_is_warned_of,
        exit_code_for_a_held_lock_can_be_chosen,
        locks_are_granted_in_queue_order,
        v_prints_position_and_holder,
        terminal_shows_the_position_without_v,
        terminal_shows_control_characters_of_a_label_escaped,
        q_prints_nothing,
        wait_without_a_terminal_prints_nothing,
        signals_end_the_wait_and_leave_no_node,
        signals_end_a_connection_attempt,
        n_does_not_wait_for_a_silent_server,
        deadline_of_w_holds_when_the_server_stops_answering,
        lock_is_not_said_to_be_held_by_servers_that_do_not_reply,
        lock_seen_held_before_a_long_silence_is_not_said_to_be_held,
        w_of_the_wait_command_includes_the_time_to_connect,
        server_that_does_not_reply_is_mentioned_after_five_seconds,
        replies_too_slow_for_the_session_timeout_are_named,
        refused_connection_is_reported_after_a_second,
        cron_job_that_finds_the_lock_busy_prints_nothing,
        zookeepers_own_nodes_are_refused_as_locks,
        missing_lock_directory_is_reported_as_free,
        other_signals_do_not_end_the_wait,
        signals_that_nohup_ignores_stay_ignored,
        waiter_whose_node_was_deleted_queues_again),
    waiter_survives_a_server_restart)
