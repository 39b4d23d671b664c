# SPDX-License-Identifier: Apache-2.0
"""The animation of the README, doc/demo.svg: script/record [--check]

Runs this on a private server, and records what each terminal shows and when:
A holds a lock, B waits and shows its position, `latchkey status` shows the queue,
A's latchkey is killed with kill -9, B holds with a larger token.

Without an option it writes the record as doc/demo.svg (animated by CSS, no
script) and its last frame as doc/demo.png; that takes rsvg-convert (Debian:
librsvg2-bin). With --check it compares the record with the text in
doc/demo.svg, times, process ids, sessions, tokens and UUIDs apart, and exits
with 1 if they differ. With LATCHKEY_BUILD, a finished build, nothing is
installed or built.
"""

import difflib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from xml.sax.saxutils import escape

import support

LOCK = "/locks/job"
SVG = os.path.join(support.TOP, "doc", "demo.svg")
LENGTH = 20     # duration of the animation, in s
JOB = ("#!/bin/sh\n"
       "echo \"./job: I hold $LATCHKEY_LOCK, token $LATCHKEY_FENCING_TOKEN\"\n"
       "exec sleep 600\n")
TITLES = {"A": "machine A", "B": "machine B", "C": "anywhere"}


# ---- the record

class Record:
    """Lines of three terminals: (time, terminal, kind, text), where kind is
    "command" or "output"."""

    def __init__(self):
        self.began = time.monotonic()
        self.lines = []
        self.captions = []  # (time, text)

    def now(self):
        return time.monotonic() - self.began

    def add(self, terminal, kind, text):
        self.lines.append((self.now(), terminal, kind, text))

    def caption(self, text):
        self.captions.append((self.now(), text))

    def at(self, moment):
        """Wait until this time of the record."""
        time.sleep(max(0, moment - self.now()))


class Terminal:
    """A process on a pseudo-terminal; its lines go to the record."""

    def __init__(self, record, name, words, **options):
        record.add(name, "command", " ".join(words))
        self.record, self.name = record, name
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                        stdout=slave, stderr=slave, **options)
        os.close(slave)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        rest = ""
        while True:
            try:
                piece = os.read(self.master, 4096)
            except OSError:  # the other side is closed
                piece = b""
            if not piece:
                break
            *whole, rest = (rest + piece.decode()).split("\n")
            for line in whole:
                self.record.add(self.name, "output", line.rstrip("\r"))
        os.close(self.master)

    def ended(self):
        """Wait for the end of the process, and record it as a shell prints
        it."""
        code = self.process.wait()
        self.reader.join()
        if code < 0:
            self.record.add(self.name, "output", signal.strsignal(-code))


def wait_for(record, terminal, words):
    """Wait until the terminal has a line with these words."""
    support.live.eventually(
        lambda: any(t == terminal and kind == "output" and words in text
                    for _, t, kind, text in record.lines),
        "%s: %s" % (terminal, words))


