# SPDX-License-Identifier: Apache-2.0
"""latchkey run: waiting for the lock, and what ends it."""

import json
import os
import pty
import signal
import socket
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run, start
import live
import relay

zk = command.serve()


def holding(lock, label="holder", *words):
    """Somebody who holds until the block ends."""
    process = start("run", "-i", label, *words, lock, "sleep", "600")
    command.wait_until_held(lock)
    return process


def waiting(lock, count, *words, **options):
    """One more who waits, when `count` contend."""
    process = start("run", *words, lock, "echo", "mine", **options)
    command.wait_until_queued(lock, count)
    return process


def n_does_not_wait():
    with holding("/n"):
        for words in (("-n",), ("--nb",), ("--nonblock",), ("-w", "0"),
                      ("-w", ".0"), ("--timeout=0",)):
            done = run("run", *words, "/n", "true")
            assert done.code == 124 and "held by another" in done.err, done
        assert len(command.children("/n")) == 1


def n_takes_what_is_free():
    expect_exit(0, "run", "-n", "/free", "true")
    expect_exit(0, "run", "-w", "0", "/free", "true")


def w_waits_so_long():
    with holding("/w"):
        done = run("run", "-w", "3", "/w", "true")
        assert done.code == 124 and "still held" in done.err, done
        assert len(command.children("/w")) == 1
        with waiting("/w", 2, "-w", "600", "-i", "waiter") as waiter:
            assert command.queue("/w") == (["holder"], ["waiter"])
            waiter.terminate()


def the_exit_code_of_busy_can_be_chosen():
    with holding("/e"):
        for code in (0, 1, 255):
            done = run("run", "-n", "-E", str(code), "/e", "true")
            assert done.code == code, done
        done = run("run", "-w", "2.5", "--conflict-exit-code=7", "/e", "true")
        assert done.code == 7, done
        assert run("run", "-q", "-n", "/e", "true").err == ""


def who_came_first_is_served_first():
    with holding("/fifo") as holder:
        waiters = [waiting("/fifo", n + 2, "-i", str(n)) for n in range(4)]
        assert command.queue("/fifo")[1] == ["0", "1", "2", "3"]
        assert command.queue("/fifo")[0] == ["holder"]
        holder.terminate()
        for waiter in waiters:
            done = waiter.finish()
            assert (done.code, done.out) == (0, "mine\n"), done
    assert command.children("/fifo") == []


def v_tells_the_place_and_who_holds():
    with holding("/v"):
        with waiting("/v", 2) as first, waiting("/v", 3, "-v") as second:
            lines = iter(second.stderr.readline, "")
            line = next(l for l in lines if "waiting for /v" in l)
            assert line == ("latchkey: waiting for /v: place 2, held by "
                            "holder\n"), line
            first.terminate()
            first.finish()
            line = next(l for l in lines if "waiting for /v" in l)
            assert "place 1, held by holder" in line, line
            second.terminate()
            second.finish()


def on_a_terminal(words, until):
    """Run with a terminal for standard error; what it said until `until` was
    seen, or until it ended."""
    command.needs_terminals()
    master, slave = pty.openpty()
    said = b""
    with start("run", *words, stderr=slave) as process:
        os.close(slave)
        try:
            while until not in said:
                said += os.read(master, 4096)
        except OSError:
            pass
        process.terminate()
        process.finish()
    os.close(master)
    return said.decode()


def a_terminal_shows_the_place_without_v():
    with holding("/tty", "hol\x1bder"):
        said = on_a_terminal(["/tty", "true"], b"held by")
        assert "place 1" in said, said
    with holding("/tty2", "hol\x1bder"):
        said = on_a_terminal(["/tty2", "true"], b"der")
        assert "hol\\x1bder" in said and "\x1b" not in said, said


def q_is_quiet():
    with holding("/q"):
        assert on_a_terminal(["-q", "-w", "3", "/q", "true"], b"none") == ""
        done = run("run", "-q", "-v", "-w", "3", "/q", "true")
        assert (done.code, done.err) == (124, ""), done


def without_a_terminal_nothing_is_said():
    with holding("/silent") as holder:
        with waiting("/silent", 2) as waiter:
            holder.terminate()
            done = waiter.finish()
            assert (done.code, done.err) == (0, ""), done


def signals_end_the_wait_and_leave_no_node():
    for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
        number = getattr(signal, "SIG" + name)
        lock = "/ended-by-" + name
        with holding(lock):
            with waiting(lock, 2) as waiter:
                waiter.send_signal(number)
                done = waiter.finish()
                died = name in ("INT", "QUIT")
                assert done.code == (-number if died else 128 + number), (
                    name, done)
                assert "SIG" + name in done.err, done
                assert done.out == "", done
                assert len(command.children(lock)) == 1


def signals_end_the_attempt_to_connect():
    with start("run", "-z", "127.0.0.1:1", "--connect-timeout", "600", "-v",
               "/l", "true") as process:
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.finish().code == 128 + 15


def n_does_not_wait_for_a_server_that_is_silent():
    with relay.Relay(zk.connect) as way:
        way.trap("freeze")
        done = run("run", "-n", "-z", way.address, "--connect-timeout", "3",
                   "/silent", "true")
        assert done.code == 125 and "did not reply in time" in done.err, done


def deadline_of_w_holds_when_the_server_stops_answering():
    with relay.Relay(zk.connect) as way:
        with holding("/hung"):
            for words in (("run", "-w", "1.5", "/hung", "true"),
                          ("wait", "-w", "1.5", "/hung")):
                begun = time.monotonic()
                with start(words[0], "-z", way.address, "-v",
                           *words[1:]) as waiter:
                    time.sleep(1)  # it waits
                    way.freeze()
                    done = waiter.finish()
                    took = time.monotonic() - begun
                way.drop()
                way.thaw()
                assert done.code == (124 if words[0] == "run" else 1), done
                # 0.2 s to close, and a slow machine.
                assert 1.5 <= took < 2.9, (words, took)


