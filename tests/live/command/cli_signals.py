# SPDX-License-Identifier: Apache-2.0
"""latchkey run: signals while COMMAND runs, terminals, and PID 1."""

import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time

sys.path.append(sys.path[0] + "/../support")

import command
import differences
from command import run, start
import live

zk = command.serve()
folder = tempfile.TemporaryDirectory()

# A COMMAND that prints the name of each signal that it gets, and exits with 7
# at TERM. With the argument "fork" its child does the same.
SIGNAL_REPORTER = """
import os, signal, sys, time
names = sys.argv[1].split(",")
def report(text):
    os.write(1, (text + "\\n").encode())
def on_signal(number, frame):
    report("%s %s" % (process, signal.Signals(number).name))
    if number == signal.SIGTERM:
        os._exit(7)
process = "child"
if "fork" in sys.argv and os.fork() == 0:
    process = "grandchild"
for name in names + ["SIGTERM"]:
    signal.signal(getattr(signal, name), on_signal)
report(process + " ready")
while True:
    time.sleep(60)
"""


def signal_reporter(names, *fork):
    return command.python(SIGNAL_REPORTER, names, *fork)


def read_until(stream, lines, wanted):
    """Append lines of the stream to `lines`, until one is `wanted`."""
    while wanted not in lines:
        line = stream.readline()
        assert line, (wanted, lines)
        lines.append(line.rstrip("\r\n"))


def signals_are_forwarded_to_command():
    names = ["SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH",
             "SIGCONT"]
    with start("run", "/pass", *signal_reporter(",".join(names))) as process:
        lines = []
        read_until(process.stdout, lines, "child ready")
        for name in names:
            process.send_signal(getattr(signal, name))
            read_until(process.stdout, lines, "child " + name)
        process.send_signal(signal.SIGTERM)
        read_until(process.stdout, lines, "child SIGTERM")
        assert process.finish().code == 7
        assert len(lines) == len(set(lines)), lines  # no signal arrived twice


def signals_are_forwarded_to_the_process_group():
    with start("run", "/group", *signal_reporter("SIGUSR1", "fork")) as process:
        lines = []
        read_until(process.stdout, lines, "child ready")
        read_until(process.stdout, lines, "grandchild ready")
        process.send_signal(signal.SIGUSR1)
        read_until(process.stdout, lines, "child SIGUSR1")
        read_until(process.stdout, lines, "grandchild SIGUSR1")
        process.send_signal(signal.SIGTERM)
        read_until(process.stdout, lines, "grandchild SIGTERM")
        assert process.finish().code == 7


def foreground_forwards_signals_to_command_only():
    with start("run", "--foreground", "/fore", *signal_reporter("SIGUSR1", "fork"),
               start_new_session=True) as process:
        lines = []
        read_until(process.stdout, lines, "child ready")
        read_until(process.stdout, lines, "grandchild ready")
        process.send_signal(signal.SIGUSR1)
        read_until(process.stdout, lines, "child SIGUSR1")
        process.send_signal(signal.SIGTERM)
        read_until(process.stdout, lines, "child SIGTERM")
        process.wait()
        assert process.returncode == 7
        assert not any(line.startswith("grandchild SIG") for line in lines), lines
        os.killpg(process.pid, signal.SIGKILL)  # ends the grandchild


def stopped_command_keeps_the_lock():
    pid_file = os.path.join(folder.name, "stopped")
    with start("run", "-T", "4", "/stopped", "sh", "-c",
               "echo $$ > %s; sleep 600 & wait" % pid_file) as process:
        pid = command.wait_for_number(pid_file)
        process.send_signal(signal.SIGTSTP)
        live.eventually(lambda: command.process_state(pid) == "T")
        time.sleep(5)  # longer than the session timeout
        assert command.status("/stopped")["state"] == "held"
        assert command.process_state(process.pid) != "T"
        process.send_signal(signal.SIGCONT)
        live.eventually(lambda: command.process_state(pid) == "S")
        process.send_signal(signal.SIGTERM)
        assert process.finish().code == 128 + signal.SIGTERM


# ---- terminals ----------------------------------------------------------------

