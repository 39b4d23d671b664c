# SPDX-License-Identifier: Apache-2.0
"""script/server: its settings take effect, its commands work, and no process or
file is left at its end."""

import os
import signal
import socket
import subprocess
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import zkserver


def is_gone(path_or_pid):
    return not os.path.exists(path_or_pid)


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "nothing happened for 20 s"
        time.sleep(0.05)


def word(address, text):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 10) as s:
        s.sendall(text.encode())
        answer = b""
        while more := s.recv(65536):
            answer += more
    return answer.decode()


def settings_are_as_asked():
    with zkserver.Server("--tick", "300", "--max-timeout", "7000") as zk:
        conf = word(zk.connect, "conf")
        for line in ("tickTime=300", "minSessionTimeout=600",
                     "maxSessionTimeout=7000", "maxClientCnxns=0"):
            assert line in conf.split("\n"), (line, conf)


def members_obey():
    with zkserver.Server(servers=3) as zk:
        modes = sorted(zk.mode(n) for n in (1, 2, 3))
        assert modes == ["follower", "follower", "leader"], modes
        old = zk.leader()
        pid = zk.pid(old)
        zk.kill(old)
        assert not is_alive(pid)
        wait_until(lambda: zk.leader() is not None)
        assert zk.leader() != old
        zk.start(old)
        assert zk.mode(old) == "follower"
        assert zk.pid(old) != pid
        follower = zk.follower()
        zk.stop(follower)
        assert zk.mode(follower) == "none"
        zk.cont(follower)
        zk.wait()
        assert zk.mode(follower) == "follower"
        zk.restart(old)
        zk.wait()
        try:
            zk.kill(4)
        except RuntimeError:
            pass
        else:
            raise AssertionError("there is no fourth server")


def nothing_is_left(end):
    """`end` ends script/server, or the process that runs it."""
    caller = subprocess.Popen(
        [sys.executable, "-c",
         "import zkserver, sys, time\n"
         "zk = zkserver.Server()\n"
         "print(zk._process.pid, zk.pid(), zk.dir, flush=True)\n"
         "sys.stdin.read()\n"],
        cwd=os.path.dirname(os.path.abspath(zkserver.__file__)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    script, server, folder = caller.stdout.readline().split()
    assert is_alive(int(server)) and os.path.isdir(folder)
    end(caller, int(script))
    wait_until(lambda: not is_alive(int(server)))
    wait_until(lambda: is_gone(folder))
    caller.stdin.close()
    caller.wait()
    caller.stdout.close()


def with_passes_on_what_the_command_says():
    done = subprocess.run(
        [zkserver.SCRIPT, "with", "--", "sh", "-c",
         'cat; echo "$LATCHKEY_ZK"; exit 7'],
        input="input\n", stdout=subprocess.PIPE, text=True)
    assert done.returncode == 7, done
    text, address = done.stdout.split()
    assert text == "input" and address.startswith("127."), done


settings_are_as_asked()
members_obey()
nothing_is_left(lambda caller, script: caller.stdin.close())
nothing_is_left(lambda caller, script: caller.kill())
nothing_is_left(lambda caller, script: os.kill(script, signal.SIGKILL))
nothing_is_left(lambda caller, script: os.kill(script, signal.SIGTERM))
with_passes_on_what_the_command_says()