def command(record, words, options, comment=""):
    record.add("C", "command", " ".join(words) + comment)
    record.at(record.now() + .3)
    done = subprocess.run(words, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    for line in done.stdout.splitlines():
        record.add("C", "output", line)


def play(folder, environment):
    record = Record()
    options = {"cwd": folder, "env": environment}

    def contender(name):
        return Terminal(record, name, ["latchkey", "run", "-T", "4", "-i", name,
                                       LOCK, "--", "./job"], **options)

    record.caption("A runs a job under a lock.")
    record.at(.5)
    a = contender("A")
    wait_for(record, "A", "token")
    record.at(3)
    record.caption("B asks for the same lock, and waits in the queue.")
    b = contender("B")
    wait_for(record, "B", "held by A")
    record.at(5.5)
    record.caption("Every client can see the queue.")
    command(record, ["latchkey", "status", LOCK], options)
    record.at(9)
    record.caption("A is killed. Its supervisor ends the job at once; "
                   "its session ends after four seconds.")
    command(record, ["kill", "-9", str(a.process.pid)], options,
            "    # A's latchkey")
    a.ended()
    wait_for(record, "B", "token")
    record.caption("B holds. Its token is larger, so storage can refuse "
                   "a late write of A.")
    record.at(15)
    command(record, ["latchkey", "status", LOCK], options)
    b.process.terminate()
    kept = list(record.lines)   # lines after this are not shown
    b.process.wait()
    b.reader.join()
    record.lines = kept
    return record


def run():
    build = support.build()
    with tempfile.TemporaryDirectory(prefix="latchkey-record.") as folder:
        with open(os.path.join(folder, "job"), "w") as job:
            job.write(JOB)
        os.chmod(os.path.join(folder, "job"), 0o755)
        with support.Server("--tick", "500") as zk:
            environment = dict(os.environ, LATCHKEY_ZK=zk.connect,
                               PATH=build + ":" + os.environ["PATH"])
            return play(folder, environment)


# ---- the check

def normalised(text):
    text = re.sub(r"_c_[0-9a-f]{8}(-[0-9a-f-]{27}|…)", "_c_UUID", text)
    text = re.sub(r"0x[0-9a-f]+", "SESSION", text)
    text = re.sub(r"kill -9 \d+", "kill -9 PID", text)
    text = re.sub(r"token \d+", "token N", text)
    return re.sub(r"\d+\.\d+ s", "T s", text)


def tokens(lines):
    return [int(n) for _, text in lines
            for n in re.findall(r"I hold .* token (\d+)", text)]


def check(record):
    committed = [(g.get("data-terminal"), "".join(g.itertext()))
                 for g in ElementTree.parse(SVG).iter()
                 if g.get("data-terminal")]
    recorded = [(terminal, text) for _, terminal, _, text in record.lines]
    old, new = ([(t, normalised(x)) for t, x in lines]
                for lines in (committed, recorded))
    for line in difflib.unified_diff(["%s: %s" % x for x in old],
                                     ["%s: %s" % x for x in new],
                                     "doc/demo.svg", "this run", lineterm=""):
        print(line)
    for lines in (committed, recorded):
        first, second = tokens(lines)
        if first >= second:
            print("the second token is not larger: %d, %d" % (first, second))
            return 1
    print("doc/demo.svg shows what the command does" if old == new else
          "doc/demo.svg is out of date: run script/record")
    return old != new


# ---- the picture

WIDTH, MARGIN, LEADING, CHARACTER = 940, 14, 20, 7.85
BOXES = {"A": (0, 0, 462, 116), "B": (478, 0, 462, 116),
         "C": (0, 132, 940, 216)}
HEIGHT = 408

STYLE = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas,
  'DejaVu Sans Mono', monospace; fill: #24292f; white-space: pre }
.box { fill: #f6f8fa; stroke: #d0d7de }
.title, .prompt { fill: #6e7781 }
.title { font-size: 12px }
.command { font-weight: 600 }
.token { fill: #0a5bc4; font-weight: 600 }
.holds { fill: #1a7f37; font-weight: 600 }
.waits { fill: #8a5a00; font-weight: 600 }
.killed { fill: #cf222e; font-weight: 600 }
.caption { font: 17px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans',
  sans-serif; text-anchor: middle }
.track { fill: #d0d7de }
.bar { fill: #0a5bc4 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .box { fill: #161b22; stroke: #30363d }
  .title, .prompt { fill: #8b949e }
  .token, .bar { fill: #79c0ff }
  .holds { fill: #7ee787 }
  .waits { fill: #e3b341 }
  .killed { fill: #ff7b72 }
  .track { fill: #30363d }
}
"""
MARKS = [("token", r"token \d+"), ("holds", r"^holds|I hold"),
         ("waits", r"^waits|(?<=: )waiting|\b[1-9]\d* waiting"), ("killed", r"^Killed$|kill -9")]


def percent(seconds):
    return "%.2f%%" % (100 * seconds / LENGTH)


class Animation:
    """The CSS keyframes: one name for each pair of times."""

    def __init__(self):
        self.rules = []

    def shown(self, start, end=None):
        """The style of an element that appears at `start` and disappears at
        `end`; None: it stays until the end of the animation."""
        name = "k%d" % len(self.rules)
        last = end or LENGTH - .6
        self.rules.append(
            "@keyframes %s { 0%%, %s { opacity: 0 } %s, %s { opacity: 1 } "
            "%s, 100%% { opacity: 0 } }" % (
                name, percent(start), percent(start + .15), percent(last),
                percent(min(last + .3, LENGTH))))
        return "animation: %s %ds linear infinite" % (name, LENGTH)


def marked(text):
    """The text as SVG, with spans around coloured parts."""
    text = re.sub(r"(_c_[0-9a-f]{8})-[0-9a-f-]{27}", r"\1…", text)
    spans = []
    for kind, pattern in MARKS:
        spans += [(m.start(), m.end(), kind)
                  for m in re.finditer(pattern, text)]
    result, at = "", 0
    for start, end, kind in sorted(spans):
        if start < at:
            continue
        result += escape(text[at:start]) + '<tspan class="%s">%s</tspan>' % (
            kind, escape(text[start:end]))
        at = end
    return result + escape(text[at:])


def wrapped(text, columns):
    """The line in pieces of the width of a terminal."""
    text = re.sub(r"(_c_[0-9a-f]{8})-[0-9a-f-]{27}", r"\1…", text)
    return [text[i:i + columns] for i in range(0, len(text), columns)] or [""]


def draw(record):
    animation, body = Animation(), []
    rows = {}
    for name, (x, y, width, height) in BOXES.items():
        rows[name] = y + 48
        body.append('<rect class="box" x="%g" y="%g" width="%g" height="%g" '
                    'rx="8"/>' % (x + .5, y + .5, width - 1, height - 1))
        body.append('<text class="title" x="%d" y="%d">%s</text>' % (
            x + MARGIN, y + 22, TITLES[name]))
    for at, name, kind, text in record.lines:
        x, y, width, height = BOXES[name]
        columns = int((width - 2 * MARGIN) / CHARACTER) - 2 * (
            kind == "command")
        body.append('<g style="%s">' % animation.shown(at))
        left = x + MARGIN
        if kind == "command":
            body.append('<text class="prompt" x="%d" y="%d">$</text>' % (
                left, rows[name]))
            left += 2 * CHARACTER
        body.append('<g data-terminal="%s">' % name + "".join(
            '<text class="%s" x="%g" y="%d">%s</text>' % (
                kind, left, rows[name] + i * LEADING, marked(piece))
            for i, piece in enumerate(wrapped(text, columns))) + "</g></g>")
        rows[name] += LEADING * len(wrapped(text, columns))
        if rows[name] > y + height + LEADING - 4:
            sys.exit("script/record: terminal %s is too small" % name)
    ends = [at for at, _ in record.captions[1:]] + [None]
    for (at, text), end in zip(record.captions, ends):
        body.append('<text class="caption" x="%d" y="%d" style="%s%s">%s'
                    '</text>' % (WIDTH / 2, HEIGHT - 24,
                                 animation.shown(at, end and end - .3),
                                 "; opacity: 0" if end else "", escape(text)))
    body.append('<rect class="track" x="0" y="%d" width="%d" height="3" '
                'rx="1.5"/>' % (HEIGHT - 4, WIDTH))
    body.append('<rect class="bar" x="0" y="%d" width="%d" height="3" '
                'rx="1.5" style="animation: bar %ds linear infinite"/>' % (
                    HEIGHT - 4, WIDTH, LENGTH))
    animation.rules.append("@keyframes bar { from { transform: scaleX(0) } "
                           "to { transform: scaleX(1) } }")
    return """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"
  xml:space="preserve">
<title>Two machines and one lock</title>
<desc>Made by script/record from a real run. %s</desc>
<style>%s%s
@media (prefers-reduced-motion: reduce) { * { animation: none !important } }
</style>
%s
</svg>
""" % (WIDTH, HEIGHT, escape(" ".join(text for _, text in record.captions)),
       STYLE, "\n".join(animation.rules), "\n".join(body))


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__.strip())
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    if sys.argv[1:] == []:
        if not shutil.which("rsvg-convert"):
            sys.exit("script/record: there is no rsvg-convert (Debian: "
                     "librsvg2-bin)")
    record = run()
    if sys.argv[1:]:
        return check(record)
    with open(SVG, "w", encoding="utf-8") as file:
        file.write(draw(record))
    return subprocess.run(
        ["rsvg-convert", "--zoom", "1.6", "--background-color", "white",
         "-o", SVG[:-3] + "png", SVG]).returncode


sys.exit(main())
