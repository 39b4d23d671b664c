# SPDX-License-Identifier: Apache-2.0
"""latchkey run: the lease deadline passes, or the lock is lost, while COMMAND
runs."""

import json
import os
import shutil
import signal
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import start
import live
import worker

zk = command.serve("--tick", "200")  # no test stops or restarts this server
folder = tempfile.TemporaryDirectory()

# A COMMAND that appends lines "EVENT MILLISECONDS" (CLOCK_BOOTTIME) to a file:
# for its begin, for each TERM that it gets, for its end, and "alive" every 20
# ms.
LOGGING_COMMAND = """
import os, signal, sys, time
out = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
def log(event):  # in one write, since a signal handler calls it, too
    now = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
    os.write(out, b"%s %d\\n" % (event.encode(), now))
def on_term(number, frame):
    log("TERM")
    if sys.argv[2] == "ends-at-term":
        os._exit(0)
signal.signal(signal.SIGTERM, on_term)
log("begin")
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    time.sleep(0.02)
    log("alive")
log("end")
"""


def boottime_ms():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)


class Job:
    """`latchkey run` with LOGGING_COMMAND, and with its events on a pipe.
    COMMAND runs for so many seconds, and ends at TERM or ignores it."""

    def __init__(self, zk, lock, *words, ignores_term=False, seconds=600):
        self.lock = lock
        self.zk = zk
        self.log = os.path.join(folder.name, lock.strip("/"))
        open(self.log, "w").close()
        self.events = []
        read, write = os.pipe()
        self.process = start(
            "run", "-z", zk.connect, "--events-fd", str(write), *words, lock,
            *command.python(
                LOGGING_COMMAND, self.log,
                "ignores-term" if ignores_term else "ends-at-term", seconds),
            pass_fds=[write])
        os.close(write)
        self.stream = os.fdopen(read)
        self.wait_until_logged("begin")

    def command_pid(self):
        """The process id of COMMAND."""
        return command.children_of(command.supervisor_of(self.process.pid))[0]

    def logged_lines(self):
        with open(self.log) as f:
            return [line.split() for line in f.read().splitlines()]

    def times_ms(self, event):
        """The times at which COMMAND has logged the event."""
        return [int(ms) for name, ms in self.logged_lines() if name == event]

    def term_ms(self):
        """The time at which COMMAND got TERM."""
        return self.times_ms("TERM")[0]

    def last_alive_ms(self):
        return self.times_ms("alive")[-1]

    def wait_until_logged(self, event):
        live.eventually(lambda: self.times_ms(event), event)

    def ended_without_term(self):
        return bool(self.times_ms("end")) and not self.times_ms("TERM")

    def read_event(self, name):
        """Read the events of latchkey up to this one; gives this event."""
        while True:
            line = self.stream.readline()
            assert line, (name, self.events)
            self.events.append(json.loads(line))
            if self.events[-1]["event"] == name:
                return self.events[-1]

    def finish(self):
        done = self.process.finish()
        self.events += [json.loads(line) for line in self.stream]
        ends = [name for name in self.event_names()
                if name in ("lost", "released")]
        assert len(ends) == 1, self.events
        return done

    def event_names(self):
        return [e["event"] for e in self.events]

    def delete_node(self):
        node = command.run("status", "-z", self.zk.connect, "--json",
                           self.lock).json()[0]["holders"][0]["node"]
        command.expect_exit(0, "delete", "-z", self.zk.connect, node)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.finish()
        self.stream.close()


def with_server(test):
    """Run the test with a server of its own, which it may stop."""
    def wrapped():
        with command.zkserver.Server("--tick", "200") as zk:
            test(zk)
    wrapped.__name__ = test.__name__
    return wrapped


# ---- the server does not reply ----------------------------------------------------

@with_server
def silent_server_ends_command_with_term_before_the_deadline(zk):
    with Job(zk, "/term", "-T", "4") as job:
        job.read_event("acquired")
        stopped = boottime_ms()
        zk.stop()
        job.wait_until_logged("TERM")
        assert stopped < job.term_ms() < stopped + 4000, (
            stopped, job.term_ms())
        job.read_event("unsure")
        zk.cont()
        done = job.finish()
        assert done.code == 123 and "sent TERM" in done.err, done


