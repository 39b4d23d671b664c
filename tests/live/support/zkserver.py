# SPDX-License-Identifier: Apache-2.0
"""Private ZooKeeper servers for tests in Python: wraps script/server.

    with zkserver.Server("--tick", "200", servers=3) as zk:
        zk.connect          # "127.1.2.3:2181,..."
        zk.kill(zk.leader())
"""

import os
import subprocess
import sys

import tls

_ROOT = os.environ.get("abs_top_srcdir") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
SCRIPT = os.path.join(_ROOT, "script", "server")


TOO_OLD = "3.4.14"


def _output_of_zookeeper(*arguments):
    """What script/zookeeper prints; None if it fails."""
    done = subprocess.run([os.path.join(os.path.dirname(SCRIPT), "zookeeper"),
                           *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    return done.stdout if done.returncode == 0 else None


def has_version(version):
    """Whether script/zookeeper has fetched this version."""
    return _output_of_zookeeper("--classpath", version) is not None


def class_path(version):
    """The jars of a version that script/zookeeper has fetched."""
    return _output_of_zookeeper("--classpath", version).strip().split(":")


def fetched_versions():
    """The versions that script/zookeeper has fetched, the oldest first, without the
    one that is too old for latchkey."""
    return [version for version in _output_of_zookeeper("--list").split()
            if version != TOO_OLD and has_version(version)]


class Server:
    """One server, or an ensemble. The constructor starts the servers, and
    returns when all of them serve. Call it from the main thread, since the
    servers end together with the thread that started them. Where ZooKeeper is
    not installed, it exits the test with 77 (skipped).

    If the environment variable LATCHKEY_TEST_SERVER is set to the `facts` of
    another test's server, no server is started, and this object stands for that
    server. The options are then ignored, and the test must not stop or restart
    the server.

    If LATCHKEY_ENSEMBLE has the versions of an ensemble's servers, such as
    "3.5.10 3.9.6 3.9.6", each test has this ensemble. A test of one server has
    the first one, which another one leads: it neither sees nor stops the others."""

    def __init__(self, *options, servers=1):
        self.server_count = servers
        self._process = None  # of script/server; None: another test started it
        self.facts = os.environ.get("LATCHKEY_TEST_SERVER")
        if self.facts is None:
            self.facts = self._start(options)
        values = dict(fact.split("=", 1) for fact in self.facts.split())
        self.addresses = values["connect"].split(",")[:servers]
        self.connect = ",".join(self.addresses)
        self.dir = values["dir"]
        self.tls_addresses = values.get("tls", "").split(",")
        if tls.ON:
            tls.add_servers(os.path.join(self.dir, "tls"), self.addresses,
                            self.tls_addresses)

    def _start(self, options):
        """Run script/server; gives its first line, "KEY=VALUE KEY=VALUE ..."."""
        versions = os.environ.get("LATCHKEY_ENSEMBLE", "").split()
        count = max(self.server_count, len(versions))
        for n, version in enumerate(versions[:count], 1):
            if version != "debian":
                options = (*options, "--zookeeper", "%d=%s" % (n, version))
        self._process = subprocess.Popen(
            [SCRIPT, "run", "-n", str(count), *options,
             *(["--tls"] if tls.ON else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            sys.exit(77 if code == 77 else
                     "script/server ended with %d" % code)
        return line.strip()

    def ask(self, command):
        """Send a command to script/server; gives its reply after "ok"."""
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().strip()
        status, _, result = reply.partition(" ")
        if status != "ok":
            raise RuntimeError("%s: %s" % (command, reply or "no reply"))
        return result

    def certificate(self, name):
        """The path of a file that script/certificates made for --tls."""
        return os.path.join(self.dir, "tls", name)

    # Signals to server n: KILL, TERM, STOP and CONT.

    def kill(self, n=1):
        self.ask("kill %d" % n)

    def term(self, n=1):
        self.ask("term %d" % n)

    def stop(self, n=1):
        self.ask("stop %d" % n)

    def cont(self, n=1):
        self.ask("cont %d" % n)

    # Starts of a server that has ended, and of one that runs.

    def start(self, n=1):
        self.ask("start %d" % n)

    def restart(self, n=1, version=""):
        """`version`: of ZooKeeper, if another one than before."""
        self.ask("restart %d %s" % (n, version))

    def wait(self):
        """Wait until every running server serves."""
        self.ask("wait")

    def mode(self, n=1):
        """The mode of server n: leader, follower, standalone, or none while it
        does not serve."""
        return self.ask("mode %d" % n)

    def pid(self, n=1):
        """The process id of server n; None if it does not run."""
        pid = self.ask("pid %d" % n)
        return None if pid == "none" else int(pid)

    def leader(self):
        """The number of the leader, or of a standalone server; None while there
        is none."""
        for n in range(1, self.server_count + 1):
            if self.mode(n) in ("leader", "standalone"):
                return n
        return None

    def follower(self):
        """The number of a follower; None while there is none."""
        for n in range(1, self.server_count + 1):
            if self.mode(n) == "follower":
                return n
        return None

    def close(self):
        """Stop the servers. script/server does so at the end of its input."""
        if self._process is None or self._process.stdin.closed:
            return
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