# A minimal shell: runs one job in the foreground of the terminal, writes to the
# descriptor REPORTS when the job stops or ends, and continues the job when it
# reads a byte from the descriptor CONTINUE.
SHELL = """
import os, signal, sys
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
    os.tcsetpgrp(0, os.getpgrp())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])
    os.execv(sys.argv[1], sys.argv[1:])
out = os.fdopen(int(os.environ["REPORTS"]), "w", buffering=1)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        print("ended", os.waitstatus_to_exitcode(status), file=out)
        break
    print("stopped", signal.Signals(os.WSTOPSIG(status)).name, file=out)
    os.tcsetpgrp(0, os.getpgrp())
    os.read(int(os.environ["CONTINUE"]), 1)
    os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
"""


CTRL_C, CTRL_Z, CTRL_BACKSLASH = b"\x03", b"\x1a", b"\x1c"


def read_terminal(master):
    """The next bytes of a terminal."""
    ready = select.select([master], [], [], command.SECONDS)[0]
    assert ready, "nothing is written to the terminal"
    return os.read(master, 4096)


class Terminal:
    """A terminal on which SHELL runs latchkey as a job. SHELL's lines about the
    job are in the stream `reports`."""

    def __init__(self, *words):
        command.skip_without_terminals()
        reports, reports_of_shell = os.pipe()
        continue_of_shell, self._continue = os.pipe()
        for fd in (reports_of_shell, continue_of_shell):
            os.set_inheritable(fd, True)
        env = dict(os.environ, REPORTS=str(reports_of_shell),
                   CONTINUE=str(continue_of_shell))
        shell = command.python(SHELL, command.PROGRAM, "run", *words)
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            # By default an interrupt discards output that was not read yet.
            mode = termios.tcgetattr(0)
            mode[3] |= termios.NOFLSH
            termios.tcsetattr(0, termios.TCSANOW, mode)
            os.execve(shell[0], shell, env)
        os.close(reports_of_shell)
        os.close(continue_of_shell)
        self.reports = os.fdopen(reports)
        self.output = b""

    def wait_for(self, text, times=1):
        while self.output.count(text) < times:
            self.output += read_terminal(self.master)

    def press(self, keys):
        os.write(self.master, keys)

    def continue_job(self):
        os.write(self._continue, b".")

    def close(self):
        self.reports.close()
        os.close(self._continue)
        os.close(self.master)
        os.waitpid(self.pid, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def interrupt_from_the_terminal_arrives_once():
    with Terminal("/once", *signal_reporter("SIGINT,SIGWINCH")) as terminal:
        terminal.wait_for(b"child ready")
        for n in (1, 2):
            terminal.press(CTRL_C)
            terminal.wait_for(b"SIGINT", n)
        # A signal to latchkey alone is forwarded.
        latchkey = command.children_of(terminal.pid)[0]
        os.kill(latchkey, signal.SIGWINCH)
        terminal.wait_for(b"SIGWINCH")
        os.kill(latchkey, signal.SIGTERM)
        terminal.wait_for(b"SIGTERM")
        assert terminal.reports.readline() == "ended 7\n"
        assert terminal.output.count(b"SIGINT") == 2, terminal.output


def command_reads_the_terminal():
    with Terminal("/reads", "sh", "-c", "read x; echo got $x") as terminal:
        command.wait_until_held("/reads")
        terminal.press(b"this\n")
        terminal.wait_for(b"got this")
        assert terminal.reports.readline() == "ended 0\n"


def shell_sees_a_stopped_command():
    with Terminal("/job", "sh", "-c", "echo go; read x; echo got $x"
                  ) as terminal:
        terminal.wait_for(b"go")
        terminal.press(CTRL_Z)
        assert terminal.reports.readline() == "stopped SIGTSTP\n"
        terminal.continue_job()
        terminal.press(b"on\n")
        terminal.wait_for(b"got on")
        assert terminal.reports.readline() == "ended 0\n"


def shell_sees_a_stopped_waiter():
    with start("run", "/wjob", "sleep", "600") as holder:
        command.wait_until_held("/wjob")
        with Terminal("/wjob", "true") as terminal:
            terminal.wait_for(b"waiting for")
            terminal.press(CTRL_Z)
            assert terminal.reports.readline() == "stopped SIGTSTP\n"
            terminal.continue_job()
            holder.terminate()
            assert terminal.reports.readline() == "ended 0\n"


class Leader:
    """A terminal on which latchkey leads the session, as with `ssh -t` or
    `docker run -t`: no shell could continue it. `stdin`: its standard input is
    the terminal, or else /dev/null."""

    def __init__(self, *words, stdin=True):
        command.skip_without_terminals()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            if not stdin:
                os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.execv(command.PROGRAM, [command.PROGRAM, *words])
        self.output = b""
        self.hung_up = False

    def wait_for(self, text):
        while text not in self.output:
            self.output += read_terminal(self.master)

    def hang_up(self):
        os.close(self.master)
        self.hung_up = True

    def finish(self):
        """Wait until latchkey has ended; gives its exit code."""
        def code():
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return None if pid == 0 else [os.waitstatus_to_exitcode(status)]
        (result,) = live.eventually(code, "the end of latchkey")
        self.pid = 0
        return result

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid != 0:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if not self.hung_up:
            os.close(self.master)


def command_of(latchkey):
    return command.children_of(command.supervisor_of(latchkey))[0]


def hang_up_of_a_session_leader_reaches_command():
    got = os.path.join(folder.name, "hup")
    for verb, stdin in (("run", True), ("run", False), ("elect", True)):
        with Leader(verb, "/hup", "sh", "-c",
                    "trap 'echo >%s; exit 0' HUP; echo go; "
                    "while :; do sleep 0.1; done" % got, stdin=stdin) as leader:
            leader.wait_for(b"go")
            leader.hang_up()
            live.eventually(lambda: os.path.exists(got))
            assert leader.finish() == 0
        os.unlink(got)


def stop_key_stops_nothing_that_no_shell_could_continue():
    for stdin in (True, False):
        with Leader("run", "/tstp", "sh", "-c", "echo go; sleep 600",
                    stdin=stdin) as leader:
            leader.wait_for(b"go")
            pid = command_of(leader.pid)
            os.write(leader.master, CTRL_Z)
            leader.wait_for(b"continued COMMAND")
            live.eventually(lambda p=pid: command.process_state(p) == "S")
            assert command.process_state(leader.pid) != "T"
            os.kill(leader.pid, signal.SIGTERM)
            assert leader.finish() == 128 + signal.SIGTERM


def interrupt_reaches_a_command_that_has_left_the_process_group():
    with Terminal("/left", "timeout", "600", *signal_reporter("SIGINT")
                  ) as terminal:
        terminal.wait_for(b"child ready")
        terminal.press(CTRL_C)
        terminal.wait_for(b"SIGINT")
        (latchkey,) = command.children_of(terminal.pid)
        os.kill(latchkey, signal.SIGTERM)
        assert terminal.reports.readline() == "ended 7\n"


def command_that_the_terminal_has_stopped_is_ended_by_term():
    with Leader("run", "/ttin", "sh", "-c", "echo go; read x </dev/tty",
                stdin=False) as leader:
        leader.wait_for(b"--foreground permits that")
        assert command.process_state(command_of(leader.pid)) == "T"
        os.kill(leader.pid, signal.SIGTERM)
        assert leader.finish() == 128 + signal.SIGTERM


def keys_end_a_command_that_was_stopped():
    for key, number in ((CTRL_C, signal.SIGINT), (CTRL_BACKSLASH, signal.SIGQUIT)):
        with Leader("run", "/stops", "sh", "-c", "echo go; kill -STOP $$; sleep 600"
                    ) as leader:
            leader.wait_for(b"go")
            pid = command_of(leader.pid)
            live.eventually(lambda p=pid: command.process_state(p) == "T")
            os.write(leader.master, key)
            assert leader.finish() == -number


def hang_up_ends_a_command_that_was_stopped():
    """The end of the shell, which leads the session, hangs the terminal up."""
    with Terminal("/stophup", "sh", "-c", "echo go; kill -STOP $$; sleep 600"
                  ) as terminal:
        terminal.wait_for(b"go")
        (latchkey,) = command.children_of(terminal.pid)
        pid = command_of(latchkey)
        live.eventually(lambda: command.process_state(pid) == "T")
        os.kill(terminal.pid, signal.SIGKILL)
        live.eventually(lambda: not command.is_running(pid))
        assert run("wait", "-w", "5", "/stophup").code == 0


def job_that_reads_in_the_background_goes_on_in_the_foreground():
    command.skip_without_terminals()
    if shutil.which("bash") is None:
        raise live.NotTested("there is no bash")
    bash, master = pty.fork()
    if bash == 0:
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    output = b""
    try:
        os.write(master, b"%s run /ttinbg cat &\n" % command.PROGRAM.encode())
        (latchkey,) = live.eventually(lambda: command.children_of(bash))
        live.eventually(lambda: command.process_state(latchkey) == "T")
        for _ in range(2):
            os.write(master, b"fg\n")
            live.eventually(lambda: command.process_state(latchkey) == "S")
            # It may stop a moment later.
            time.sleep(.3)
            assert command.process_state(latchkey) == "S"
            os.write(master, b"line\n")
            while output.count(b"line\r\n") < 2:  # echoed, and written by cat
                output += read_terminal(master)
            output = b""
            os.write(master, CTRL_Z)
            live.eventually(lambda: command.process_state(latchkey) == "T")
    finally:
        os.kill(bash, signal.SIGKILL)
        os.waitpid(bash, 0)
        os.close(master)


# After an INT, bash ends this loop only if latchkey has died of INT, too.
LOOP = 'for i in 1 2 3; do "$0" run "$@"; echo "again $?"; done'


def run_loop_on_a_terminal(key, lock, wait_until_ready):
    """Run LOOP in bash on a terminal, and press a key when wait_until_ready()
    returns; gives the wait status of bash, and its output."""
    command.skip_without_terminals()
    if shutil.which("bash") is None:
        raise live.NotTested("there is no bash")
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "-c", LOOP, command.PROGRAM, lock, "sleep",
                           "8"])
    output = b""
    wait_until_ready()
    os.write(master, key)
    try:
        while data := os.read(master, 4096):
            output += data
    except OSError:  # the other end was closed
        pass
    os.close(master)
    return os.waitpid(pid, 0)[1], output.decode()