@with_server
def command_that_ignores_term_is_killed_at_the_deadline(zk):
    with Job(zk, "/kill", "-T", "4", "--kill-after", "1",
             ignores_term=True) as job:
        job.read_event("acquired")
        pid = job.command_pid()
        stopped = boottime_ms()
        zk.stop()
        unsure = job.read_event("unsure")
        assert unsure["lease_ms"] <= 1000, unsure
        live.eventually(lambda: not command.is_running(pid))
        assert job.term_ms() < job.last_alive_ms() < stopped + 4000, (
            stopped, job.logged_lines()[-5:])
        # --kill-after, and 100 ms for a slow machine.
        assert job.last_alive_ms() - job.term_ms() <= 1000 + 100
        zk.cont()
        done = job.finish()
        assert done.code == 123 and "sent KILL" in done.err, done


@with_server
def descendant_that_ignores_term_is_killed_at_the_deadline(zk):
    pid_file = os.path.join(folder.name, "deaf")
    deaf = "trap '' TERM; echo $$ > %s; exec sleep 600" % pid_file
    with start("run", "-z", zk.connect, "-T", "6", "/deaf", "sh", "-c",
               'sh -c "$1" & wait', "-", deaf) as process:
        pid = command.wait_for_number(pid_file)
        zk.stop()
        live.eventually(lambda: not command.is_running(pid))
        zk.cont()
        done = process.finish()
        assert done.code == 123 and "sent KILL" in done.err, done


@with_server
def supervisor_keeps_the_kill_schedule_while_latchkey_is_stopped(zk):
    with Job(zk, "/stopped", "-T", "3", ignores_term=True) as job:
        job.read_event("acquired")
        pid = job.command_pid()
        stopped = boottime_ms()
        job.process.send_signal(signal.SIGSTOP)
        live.eventually(lambda: not command.is_running(pid))
        assert (stopped < job.term_ms() < job.last_alive_ms() <
                stopped + 3000), (stopped, job.logged_lines()[-5:])
        job.process.send_signal(signal.SIGCONT)
        assert job.finish().code == 123


@with_server
def on_lost_kill_kills_at_once(zk):
    with Job(zk, "/at-once", "-T", "3", "--on-lost", "kill") as job:
        job.read_event("acquired")
        pid = job.command_pid()
        stopped = boottime_ms()
        zk.stop()
        live.eventually(lambda: not command.is_running(pid))
        assert not job.times_ms("TERM")
        assert job.last_alive_ms() < stopped + 3000
        zk.cont()
        assert job.finish().code == 123


@with_server
def on_lost_stop_stops_command_and_continues_it_when_the_lock_is_held_again(zk):
    with Job(zk, "/stop", "-T", "6", "--on-lost", "stop") as job:
        job.read_event("acquired")
        pid = job.command_pid()
        zk.stop()
        live.eventually(lambda: command.is_stopped(pid))
        # A stopped server expires no session, so the lock is held again.
        zk.cont()
        job.read_event("held")
        live.eventually(lambda: not command.is_stopped(pid))
        assert not job.times_ms("TERM")
        job.process.send_signal(signal.SIGTERM)
        done = job.finish()
        assert done.code == 123, done
        lines = [line.partition(": /stop: ")[2]
                 for line in done.err.splitlines()]
        assert [line for line in lines if line.endswith(" COMMAND")] == [
            "the lease is running out: stopped COMMAND",
            "the lease is renewed: continued COMMAND"], done


@with_server
def killed_command_leaves_no_stopped_descendants(zk):
    child_file = os.path.join(folder.name, "child")
    script = "sleep 600 >/dev/null 2>&1 & echo $! >$0; wait"
    with start("run", "-z", zk.connect, "-T", "6", "--on-lost", "stop",
               "/stop-kill", "sh", "-c", script, child_file) as process:
        child = command.wait_for_number(child_file)
        pid = command.children_of(command.supervisor_of(process.pid))[0]
        zk.stop()
        live.eventually(lambda: command.is_stopped(pid))
        live.eventually(lambda: command.is_stopped(child))
        os.kill(pid, signal.SIGKILL)
        live.eventually(lambda: not command.is_stopped(child))
        os.kill(child, signal.SIGKILL)
        zk.cont()
        done = process.finish()
        assert done.code == 123 and "stopped COMMAND" in done.err, done


