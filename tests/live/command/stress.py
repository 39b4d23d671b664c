# SPDX-License-Identifier: Apache-2.0
"""One random run of several `latchkey run` for one lock, and its checks. The
seed determines the faults, but not the scheduling of processes."""

import collections
import os
import random
import signal
import subprocess
import time

import command
from relay import Relay

WRITERS = os.path.join(os.environ.get("abs_top_builddir") or os.getcwd(),
                       "tests", "live", "command", "writers")
SESSION_TIMEOUT = 2.0           # s
# The signals that latchkey handles, and those of them that end no COMMAND.
HANDLED = ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH", "CONT",
           "TSTP")
HARMLESS = ("WINCH", "CONT", "TSTP")
# The kinds of descendants of COMMAND; see writers.c.
KINDS = ("child", "deaf", "group", "session", "daemon", "moved", "thread",
         "deep", "hopper", "breeder", "other")
KEYS = {"INT": b"\x03", "QUIT": b"\x1c", "TSTP": b"\x1a"}  # of a terminal
DURATIONS = (0.05, 0.2, 0.5, 1, 2.5, 4)  # of faults, in s
LOST, BUSY, FAILED = 123, 124, 125  # exit codes of latchkey
# The leak checker stops itself with SIGSTOP and would hang at a SIGCONT.
ASAN_OPTIONS = "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", "")
MAX_END_SECONDS = 15            # limit of the time until a contender ends


def number_of(name):
    return getattr(signal, "SIG" + name)


def now_us():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6)


