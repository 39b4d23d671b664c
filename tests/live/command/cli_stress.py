# SPDX-License-Identifier: Apache-2.0
"""latchkey run while random faults hit latchkey, its supervisor and their
connections. Two COMMANDs must never run at the same time. See script/stress."""

import argparse
import collections
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent import futures

sys.path.append(sys.path[0] + "/../support")

import command
import live
from relay import Relay
import stress


class Totals:
    """The sums of the counters of all runs."""

    def __init__(self):
        self.lock = threading.Lock()
        self.runs = self.wrong = self.excused = 0
        self.grants = self.overlaps = self.others = 0
        self.codes = collections.Counter()
        self.faults = collections.Counter()

    def add(self, run):
        with self.lock:
            self.runs += 1
            self.wrong += bool(run.bad)
            self.faults.update(line.split()[2] for line in run.done)
            self.codes.update(c.process.returncode for c in run.contenders)
            self.excused += sum(c.excused for c in run.contenders)
            if run.lines is None:
                return
            self.grants += len(run.lines.tokens)
            self.overlaps += len(run.lines.overlaps)
            self.others += run.lines.others

    def show(self):
        def counts(counter):
            return ", ".join("%s %d" % (k, n)
                             for k, n in sorted(counter.items()))
        print("faults: %s" % counts(self.faults))
        print("exit codes: %s" % counts(
            {str(k): n for k, n in self.codes.items()}))
        print("%d runs, %d wrong: %d grants, %d ended for the lease, %d lines "
              "beside the next holder's, %d excused, %d lines of processes of "
              "another user" % (
                  self.runs, self.wrong, self.grants,
                  self.codes[stress.LOST], self.overlaps, self.excused,
                  self.others), flush=True)


def test_the_check_for_overlaps(zk, folder):
    """The check must find a COMMAND that continues after the loss of its
    lock."""
    run = stress.Run(zk, folder, "overlap")
    with Relay(zk.connect) as wire:
        writers = [stress.WRITERS, run.log]
        # Arguments of writers: name, manners, ms, exit code, descendants.
        with command.start("run", "-z", wire.address, "-T", "2", "--on-lost",
                           "ignore", run.lock, *writers, "0.0", "polite",
                           "60000", "0", "session") as first:
            live.eventually(lambda: os.path.getsize(run.log), "a line")
            wire.freeze()
            done = command.run("run", run.lock, *writers, "1.0", "polite",
                               "500", "0")
            assert done.code == 0, done
            wire.thaw()
            first.terminate()
            first.wait(20)  # s
    with open(run.log) as f:
        assert stress.Lines(f.read()).overlaps
    print("the check finds a COMMAND that continues without its lock")


def make_helper(folder):
    """A set-user-ID program in the folder; None: it cannot be made, or has no
    effect there."""
    helper = os.path.join(folder, "as_root")
    if not command.is_root():
        return None
    shutil.copy(os.path.join(os.path.dirname(stress.WRITERS), "as_root"), helper)
    os.chmod(helper, 0o4755)
    done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", helper,
                           "id", "-u"], stdout=subprocess.PIPE, text=True)
    return helper if done.stdout == "0\n" else None


def execute_run(zk, folder, seed, helper, totals):
    run = stress.Run(zk, folder, seed, helper)
    try:
        run.run()
    except Exception as why:
        run.bad.append("the driver failed: %r" % why)
    totals.add(run)
    if run.bad:
        print("\n".join(run.report()), flush=True)
    else:
        shutil.rmtree(run.folder)


def seeds_of(options):
    """The seeds of the runs: until the time of --seconds is over, or else as
    many as --runs."""
    end = time.monotonic() + (options.seconds or 0)
    for n in itertools.count():
        is_over = (n >= options.runs if options.seconds is None
                   else time.monotonic() >= end)
        if is_over:
            return
        yield options.seed + n


def main():
    parser = argparse.ArgumentParser(prog="stress")
    parser.add_argument("--runs", type=int, default=32)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--keep-going", action="store_true",
                        help="also after a run that is wrong")
    options = parser.parse_args()
    totals, began = Totals(), time.monotonic()
    folder = tempfile.mkdtemp(prefix="latchkey-stress-")
    os.chmod(folder, 0o755)
    with command.serve("--tick", "200", "--min-timeout", "1000") as zk:
        test_the_check_for_overlaps(zk, folder)
        helper = make_helper(folder)
        if helper is None:
            print("without processes of another user: that needs root, and a "
                  "file system with set-user-ID programs")
        seeds, seeds_lock = seeds_of(options), threading.Lock()

        def work():
            while options.keep_going or not totals.wrong:
                with seeds_lock:
                    seed = next(seeds, None)
                if seed is None:
                    return
                execute_run(zk, folder, seed, helper, totals)

        with futures.ThreadPoolExecutor(options.jobs) as pool:
            for job in [pool.submit(work) for _ in range(options.jobs)]:
                job.result()
    totals.show()
    print("%.0f s" % (time.monotonic() - began))
    if totals.wrong:
        print("logs are in " + folder)
        sys.exit(1)
    shutil.rmtree(folder)


main()
