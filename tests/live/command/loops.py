# SPDX-License-Identifier: Apache-2.0
"""Eight shell loops of `latchkey run LOCK -- CRITICAL`. The critical sections
never overlap and lose no increment: without faults, while the server restarts,
and while runs are killed in the critical section."""

import os
import shlex
import signal
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
import live

LOOPS = 8
LOCK = "/locks/x"
zk = command.serve("--tick", "200")
folder = tempfile.TemporaryDirectory()

# The critical section: reads a number, waits, and writes the next one. It logs
# an overlap if it finds a living process in the file "inside". With "kill" it
# starts descendants and kills its own latchkey at every third number.
CRITICAL = r"""
import os, signal, sys, time
folder, kills = sys.argv[1], sys.argv[2] == "kill"
def path(name):
    return os.path.join(folder, name)
def log(text):
    with open(path("log"), "a") as f:
        f.write(text + "\n")
def state_and_parent(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return "X", None
def lives(pid):
    return state_and_parent(pid)[0] not in "ZX"

if os.path.exists(path("inside")):  # the last run was killed
    with open(path("inside")) as f:
        pids = [int(word) for word in f.read().split()]
    if not pids or any(lives(pid) for pid in pids):
        log("overlap %s" % pids)
    os.unlink(path("inside"))
    log("after %s" % pids)
inside = os.open(path("inside"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
os.write(inside, b"%d\n" % os.getpid())
with open(path("count")) as f:
    count = int(f.read())
log("begin %d" % count)
killed = path("killed.%d" % count)
# Once for each number, so that the loops make progress.
if kills and count % 3 == 0 and not os.path.exists(killed):
    ready, write_ready = os.pipe()
    if os.fork() == 0:
        os.write(inside, b"%d\n" % os.getpid())
        if os.fork() == 0:
            os.setsid()
            os.write(inside, b"%d\n" % os.getpid())
            os.write(write_ready, b".")
        time.sleep(600)
        os._exit(0)
    os.read(ready, 1)
    open(killed, "w").close()
    supervisor = os.getppid()
    _, latchkey = state_and_parent(supervisor)
    os.kill(int(latchkey), signal.SIGKILL)
    time.sleep(600)
time.sleep(0.005)
with open(path("new"), "w") as f:
    f.write("%d\n" % (count + 1))
os.rename(path("new"), path("count"))
log("end %d" % (count + 1))
os.unlink(path("inside"))
"""

# A shell loop: as many successful runs as its first %d says.
LOOP = """
i=0
while [ $i -lt %d ]; do
  %s run --connect-timeout 60 -T %s %s -- %s
  code=$?
  echo $code >> %s
  [ $code = 0 ] && i=$((i + 1))
done
"""


def path(name):
    return os.path.join(folder.name, name)


def read_lines(name):
    """The lines of a file, each as a list of words."""
    try:
        with open(path(name)) as f:
            return [line.split() for line in f.read().splitlines()]
    except FileNotFoundError:
        return []


def start_loops(turns, session_timeout, mode):
    """Start LOOPS loops with so many turns, with empty files."""
    for name in os.listdir(folder.name):
        os.unlink(path(name))
    with open(path("count"), "w") as f:
        f.write("0\n")
    with open(path("critical.py"), "w") as f:
        f.write(CRITICAL)
    critical = [sys.executable, path("critical.py"), folder.name, mode]
    script = LOOP % (turns, command.PROGRAM, session_timeout, LOCK,
                     " ".join(map(shlex.quote, critical)), path("codes"))
    log = open(path("stderr"), "a")
    return [command.start("-c", script, program="sh", stdout=log, stderr=log)
            for _ in range(LOOPS)]


def finish_loops(loops):
    """Wait until all loops end, and check the log for overlaps and lost
    increments; gives the last number and the exit codes of all runs."""
    for loop in loops:
        loop.wait(timeout=300)
    log = read_lines("log")
    assert not [line for line in log if line[0] == "overlap"], log
    newest = 0
    for line in log:
        if line[0] == "begin":
            assert int(line[1]) == newest, (newest, line)
        elif line[0] == "end":
            newest += 1
            assert int(line[1]) == newest, (newest, line)
    assert count() == newest, (newest, count())
    codes = [int(code) for (code,) in read_lines("codes")]
    assert newest == codes.count(0), (newest, codes)
    assert not os.path.exists(path("inside"))
    return newest, codes


def count():
    return int(read_lines("count")[0][0])


def loops_without_faults_never_overlap():
    newest, codes = finish_loops(
        start_loops(turns=15, session_timeout=30, mode="no-faults"))
    assert newest == 15 * LOOPS and set(codes) == {0}, codes
    assert command.children(LOCK) == []


def loops_do_not_overlap_while_the_server_restarts():
    loops = start_loops(turns=20, session_timeout=30, mode="no-faults")
    for restart in (zk.restart, kill_and_start, zk.restart):
        wanted = count() + 10
        live.eventually(lambda: count() >= wanted)
        restart()
        zk.wait()
    newest, codes = finish_loops(loops)
    assert newest == 20 * LOOPS and set(codes) == {0}, (
        codes, read_lines("stderr"))
    assert command.children(LOCK) == []


def kill_and_start():
    zk.kill()
    time.sleep(1)
    zk.start()


def loops_do_not_overlap_while_runs_are_killed():
    newest, codes = finish_loops(
        start_loops(turns=4, session_timeout=4, mode="kill"))
    assert newest == 4 * LOOPS, newest
    killed = len([name for name in os.listdir(folder.name)
                  if name.startswith("killed.")])
    assert killed >= newest // 3, (killed, newest)
    code_of_kill = 128 + signal.SIGKILL
    assert codes.count(code_of_kill) == killed, (codes, killed)
    assert set(codes) == {0, code_of_kill}, codes
    after = [line for line in read_lines("log") if line[0] == "after"]
    assert len(after) == killed, (after, killed)
    # The nodes of killed runs are deleted when their sessions expire.
    live.eventually(lambda: command.children(LOCK) == [], "no node is left")


live.run(
    loops_without_faults_never_overlap,
    loops_do_not_overlap_while_the_server_restarts,
    loops_do_not_overlap_while_runs_are_killed)
