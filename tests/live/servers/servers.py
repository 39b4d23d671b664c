# SPDX-License-Identifier: Apache-2.0
"""script/server: its settings take effect, its commands work, and no process or
file is left at its end."""

import os
import signal
import subprocess
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import zkserver
from live import eventually, four_letter_word


def options_set_the_server_configuration():
    with zkserver.Server("--tick", "300", "--max-timeout", "7000") as zk:
        conf = four_letter_word(zk.connect, "conf")
        for line in ("tickTime=300", "minSessionTimeout=600",
                     "maxSessionTimeout=7000", "maxClientCnxns=0"):
            assert line in conf.split("\n"), (line, conf)


def commands_kill_start_stop_and_continue_a_server():
    with zkserver.Server(servers=3) as zk:
        modes = sorted(zk.mode(n) for n in (1, 2, 3))
        assert modes == ["follower", "follower", "leader"], modes
        old_leader = zk.leader()
        old_pid = zk.pid(old_leader)
        zk.kill(old_leader)
        assert not command.is_running(old_pid)
        eventually(lambda: zk.leader() is not None)
        assert zk.leader() != old_leader
        zk.start(old_leader)
        assert zk.mode(old_leader) == "follower"
        assert zk.pid(old_leader) != old_pid
        follower = zk.follower()
        zk.stop(follower)
        assert zk.mode(follower) == "none"
        zk.cont(follower)
        zk.wait()
        assert zk.mode(follower) == "follower"
        zk.restart(old_leader)
        zk.wait()


def command_to_an_unknown_server_is_an_error():
    with zkserver.Server() as zk:
        try:
            zk.kill(2)
        except RuntimeError:
            return
        raise AssertionError("there is no second server")


def check_nothing_is_left(end):
    """Check that no server and no folder is left after end(caller, script_pid),
    which ends script/server or the process `caller`, which has started it."""
    caller = subprocess.Popen(
        [sys.executable, "-c",
         "import sys, zkserver\n"
         "zk = zkserver.Server()\n"
         "print(zk._process.pid, zk.pid(), zk.dir, flush=True)\n"
         "sys.stdin.read()\n"],
        cwd=os.path.dirname(os.path.abspath(zkserver.__file__)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    script_pid, server_pid, folder = caller.stdout.readline().split()
    assert command.is_running(int(server_pid)) and os.path.isdir(folder)
    end(caller, int(script_pid))
    eventually(lambda: not command.is_running(int(server_pid)))
    eventually(lambda: not os.path.exists(folder))
    caller.stdin.close()
    caller.wait()
    caller.stdout.close()


def nothing_is_left_after_the_end_of_script_server():
    check_nothing_is_left(lambda caller, script_pid: caller.stdin.close())
    check_nothing_is_left(lambda caller, script_pid: caller.kill())
    check_nothing_is_left(
        lambda caller, script_pid: os.kill(script_pid, signal.SIGKILL))
    check_nothing_is_left(
        lambda caller, script_pid: os.kill(script_pid, signal.SIGTERM))


def with_passes_on_input_address_and_exit_code():
    done = subprocess.run(
        [zkserver.SCRIPT, "with", "--", "sh", "-c",
         'cat; echo "$LATCHKEY_ZK"; exit 7'],
        input="input\n", stdout=subprocess.PIPE, text=True)
    assert done.returncode == 7, done
    text, address = done.stdout.split()
    assert text == "input" and address.startswith("127."), done


options_set_the_server_configuration()
commands_kill_start_stop_and_continue_a_server()
command_to_an_unknown_server_is_an_error()
nothing_is_left_after_the_end_of_script_server()
with_passes_on_input_address_and_exit_code()
