# SPDX-License-Identifier: Apache-2.0
"""A running example, whose output is read while it runs."""

import os
import subprocess
import threading
import time

import command
from live import eventually

BUILD = os.environ.get("abs_top_builddir") or os.getcwd()


class Line:
    """A line of the output, and the time.monotonic() at which it was read."""

    def __init__(self, text):
        self.text, self.at = text, time.monotonic()

    def __repr__(self):
        return "%.3f %s" % (self.at, self.text)


class Example:
    """A running example, which is killed at the end of its `with` block. `lines`
    has what it has printed so far, errors included."""

    def __init__(self, name, *words):
        self.lines = []
        self.process = command.start(
            *words, program=os.path.join(BUILD, "examples", name),
            stderr=subprocess.STDOUT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for text in self.process.stdout:
            self.lines.append(Line(text.rstrip("\n")))

    def find(self, start, after=0):
        """The first line from index `after` on that begins with `start`, or
        None."""
        return next((line for line in self.lines[after:]
                     if line.text.startswith(start)), None)

    def wait_for(self, start, after=0):
        """Wait for a line that begins with `start`; gives the line."""
        return eventually(lambda: self.find(start, after),
                          "%s prints %r" % (self, start))

    def kill(self, signal):
        self.process.send_signal(signal)

    def finish(self):
        """Wait until the example has ended and its output is read; gives the exit
        code."""
        code = self.process.wait(timeout=command.SECONDS)
        self._reader.join()
        return code

    def __repr__(self):
        return "%s: %s" % (" ".join(self.process.args), self.lines[-20:])

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.process.__exit__(*what)
