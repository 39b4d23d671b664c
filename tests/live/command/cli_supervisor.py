# SPDX-License-Identifier: Apache-2.0
"""latchkey run: the supervisor ends COMMAND by the lease deadline, also while
latchkey is stopped, blocked or flooded."""

import glob
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import start
import live
from relay import Relay

zk = command.serve("--tick", "500")
folder = tempfile.TemporaryDirectory()

# A COMMAND that appends a line with the time to the file $1 every 20 ms.
WRITER = """
import sys, time
while True:
    with open(sys.argv[1], "a") as f:
        f.write("%d\\n" % (time.clock_gettime(time.CLOCK_BOOTTIME) * 1000))
    time.sleep(0.02)
"""


class Log:
    """The file to which a WRITER appends times, and the command line of this
    WRITER."""

    def __init__(self, name):
        self.name = os.path.join(folder.name, name)
        self.writer = command.python(WRITER, self.name)

    def let_all_users_write(self):
        open(self.name, "w").close()
        os.chmod(self.name, 0o666)
        os.chmod(folder.name, 0o755)

    def last_ms(self):
        """The time that was written last; 0 if there is none."""
        try:
            with open(self.name) as f:
                lines = f.read().split()
        except FileNotFoundError:
            return 0
        return int(lines[-1]) if lines else 0

    def wait_for_writer(self):
        live.eventually(self.last_ms, "the writer writes")

    def check_silence_since(self, granted_ms):
        """Check that the writer has written nothing since the grant."""
        time.sleep(0.3)  # a running writer writes every 20 ms
        assert self.last_ms() < granted_ms, (self.last_ms(), granted_ms)


def acquire_next(lock, *options):
    """Acquire the lock with another latchkey, which uses no relay; gives the
    time of the grant in ms."""
    done = command.run(
        "run", "-w", "30", *options, lock,
        *command.python("import time; print(int(time.clock_gettime("
                        "time.CLOCK_BOOTTIME) * 1000))"))
    assert done.code == 0, done
    return int(done.out)


def quoted(words):
    return " ".join("'%s'" % w.replace("'", "'\\''") for w in words)


def run_as_nobody():
    """The beginning of a command line that runs as the user nobody, who can
    make no cgroup."""
    if not command.is_root():
        return []
    return ["setpriv", "--reuid", "65534", "--regid", "65534",
            "--clear-groups"]


# ---- --on-lost stop

def check_on_lost_stop(name, script, options=(), wrapper=()):
    """Check that a descendant of COMMAND is stopped when another latchkey is
    granted_ms the lock, and stays stopped when latchkey gets SIGCONT. COMMAND is
    the shell script, with the command line of the writer for %s. `wrapper` is a
    command that executes latchkey."""
    log = Log(name)
    log.let_all_users_write()
    lock = "/" + name
    with Relay(zk.connect) as wire:
        line = [*wrapper, command.PROGRAM, "run", "-z", wire.address, "-T", "4",
                "--on-lost", "stop", *options, lock, "sh", "-c",
                script % quoted(log.writer)]
        with start(*line[1:], program=line[0]) as process:
            log.wait_for_writer()
            command.wait_until_held(lock)
            wire.freeze()
            granted_ms = acquire_next(lock)
            log.check_silence_since(granted_ms)
            process.send_signal(signal.SIGCONT)
            log.check_silence_since(granted_ms)
            wire.thaw()
            assert process.finish().code == 123


def on_lost_stop_stops_a_child_with_foreground():
    check_on_lost_stop("stop-fore", "%s & wait", options=["--foreground"])


def on_lost_stop_stops_another_session():
    check_on_lost_stop("stop-setsid", "setsid %s & wait")


def on_lost_stop_stops_another_session_without_a_cgroup():
    check_on_lost_stop("stop-nobody", "setsid %s & wait",
                       wrapper=run_as_nobody())


def on_lost_stop_without_a_cgroup_is_told():
    if not command.is_root():
        raise live.NotTested("this needs root, to run as another user")
    told = "there is no control group for COMMAND"
    as_nobody = [*run_as_nobody(), command.PROGRAM, "run"]

    def run(*options):
        done = command.run(*as_nobody[1:], *options, "/told", "true",
                           program=as_nobody[0])
        assert done.code == 0, done
        return done

    done = run("--on-lost", "stop")
    assert told in done.err and "--on-lost stop kills" in done.err, done
    done = run("--on-lost", "stop", "--json")
    assert [e for e in map(json.loads, done.err.splitlines())
            if e["event"] == "notice" and told in e["reason"]], done
    assert told in run("-v").err
    assert told not in run().err
    done = command.run("run", "-v", "/told", "true")
    assert done.code == 0 and told not in done.err, done


