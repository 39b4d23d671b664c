# SPDX-License-Identifier: Apache-2.0
"""The latchkey command in tests: start it, wait for its end, and inspect its
processes and lock nodes."""

import json
import os
import re
import pty
import shutil
import signal
import subprocess
import sys

from live import NotTested, eventually
import tls
import zkserver

PROGRAM = os.environ.get("LATCHKEY") or os.path.abspath("latchkey")
SECONDS = 60  # the time after which a command is taken to hang


def skip_without_terminals():
    """Skip the test where no pseudo-terminal can be opened."""
    try:
        for fd in pty.openpty():
            os.close(fd)
    except OSError as why:
        raise NotTested("no terminal can be made: %s" % why)


class Result:
    """The exit code and the output of a command that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __repr__(self):
        return "exit code %s\nout: %s\nerr: %s" % (
            self.code, self.out, self.err)

    def json(self):
        """The JSON values in the lines of the output."""
        return [json.loads(line) for line in self.out.splitlines()]


class RunningCommand(subprocess.Popen):
    """A running command, which is killed at the end of its `with` block. If it
    does not end in time, or another wait in the block fails while it runs,
    describe_hang() is printed before that."""

    hang_is_described = False

    def __exit__(self, *what):
        if self.poll() is None:
            if isinstance(what[1], AssertionError):
                self._print_hang()
            self.kill()
        super().__exit__(*what)

    def wait(self, timeout=None):
        try:
            return super().wait(timeout)
        except subprocess.TimeoutExpired as expired:
            self._print_hang(expired)
            raise

    def communicate(self, input=None, timeout=None):
        try:
            return super().communicate(input, timeout)
        except subprocess.TimeoutExpired as expired:
            self._print_hang(expired)
            raise

    def _print_hang(self, expired=None):
        if self.hang_is_described:  # communicate() calls wait()
            return
        self.hang_is_described = True
        lines = [describe_hang(self)]
        if expired:
            lines += ["output so far: %s" % expired.stdout,
                      "errors so far: %s" % expired.stderr]
        print("\n".join(lines + ["----"]), flush=True)

    def finish(self):
        """Wait until the command ends; gives its Result."""
        out, err = self.communicate(timeout=SECONDS)
        return Result(self.returncode, out, err)


def start(*words, program=PROGRAM, **options):
    """Start the command with these arguments; `options` are those of Popen."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("text", True)
    words = list(words)
    for i in range(1, len(words)):
        if words[i - 1] in ("-z", "--zk"):
            words[i] = tls.secure(words[i])
    return RunningCommand([program, *words], **options)


def run(*words, input=None, **options):
    """Run the command until it ends; gives its Result."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with start(*words, **options) as process:
        out, err = process.communicate(input, timeout=SECONDS)
        return Result(process.returncode, out, err)


def expect_exit(code, *words, **options):
    """Run the command and check its exit code; gives its Result. With code 125
    the command must have printed exactly one message."""
    done = run(*words, **options)
    assert done.code == code, done
    if code == 125:
        lines = done.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("latchkey: "), done
    return done


def serve(*options, servers=1):
    """Start a zkserver.Server, and set LATCHKEY_ZK so that commands connect to
    it."""
    zk = zkserver.Server(*options, servers=servers)
    os.environ["LATCHKEY_ZK"] = tls.secure(zk.connect)
    return zk


def status(lock):
    """What `latchkey status --json` prints for the lock."""
    done = run("status", "--json", lock)
    assert done.code in (0, 1), done
    return done.json()[0]


def queue(lock):
    """The labels of the contenders: ([of the holders], [of the waiters])."""
    facts = status(lock)
    return tuple([contender.get("label") for contender in facts[kind]]
                 for kind in ("holders", "waiters"))


def children(path):
    """The names of the children of a node; [] if it does not exist."""
    done = run("ls", path)
    return done.out.split() if done.code == 0 else []


def wait_until_queued(lock, count):
    """Wait until the lock directory has `count` contender nodes."""
    eventually(lambda: len(children(lock)) == count,
               "%d nodes in the queue of %s" % (count, lock))


def wait_until_held(lock):
    eventually(lambda: status(lock)["state"] == "held", lock + " is held")


def process_state(pid):
    """The state of a process as in /proc: R, S, T, Z, ...; None if there is no
    such process."""
    return _stat_field(pid, 0)


def _stat_field(pid, n):
    """The n-th field behind the program's name in /proc/PID/stat: 0 is the state,
    1 the parent. None if there is no such process."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[n]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _is_frozen(pid):
    """Whether the process's cgroup is frozen, as --on-lost stop does."""
    mount_points = [line.split()[4] for line in open("/proc/self/mountinfo")
                    if " - cgroup2 " in line]
    try:
        with open("/proc/%d/cgroup" % pid) as f:
            cgroup = re.search(r"^0::(.*)$", f.read(), re.M)
        if not mount_points or cgroup is None:
            return False  # no cgroup v2
        with open(mount_points[0] + cgroup[1] + "/cgroup.events") as f:
            return "frozen 1" in f.read()
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_stopped(pid):
    return process_state(pid) == "T" or _is_frozen(pid)


