# SPDX-License-Identifier: Apache-2.0
"""Eight shell loops of `latchkey run LOCK -- CRITICAL`. The critical sections
never overlap and lose no increment: without faults, while the server restarts,
and while runs are killed in the critical section."""

import os
import shlex
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
import os, sys, time
folder, kills = sys.argv[1], sys.argv[2] == "kill"
def name(text):
    return os.path.join(folder, text)
def note(text):
    with open(name("log"), "a") as f:
        f.write(text + "\n")
def stat(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ["X"]
def lives(pid):
    return stat(pid)[0] not in "ZX"

if os.path.exists(name("inside")):
    with open(name("inside")) as f:
        pids = [int(word) for word in f.read().split()]
    if not pids or any(lives(pid) for pid in pids):
        note("overlap %s" % pids)
    os.unlink(name("inside"))
    note("after %s" % pids)
inside = os.open(name("inside"), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
os.write(inside, b"%d\n" % os.getpid())
with open(name("count")) as f:
    count = int(f.read())
note("begin %d" % count)
killed = name("killed.%d" % count)
# Once for each number, so that the loops make progress.
if kills and count % 3 == 0 and not os.path.exists(killed):
    ready, told = os.pipe()
    if os.fork() == 0:
        os.write(inside, b"%d\n" % os.getpid())
        if os.fork() == 0:
            os.setsid()
            os.write(inside, b"%d\n" % os.getpid())
            os.write(told, b".")
        time.sleep(600)
        os._exit(0)
    os.read(ready, 1)
    open(killed, "w").close()
    os.kill(int(stat(os.getppid())[1]), 9)
    time.sleep(600)
time.sleep(0.005)
with open(name("new"), "w") as f:
    f.write("%d\n" % (count + 1))
os.rename(name("new"), name("count"))
note("end %d" % (count + 1))
os.unlink(name("inside"))
"""

LOOP = """
i=0
while [ $i -lt %d ]; do
  %s run -T %s %s -- %s
  code=$?
  echo $code >> %s
  [ $code = 0 ] && i=$((i + 1))
done
"""


def file(name):
    return os.path.join(folder.name, name)


def words(name):
    try:
        with open(file(name)) as f:
            return [line.split() for line in f.read().splitlines()]
    except FileNotFoundError:
        return []


def begin():
    for name in os.listdir(folder.name):
        os.unlink(file(name))
    with open(file("count"), "w") as f:
        f.write("0\n")
    with open(file("critical.py"), "w") as f:
        f.write(CRITICAL)


def start(turns, timeout, mode):
    critical = command.python(CRITICAL)[:1] + [
        file("critical.py"), folder.name, mode]
    text = LOOP % (turns, command.PROGRAM, timeout, LOCK,
                   " ".join(map(shlex.quote, critical)), file("codes"))
    log = open(file("stderr"), "a")
    return [command.start("-c", text, program="sh", stdout=log, stderr=log)
            for _ in range(LOOPS)]


def finish(loops):
    """Wait until all loops end, and check the log for overlaps and lost
    increments."""
    for loop in loops:
        loop.wait(timeout=300)
    log = words("log")
    assert not [line for line in log if line[0] == "overlap"], log
    newest = 0
    for line in log:
        if line[0] == "begin":
            assert int(line[1]) == newest, (newest, line)
        elif line[0] == "end":
            newest += 1
            assert int(line[1]) == newest, (newest, line)
    assert words("count") == [[str(newest)]], (newest, words("count"))
    codes = [int(code) for (code,) in words("codes")]
    assert newest == codes.count(0), (newest, codes)
    assert not os.path.exists(file("inside"))
    return newest, codes


def count():
    return int(words("count")[0][0])


def loops_without_faults():
    begin()
    newest, codes = finish(start(15, 30, "no-faults"))
    assert newest == 15 * LOOPS and set(codes) == {0}, codes
    assert command.children(LOCK) == []


def loops_while_the_server_restarts():
    begin()
    loops = start(20, 30, "no-faults")
    for n, restart in enumerate((zk.restart, kill_and_start, zk.restart)):
        wanted = count() + 10
        live.eventually(lambda: count() >= wanted)
        restart()
        zk.wait()
    newest, codes = finish(loops)
    assert newest == 20 * LOOPS and set(codes) == {0}, (
        codes, words("stderr"))
    assert command.children(LOCK) == []


def kill_and_start():
    zk.kill()
    time.sleep(1)
    zk.start()


def loops_while_runs_are_killed():
    begin()
    newest, codes = finish(start(4, 4, "kill"))
    assert newest == 4 * LOOPS, newest
    killed = len([name for name in os.listdir(folder.name)
                  if name.startswith("killed.")])
    assert killed >= newest // 3, (killed, newest)
    assert codes.count(137) == killed and set(codes) == {0, 137}, codes
    after = [line for line in words("log") if line[0] == "after"]
    assert len(after) == killed, (after, killed)
    # The nodes of killed runs are deleted when their sessions expire.
    live.eventually(lambda: command.children(LOCK) == [], "no node is left")


live.run(loops_without_faults, loops_while_the_server_restarts, loops_while_runs_are_killed)