def interrupt_ends_a_loop_of_the_shell():
    lock = "/loop"
    status, output = run_loop_on_a_terminal(
        CTRL_C, lock, lambda: command.wait_until_held(lock))
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGINT, (
        status, output)
    assert "again" not in output, output
    assert command.children(lock) == []


def interrupt_of_a_waiter_ends_a_loop_of_the_shell():
    lock = "/wloop"
    with start("run", lock, "sleep", "600") as holder:
        command.wait_until_held(lock)
        status, output = run_loop_on_a_terminal(
            CTRL_C, lock, lambda: command.wait_until_queued(lock, 2))
        assert os.WIFSIGNALED(status), (status, output)
        assert os.WTERMSIG(status) == signal.SIGINT, status
        assert "again" not in output, output
        assert len(command.children(lock)) == 1
        holder.terminate()


def latchkey_dies_of_int_and_quit_as_command_did():
    for number in (signal.SIGINT, signal.SIGQUIT):
        done = command.run("run", "--json", "/dies", "sh", "-c",
                           "ulimit -c 0; kill -%d $$" % number)
        events = [json.loads(line)["event"] for line in done.err.splitlines()]
        assert done.code == -number, done
        assert events == ["acquired", "released"], done
    for number in (signal.SIGTERM, signal.SIGHUP):
        done = command.run("run", "/dies", "sh", "-c", "kill -%d $$" % number)
        assert done.code == 128 + number, done


