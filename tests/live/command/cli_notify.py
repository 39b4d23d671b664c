# SPDX-License-Identifier: Apache-2.0
"""latchkey run and elect under a service manager: the datagrams of sd_notify(3)
that the manager gets, in a socket of the test."""

import os
import signal
import socket
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live
from command import run, start

zk = command.serve("--tick", "200")  # no test stops or restarts this server
folder = tempfile.TemporaryDirectory()
EXTEND = "EXTEND_TIMEOUT_USEC=30000000"
CONNECTING = "STATUS=connecting"


class Manager:
    """A socket as systemd has one."""

    def __init__(self, name, abstract=False):
        self.name = "@latchkey-test-%d-%s" % (os.getpid(), name) if abstract \
            else os.path.join(folder.name, name)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.name.replace("@", "\0", 1))
        self.socket.settimeout(30)
        self.environment = dict(os.environ, NOTIFY_SOCKET=self.name)

    def next(self):
        return self.socket.recv(4096).decode()

    def rest(self):
        """All messages that have come."""
        self.socket.setblocking(False)
        messages = []
        try:
            while True:
                messages.append(self.next())
        except BlockingIOError:
            return messages

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.socket.close()


def check_run(path, manager):
    done = run("run", path, "true", env=manager.environment)
    assert (done.code, done.err) == (0, ""), done
    messages = manager.rest()
    assert messages == [CONNECTING, EXTEND, "READY=1",
                        "STATUS=COMMAND runs and holds " + path,
                        "STATUS=COMMAND has ended; leaving " + path], messages


def service_is_ready_when_command_runs():
    with Manager("run") as manager:
        check_run("/notify/run", manager)


def long_status_is_cut_between_characters():
    path = "/notify/x" + "\u00e4" * 2500
    with Manager("long") as manager:
        done = run("run", path, "true", env=manager.environment)
        assert (done.code, done.err) == (0, ""), done
        status = next(m for m in manager.rest() if "COMMAND runs" in m)
    assert ("STATUS=COMMAND runs and holds " + path).startswith(status), status
    # systemd discards more than 4096 bytes.
    assert 3990 < len(status.encode()) <= 4096, status


def abstract_socket_gets_the_messages():
    with Manager("run", abstract=True) as manager:
        check_run("/notify/abstract", manager)


def start_timeout_is_extended_while_waiting():
    path = "/notify/wait"
    with Manager("wait") as manager, \
            start("run", "-i", "first", path, "sleep", "600") as holder:
        command.wait_until_held(path)
        began = time.monotonic()
        with start("run", "-q", "-i", "second", path, "sleep", "600",
                   env=manager.environment) as waiter:
            assert [manager.next() for _ in range(4)] == [
                CONNECTING, EXTEND,
                "STATUS=waiting for %s: position 1, held by first" % path, EXTEND]
            # Well before the 30 s of the first extension are over.
            assert 9 < time.monotonic() - began < 20
            holder.terminate()
            assert manager.next() == "READY=1"
            waiter.terminate()
            waiter.finish()


def service_is_not_ready_if_command_cannot_be_executed():
    with Manager("missing") as manager:
        done = run("run", "/notify/missing", "/nowhere/command",
                   env=manager.environment)
        assert done.code == 127, done
        messages = manager.rest()
        assert "READY=1" not in messages and CONNECTING in messages, messages


def elected_service_is_ready_once():
    path = "/notify/elect"
    with Manager("elect") as manager:
        done = run("elect", "--restarts", "1", path, "false",
                   env=manager.environment)
        assert done.code == 1, done
        messages = manager.rest()
    # A later extension would extend RuntimeMaxSec=.
    assert messages.count("READY=1") == messages.count(EXTEND) == 1, messages
    assert messages.count("STATUS=COMMAND runs and holds " + path) == 2, messages
    pauses = [m for m in messages if "taking part again in 1." in m]
    assert len(pauses) == 1 and pauses[0].startswith(
        "STATUS=%s: the term has ended with code 1" % path), messages


def member_is_ready_when_command_runs():
    path = "/notify/join"
    with Manager("join") as manager:
        done = run("join", path, "true", env=manager.environment)
        assert (done.code, done.err) == (0, ""), done
        messages = manager.rest()
    assert messages == [CONNECTING, EXTEND, "READY=1",
                        "STATUS=COMMAND runs as a member of " + path,
                        "STATUS=COMMAND has ended; leaving " + path], messages


def watchdog_watches_command():
    """WATCHDOG_PID becomes the process id of COMMAND, if it was latchkey's."""
    show = "echo $WATCHDOG_PID $$"
    done = run("-c", 'WATCHDOG_PID=$$ exec "$@"', "sh", command.PROGRAM, "run",
               "/notify/watched", "sh", "-c", show, program="sh")
    assert done.code == 0, done
    watched, pid = done.out.split()
    assert watched == pid, done
    environment = dict(os.environ, WATCHDOG_PID="1")
    done = run("run", "/notify/watched", "sh", "-c", show, env=environment)
    assert done.out.startswith("1 "), done


def missing_socket_is_a_warning():
    def check(name, reason):
        environment = dict(os.environ, NOTIFY_SOCKET=name)
        done = run("run", "/notify/nobody", "true", env=environment)
        assert done.code == 0, done
        assert done.err == (
            "latchkey: warning: NOTIFY_SOCKET: %s: the service manager is not "
            "told when COMMAND is started\n" % reason), done
        done = run("run", "-q", "/notify/nobody", "true", env=environment)
        assert (done.code, done.err) == (0, ""), done

    check(os.path.join(folder.name, "nobody"), os.strerror(2))
    check("vsock:2:1", "Address family not supported by protocol")
    check("/" + 107 * "x", "Address family not supported by protocol")
    done = run("run", "/notify/nobody", "true",
               env=dict(os.environ, NOTIFY_SOCKET=""))
    assert (done.code, done.err) == (0, ""), done


def full_queue_of_the_manager_delays_ready():
    path = "/notify/full"
    with Manager("full") as manager:
        filler = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        filler.connect(manager.name)
        filler.setblocking(False)
        try:
            while True:
                filler.send(b"filler")
        except BlockingIOError:
            pass
        with filler, start("run", path, "sleep", "600",
                           env=manager.environment) as process:
            command.wait_until_held(path)
            live.eventually(lambda: command.descendants_of(process.pid))
            time.sleep(0.5)  # several attempts
            message = manager.next()
            while message == "filler":
                message = manager.next()
            assert message == "READY=1", message
            process.send_signal(signal.SIGTERM)
            process.finish()


live.run(live.together(
    service_is_ready_when_command_runs,
    long_status_is_cut_between_characters,
    abstract_socket_gets_the_messages,
    start_timeout_is_extended_while_waiting,
    service_is_not_ready_if_command_cannot_be_executed,
    elected_service_is_ready_once,
    member_is_ready_when_command_runs,
    watchdog_watches_command,
    missing_socket_is_a_warning,
    full_queue_of_the_manager_delays_ready))
