# SPDX-License-Identifier: Apache-2.0
"""The demonstration: script/demo [CONTENDERS [SESSIONS [RUNNERS [TURNS]]]]
Another one shows leader election: script/demo elect

Installs what is missing (script/bootstrap), builds under build/demo, starts
private ZooKeeper servers on loopback, and shows three things:
  1. a thousand contenders take one lock and one piece out of an inventory each,
     which only a working lock brings to 0 (examples/inventory.c), and what a
     lock costs that wakes all waiters at each change (examples/herd.c);
  2. the holder is killed with kill -9: when does the next one hold?
  3. the holder's server is cut off from the other two: the holder stops before
     the next one holds.
Each claim is checked. A summary ends it; the exit code is 1 if a claim was not
true. The operands are those of examples/inventory. With LATCHKEY_BUILD, a
finished build with these examples, nothing is installed or built.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import support

TIMEOUT = 4     # of sessions, in s
LOCK = "/locks/demo"
# The command of a holder: it appends the time, fifty times a second.
WORK = ("while :; do echo \"$LATCHKEY_FENCING_TOKEN $(date +%s.%N)\" "
        ">>\"$1\"; sleep .02; done")

summary = []
wrong = []


def say(text=""):
    print(text, flush=True)


def claim(is_so, text):
    say("  %s %s" % ("ok:   " if is_so else "WRONG:", text))
    if not is_so:
        wrong.append(text)


class Worker:
    """A `latchkey run` of WORK."""

    def __init__(self, name, servers, folder):
        self.file = os.path.join(folder, name)
        open(self.file, "w").close()
        self.run = support.Run(
            PROGRAM, servers, "-T", str(TIMEOUT), "-i", name, LOCK, "--",
            "sh", "-c", WORK, "sh", self.file)

    def last_write(self):
        with open(self.file) as lines:
            return float(lines.read().split("\n")[-2].split()[1])


# ---- act 1

def act_1(operands):
    say("1. %s contenders, one lock, one inventory" % (operands or ["1000"])[0])
    with support.Server("--tick", "2000") as zk:
        environment = dict(os.environ, LATCHKEY_ZK=zk.connect,
                           LATCHKEY=PROGRAM)
        done = subprocess.run([EXAMPLES + "/inventory", *operands],
                              env=environment, stdout=subprocess.PIPE,
                              text=True)
        say(re.sub("^", "  ", done.stdout.rstrip(), flags=re.M))
        claim(done.returncode == 0, "the inventory ends at 0: never two holders")
        if done.returncode == 2:
            sys.exit(2)
        herd = subprocess.run([EXAMPLES + "/herd", zk.connect, "30"],
                              stdout=subprocess.PIPE, text=True).stdout
    say()
    naive, ours = (int(n) for n in re.findall(r"writers, (\d+)", herd))
    claim(ours < naive, "30 writers: %d replies with a lock that wakes all "
          "waiters at each change, %d with ours" % (naive, ours))
    number = re.search(r"^(\d+) turns", done.stdout, re.M)
    summary.append("%s contenders held one lock one after the other, and never "
                   "two at a time." % (number[1] if number else "The"))


# ---- act 2

def act_2(folder):
    say("2. The holder is killed with kill -9 (session timeout %d s)" % TIMEOUT)
    with support.Server("--tick", "500") as zk:
        a = Worker("A", zk.connect, folder)
        held_a = a.run.wait_for("acquired")
        say("  A holds, token %s" % held_a["token"])
        b = Worker("B", zk.connect, folder)
        waits = b.run.wait_for("waiting")
        say("  B waits, position %d, behind %s" % (waits["position"],
                                                waits["holder"]))
        time.sleep(1)
        killed = time.time()
        a.run.process.kill()
        say("  kill -9 of A's latchkey")
        held_b = b.run.wait_for("acquired")
        time.sleep(.2)
        b.run.end()
    next_held = held_b["at"] - killed
    stopped = a.last_write() - killed
    say("  A's command stopped after %.2f s; B holds after %.2f s, token %s"
        % (max(stopped, 0), next_held, held_b["token"]))
    claim(a.last_write() < held_b["at"],
          "A's command had stopped before B held: its supervisor killed it")
    claim(int(held_b["token"]) > int(held_a["token"]), "B's token is larger")
    claim(next_held < 2 * TIMEOUT, "B did not wait for two session timeouts")
    summary.append("After kill -9 of the holder the next one held within "
                   "%.1f s (session timeout %d s)." % (next_held, TIMEOUT))


# ---- act 3

def act_3(folder):
    say("3. The holder is cut off from the quorum (three servers)")
    with support.Ensemble("--tick", "500") as servers:
        zk = servers.zk
        n = support.live.eventually(zk.follower, "a follower")
        others = [s for i, s in enumerate(zk.addresses, 1) if i != n]
        a = Worker("C", zk.addresses[n - 1], folder)
        held_a = a.run.wait_for("acquired")
        say("  A holds through server %d, token %s" % (n, held_a["token"]))
        b = Worker("D", ",".join(others), folder)
        b.run.wait_for("waiting")
        say("  B waits through the other two")
        time.sleep(1)
        cut = time.time()
        servers.cut_off(n)
        say("  server %d is cut off from the others, and still talks to A" % n)
        unsure = a.run.wait_for("unsure", 30)
        held_b = b.run.wait_for("acquired", 30)
        time.sleep(.2)
        b.run.end()
        a.run.end()
    claim(unsure is not None and held_b is not None,
          "A is notified that it may lose the lock, and B gets it")
    if unsure is None or held_b is None:
        return
    t1, t2 = unsure["at"] - cut, held_b["at"] - cut
    say("  t1 = %.2f s: A is unsure; its command stopped at %.2f s"
        % (t1, a.last_write() - cut))
    say("  t2 = %.2f s: B holds, token %s" % (t2, held_b["token"]))
    claim(t1 < t2, "A was unsure before B held")
    claim(a.last_write() < held_b["at"], "A's command had stopped before B held")
    claim(int(held_b["token"]) > int(held_a["token"]), "B's token is larger")
    summary.append("Cut off from the quorum, the holder stopped %.1f s before "
                   "the next one held." % (held_b["at"] - a.last_write()))


def main():
    global PROGRAM, EXAMPLES
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0
    folder = support.build()
    PROGRAM = os.path.join(folder, "latchkey")
    EXAMPLES = os.path.join(folder, "examples")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="latchkey-demo.") as scratch:
        for act in (lambda: act_1(sys.argv[1:]), lambda: act_2(scratch),
                    lambda: act_3(scratch)):
            say()
            act()
    say("\nWhat was shown, in %.0f s:" % (time.monotonic() - began))
    for text in summary:
        say("  - " + text)
    for text in wrong:
        say("  - NOT TRUE: " + text)
    say("Try it yourself: script/playground" if not wrong else
        "%d of the claims were not true." % len(wrong))
    return 1 if wrong else 0


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
sys.exit(main())
