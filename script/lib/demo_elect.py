# SPDX-License-Identifier: Apache-2.0
"""The demonstration of leader election: script/demo elect

Installs what is missing (script/bootstrap), builds under build/demo, starts
three private ZooKeeper servers on loopback and five candidates of one election,
each a `latchkey elect` whose command appends the time to a file while it leads.
Then the leader
  1. is killed with kill -9,
  2. is stopped with SIGSTOP,
  3. is cut off from the quorum, together with its server,
  4. resigns, after TERM.
After each it prints how long no candidate led, which it reads from the files.
The exit code is 1 if two candidates led at the same time, if none was elected,
or if a candidate did not take part again. With LATCHKEY_BUILD, a finished build,
nothing is installed or built.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import support

TIMEOUT = 4     # of sessions, in s
ELECTION = "/services/demo"
CANDIDATES = 5
# The command of a leader: it appends its term and the time, a hundred times a
# second.
WORK = ("while :; do echo \"$LATCHKEY_FENCING_TOKEN $(date +%s.%N)\" "
        ">>\"$1\"; sleep .01; done")

wrong = []
summary = []


def say(text=""):
    print(text, flush=True)


def claim(is_so, text):
    if not is_so:
        say("  WRONG: not so: " + text)
        wrong.append(text)


class Term:
    """What the file of a candidate says of one term."""

    def __init__(self, candidate, number, times):
        self.candidate = candidate
        self.number = number
        self.first = min(times)
        self.last = max(times)


class Candidate:
    def __init__(self, name, server, address, folder):
        self.name = name
        self.server = server    # its number
        self.file = os.path.join(folder, name)
        open(self.file, "w").close()
        self.process = subprocess.Popen(
            [PROGRAM, "elect", "-q", "-T", str(TIMEOUT), "-i", name,
             "-z", address, ELECTION, "--", "sh", "-c", WORK, "sh", self.file],
            stdin=subprocess.DEVNULL)

    def terms(self):
        with open(self.file) as lines:
            written = [line.split() for line in lines.read().split("\n")[:-1]]
        times = {}
        for number, at in written:
            times.setdefault(int(number), []).append(float(at))
        return [Term(self, n, t) for n, t in times.items()]


def terms_of(candidates):
    """All terms so far, the newest last."""
    return sorted((t for c in candidates for t in c.terms()),
                  key=lambda term: term.number)


def wait_for_term(candidates, after):
    """The first term with a larger number than `after`."""
    return support.live.eventually(
        lambda: next((t for t in terms_of(candidates) if t.number > after),
                     None), "a leader", 60)


def count_candidates(address):
    shown = subprocess.run(
        [PROGRAM, "status", "--json", "--layout", "latch", "-z", address,
         ELECTION], stdout=subprocess.PIPE, check=False).stdout
    status = json.loads(shown)
    return len(status["holders"]) + len(status["waiters"])


def disturb(candidates, title, what, restore=None):
    """Call `what` with the leader, and wait until another candidate leads."""
    before = terms_of(candidates)[-1]
    say("%s\n  %s leads, term %d" % (title, before.candidate.name,
                                     before.number))
    time.sleep(1)
    what(before.candidate)
    after = wait_for_term(candidates, before.number)
    time.sleep(.5)
    if restore:
        restore(before.candidate)
    gap = after.first - next(t.last for t in terms_of(candidates)
                             if t.number == before.number)
    say("  %s leads, term %d, after %.2f s without a leader"
        % (after.candidate.name, after.number, gap))
    claim(gap > 0, "%s had stopped its work before %s began"
          % (before.candidate.name, after.candidate.name))
    claim(gap < 3 * TIMEOUT, "the next one led within %d s" % (3 * TIMEOUT))
    return gap


def check_terms(candidates):
    terms = terms_of(candidates)
    overlaps = [(a, b) for a, b in zip(terms, terms[1:]) if a.last >= b.first]
    for a, b in overlaps:
        say("  WRONG: %s in term %d and %s in term %d worked at the same time"
            % (a.candidate.name, a.number, b.candidate.name, b.number))
    if overlaps:
        wrong.append("one leader at a time")
    else:
        summary.append("%d terms, one after the other: never two leaders."
                       % len(terms))


def elect(servers, candidates):
    zk = servers.zk
    address = ",".join(zk.addresses)
    gaps = []

    wait_for_term(candidates, 0)
    gaps.append(("kill -9", disturb(
        candidates, "1. The leader is killed with kill -9 (session timeout "
        "%d s)" % TIMEOUT, lambda c: c.process.kill())))
    gaps.append(("SIGSTOP", disturb(
        candidates, "2. The leader is stopped with SIGSTOP",
        lambda c: c.process.send_signal(signal.SIGSTOP),
        lambda c: c.process.send_signal(signal.SIGCONT))))
    gaps.append(("cut off", disturb(
        candidates, "3. The leader's server is cut off from the other two",
        lambda c: servers.cut_off(c.server), lambda c: servers.heal())))
    support.live.eventually(zk.follower, "a quorum of all servers")
    support.live.eventually(lambda: count_candidates(address) == CANDIDATES - 1,
                            "all living candidates in the queue", 60)
    gaps.append(("TERM", disturb(
        candidates, "4. The leader resigns", lambda c: c.process.terminate())))
    check_terms(candidates)
    for name, gap in gaps:
        summary.append("%-8s %5.2f s without a leader" % (name + ":", gap))


def end(candidates):
    for c in candidates:
        if c.process.poll() is None:
            c.process.terminate()
    for c in candidates:
        c.process.wait()


def main():
    global PROGRAM
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    PROGRAM = os.path.join(support.build(), "latchkey")
    candidates = []
    with tempfile.TemporaryDirectory(prefix="latchkey-demo.") as scratch, \
            support.Ensemble("--tick", "500") as servers:
        addresses = servers.zk.addresses
        try:
            for i in range(CANDIDATES):
                n = i % len(addresses)
                candidates.append(Candidate("candidate-%d" % (i + 1), n + 1,
                                            addresses[n], scratch))
            elect(servers, candidates)
        finally:
            end(candidates)
    say("\nWhat was shown:")
    for text in summary:
        say("  - " + text)
    for text in wrong:
        say("  - NOT TRUE: " + text)
    return 1 if wrong else 0


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
sys.exit(main())
