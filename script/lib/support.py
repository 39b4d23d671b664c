# SPDX-License-Identifier: Apache-2.0
"""Used by demo.py, playground.py and record.py: private servers, and processes
of the command whose events are recorded."""

import json
import os
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
os.environ.pop("LATCHKEY_TEST_TLS", None)
TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "live", "support"))

import live  # noqa: E402
import zkserver  # noqa: E402

Ensemble = live.Ensemble


def Server(*options):
    return zkserver.Server(*options)


def build():
    """The folder of the build. script/demo, script/playground and script/record
    have built it before they run these programs."""
    return os.path.abspath(os.environ["LATCHKEY_BUILD"])


class Run:
    """A `latchkey run` whose events are collected as they arrive."""

    def __init__(self, program, servers, *words, out=None):
        ours, theirs = os.pipe()
        os.set_inheritable(theirs, True)
        self.events = []
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            [program, "run", "-q", "-z", servers, "--events-fd", str(theirs),
             *words],
            pass_fds=[theirs], stdin=subprocess.DEVNULL, stdout=out)
        os.close(theirs)
        self._reader = threading.Thread(target=self._read, args=(ours,))
        self._reader.start()

    def _read(self, descriptor):
        with os.fdopen(descriptor) as lines:
            for line in lines:
                event = json.loads(line)
                event["at"] = time.time()
                with self._news:
                    self.events.append(event)
                    self._news.notify_all()
        with self._news:
            self.events.append({"event": "end", "at": time.time()})
            self._news.notify_all()

    def find(self, kind):
        return next((e for e in self.events if e["event"] == kind), None)

    def wait_for(self, kind, seconds=60):
        """Wait for the first event of this kind; gives the event, or None if
        the process ends without one."""
        with self._news:
            self._news.wait_for(
                lambda: self.find(kind) or self.find("end"), seconds)
            return self.find(kind)

    def end(self):
        """Send TERM to the process, and wait until it has ended."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self._reader.join()