def wait_includes_connecting():
    begun = time.monotonic()
    done = run("wait", "-w", "0.5", "-z", "127.0.0.1:1", "/x")
    assert done.code == 125 and time.monotonic() - begun < 3, done


def server_that_refuses_is_mentioned_after_a_second():
    for words in ((), ("-w", "60")):
        begun = time.monotonic()
        with start("run", *words, "-z", "127.0.0.1:1", "/x",
                   "true") as process:
            line = process.stderr.readline()
            assert 0.9 < time.monotonic() - begun < 4, line
            assert line == ("latchkey: no session yet: 127.0.0.1:1: "
                            "Connection refused; trying for another 9 s\n"), line
            process.terminate()
            assert process.finish().err == (
                "latchkey: ended by SIGTERM while waiting\n")
    done = run("run", "-q", "--connect-timeout", "1.5", "-z", "127.0.0.1:1",
               "/x", "true")
    assert done.code == 125 and "no session yet" not in done.err, done


def server_that_does_not_reply_is_mentioned_after_three_seconds():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = "127.0.0.1:%d" % silent.getsockname()[1]
        begun = time.monotonic()
        with start("get", "-z", there, "/x") as process:
            line = process.stderr.readline()
            assert 2.9 < time.monotonic() - begun < 6, line
            assert line == ("latchkey: no session yet: %s: no reply within 3 "
                            "s; trying for another 7 s\n" % there), line
            process.terminate()


def job_of_cron_that_loses_is_silent():
    """The example of the manual: no byte, so no mail, and success."""
    with holding("/nightly"):
        for before in ((), ("-w", "0.3")):
            done = run("run", "-q", *(before or ("-n",)), "-E", "0",
                       "/nightly", "--", "echo", "ran")
            assert (done.code, done.out, done.err) == (0, "", ""), done
    source = os.environ.get("abs_top_srcdir", ".")
    with open(os.path.join(source, "man/latchkey.1")) as f:
        assert "latchkey run -q -n -E 0 /locks/nightly" in f.read()


def nodes_of_zookeeper_are_no_locks():
    for words in (("/zookeeper", "true"), ("/zookeeper/quota", "true"),
                  ("-l", "s:/zookeeper/l", "/l", "true"),
                  ("-z", zk.connect + "/zookeeper", "/l", "true")):
        done = expect_exit(125, "run", *words)
        assert "/zookeeper is reserved for ZooKeeper" in done.err, done
    done = run("run", "--json", "/zookeeper", "true")
    assert json.loads(done.err)["code"] == 125, done


def path_that_does_not_exist_is_told():
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
    with holding("/on") as holder:
        with waiting("/on", 2) as waiter:
            waiter.send_signal(signal.SIGWINCH)
            waiter.send_signal(signal.SIGCONT)
            command.stop_and_cont(waiter.pid)
            waiter.send_signal(signal.SIGTSTP)
            # A process group without a shell cannot be stopped by TSTP; either
            # way it goes on.
            waiter.send_signal(signal.SIGCONT)
            holder.terminate()
            done = waiter.finish()
            assert (done.code, done.out) == (0, "mine\n"), done


def what_nohup_ignores_stays_ignored():
    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with holding("/nohup") as holder:
        with waiting("/nohup", 2, preexec_fn=ignore) as waiter:
            waiter.send_signal(signal.SIGHUP)
            holder.terminate()
            assert waiter.finish().code == 0


def a_waiter_outlives_a_restart_of_the_server():
    with holding("/restart") as holder:
        with waiting("/restart", 2) as waiter:
            zk.restart()
            zk.wait()
            command.wait_until_queued("/restart", 2)
            holder.terminate()
            done = waiter.finish()
            assert (done.code, done.out) == (0, "mine\n"), done
            assert "lost: " in done.err, done


def a_waiter_whose_node_is_deleted_queues_anew():
    with holding("/anew") as holder:
        with waiting("/anew", 2, "-i", "me") as waiter:
            node = command.status("/anew")["waiters"][0]["node"]
            expect_exit(0, "delete", node)
            live.eventually(lambda: [
                c["node"] for c in command.status("/anew")["waiters"]
                if c["node"] != node])
            holder.terminate()
            done = waiter.finish()
            assert done.code == 0 and "place" in done.err, done


live.run(
    live.together(
        n_does_not_wait,
        n_takes_what_is_free,
        w_waits_so_long,
        the_exit_code_of_busy_can_be_chosen,
        who_came_first_is_served_first,
        v_tells_the_place_and_who_holds,
        a_terminal_shows_the_place_without_v,
        q_is_quiet,
        without_a_terminal_nothing_is_said,
        signals_end_the_wait_and_leave_no_node,
        signals_end_the_attempt_to_connect,
        n_does_not_wait_for_a_server_that_is_silent,
        deadline_of_w_holds_when_the_server_stops_answering,
        wait_includes_connecting,
        server_that_does_not_reply_is_mentioned_after_three_seconds,
        server_that_refuses_is_mentioned_after_a_second,
        job_of_cron_that_loses_is_silent,
        nodes_of_zookeeper_are_no_locks,
        path_that_does_not_exist_is_told,
        other_signals_do_not_end_the_wait,
        what_nohup_ignores_stays_ignored,
        a_waiter_whose_node_is_deleted_queues_anew),
    a_waiter_outlives_a_restart_of_the_server)
