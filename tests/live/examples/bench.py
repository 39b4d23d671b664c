# SPDX-License-Identifier: Apache-2.0
"""Runs each workload of the bench once, with few operations. The test checks
the format of the lines, and that no node is left; it measures no time."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/../support")

import command
import live
import zkserver

PROGRAM = os.path.join(os.environ.get("abs_top_builddir", "."), "bench",
                       "latchkey-bench")
COMPARE = os.path.join(os.path.dirname(zkserver.SCRIPT), "compare")
LINE = re.compile(r"(\S+) (\d+) (\d+\.\d+) (\d+\.\d+) (\d+\.\d+) (\d+)"
                  r"((?: [a-z0-9_]+=\S+)+)")
zk = command.serve()


def run_bench(*words, code=0, **options):
    """Run the program, and check its exit code; gives its Result."""
    done = command.run(*words, program=PROGRAM, **options)
    assert done.code == code, (words, done)
    return done


def check_line(line, name, count):
    """Check the name and the count of operations of a line; gives {key: value}
    of the words after its six columns."""
    columns = LINE.fullmatch(line)
    assert columns, line
    assert columns[1] == name and int(columns[2]) == count, line
    # The duration in s, and the peak of memory in KiB.
    assert float(columns[3]) > 0 and int(columns[6]) > 0, line
    return dict(word.split("=") for word in columns[7].split())


def check_workload(name, n, *options, count=None, **expected):
    """Run a workload that prints a single line, with the number `n`. Check the
    count in the line, which is `n` if not given, and the values of the keys in
    `expected`. Gives all values by key."""
    done = run_bench(name, zk.connect, str(n), *options)
    (line,) = done.out.splitlines()
    assert done.err == "", done
    values = check_line(line, name, n if count is None else count)
    for key, value in expected.items():
        assert values[key] == value, (key, line)
    return values


def check_refused(code, *words, text):
    """Check that the program exits with this code and prints this text."""
    done = run_bench(*words, code=code)
    assert done.out == "" and text in done.err, done


# ---- messages ---------------------------------------------------------------

def usage_errors_name_the_option():
    check_refused(2, text="usage:")
    check_refused(3, "nothing", text="no such workload: nothing")
    check_refused(3, "get", zk.connect, "1", text="no such workload: get")
    check_refused(2, "get-seq", text="HOST:PORT N")
    check_refused(2, "get-seq", zk.connect, text="missing: N")
    for n in "0", "-1", "x", "1x", "", "100000001":
        check_refused(2, "get-seq", zk.connect, n, text="not a number")
    check_refused(2, "get-seq", "a:b", "1", text="a port is a number")
    for option in ("size", "siz=1"):
        check_refused(2, "get-seq", zk.connect, "1", option,
                      text="no such option: " + option)
    # Options of other workloads are ignored.
    run_bench("get-seq", zk.connect, "2", "mode=shared", "window=7")
    for option in ("mode=", "mode=share", "mode=sessions|shared", "each=0",
                   "each=-1", "each=2x"):
        check_refused(2, "lock-contended", zk.connect, "1", option,
                      text="out of range: " + option)


def comparison_refuses_unknown_words():
    done = command.run("nothing", program=COMPARE)
    assert done.code == 2 and "no such workload: nothing" in done.err, done
    done = command.run("--build", "/nowhere", "children", program=COMPARE)
    assert done.code == 1 and "configure and make first" in done.err, done
    done = command.run("reconnect", program=COMPARE)
    assert done.code == 2 and "no such workload: reconnect" in done.err, done
    done = command.run("--locks", "nothing", program=COMPARE)
    assert done.code == 2 and "no such cell: nothing" in done.err, done
    done = command.run("--tls", "--build", os.path.dirname(
        os.path.dirname(PROGRAM)), "children", program=COMPARE,
                       env={**os.environ, "LATCHKEY_ZK": "127.0.0.1:1"})
    assert done.code == 1 and "begins with tls://" in done.err, done


def unreachable_server_is_an_error():
    done = run_bench("get-seq", "127.0.0.1:1", "1", code=1)
    assert done.out == "" and "127.0.0.1:1" in done.err, done


def marks_enclose_the_measured_region():
    done = run_bench("get-seq", zk.connect, "3",
                     env={**os.environ, "BENCH_MARK": "1"})
    lines = done.out.splitlines()
    assert lines[:2] == ["@begin", "@end"] and len(lines) == 3, done
    check_line(lines[2], "get-seq", 3)


# ---- workloads --------------------------------------------------------------

def reads_and_creates_print_one_line():
    check_workload("get-pipelined", 50, "window=7", "size=3", window="7")
    check_workload("get-pipelined", 3, window="1000")
    values = check_workload("get-seq", 5, allocs="0")
    assert 0 < float(values["p50_us"]) <= float(values["p99_us"]), values
    check_workload("create-delete", 50, "window=7", window="7")


def listings_print_one_line():
    check_workload("children", 2, "names=30", names="30")


def locks_print_one_line():
    values = check_workload("lock-uncontended", 4)
    assert 0 < float(values["acquire_p50_us"]) <= float(values["acquire_p99_us"])
    for mode in "sessions", "shared":
        values = check_workload("lock-contended", 3, "each=2", "hold=1000",
                                "mode=" + mode, count=6, mode=mode)
        assert (0 < float(values["handoff_p50_us"]) <=
                float(values["handoff_p99_us"])), values
    check_workload("lock-contended", 1, "each=1", count=1)


def holders_print_one_line():
    for assurance in "none", "quorum":
        values = check_workload("holders", 3, "writes=2", "every=1",
                                "assurance=" + assurance)
        assert int(values["other_writes_a_minute"]) == 0, values
        assert (0 < float(values["write_p50_us"]) <=
                float(values["write_p99_us"])), values


def sessions_print_one_line():
    values = check_workload("sessions", 5)
    assert int(values["heap_per_session"]) > 1000, values


def connections_print_one_line():
    for session in "new", "resumed":
        check_workload("connect", 3, "session=" + session, session=session)


def idle_ends_with_its_input():
    with command.start("idle", zk.connect, "2", program=PROGRAM,
                       stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "@ready\n"
        process.stdin.write("not yet\n")
        process.stdin.flush()
        assert process.poll() is None
        done = process.finish()
    assert done.code == 0, done
    check_line(done.out.rstrip("\n"), "idle", 2)


def watch_storm_sets_and_fires_watches():
    done = run_bench("watch-storm", zk.connect, "9", "window=4")
    first, second = done.out.splitlines()
    assert check_line(first, "watch-set", 9)["window"] == "4"
    assert check_line(second, "watch-fire", 9)["by"] == "us"


def watch_storm_waits_for_events_of_other_clients():
    with tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, "go")
        os.mkfifo(go)
        with command.start("watch-storm", zk.connect, "3", program=PROGRAM,
                           env={**os.environ, "BENCH_GO": go}) as process:
            with open(go) as f:
                count, root = f.read().split()
            assert count == "3", count
            assert check_line(process.stdout.readline().rstrip("\n"), "watch-set", 3)
            names = command.children(root)
            assert len(names) == 3, names
            for name in names:
                assert process.poll() is None
                command.expect_exit(0, "set", root + "/" + name, "now")
            done = process.finish()
    assert done.code == 0, done
    assert check_line(done.out.rstrip("\n"), "watch-fire", 3)["by"] == "others"


def nothing_is_left():
    assert command.children("/") == ["zookeeper"], command.children("/")


live.run(usage_errors_name_the_option, comparison_refuses_unknown_words,
         live.together(unreachable_server_is_an_error,
                       marks_enclose_the_measured_region,
                       reads_and_creates_print_one_line,
                       listings_print_one_line, locks_print_one_line,
                       holders_print_one_line,
                       sessions_print_one_line, connections_print_one_line,
                       idle_ends_with_its_input,
                       watch_storm_sets_and_fires_watches,
                       watch_storm_waits_for_events_of_other_clients),
         nothing_is_left)
