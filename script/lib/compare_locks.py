# SPDX-License-Identifier: Apache-2.0
"""What a contended lock costs beside go-zookeeper, Curator and kazoo, in one run.

    script/compare --locks [--quick] [--write] [--build FOLDER] [CELL...]

In each cell of the table, all programs do the same in turns against the same
servers: N contenders in one process acquire a lock, hold it, release it, and
queue again. From each round come the ratios of latchkey's median and 99th
percentile of a handoff, and of its processor time a turn, to those of a peer.
The table has the medians of seven rounds (--quick: one). A handoff is the time
from the call that releases to the return of the next acquire.

--write puts the table into doc/performance.md, and a chart of it into
doc/locks.svg. FOLDER is where latchkey was built, with optimisation [.]. Needs
the packages golang-go, golang-github-samuel-go-zookeeper-dev, python3-kazoo,
libcurator-recipes-java and a JDK beside those of script/bootstrap.
"""

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import namedtuple

import support
from comparison import (Missing, bench_program, start_servers,
                        write_section)

sys.path.insert(0, os.path.join(support.TOP, "tests", "live", "interop"))

import curator  # noqa: E402
import versions  # noqa: E402
from relay import UNPARSED, Relay, delay_precisely  # noqa: E402

PEERS_DIR = os.path.join(support.TOP, "bench", "peers")
ROUNDS = 7
LIMIT_S = 300
# Where the servers are: one; three that force their logs to the disk; one
# behind a relay that adds some 1.5 ms to each round trip.
ONE, THREE, FAR = "one server", "three servers, fsync", "one server, 1.5 ms away"
Cell = namedtuple("Cell", "name place contenders mode hold_ms each")
CELLS = [
    Cell("2", ONE, 2, "sessions", 0, 500),
    Cell("50", ONE, 50, "sessions", 0, 20),
    Cell("200", ONE, 200, "sessions", 0, 5),
    Cell("50-shared", ONE, 50, "shared", 0, 20),
    Cell("200-shared", ONE, 200, "shared", 0, 5),
    Cell("50-held-1", ONE, 50, "sessions", 1, 6),
    Cell("50-held-10", ONE, 50, "sessions", 10, 4),
    Cell("2-far", FAR, 2, "sessions", 0, 60),
    Cell("50-far", FAR, 50, "sessions", 0, 6),
    Cell("2-three", THREE, 2, "sessions", 0, 100),
    Cell("50-three", THREE, 50, "sessions", 0, 6),
    Cell("50-three-held-1", THREE, 50, "sessions", 1, 4),
]
OURS, GO, CURATOR, KAZOO = "latchkey", "go-zookeeper", "Curator", "kazoo"
KAZOO_MOST = 50  # contenders; each has several threads
# Of a program in a round: times of a handoff, and processor time of a turn, in
# microseconds.
Cost = namedtuple("Cost", "p50 p99 cpu")


# ---- the programs -------------------------------------------------------------