def is_running(pid):
    return process_state(pid) not in (None, "Z", "X")


def children_of(pid):
    """The process ids of the children of a process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [child for child in pids if _stat_field(child, 1) == str(pid)]


# ---- a command that does not end

def descendants_of(pid):
    """The process ids of the children of a process, and of their children."""
    found = children_of(pid)
    for child in found:  # which grows
        found += children_of(child)
    return found


def _read(path):
    """The contents of a file in /proc as one text, or why it cannot be read."""
    try:
        with open(path) as f:
            return f.read().replace("\0", " ").strip()
    except OSError as why:
        return why.strerror


def writers_of(pipe):
    """Which processes have the writing end of a pipe open, of which `pipe` is the
    reading end: the numbers of their descriptors by process id."""
    found = {}
    inode = os.fstat(pipe.fileno()).st_ino
    for pid in [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        try:
            for number in os.listdir("/proc/%d/fd" % pid):
                link = "/proc/%d/fd/%s" % (pid, number)
                is_for_writing = os.lstat(link).st_mode & 0o200
                if is_for_writing and os.stat(link).st_ino == inode:
                    found.setdefault(pid, []).append(int(number))
        except OSError:  # it has ended, or belongs to another user
            pass
    return found


def describe_process(pid):
    """Lines that show what a process does."""
    where = "/proc/%d/" % pid
    lines = ["process %d: %s" % (pid, _read(where + "cmdline")),
             "    state %s, parent %s, frozen: %s" % (
                 process_state(pid), _stat_field(pid, 1), _is_frozen(pid))]
    for name in ("wchan", "syscall", "stack"):
        text = _read(where + name)
        lines += ["    %s: %s" % (name, line) for line in text.splitlines()]
    pending = re.findall(r"^(?:Shd|Sig)\w+:.*", _read(where + "status"), re.M)
    return lines + ["    " + " ".join(pending).replace("\t", " ")]


def backtrace_of(pid):
    """Lines with the stacks of all threads of a process, by gdb."""
    if shutil.which("gdb") is None:
        return ["    there is no gdb"]
    try:
        gdb = subprocess.run(
            ["timeout", "-k", "1", "20", "gdb", "-p", str(pid), "-batch", "-nx",
             "-ex", "thread apply all bt"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace")
    except OSError as why:
        return ["    gdb: %s" % why]
    return ["    " + line for line in gdb.stdout.splitlines()
            if line and not line.startswith("[")]


def describe_hang(process):
    """What shows why a RunningCommand does not end: the processes that keep its
    output open, and the state and the stack of these and of its own processes."""
    writers = {name: writers_of(pipe) for name, pipe in
               (("standard output", process.stdout),
                ("standard error", process.stderr))
               if pipe is not None and not pipe.closed}
    pids = sorted({process.pid, *descendants_of(process.pid),
                   *(pid for found in writers.values() for pid in found)})
    lines = ["---- the command has not ended: %s" % (process.args,)]
    for name, found in writers.items():
        lines += ["%s is open in process %d, descriptors %s" % (
            name, pid, descriptors) for pid, descriptors in found.items()]
    # gdb stops a process, so it comes behind the states of all.
    for pid in pids:
        lines += describe_process(pid)
    for pid in pids:
        if is_running(pid):
            lines += ["stack of process %d" % pid] + backtrace_of(pid)
    return "\n".join(lines)


def supervisor_of(pid):
    """Wait until the latchkey `pid` has started its supervisor; gives the
    supervisor's process id."""
    return eventually(lambda: children_of(pid), "a supervisor")[0]


def wait_for_number(path):
    """Wait until the file holds a number and a newline; gives the number."""
    def number():
        try:
            with open(path) as f:
                text = f.read()
            return int(text) if text.endswith("\n") else None
        except (FileNotFoundError, ValueError):
            return None
    return eventually(number, path)


def is_root():
    return os.geteuid() == 0


def stop_and_cont(pid):
    """Stop the process, and continue it as soon as it is stopped."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: process_state(pid) == "T")
    os.kill(pid, signal.SIGCONT)


def python(text, *arguments):
    """The command line that runs the text of a Python program."""
    return [sys.executable, "-c", text, *map(str, arguments)]