def quit_of_a_waiter_dumps_no_core():
    hard_limit = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard_limit == 0:
        raise live.NotTested("core dumps are not allowed")
    with start("run", "/core", "sleep", "600") as holder:
        command.wait_until_held("/core")
        pid = os.fork()
        if pid == 0:
            resource.setrlimit(resource.RLIMIT_CORE, (hard_limit, hard_limit))
            os.chdir(folder.name)
            # By default, a build with sanitizers dumps no core.
            asan = os.environ.get("ASAN_OPTIONS", "") + ":disable_coredump=0"
            os.execve(command.PROGRAM, [command.PROGRAM, "run", "-q", "/core",
                                        "true"],
                      dict(os.environ, ASAN_OPTIONS=asan))
        command.wait_until_queued("/core", 2)
        os.kill(pid, signal.SIGQUIT)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), status
        assert os.WTERMSIG(status) == signal.SIGQUIT, status
        assert not os.WCOREDUMP(status), status
        holder.terminate()


def lost_lock_is_123_even_if_command_died_of_int():
    with start("run", "--on-lost", "ignore", "/lostint", "sh", "-c",
               "echo go; read x; kill -INT $$", stdin=subprocess.PIPE) as job:
        assert job.stdout.readline() == "go\n"
        node = command.status("/lostint")["holders"][0]["node"]
        command.expect_exit(0, "delete", node)
        assert "is lost" in job.stderr.readline()
        job.stdin.write("on\n")
        job.stdin.flush()
        assert job.finish().code == 123


