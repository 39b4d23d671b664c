# SPDX-License-Identifier: Apache-2.0
"""What held locks cost an ensemble, and the other clients that write to it.

    script/compare --leases [--quick] [--write] [--build FOLDER]

Three servers that force their logs to the disk serve sessions that each hold a
lock of their own, with each assurance in turn, and once as many sessions
without a lock. Meanwhile another session writes every 10 ms. The table has the
transactions of the holders a minute, and the times of the writes: medians of
three rounds (--quick: one, with 1,000 sessions only).

--write puts the table into doc/performance.md. FOLDER is where latchkey was
built, with optimisation [.].
"""

import argparse
import contextlib
import re
import statistics
import subprocess
import sys

from comparison import (Missing, bench_program, start_servers,
                        write_section)

ROUNDS = 3
WRITES, EVERY_US = 1500, 10000
LIMIT_S = 300
ASSURANCES = {"none": "no lock is held", "quorum": "`LK_ASSURE_QUORUM`",
              "sync": "`LK_ASSURE_SYNC`", "ping": "`LK_ASSURE_PING`"}
HEAD = ("| sessions | assurance | transactions a minute | a write, median, ms | "
        "99th percentile, ms |\n| --- | --- | --- | --- | --- |")
PATTERN = re.compile(r"other_writes_a_minute=(\d+) write_p50_us=([\d.]+) "
                     r"write_p99_us=([\d.]+)")


def run(program, hosts, sessions, assurance):
    done = subprocess.run(
        [program, "holders", hosts, str(sessions), f"assurance={assurance}",
         f"writes={WRITES}", f"every={EVERY_US}"],
        capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode != 0:
        raise Missing(f"{program}: {done.stderr.strip()[-300:]}")
    return [float(value) for value in PATTERN.search(done.stdout).groups()]


def row(program, hosts, sessions, assurance, rounds):
    runs = [run(program, hosts, sessions, assurance) for _ in range(rounds)]
    transactions, p50, p99 = map(statistics.median, zip(*runs))
    return (f"| {sessions:,} | {ASSURANCES[assurance]} | {transactions:,.0f} | "
            f"{p50 / 1000:.2f} | {p99 / 1000:.1f} |")


def main():
    parser = argparse.ArgumentParser(
        prog="script/compare --leases",
        description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true",
                        help="one round where there are three, and no more "
                        "than 1,000 sessions")
    parser.add_argument("--write", action="store_true",
                        help="write doc/performance.md")
    parser.add_argument("--build", default=".", metavar="FOLDER")
    args = parser.parse_args()
    program = bench_program(args.build)
    lines = [HEAD]
    print(HEAD)
    servers = start_servers("--fsync", count=3)
    with contextlib.closing(servers):
        for sessions in (1000,) if args.quick else (1000, 10000):
            for assurance in ASSURANCES:
                lines.append(row(program, servers.connect, sessions, assurance,
                                 1 if args.quick else ROUNDS))
                print(lines[-1], flush=True)
    if args.write:
        write_section("compare --leases", lines)


if __name__ == "__main__":
    try:
        main()
    except Missing as e:
        sys.exit(f"compare: needs {e}")