def cgroup_is_found_among_many_mounts():
    """The first mount of cgroup2 is read-only, and stands behind 64 KiB of
    others in mountinfo."""
    if not command.is_root():
        raise live.NotTested("this needs root, to mount")
    script = """
        set -e
        first=$(sed -n '/ - cgroup2 /{s/^\\([^ ]* \\)\\{4\\}\\([^ ]*\\).*/\\2/p;q}' \
                  /proc/self/mountinfo)
        mount -t tmpfs none "$1"
        long=$1/$(printf '%0200d' 0)
        for i in $(seq 150); do mkdir $long$i; mount --bind $long$i $long$i; done
        mkdir "$1/second one"
        mount -o remount,bind,ro "$first"
        mount -t cgroup2 none "$1/second one"
        shift; exec "$@"
    """
    with tempfile.TemporaryDirectory() as mounts:
        done = command.run("-m", "sh", "-c", script, "sh", mounts,
                           command.PROGRAM, "run", "-v", "/mounts", "sh", "-c",
                           "wc -c </proc/self/mountinfo; cat /proc/self/cgroup",
                           program="unshare")
    assert done.code == 0 and "control group" not in done.err, done
    assert int(done.out.split()[0]) > 65536, done
    assert re.search(r"^0::.*/latchkey-[0-9a-f]{16}$", done.out, re.M), done


def on_lost_stop_stops_a_process_group_of_job_control():
    check_on_lost_stop("stop-monitor", "set -m; %s & wait",
                       wrapper=run_as_nobody())


# ---- a stopped supervisor

def latchkey_continues_a_stopped_supervisor():
    log = Log("stopped")
    with Relay(zk.connect) as wire:
        with start("run", "-z", wire.address, "-T", "4", "/stopped",
                   *log.writer) as process:
            log.wait_for_writer()
            supervisor = command.supervisor_of(process.pid)
            wire.freeze()
            os.kill(supervisor, signal.SIGSTOP)
            granted_ms = acquire_next("/stopped")
            log.check_silence_since(granted_ms)
            wire.thaw()
            assert process.finish().code == 123


# ---- deep trees

# A chain of 40 processes, each in a session of its own. The last one executes
# the program in the second argument.
DEEP_TREE = """
import os, sys, time
for i in range(40):
    if os.fork():
        time.sleep(600)
    os.setsid()
exec(sys.argv[2])
"""


def supervisor_that_is_stopped_ends_command_when_latchkey_is_killed():
    """The kernel continues a stopped process whose group becomes orphaned, but not
    one that has not acted on SIGSTOP yet, which a round does not always hit."""
    for n in range(20):
        with start("run", "-T", "2", "/stopkill%d" % n, "sleep", "600") as process:
            supervisor = command.supervisor_of(process.pid)
            (pid,) = live.eventually(lambda s=supervisor: command.children_of(s))
            os.kill(supervisor, signal.SIGSTOP)
            process.kill()
            live.eventually(lambda p=pid: not command.is_running(p))


def deep_tree_of_processes_is_dead_at_the_deadline():
    log = Log("deep")
    log.let_all_users_write()
    with Relay(zk.connect) as wire:
        line = [*run_as_nobody(), command.PROGRAM, "run", "-z", wire.address,
                "-T", "4", "/deep", *command.python(DEEP_TREE, log.name, WRITER)]
        with start(*line[1:], program=line[0]) as process:
            log.wait_for_writer()
            wire.freeze()
            granted_ms = acquire_next("/deep")
            log.check_silence_since(granted_ms)
            wire.thaw()
            assert process.finish().code == 123


# ---- many signals

def stopped_latchkey_and_many_stops_of_command_do_not_delay_kill():
    """The supervisor reports each stop of COMMAND to latchkey, which reads
    nothing."""
    log = Log("flood-reports")
    with start("run", "-T", "4", "/flood-reports", *log.writer) as process:
        log.wait_for_writer()
        pid = command.children_of(command.supervisor_of(process.pid))[0]
        process.send_signal(signal.SIGSTOP)
        for _ in range(500):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.002)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.002)
        granted_ms = acquire_next("/flood-reports")
        log.check_silence_since(granted_ms)
        process.send_signal(signal.SIGCONT)
        assert process.finish().code == 123


