# SPDX-License-Identifier: Apache-2.0
"""Curator's clients and locks in a process of their own, which a test commands.
LATCHKEY_CURATOR may have a version that script/zookeeper has fetched, such as
5.9.0; it runs with the client of ZooKeeper 3.9.6. Else it is Debian's.

    with curator.Curator() as java:
        client = java.client("127.1.2.3:2181")
        lock = java.lock("mutex", client, "/l")
        java.do("acquire", lock, 5000) == "held"

curator/Contender.java is the program of the process, and lists the commands.
"""

import atexit
import itertools
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading

import live
from worker import SECONDS

JAVA = "/usr/share/java"
JARS = ("curator-recipes", "curator-framework", "curator-client", "zookeeper",
        "zookeeper-jute", "guava", "slf4j-api", "slf4j-nop", "netty-common",
        "netty-buffer", "netty-transport", "netty-handler", "netty-codec",
        "netty-resolver")
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "curator")

_command_line = None  # None: the program is not compiled yet


def find_jars():
    """The files of the class path."""
    version = os.environ.get("LATCHKEY_CURATOR")
    if version:
        return [jar for name in ("curator-" + version, "3.9.6")
                for jar in live.zkserver.class_path(name)]
    jars = [os.path.join(JAVA, jar + ".jar") for jar in JARS]
    for jar in jars:
        if not os.path.exists(jar):
            live.missing("there is no %s (Debian: libcurator-recipes-java)" %
                         jar)
    return jars


def compile_program():
    """Compile the program, unless it is compiled."""
    global _command_line
    if _command_line is not None:
        return
    jars = find_jars()
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    sources = [os.path.join(SOURCES, name)
               for name in sorted(os.listdir(SOURCES))]
    # Java runs the compiler as a module, so javac need not be in PATH.
    try:
        done = subprocess.run(
            ["java", "-XX:-UsePerfData", "-m",
             "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-d", folder,
             "-cp", ":".join(jars), *sources],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError:  # also PermissionError, for a folder in PATH
        live.missing("there is no java (Debian: default-jdk-headless)")
    if "jdk.compiler not found" in done.stdout:
        live.missing("there is no javac (Debian: default-jdk-headless)")
    assert done.returncode == 0, done.stdout
    _command_line = ["java", "-XX:-UsePerfData",
              "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-XX:+UseSerialGC",
              "-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp",
              ":".join([folder, *jars]), "Contender"]


class Gone(Exception):
    """The process has ended."""


class PendingCommand:
    """A command that was sent to the process."""

    def __init__(self, text):
        self.text = text
        self.results = queue.Queue()  # one result; None: the process has ended

    def is_done(self):
        return not self.results.empty()

    def result(self, seconds=SECONDS):
        try:
            result = self.results.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError("no result within %g s: %s" %
                                 (seconds, self.text)) from None
        if result is None:
            raise Gone(self.text)
        return result


class Curator:
    def __init__(self):
        compile_program()
        self.pending = {}  # commands by tag; None: the process has ended
        self.on_line = {}  # by name: called with the words of each line
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.process = subprocess.Popen(
            _command_line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            name, _, rest = line.rstrip("\n").partition(" ")
            if name in self.on_line:
                self.on_line[name](rest)
            elif name in self.pending:
                self.pending.pop(name).results.put(rest)
        with self._lock:
            left, self.pending = self.pending, None
        for pending in left.values():
            pending.results.put(None)

    def submit(self, *words):
        text = " ".join(map(str, words))
        pending = PendingCommand(text)
        tag = str(next(self._numbers))
        with self._lock:
            if self.pending is None:
                raise Gone(text)
            self.pending[tag] = pending
            try:
                self.process.stdin.write(tag + " " + text + "\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                raise Gone(text) from None
        return pending

    def do(self, *words):
        result = self.submit(*words).result()
        assert not result.startswith("failed"), (words, result)
        return result

    def new_name(self, kind):
        return "%s-%d" % (kind, next(self._numbers))

    def client(self, connect, session_timeout_ms=20000):
        name = self.new_name("client")
        self.do("client", name, connect, session_timeout_ms)
        return name

    def lock(self, kind, client, *words):
        """Make a lock; gives its name. The sides of a read-write lock are
        NAME.read and NAME.write."""
        name = self.new_name(kind)
        self.do(kind, name, client, *words)
        return name

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def cont(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
