# SPDX-License-Identifier: Apache-2.0
"""Faults of processes with rivals, and of their server."""

import collections
import random
import time


class Faults:
    """One fault after the other: a process is killed, or stopped until its
    session has expired, or the server is restarted."""
    LASTING = ("stop",)     # until the next fault is due; others end at once

    def __init__(self, run, seed, hosts, every_s=12):
        self.run, self.hosts, self.random = run, hosts, random.Random(seed)
        self.every_s = every_s
        self.due = time.monotonic() + self.every_s
        self.counts = collections.Counter()
        self.host = None    # the process that is killed or stopped
        self.end = None     # ends the fault that lasts; None: there is none
        self.last = "none"  # the last fault, for the report

    def kinds(self):
        return self.kill, self.stop, self.restart

    def execute_if_due(self):
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + self.every_s
        if self.end is not None:
            self.heal()
            return
        fault = self.random.choice(self.kinds())
        self.begin(fault)
        if fault.__name__ not in self.LASTING:
            self.heal()

    def begin(self, fault):
        self.host = None
        self.last = fault.__name__
        self.counts[self.last] += 1
        fault()
        if self.host is not None:
            self.last += " of %s" % ", ".join(r.name for r in self.host.rivals)

    def heal(self):
        if self.end is not None:
            self.end()
            self.last += ", ended"
            self.end = None

    def kill(self):
        self.host = self.random.choice(self.hosts)
        self.host.kill()
        self.end = self.host.start

    def stop(self):
        self.host = self.random.choice(self.hosts)
        self.host.stop()
        self.end = self.host.cont

    def restart(self):
        if self.random.random() < .5:
            self.run.zk.restart()
        else:
            self.run.zk.kill()
            self.end = self.run.zk.start