# Handles some signals by doing nothing, and executes the program in the second
# argument.
SIGNAL_HANDLERS = """
import signal, sys, time
for s in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGHUP):
    signal.signal(s, lambda n, f: None)
exec(sys.argv[2])
"""


def flood_of_forwarded_signals_does_not_delay_kill():
    """latchkey asks the supervisor to forward each signal."""
    log = Log("flood-requests")
    with start("run", "-T", "20", "--on-lost", "kill", "/flood-requests",
               *command.python(SIGNAL_HANDLERS, log.name, WRITER)) as process:
        log.wait_for_writer()
        supervisor = command.supervisor_of(process.pid)
        os.setpriority(os.PRIO_PROCESS, supervisor, 19)  # slower than latchkey
        node = command.status("/flood-requests")["holders"][0]["node"]
        deleting = start("delete", node)
        end = time.monotonic() + 20
        numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
                   signal.SIGHUP]
        while process.poll() is None and time.monotonic() < end:
            for number in numbers:
                process.send_signal(number)
        assert deleting.finish().code == 0
        done = process.finish()
        assert done.code == 123 and "KILL" in done.err, done


# ---- a shorter session timeout

def restart_with_max_session_timeout(server, max_ms):
    config = os.path.join(server.dir, "1", "zoo.cfg")
    with open(config) as f:
        text = f.read()
    with open(config, "w") as f:
        f.write(re.sub(r"(?m)^maxSessionTimeout=.*$",
                       "maxSessionTimeout=%d" % max_ms, text))
    server.ask("restart 1")


def holds_after_reconnect(process):
    """Read messages until the client has reconnected; gives whether it still
    holds the lock. It does not if the restart took so long that the lease
    deadline of the shorter timeout has passed."""
    for line in process.stderr:
        if "sent TERM" in line:
            return False
        if "reconnected" in line:
            return True
    return False


def check_end_after_a_shorter_timeout(name):
    """Stop latchkey after its session was resumed with a shorter timeout, and
    check that COMMAND ends in time. Gives False if the restart took too long
    for this check."""
    log = Log(name)
    with command.zkserver.Server("--tick", "500", "--max-timeout",
                                 "60000") as server:
        with start("run", "-z", server.connect, "-T", "60", "-v", "/" + name,
                   *log.writer) as process:
            log.wait_for_writer()
            restart_with_max_session_timeout(server, 15000)
            if not holds_after_reconnect(process):
                return False
            time.sleep(1)  # wait until the supervisor knows the new deadline
            process.send_signal(signal.SIGSTOP)
            granted_ms = acquire_next("/" + name, "-z", server.connect, "-T", "4")
            log.check_silence_since(granted_ms)
            process.send_signal(signal.SIGCONT)
            process.wait(60)
            return process.returncode == 123


def shorter_session_timeout_reaches_the_supervisor():
    for n in range(4):
        if check_end_after_a_shorter_timeout("shrink-%d" % n):
            return
    assert False, "the restarts took too long"


def supervisor_uses_the_clock_of_the_lease():
    with start("run", "/clock", "sleep", "600") as process:
        command.wait_until_held("/clock")
        supervisor = command.supervisor_of(process.pid)

        def clocks():
            found = []
            for name in glob.glob("/proc/%d/fdinfo/*" % supervisor):
                with open(name) as f:
                    found += re.findall(r"clockid: (\d+)", f.read())
            return found
        assert clocks() == [str(time.CLOCK_BOOTTIME)], clocks()


# ---- latchkey's own output and input

def fill(fd):
    """Write to the descriptor until its buffer is full."""
    os.set_blocking(fd, False)
    try:
        while True:
            os.write(fd, b"x" * 1000)
    except BlockingIOError:
        pass
    os.set_blocking(fd, True)


def non_blocking_outputs(pid):
    """The pipes ("pipe:[N]") and terminals that a process has open for writing
    with O_NONBLOCK."""
    found = set()
    for number in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, number)) as f:
                flags = int(re.search(r"flags:\s*(\d+)", f.read())[1], 8)
            if flags & os.O_NONBLOCK and flags & os.O_ACCMODE == os.O_WRONLY:
                found.add(os.readlink("/proc/%d/fd/%s" % (pid, number)))
        except FileNotFoundError:
            pass  # closed meanwhile
    return found