# ---- PID 1 --------------------------------------------------------------------

def skip_without_pid_namespaces(*options):
    """Skip the test if `unshare` cannot make a PID namespace."""
    if not command.is_root() or subprocess.run(
            ["unshare", "--pid", "--fork", *options, "true"],
            stderr=subprocess.DEVNULL).returncode != 0:
        raise live.NotTested("no right to make a PID namespace")


def pid_1_forwards_signals_and_reaps_orphans():
    skip_without_pid_namespaces("--mount-proc")
    # COMMAND leaves five orphans, and writes at TERM how many are zombies.
    text = """
import os, signal, subprocess, time
def on_term(number, frame):
    os.write(1, b"%d zombies\\n" % count_zombies())
    os._exit(5)
def count_zombies():
    found = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with open("/proc/%s/stat" % name) as f:
                found += f.read().rpartition(")")[2].split()[0] == "Z"
    return found
signal.signal(signal.SIGTERM, on_term)
for _ in range(5):
    subprocess.run(["sh", "-c", "sleep 0.2 &"])
time.sleep(1)
print("ready", flush=True)
time.sleep(600)
"""
    with start("--pid", "--fork", "--mount-proc", "--kill-child",
               command.PROGRAM, "run", "/pid1", *command.python(text),
               program="unshare") as process:
        assert process.stdout.readline() == "ready\n", process.finish()
        pid1 = command.children_of(process.pid)[0]
        os.kill(pid1, signal.SIGTERM)
        done = process.finish()
        assert (done.code, done.out) == (5, "0 zombies\n"), done


def pid_1_exits_with_130_after_an_interrupt():
    skip_without_pid_namespaces("--mount-proc")
    with start("--pid", "--fork", "--mount-proc", "--kill-child",
               command.PROGRAM, "run", "/pid1int", "sh", "-c",
               "echo go; exec sleep 600", program="unshare") as process:
        assert process.stdout.readline() == "go\n", process.finish()
        os.kill(command.children_of(process.pid)[0], signal.SIGINT)
        done = process.finish()
        assert done.code == 128 + signal.SIGINT and not done.err, done
    assert command.children("/pid1int") == []


def signals_end_each_verb_as_pid_1():
    skip_without_pid_namespaces("--mount-proc")
    # No server is there, so the first three wait for a session.
    kind = [] if differences.has("PERSISTENT_WATCHES") else ["--children"]
    for words in (("get", "/"), ("wait", "/l"), ("watch", "/"),
                  ("watch", "-z", zk.connect, *kind, "/")):
        with start("--pid", "--fork", "--mount-proc", "--kill-child",
                   command.PROGRAM, words[0], "-z", "127.0.0.1:1",
                   "--connect-timeout", "600", *words[1:],
                   program="unshare") as process:
            # The first message, or "watching".
            (process.stdout if "-z" in words else process.stderr).readline()
            os.kill(command.children_of(process.pid)[0], signal.SIGTERM)
            done = process.finish()
            assert done.code == (0 if "-z" in words else 128 + signal.SIGTERM), done