def children_of(pid):
    """Children of a process with one thread."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return [int(word) for word in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def signal_child(parent, pid, number):
    """Send a signal, unless the child has ended and its id was reused."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if pid in children_of(parent):
            signal.pidfd_send_signal(fd, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(fd)


def stop_is_pending(pid):
    """Whether SIGSTOP was sent to a process that has not run since."""
    try:
        with open("/proc/%d/status" % pid) as f:
            masks = [int(line.split()[1], 16) for line in f
                     if line.startswith(("SigPnd:", "ShdPnd:"))]
    except OSError:
        return False
    return any(mask >> (signal.SIGSTOP - 1) & 1 for mask in masks)


def describe(pid):
    """A process and its children: name, kernel function, state."""
    facts = [str(pid)]
    for name in ("comm", "wchan"):
        try:
            with open("/proc/%d/%s" % (pid, name)) as f:
                facts.append(f.read().strip())
        except OSError:
            pass
    return " ".join(facts + [command.process_state(pid) or "gone", *(
        "(%s)" % describe(child) for child in children_of(pid))])


# ---- random choices

class Choice:
    """The options of one `latchkey run`, and the behaviour of its COMMAND."""

    def __init__(self, rng):
        self.policy = rng.choice(("term", "term", "kill", "stop", "stop"))
        self.as_nobody = rng.random() < .5  # nobody can make no cgroup
        self.manners = rng.choice(("polite", "careless", "deaf"))
        if rng.random() < .15:
            self.manners += "-stops"
        if rng.random() < .15:
            self.manners += "-moves"
        self.duration_ms = rng.randint(300, 4000)
        self.exit_code = rng.randint(0, 9)
        self.kinds = rng.choices(KINDS, k=rng.choice((0, 1, 1, 2, 2, 3)))
        self.options = ["--on-lost", self.policy]
        if rng.random() < .4:
            self.options += ["--kill-after", str(rng.choice(
                (.1, .2, .5, .9)))]
        if rng.random() < .3:
            self.options += ["--foreground"]
        if rng.random() < .15:
            self.options += ["--max-hold", "%.1f" % rng.uniform(.5, 2)]
        elif rng.random() < .1:
            self.options += ["--min-hold", "%.1f" % rng.uniform(.5, 2)]
        if rng.random() < .2:
            self.options += ["-w", "%.1f" % rng.uniform(1, 5)]
        self.ends_by_kill = rng.random() < .5
        # latchkey leads a session that has a terminal, as with `ssh -t`.
        self.has_terminal = rng.random() < .5
        self.reads_terminal = rng.random() < .5

    def signals(self):
        """The signals that may be sent to latchkey. It does not end processes
        that COMMAND leaves when a signal ends COMMAND. So a COMMAND that would
        leave descendants gets only signals that do not end it."""
        if self.manners.startswith("careless") and self.kinds:
            return HARMLESS
        return HANDLED

    def __str__(self):
        return "%s%s%s %s %d ms%s" % (
            " ".join(self.options), ", no cgroup" if self.as_nobody else "",
            ", terminal" if self.has_terminal else "",
            self.manners, self.duration_ms, "".join(" " + k for k in self.kinds))


# The faults: names of functions of Contender, each with its weight and a
# function that chooses the fault's parameter.
FAULTS = {"stop": (6, lambda rng: rng.choice(DURATIONS)),
          "freeze": (5, lambda rng: (rng.choice(DURATIONS), rng.choice(
              ((True, True), (True, True), (True, False), (False, True))))),
          "drop": (3, lambda rng: None),
          "refuse": (1, lambda rng: rng.choice(DURATIONS)),
          "delay": (2, lambda rng: (rng.choice(DURATIONS), rng.randint(50, 900))),
          "shorten": (2, lambda rng: rng.randint(1000, 1900)),
          "flood": (5, lambda rng: (rng.randint(20, 300), rng.random())),
          "flood_supervisor": (2, lambda rng: (rng.randint(20, 300),
                                               rng.random())),
          "stop_and_cont_command": (2, lambda rng: rng.randint(10, 100)),
          "stop_command": (1, lambda rng: rng.choice(DURATIONS)),
          "cont": (2, lambda rng: None),
          "type_key": (3, lambda rng: rng.choice(list(KEYS))),
          "hang_up": (3, lambda rng: None),
          "kill": (1, lambda rng: None),
          "kill_supervisor": (1, lambda rng: None),
          "stop_supervisor": (1, lambda rng: None)}


# The faults after which COMMAND still runs at once, and latchkey, too.
UNDISTURBING = {"hang_up", "type_key", "cont", "drop", "delay", "shorten"}


def choose_faults(rng, slots, seconds):
    """[(time in s, slot or None for that of the holder, fault, parameter)]"""
    faults, at = [], rng.uniform(.3, 1)
    while at < seconds:
        fault = rng.choices(list(FAULTS), [w for w, _ in FAULTS.values()])[0]
        slot = None if rng.random() < .6 else rng.randrange(slots)
        faults.append((at, slot, fault, FAULTS[fault][1](rng)))
        at += rng.choice((.02, .1, .2, .3, .5, 1))
    return faults


# ---- one latchkey

class Contender:
    """One `latchkey run`. A run has several slots; when the contender of a slot
    has ended, the next generation follows in this slot."""

    def __init__(self, run, slot, generation, relay):
        self.run, self.relay, self.slot = run, relay, slot
        self.generation = generation
        self.name = "%d.%d" % (slot, generation)
        self.choice = Choice(random.Random("%s/%s" % (run.seed, self.name)))
        self.sent = set()       # names of the signals sent to it
        self.faults = run.faults[slot]  # of all contenders of the slot
        self.own_faults = set()
        self.supervisor = None
        self.is_killed = False  # latchkey or its supervisor was killed
        self.excused = False    # both were stopped at the same time
        self.ended_us = None
        self.err = open(os.path.join(run.folder, self.name + ".err"), "w+")
        choice = self.choice
        wrapper, stdin = [], subprocess.DEVNULL
        self.terminal = None    # the master's descriptor
        if choice.has_terminal:
            self.terminal, stdin = os.openpty()
            wrapper = ["setsid", "-c"]
            if not choice.reads_terminal:
                wrapper += ["sh", "-c", 'exec "$@" </dev/null', "sh"]
        if choice.as_nobody and command.is_root():
            wrapper += ["setpriv", "--reuid", "65534", "--regid", "65534",
                        "--clear-groups"]
        as_root = {"LATCHKEY_STRESS_AS_ROOT": run.helper} if run.helper else {}
        self.process = subprocess.Popen(
            [*wrapper, command.PROGRAM, "run", "-v", "-z", relay.address, "-T",
             "%g" % SESSION_TIMEOUT, *choice.options, run.lock, WRITERS,
             run.log, self.name, choice.manners, str(choice.duration_ms),
             str(choice.exit_code), *choice.kinds],
            stdin=stdin, stdout=subprocess.DEVNULL, stderr=self.err,
            start_new_session=not choice.has_terminal,
            env={**os.environ, **as_root, "LATCHKEY_STRESS": run.mark,
                 "ASAN_OPTIONS": ASAN_OPTIONS})
        if choice.has_terminal:
            os.close(stdin)

    # ---- its state

    def has_ended(self):
        if self.process.poll() is None:
            return False
        if self.ended_us is None:
            self.ended_us = now_us()
            self.close_terminal()
        return True

    def close_terminal(self):
        if self.terminal is not None:
            os.close(self.terminal)
        self.terminal = None

    def is_stopped(self):
        return command.process_state(self.process.pid) == "T"

    def find_supervisor(self):
        if self.supervisor is None and not self.has_ended():
            found = children_of(self.process.pid)
            self.supervisor = found[0] if found else None
        return self.supervisor

    def find_command(self):
        found = children_of(self.find_supervisor() or 0)
        return found[0] if found else None

    def signal(self, name):
        self.sent.add(name)
        self.process.send_signal(number_of(name))

    def signal_supervisor(self, number):
        if self.find_supervisor() is not None:
            signal_child(self.process.pid, self.supervisor, number)

    def signal_command(self, name):
        pid = self.find_command()
        if pid is not None:
            signal_child(self.supervisor, pid, number_of(name))

    # ---- faults; each takes its parameter from FAULTS, and returns None or
    # (seconds, function that ends the fault after this time)

    def stop(self, seconds):
        """Stop latchkey, but not before it knows a shortened timeout: on a busy
        machine it may take a while until it has read that."""
        if self.is_killed:
            return None
        for _ in range(10):
            self.process.send_signal(signal.SIGSTOP)
            time.sleep(.05)  # its last request reaches the relay
            if time.monotonic() - self.relay.shortened_at > 1:
                return seconds, self.cont
            self.cont()
            time.sleep(.2)
        return None

    def cont(self, _=None):
        self.signal("CONT")

    def freeze(self, parameter):
        seconds, (up, down) = parameter
        self.relay.freeze(up, down)
        return seconds, self.relay.thaw

    def drop(self, _):
        self.relay.drop()

    def refuse(self, seconds):
        self.relay.refuse()
        self.relay.drop()
        return seconds, self.relay.accept

    def delay(self, parameter):
        seconds, ms = parameter
        self.relay.delay(ms)
        return seconds, lambda: self.relay.delay(0)

    def shorten(self, ms):
        self.relay.limit_timeout(ms)
        self.relay.drop()

    def flood(self, parameter):
        count, seed = parameter
        if self.is_killed:
            return None
        rng = random.Random(seed)
        names = rng.sample(self.choice.signals(), rng.randint(1, 3))
        for i in range(count):
            self.signal(names[i % len(names)])
            if i % 4 == 3:
                time.sleep(.0005)
        return rng.choice(DURATIONS), self.cont

    def flood_supervisor(self, parameter):
        count, seed = parameter
        rng = random.Random(seed)
        for i in range(count):
            self.signal_supervisor(number_of(rng.choice(HANDLED)))
            if i % 4 == 3:
                time.sleep(.0005)

    def stop_and_cont_command(self, count):
        for _ in range(count):
            self.signal_command("STOP")
            time.sleep(.002)
            self.signal_command("CONT")
            time.sleep(.002)

    def stop_command(self, seconds):
        self.signal_command("STOP")
        return seconds, self.cont

    def expect_soon(self, is_true, what):
        """Check what a signal of the terminal does to COMMAND, unless other faults
        have hit it or latchkey."""
        end = time.monotonic() + 1.5
        if not self.own_faults <= UNDISTURBING or \
                self.run.disturbed_until[self.slot] > time.monotonic():
            return
        while not is_true():
            if time.monotonic() > end:
                self.run.bad.append("%s: %s" % (self.name, what))
                return
            time.sleep(.02)

    def has_started(self):
        """Whether the process executes latchkey, and no wrapper any more."""
        try:
            with open("/proc/%d/comm" % self.process.pid) as f:
                return "latchkey" in f.read()
        except OSError:
            return False

    def type_key(self, name):
        """latchkey's process group is orphaned, so nobody could continue it."""
        if self.terminal is None or name not in self.choice.signals() or \
                not self.has_started():
            return
        pid = self.find_command()
        self.sent.add(name)
        os.write(self.terminal, KEYS[name])
        if name == "TSTP" and pid is not None and "-" not in self.choice.manners:
            time.sleep(.1)
            self.expect_soon(lambda: command.process_state(pid) != "T",
                             "its COMMAND stays stopped")

    def hang_up(self, _):
        if self.terminal is None or "HUP" not in self.choice.signals() or \
                not self.has_started():
            return
        pid = self.find_command()
        self.sent.add("HUP")
        self.close_terminal()
        if pid is not None and self.choice.manners == "polite":
            self.expect_soon(lambda: pid not in children_of(self.supervisor),
                             "its COMMAND runs without its terminal")

    def kill(self, _=None):
        """Kill latchkey; afterwards its supervisor is not stopped or killed."""
        if not self.is_killed:
            self.is_killed = True
            self.sent.add("KILL")
            self.process.kill()

    def kill_supervisor(self, _):
        """Kill the supervisor, but not while latchkey is stopped; afterwards
        latchkey is not stopped."""
        if self.is_killed or self.is_stopped():
            return
        self.is_killed = True
        self.signal_supervisor(signal.SIGKILL)
        self.excuse_if_stopped()

    def stop_supervisor(self, _):
        """Stop the supervisor and check that latchkey continues it."""
        if self.is_killed or self.is_stopped() or self.find_supervisor() is None:
            return
        self.signal_supervisor(signal.SIGSTOP)
        end = time.monotonic() + 2
        while command.process_state(self.supervisor) == "T" or \
                stop_is_pending(self.supervisor):
            if time.monotonic() > end and not self.excuse_if_stopped():
                self.run.bad.append("%s: its supervisor stays stopped" % self.name)
            if time.monotonic() > end:
                self.signal_supervisor(signal.SIGCONT)
            time.sleep(.01)

    def excuse_if_stopped(self):
        """latchkey may be stopped because its COMMAND was, as for a shell."""
        time.sleep(.02)
        if self.is_stopped():
            self.excused = True
            self.cont()
        return self.excused

    # ---- its end

    def finish(self):
        """End the remaining faults, and begin to end latchkey."""
        self.relay.accept()
        self.relay.thaw()
        self.relay.delay(0)
        self.cont()
        if self.is_killed or self.has_ended():
            return
        if self.choice.ends_by_kill or self.choice.signals() == HARMLESS:
            self.kill()
        else:
            self.signal("TERM")

    def has_ended_by(self, end):
        """Wait for the end of latchkey, until this time."""
        while not self.has_ended():
            if time.monotonic() > end:
                return False
            self.cont()
            time.sleep(.02)
        return True

    def may_exit_with(self):
        codes = {self.choice.exit_code, LOST}
        for number in map(number_of, self.sent - {"KILL"}):
            # A polite COMMAND exits with 64 + number; see writers.c.
            codes |= {64 + number, 128 + number, -number}
        if "KILL" in self.sent:
            codes.add(-signal.SIGKILL)
        if "-w" in self.choice.options:
            codes.add(BUSY)
        if self.faults:
            codes.add(FAILED)
        return codes

    def may_leave_others(self):
        """Whether processes of another user, which may not be signalled, may
        write on: latchkey must have named one, if it was not killed."""
        return "other" in self.choice.kinds and self.choice.as_nobody and (
            self.is_killed or "cannot send KILL to process" in self.stderr_text())

    def stderr_text(self):
        self.err.seek(0)
        return self.err.read()

    def __str__(self):
        return "%s: %s\n    got %s; exit code %s\n%s" % (
            self.name, self.choice, " ".join(sorted(self.sent)) or "no signal",
            self.process.returncode, "".join(
                "    | " + line + "\n"
                for line in self.stderr_text().splitlines()[-12:]))


# ---- the log of the writers

class Lines:
    """The lines of all writers. A smaller token after a larger one is an
    overlap: that COMMAND ran at the same time as the next one."""

    def __init__(self, text, excused=(), with_others=()):
        self.tokens = []        # in the order of their first lines
        self.last_us = {}       # name: time of its last line
        self.overlaps = []
        self.others = 0         # lines of processes of another user
        newest, newest_begun_us, newest_name = 0, 0, None
        for line in text.splitlines():
            token, at_us, name, pid, kind = line.split()
            token, at_us = int(token), int(at_us)
            if token > newest:
                newest, newest_begun_us, newest_name = token, at_us, name
                self.tokens.append(token)
            elif kind == "other" and name in with_others:
                self.others += token < newest
                continue
            elif token < newest and name not in excused:
                self.overlaps.append(
                    "%s (process %s, %s) writes %.1f ms after the first line "
                    "of %s" % (name, pid, kind,
                               (at_us - newest_begun_us) / 1000, newest_name))
            self.last_us[name] = at_us


# ---- one run

class Run:
    """Several slots of contenders for one lock, and the faults that hit them."""

    def __init__(self, zk, folder, seed, helper=None):
        self.zk, self.seed = zk, seed
        self.helper = helper    # a set-user-ID program, or None
        self.mark = "%d-%s" % (os.getpid(), seed)  # unique on this machine
        self.lock = "/stress-" + self.mark
        self.folder = os.path.join(folder, self.mark)
        os.mkdir(self.folder, 0o755)
        self.log = os.path.join(self.folder, "log")
        open(self.log, "w").close()
        os.chmod(self.log, 0o666)
        rng = random.Random(seed)
        self.slots = rng.randint(2, 4)
        self.seconds = rng.uniform(5, 9)
        self.planned = choose_faults(rng, self.slots, self.seconds)
        # Of each slot: the pause between contenders, in s.
        self.pauses = [rng.uniform(0, .3) for _ in range(self.slots)]
        # Of each slot: the names of the faults so far.
        self.faults = [set() for _ in range(self.slots)]
        # Of each slot: when its relay or its processes go on again.
        self.disturbed_until = [0] * self.slots
        self.contenders = []
        self.current = []       # the current contender of each slot
        self.bad = []           # texts: what is wrong
        self.done = []          # texts: the faults so far, with their times
        self.lines = None       # Lines, after the end of all contenders

    def start_contender(self, slot, generation, relay):
        contender = Contender(self, slot, generation, relay)
        self.contenders.append(contender)
        return contender

    def holder_slot(self):
        """The slot that wrote the last line of the log."""
        with open(self.log, "rb") as f:
            f.seek(max(os.path.getsize(self.log) - 200, 0))
            lines = f.read().decode().split("\n")
        if len(lines) < 2:
            return 0  # no line was written yet
        _, _, name, _, _ = lines[-2].split()  # lines[-1] may be incomplete
        return int(name.split(".")[0])

    def execute_fault(self, began, slot, fault, parameter):
        """Execute a fault; gives what the fault's function returns."""
        contender = self.current[self.holder_slot() if slot is None else slot]
        if contender.has_ended():
            return None
        self.done.append("%6.3f %s %s %s" % (
            time.monotonic() - began, contender.name, fault, parameter or ""))
        contender.faults.add(fault)
        contender.own_faults.add(fault)
        end = getattr(contender, fault)(parameter)
        if end is not None:
            self.disturbed_until[contender.slot] = max(
                self.disturbed_until[contender.slot], time.monotonic() + end[0])
        return end

    def restart_ended(self, relays):
        """Start new contenders in slots whose contender has ended."""
        for slot, contender in enumerate(self.current):
            if not contender.has_ended():
                continue
            if contender.ended_us + self.pauses[slot] * 1e6 < now_us():
                self.current[slot] = self.start_contender(
                    slot, contender.generation + 1, relays[slot])

    def execute_all_faults(self, relays):
        """Execute the planned faults, each at its time, and end them."""
        self.current = [self.start_contender(slot, 0, relays[slot])
                        for slot in range(self.slots)]
        began = time.monotonic()
        planned = collections.deque(self.planned)
        ends = []  # (time, functions that end a fault)
        while (now := time.monotonic() - began) < self.seconds:
            self.restart_ended(relays)
            for end in [end for end in ends if end[0] <= now]:
                ends.remove(end)
                end[1]()
            while planned and planned[0][0] <= now:
                _, *fault = planned.popleft()
                if (end := self.execute_fault(began, *fault)) is not None:
                    seconds, end_fault = end
                    ends.append((now + seconds, end_fault))
            time.sleep(.01)

    def kill_others(self):
        """Kill the processes of another user that latchkey may not signal."""
        names = {c.name.encode() for c in self.contenders
                 if c.may_leave_others()}
        for pid in self.processes_left() if names else ():
            try:
                with open("/proc/%d/cmdline" % pid, "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[1:2] == [b"-other"] and words[3] in names:
                os.kill(pid, signal.SIGKILL)

    def finish(self):
        for contender in self.contenders:
            if not contender.has_ended():
                contender.finish()
        end = time.monotonic() + MAX_END_SECONDS
        for contender in self.contenders:
            # A process of another user can keep latchkey from ending.
            while not contender.has_ended_by(time.monotonic() + .5) and \
                    time.monotonic() < end:
                self.kill_others()
            if not contender.has_ended():
                self.bad.append("%s: latchkey does not end: %s" % (
                    contender.name, describe(contender.process.pid)))

    # ---- checks

    def processes_left(self):
        """The processes with the environment of this run's contenders."""
        left, wanted = [], ("LATCHKEY_STRESS=%s\0" % self.mark).encode()
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % name, "rb") as f:
                    if wanted in f.read() + b"\0":
                        left.append(int(name))
            except OSError:
                pass
        return left

    def nodes_left(self):
        done = command.run("ls", self.lock)
        return done.out.split() if done.code == 0 else []

    def check_nothing_left(self, what, find, seconds, describe_one=str):
        """Check that find() finds nothing after so many seconds; gives what it
        finds."""
        end = time.monotonic() + seconds
        while left := find():
            if time.monotonic() > end:
                self.bad.append("left: %s %s" % (
                    what, ", ".join(map(describe_one, left))))
                return left
            time.sleep(.1)
        return []

    def check_contender(self, contender):
        code, name = contender.process.returncode, contender.name
        if code is not None and code not in contender.may_exit_with():
            self.bad.append("%s: exit code %s" % (name, code))
        if "Sanitizer" in contender.stderr_text() or \
                "runtime error" in contender.stderr_text():
            self.bad.append("%s: %s" % (name, contender.stderr_text()))
        # The supervisor of a killed latchkey still has to kill COMMAND.
        if code not in (None, -signal.SIGKILL):
            late_us = self.lines.last_us.get(name, 0) - contender.ended_us
            if late_us > 0:
                self.bad.append("%s: a line %.1f ms after the end of latchkey" %
                                (name, late_us / 1000))

    def check(self):
        self.kill_others()
        for pid in self.check_nothing_left("processes", self.processes_left, 5,
                                           describe):
            os.kill(pid, signal.SIGKILL)
        with open(self.log) as f:
            self.lines = Lines(f.read(), {c.name for c in self.contenders
                                          if c.excused},
                               {c.name for c in self.contenders
                                if c.may_leave_others()})
        for text in self.lines.overlaps[:5]:
            self.bad.append("overlap: " + text)
        for contender in self.contenders:
            self.check_contender(contender)
        self.check_nothing_left("nodes", self.nodes_left, SESSION_TIMEOUT + 5)

    def run(self):
        relays = [Relay(self.zk.connect) for _ in range(self.slots)]
        try:
            self.execute_all_faults(relays)
            self.finish()
            self.check()
        finally:
            for contender in self.contenders:
                if not contender.has_ended():
                    contender.process.kill()
                    contender.process.wait()
            for relay in relays:
                relay.close()

    def report(self):
        yield "run %s: WRONG" % self.seed
        yield from ("  " + text for text in self.bad)
        yield from ("  " + text for text in self.done)
        yield from ("  " + str(c) for c in self.contenders)