# ---- processes of another user

def start_beside_root(*words):
    """Start `run` as the user nobody, with a COMMAND that belongs to root; gives
    the command and the process id of its COMMAND."""
    if not command.is_root():
        raise live.NotTested("this needs root, to run as another user")
    os.chmod(folder.name, 0o755)
    helper = os.path.join(folder.name, "as_root")
    if not os.path.exists(helper):
        shutil.copy(worker.program("command/as_root"), helper)
        os.chmod(helper, 0o4755)
    job = start("--reuid", "65534", "--regid", "65534", "--clear-groups",
                command.PROGRAM, "run", *words, helper, "sleep", "600",
                program="setpriv")
    pid = live.eventually(lambda: command.children_of(
        command.supervisor_of(job.pid)))[0]
    live.eventually(lambda: "sleep" in open("/proc/%d/comm" % pid).read() or
                    job.poll() is not None)
    if job.poll() is not None:
        raise live.NotTested("%s is mounted without set-user-ID programs" %
                             folder.name)
    return job, pid


def read_errors(job, text, lines):
    """Read standard error up to a line with this text; adds it to `lines`."""
    for line in job.stderr:
        lines.append(line)
        if text in line:
            return
    raise AssertionError((text, lines))


@with_server
def process_that_may_not_be_signalled_is_named(zk):
    job, pid = start_beside_root("-z", zk.connect, "-T", "4", "/root")
    lines = []
    with job:
        zk.stop()
        read_errors(job, "KILL did not reach process %d" % pid, lines)
        time.sleep(0.5)  # until the lease has ended
        job.send_signal(signal.SIGTERM)
        read_errors(job, "process %d goes on without the lock" % pid, lines)
        zk.cont()
        assert job.wait(20) == 123
        os.kill(pid, signal.SIGKILL)
    for number in ("TERM", "KILL"):
        assert any("cannot send %s to process %d (sleep): Operation not "
                   "permitted" % (number, pid) in line
                   for line in lines), lines
        assert not any("sent " + number in line for line in lines), lines


@with_server
def lock_is_held_while_a_process_may_not_be_signalled(zk):
    job, pid = start_beside_root("-z", zk.connect, "--max-hold", "1",
                                 "--kill-after", "0.5", "/kept")
    lines = []
    with job:
        read_errors(job, "--max-hold is over: KILL did not reach process", lines)
        job.send_signal(signal.SIGTERM)
        read_errors(job, "cannot be ended, and the lock stays held", lines)
        command.expect_exit(124, "run", "-z", zk.connect, "-w", "0.5", "/kept",
                            "true")
        os.kill(pid, signal.SIGKILL)
        assert job.wait(20) == 123


@with_server
def on_lost_ignore_does_not_signal_command(zk):
    with Job(zk, "/ignore", "-T", "4", "--on-lost", "ignore",
             seconds=8) as job:
        job.read_event("acquired")
        zk.stop()
        job.read_event("unsure")
        zk.cont()
        job.read_event("held")
        done = job.finish()
        assert job.ended_without_term(), job.logged_lines()[-3:]
        assert done.code == 0, done
        assert job.event_names()[-1] == "released", job.event_names()
    with Job(zk, "/ignore2", "-T", "4", "--on-lost", "ignore",
             seconds=6) as job:
        job.read_event("acquired")
        job.delete_node()
        job.read_event("lost")
        done = job.finish()
        assert job.ended_without_term(), job.logged_lines()[-3:]
        assert done.code == 123, done


@with_server
def short_server_restart_does_not_signal_command(zk):
    with Job(zk, "/short", "-T", "20", seconds=2) as job:
        job.read_event("acquired")
        zk.restart()
        done = job.finish()
        assert done.code == 0 and job.ended_without_term(), done
        assert job.event_names() == ["acquired", "released"], job.event_names()