def pid_1_works_without_proc():
    skip_without_pid_namespaces("--mount")
    hide_proc = ["--pid", "--mount", "--fork", "--kill-child", "sh", "-c",
                 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if command.run(*hide_proc, command.PROGRAM, "--version",
                   program="unshare").code != 0:
        raise live.NotTested("the build needs /proc")
    text = ("trap 'exit 5' TERM; for i in 1 2 3 4 5; do (sleep 0.1 &); done; "
            "echo go; while :; do sleep 0.1; done")
    for number, code in (signal.SIGTERM, 5), (signal.SIGINT, 128 + signal.SIGINT):
        with start(*hide_proc, command.PROGRAM, "run", "/pid1noproc", "sh", "-c",
                   text, program="unshare") as process:
            assert process.stdout.readline() == "go\n", process.finish()
            pid1 = command.children_of(process.pid)[0]
            supervisor = command.supervisor_of(pid1)
            live.eventually(lambda: len(command.children_of(supervisor)) == 1,
                            "no zombie and no orphan")
            os.kill(pid1, number)
            done = process.finish()
            assert done.code == code and "latchkey:" not in done.err, done
    done = command.run(*hide_proc, command.PROGRAM, "run", "/pid1noproc", "sh",
                       "-c", "(setsid sleep 600 &); exit 7", program="unshare")
    assert (done.code, done.err) == (7, ""), done
    assert command.children("/pid1noproc") == []


def pid_1_with_proc_of_the_parent_namespace_kills_no_other_process():
    """In the PID namespace of latchkey the supervisor is process 2, but /proc
    shows the parent namespace, where process 2 is kthreadd. The ids of its
    children, kernel threads, belong to other processes in the namespace of
    latchkey."""
    skip_without_pid_namespaces()
    stopped_zk = command.zkserver.Server("--tick", "200")
    with stopped_zk, start(
            "--pid", "--fork", "--kill-child", command.PROGRAM, "run", "-z",
            stopped_zk.connect, "-T", "4", "--on-lost", "kill", "/l", "sh", "-c",
            "sleep 600 & echo go; wait", program="unshare") as process:
        assert process.stdout.readline() == "go\n"
        latchkey = command.children_of(process.pid)[0]
        others = [start("--target", str(latchkey), "--pid", "sleep", "600",
                        program="nsenter") for _ in range(10)]
        pids = [live.eventually(lambda: command.children_of(other.pid))[0]
                for other in others]
        pid = command.children_of(command.supervisor_of(latchkey))[0]
        stopped_zk.stop()
        live.eventually(lambda: not command.is_running(pid))
        # latchkey still tries to release. When it ends, all processes of the
        # namespace die, since it is PID 1.
        assert all(command.is_running(other) for other in pids)
        stopped_zk.cont()
        assert process.finish().code == 123
        for other in others:
            other.finish()


live.run(
    live.together(
        signals_are_forwarded_to_command,
        signals_are_forwarded_to_the_process_group,
        foreground_forwards_signals_to_command_only,
        stopped_command_keeps_the_lock,
        latchkey_dies_of_int_and_quit_as_command_did,
        quit_of_a_waiter_dumps_no_core,
        lost_lock_is_123_even_if_command_died_of_int,
        signals_end_each_verb_as_pid_1,
        pid_1_exits_with_130_after_an_interrupt,
        pid_1_works_without_proc,
        pid_1_forwards_signals_and_reaps_orphans,
        pid_1_with_proc_of_the_parent_namespace_kills_no_other_process),
    interrupt_from_the_terminal_arrives_once,
    interrupt_ends_a_loop_of_the_shell,
    interrupt_of_a_waiter_ends_a_loop_of_the_shell,
    command_reads_the_terminal,
    hang_up_of_a_session_leader_reaches_command,
    stop_key_stops_nothing_that_no_shell_could_continue,
    interrupt_reaches_a_command_that_has_left_the_process_group,
    command_that_the_terminal_has_stopped_is_ended_by_term,
    keys_end_a_command_that_was_stopped,
    hang_up_ends_a_command_that_was_stopped,
    job_that_reads_in_the_background_goes_on_in_the_foreground,
    shell_sees_a_stopped_command,
    shell_sees_a_stopped_waiter)