def full_pipe_shared_with_command_does_not_block_latchkey():
    read, write = os.pipe()  # nothing reads it
    pipe = os.readlink("/proc/self/fd/%d" % write)
    with start("run", "-v", "-T", "4", "/full-pipe", "sh", "-c",
               "while :; do echo %s; done >&2" % (200 * "x"),
               stderr=write) as process:
        os.close(write)
        command.wait_until_held("/full-pipe")
        assert pipe in non_blocking_outputs(process.pid)
        pid = command.children_of(command.supervisor_of(process.pid))[0]
        assert pipe not in non_blocking_outputs(pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
        os.close(read)


def full_terminal_does_not_block_latchkey():
    command.skip_without_terminals()
    read, write = pty.openpty()
    terminal = os.ttyname(write)
    with start("run", "-v", "-T", "4", "/full-tty", "sleep", "600",
               stderr=write) as process:
        command.wait_until_held("/full-tty")
        assert terminal in non_blocking_outputs(process.pid)
        assert os.get_blocking(write)
        fill(write)
        os.close(write)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM
        os.close(read)


def signals_end_reading_an_auth_file():
    name = os.path.join(folder.name, "auth")
    os.mkfifo(name)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with start("run", "--auth-file", name, "/auth", "true") as process:
            write = live.eventually(lambda: writing_end(name))
            process.send_signal(number)
            assert process.wait(10) == -number
            os.close(write)


def writing_end(name):
    """The writing end of a FIFO; None until a process has opened it to read."""
    try:
        return os.open(name, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return None


def too_few_descriptors_are_125():
    for limit in range(4, 16):
        done = command.run("-c", "ulimit -n %d; exec %s run -q /few true" % (
            limit, command.PROGRAM), program="sh",
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        if done.code != 0:  # the limit is too small
            assert done.code == 125, (limit, done)
            assert len(done.err.splitlines()) == 1, done


def file_size_limit_does_not_kill_latchkey():
    name = os.path.join(folder.name, "err")
    with open(name, "w") as err:
        err.write("x" * 512)  # standard error has reached the limit of 1 block
        err.flush()
        with start("-c", "ulimit -f 1; exec %s run -v /size true" %
                   command.PROGRAM, program="sh", stderr=err) as process:
            assert process.wait(20) == 0


# ---- the tests themselves

def description_of_a_hang_names_the_process_that_keeps_the_output_open():
    with start("-c", "setsid sleep 600 2>&- & echo $!; exit 3",
               program="sh") as process:
        sleeper = int(process.stdout.readline())
        live.eventually(lambda: command.process_state(process.pid) == "Z")
        try:
            text = command.describe_hang(process)
        finally:
            os.kill(sleeper, signal.SIGKILL)
        assert process.finish().code == 3
    lines = text.splitlines()
    for line in ("standard output is open in process %d, descriptors [1]" % sleeper,
                 "process %d: sleep 600" % sleeper):
        assert line in lines, text
    assert "standard error is open" not in text, text
    assert "stack of process %d" % sleeper in lines, text


live.run(live.together(
    on_lost_stop_stops_a_child_with_foreground,
    on_lost_stop_stops_another_session,
    on_lost_stop_stops_another_session_without_a_cgroup,
    on_lost_stop_without_a_cgroup_is_told,
    cgroup_is_found_among_many_mounts,
    on_lost_stop_stops_a_process_group_of_job_control,
    latchkey_continues_a_stopped_supervisor,
    supervisor_that_is_stopped_ends_command_when_latchkey_is_killed,
    deep_tree_of_processes_is_dead_at_the_deadline,
    stopped_latchkey_and_many_stops_of_command_do_not_delay_kill,
    flood_of_forwarded_signals_does_not_delay_kill,
    supervisor_uses_the_clock_of_the_lease,
    full_pipe_shared_with_command_does_not_block_latchkey,
    full_terminal_does_not_block_latchkey,
    signals_end_reading_an_auth_file,
    too_few_descriptors_are_125,
    file_size_limit_does_not_kill_latchkey,
    description_of_a_hang_names_the_process_that_keeps_the_output_open),
    shorter_session_timeout_reaches_the_supervisor)