def build_go(folder):
    if shutil.which("go") is None:
        raise Missing("golang-go")
    program = os.path.join(folder, "contended")
    done = subprocess.run(
        ["go", "build", "-o", program, os.path.join(PEERS_DIR, "contended.go")],
        env=dict(os.environ, GO111MODULE="off", GOPATH="/usr/share/gocode",
                 GOCACHE=os.path.join(folder, "cache")),
        capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Missing("golang-github-samuel-go-zookeeper-dev, or it does not "
                      "compile: " + done.stderr.strip()[:300])
    return [program]


def build_java(folder):
    jars = [os.path.join(curator.JAVA, jar + ".jar") for jar in curator.JARS]
    if shutil.which("javac") is None or not all(map(os.path.exists, jars)):
        raise Missing("a JDK, or libcurator-recipes-java")
    path = ":".join([folder, *jars])
    subprocess.run(["javac", "-cp", path, "-d", folder,
                    os.path.join(PEERS_DIR, "Contended.java")], check=True)
    # For SASL, ZooKeeper's client would ask for the name of the server's
    # address: half a second for each session where there is no name server.
    return ["java", "-Dzookeeper.sasl.client=false", "-cp", path, "Contended"]


def programs(build, folder):
    """The command of each program, without its arguments."""
    return {OURS: [bench_program(build), "lock-contended"],
            GO: build_go(folder),
            CURATOR: build_java(folder),
            KAZOO: ["/usr/bin/python3",
                    os.path.join(PEERS_DIR, "contended.py")]}


def run(command, cell, hosts):
    done = subprocess.run(
        [*command, hosts, str(cell.contenders), f"each={cell.each}",
         f"hold={cell.hold_ms * 1000}", f"mode={cell.mode}"],
        capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode != 0:
        raise Missing(f"{command[-1]}: {done.stderr.strip()[-300:]}")
    turns, _, user, system = map(float, done.stdout.split()[1:5])
    p50, p99 = (float(re.search(rf"handoff_{p}_us=([\d.]+)", done.stdout)[1])
                for p in ("p50", "p99"))
    return Cost(p50, p99, (user + system) / turns * 1e6)


# ---- the cells ----------------------------------------------------------------

@contextlib.contextmanager
def places(wanted):
    """The connect string of each place of `wanted`, whose servers run
    meanwhile."""
    hosts = {}
    with contextlib.ExitStack() as stack:
        if {ONE, FAR} & wanted:
            one = start_servers()
            stack.callback(one.close)
            hosts[ONE] = one.connect
        if THREE in wanted:
            three = start_servers("--fsync", count=3)
            stack.callback(three.close)
            # All programs use the same server, whether it leads or not.
            hosts[THREE] = three.addresses[0]
        if FAR in wanted:
            delay_precisely()
            relay = stack.enter_context(Relay(hosts[ONE], UNPARSED))
            relay.delay(0.35)
            hosts[FAR] = relay.address
        yield hosts


def compare(cell, commands, hosts, rounds):
    """The costs of each program, by its name: a list of a Cost for each round.
    Another program begins each round. The round before the first is not counted:
    the servers compile their code."""
    names = [name for name in commands
             if name != KAZOO or cell.contenders <= KAZOO_MOST]
    costs = {name: [] for name in names}
    for i in range(rounds + 1):
        for name in names[i % len(names):] + names[:i % len(names)]:
            cost = run(commands[name], cell, hosts[cell.place])
            if i > 0:
                costs[name].append(cost)
    return costs


def ratio(costs, peer, what):
    """The median of latchkey's share of `peer`, each taken within a round."""
    if peer not in costs:
        return None
    return statistics.median(getattr(ours, what) / getattr(theirs, what)
                             for ours, theirs in zip(costs[OURS], costs[peer]))


HEAD = ("| servers | contenders | held, ms | median, µs | "
        "of go-zookeeper: median; p99; processor time | of Curator: median; "
        "p99; processor time | of kazoo: median |\n"
        "| --- | --- | --- | --- | --- | --- | --- |")


def row(cell, costs):
    def of(peer, *whats):
        ratios = [ratio(costs, peer, what) for what in whats]
        return "; ".join("-" if r is None else f"{r:.2f}" for r in ratios)

    sessions = "" if cell.mode == "sessions" else " in one session"
    median = statistics.median(cost.p50 for cost in costs[OURS])
    return (f"| {cell.place} | {cell.contenders}{sessions} | {cell.hold_ms} | "
            f"{median:,.0f} | {of(GO, 'p50', 'p99', 'cpu')} | "
            f"{of(CURATOR, 'p50', 'p99', 'cpu')} | {of(KAZOO, 'p50')} |")


# ---- the chart ----------------------------------------------------------------

BAR, ROW, LEFT, WIDTH = 9, 46, 250, 760
COLOURS = {OURS: "#1a7f64", GO: "#8ab6d6", CURATOR: "#d6a98a", KAZOO: "#c9c9c9"}


def bars(cell, costs, y):
    """The SVG of a cell: a bar for each program, as long as its median handoff
    in relation to the longest."""
    medians = {name: statistics.median(cost.p50 for cost in rounds)
               for name, rounds in costs.items()}
    longest = max(medians.values())
    sessions = "" if cell.mode == "sessions" else ", one session"
    held = f", held {cell.hold_ms} ms" if cell.hold_ms else ""
    yield (f'<text x="{LEFT - 10}" y="{y + 14}" text-anchor="end">'
           f"{cell.contenders} contenders{sessions}{held}</text>")
    yield (f'<text x="{LEFT - 10}" y="{y + 28}" text-anchor="end" '
           f'fill="#666">{cell.place}</text>')
    for n, (name, median) in enumerate(medians.items()):
        width = (WIDTH - LEFT - 90) * median / longest
        yield (f'<rect x="{LEFT}" y="{y + n * BAR}" width="{width:.0f}" '
               f'height="{BAR - 1}" fill="{COLOURS[name]}"/>')
        yield (f'<text x="{LEFT + width + 5:.0f}" y="{y + n * BAR + 8}" '
               f'font-size="9">{median / 1000:.2f} ms</text>')


def chart(table):
    lines = []
    for n, (cell, costs) in enumerate(table):
        lines += bars(cell, costs, 40 + n * ROW)
    for n, (name, colour) in enumerate(COLOURS.items()):
        lines.append(f'<rect x="{LEFT + n * 110}" y="12" width="10" height="10" '
                     f'fill="{colour}"/><text x="{LEFT + 14 + n * 110}" y="21">'
                     f"{name}</text>")
    height = 40 + len(table) * ROW
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{height}" font-family="sans-serif" font-size="12">\n'
            "<title>Median time from a release to the next grant; shorter is "
            "better</title>\n"
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n' +
            "\n".join(lines) + "\n</svg>\n")


# ---- the page -----------------------------------------------------------------

CHART = ("![Median time from a release to the next grant in the cells of the "
         "table, for each library.](locks.svg)")


def write(table, lines):
    write_section("compare --locks", [*lines, "", CHART])
    with open(os.path.join(support.TOP, "doc", "locks.svg"), "w",
              encoding="utf-8") as file:
        file.write(chart(table))


def main():
    parser = argparse.ArgumentParser(
        prog="script/compare --locks",
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true",
                        help="one round where there are seven")
    parser.add_argument("--write", action="store_true",
                        help="write doc/performance.md and doc/locks.svg")
    parser.add_argument("--build", default=".", metavar="FOLDER")
    parser.add_argument("cell", nargs="*")
    args = parser.parse_args()
    known = {cell.name: cell for cell in CELLS}
    for name in args.cell:
        if name not in known:
            parser.error(f"no such cell: {name}; there are {', '.join(known)}")
    cells = [known[name] for name in args.cell or known]
    rounds = 1 if args.quick else ROUNDS
    compared = versions.line("ZooKeeper", "go-zookeeper", "Curator", "kazoo")
    table, lines = [], [f"With {compared}:", "", HEAD]
    print("\n".join(lines))
    with tempfile.TemporaryDirectory() as folder:
        commands = programs(args.build, folder)
        with places({cell.place for cell in cells}) as hosts:
            for cell in cells:
                table.append((cell, compare(cell, commands, hosts, rounds)))
                lines.append(row(*table[-1]))
                print(lines[-1], flush=True)
    if args.write:
        write(table, lines)


if __name__ == "__main__":
    try:
        main()
    except Missing as e:
        sys.exit(f"compare: needs {e}")