def check_warning_of_a_release_without_a_server(zk, lock, seconds):
    """Let COMMAND end after so many seconds, while the server is stopped. The
    node of the lock is still there when latchkey exits."""
    with Job(zk, lock, "-T", "3", "--on-lost", "ignore",
             seconds=seconds) as job:
        job.read_event("acquired")
        zk.stop()
        done = job.finish()
        zk.cont()
        assert done.code == 0 and done.err.splitlines()[-1] == (
            "latchkey: warning: %s: no server is reachable to release the "
            "lock; the lock is free once the servers have had a quorum for "
            "one session timeout" % lock), done
        lost = job.events[-1]
        assert lost["event"] == "lost" and done.err.strip().endswith(
            lost["reason"]), lost


@with_server
def release_without_a_server_gives_a_warning(zk):
    check_warning_of_a_release_without_a_server(zk, "/late", 0.5)


@with_server
def session_that_the_client_gives_up_is_no_release(zk):
    # When COMMAND ends, little is left of the session timeout of 3 s. So the
    # client takes the session for expired before the time limit of the release.
    check_warning_of_a_release_without_a_server(zk, "/given-up", 3)


# ---- the node is deleted ------------------------------------------------------------

def lost_lock_sends_term_at_once():
    with Job(zk, "/lost", "-T", "60") as job:
        job.read_event("acquired")
        job.delete_node()
        lost = job.read_event("lost")
        assert lost["reason"], lost
        done = job.finish()
        assert job.times_ms("TERM"), job.logged_lines()[-3:]
        assert done.code == 123, done
        assert "the lock is lost while COMMAND runs: another client deleted " \
            "its node" in done.err and "sent TERM" in done.err, done


def lost_lock_sends_kill_when_kill_after_has_passed():
    with Job(zk, "/lost2", "-T", "60", "--kill-after", "0.5",
             ignores_term=True) as job:
        job.read_event("acquired")
        job.delete_node()
        done = job.finish()
        assert 300 < job.last_alive_ms() - job.term_ms() <= 600, (
            job.logged_lines()[-30:])
        assert done.code == 123, done


def loss_is_found_before_the_first_heartbeat():
    with Job(zk, "/heartbeat", "-T", "60") as job:
        began = boottime_ms()
        job.read_event("acquired")
        job.delete_node()
        job.read_event("lost")
        # The first heartbeat follows after a quarter of the session timeout.
        assert boottime_ms() - began < 10000
        assert job.finish().code == 123


# ---- renewal of the lease -------------------------------------------------------------

def every_assurance_renews_the_lease():
    jobs = [Job(zk, "/" + assurance, "-T", "4", "--assurance", assurance,
                seconds=9) for assurance in ("quorum", "sync", "ping")]
    for job in jobs:
        with job:
            assert job.finish().code == 0
            assert job.event_names() == ["acquired", "released"], job.event_names()


def kill_after_must_be_less_than_half_the_session_timeout():
    done = command.expect_exit(125, "run", "-z", zk.connect, "-T", "10",
                               "--kill-after", "5", "/margin", "true")
    assert "--kill-after" in done.err and "-T" in done.err, done


def lease_is_limited_by_the_granted_session_timeout():
    # The server grants 60 s of the requested 600.
    with Job(zk, "/granted", "-T", "600", seconds=1) as job:
        acquired = job.read_event("acquired")
        assert acquired["lease_ms"] <= 60000, acquired
        assert job.finish().code == 0


live.run(live.together(
    silent_server_ends_command_with_term_before_the_deadline,
    command_that_ignores_term_is_killed_at_the_deadline,
    descendant_that_ignores_term_is_killed_at_the_deadline,
    supervisor_keeps_the_kill_schedule_while_latchkey_is_stopped,
    on_lost_kill_kills_at_once,
    on_lost_stop_stops_command_and_continues_it_when_the_lock_is_held_again,
    killed_command_leaves_no_stopped_descendants,
    process_that_may_not_be_signalled_is_named,
    lock_is_held_while_a_process_may_not_be_signalled,
    on_lost_ignore_does_not_signal_command),
    live.together(
    short_server_restart_does_not_signal_command,
    release_without_a_server_gives_a_warning,
    session_that_the_client_gives_up_is_no_release,
    lost_lock_sends_term_at_once,
    lost_lock_sends_kill_when_kill_after_has_passed,
    loss_is_found_before_the_first_heartbeat,
    every_assurance_renews_the_lease,
    kill_after_must_be_less_than_half_the_session_timeout,
    lease_is_limited_by_the_granted_session_timeout))
