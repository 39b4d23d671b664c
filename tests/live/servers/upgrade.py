# SPDX-License-Identifier: Apache-2.0
"""A small run of script/upgrade: clients keep their locks while the servers get
another version, and each wrong thing that is planted is found."""

import os
import subprocess
import sys
import tempfile
import textwrap

sys.path.append(sys.path[0] + "/../support")

import live
import zkserver
from live import NotTested

PROGRAM = os.path.join(sys.path[0], "..", "interop", "upgrade.py")
SMALL = ("--tick", "500", "--timeout", "6", "--seconds", "3", "--runs", "1",
         "--fault-every", "2", "--holders", "10", "--candidates", "5",
         "--members", "2", "--peers", "2", "--order", "last")
FOUND = zkserver.fetched_versions()


def upgrade(*options):
    """Run upgrade.py; gives its exit code and its output."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, PROGRAM, *SMALL, *options],
            env=dict(os.environ, TMPDIR=folder), stdout=subprocess.PIPE,
            text=True)
    print(textwrap.indent(done.stdout, "    "))
    return done.returncode, done.stdout


def need_versions(count):
    if len(FOUND) < count:
        raise NotTested("%d other versions of ZooKeeper are not there: "
                        "script/zookeeper fetches them" % count)


def version_that_is_not_there_is_named():
    code, output = upgrade("--route", "1.2.3,1.2.4")
    assert code == 77, code
    assert "not tested: 1.2.3,1.2.4: there is no ZooKeeper 1.2.3, 1.2.4" in output


def clients_keep_their_locks_while_servers_are_replaced():
    need_versions(2)
    code, output = upgrade("--route", FOUND[0] + "," + FOUND[-1])
    assert code == 0, code
    assert output.count(" has %s after" % FOUND[-1]) == 3
    assert "overlaps 0, smaller tokens 0" in output


def what_is_planted_is_found():
    need_versions(1)
    code, output = upgrade("--route", FOUND[-1], "--plant", "overlap",
                           "--plant", "token", "--plant", "loss")
    assert code == 1, code
    assert "WRONG: overlap: " in output
    assert "WRONG: token: " in output
    assert "lock lost err=NO_NODE" in output
    assert "data and logs of the servers: " in output


live.run(version_that_is_not_there_is_named,
         clients_keep_their_locks_while_servers_are_replaced,
         what_is_planted_is_found)
