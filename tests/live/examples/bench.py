# SPDX-License-Identifier: Apache-2.0
"""Runs each workload of the bench once, with few operations. The test checks
the format of the lines, and that no node is left; it measures no time."""

import os
import re
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


def bench(*words, code=0, **options):
    done = command.run(*words, program=PROGRAM, **options)
    assert done.code == code, (words, done)
    return done


def facts(line, name, count):
    """Check the name and the count of a line; gives {key: value} of the words
    after its six columns."""
    found = LINE.fullmatch(line)
    assert found, line
    assert found[1] == name and int(found[2]) == count, line
    assert float(found[3]) > 0 and int(found[6]) > 0, line
    return dict(word.split("=") for word in found[7].split())


def one(name, n, *options, count=None, **expected):
    """Run a workload of one line and check its numbers."""
    done = bench(name, zk.connect, str(n), *options)
    lines = done.out.splitlines()
    assert len(lines) == 1 and done.err == "", done
    said = facts(lines[0], name, count or n)
    for key, value in expected.items():
        assert said[key] == value, (key, lines[0])
    return said


def refused(code, *words, why):
    done = bench(*words, code=code)
    assert done.out == "" and why in done.err, done


# ---- messages ---------------------------------------------------------------

def usage_errors_name_the_option():
    refused(2, why="usage:")
    refused(3, "nothing", why="no such workload: nothing")
    refused(3, "get", zk.connect, "1", why="no such workload: get")
    refused(2, "get-seq", why="HOST:PORT N")
    refused(2, "get-seq", zk.connect, why="missing: N")
    for n in "0", "-1", "x", "1x", "", "100000001":
        refused(2, "get-seq", zk.connect, n, why="not a number")
    refused(2, "get-seq", "a:b", "1", why="a port is a number")
    for option in ("window=1", "size", "siz=1"):
        refused(2, "get-seq", zk.connect, "1", option, why="no option of this")
    for option in ("mode=", "mode=share", "mode=sessions|shared", "each=0",
                   "each=-1", "each=2x"):
        refused(2, "lock-contended", zk.connect, "1", option,
                why="out of range: " + option)


def comparison_refuses_unknown_words():
    done = command.run("nothing", program=COMPARE)
    assert done.code == 2 and "no such workload: nothing" in done.err, done
    done = command.run("--build", "/nowhere", "children", program=COMPARE)
    assert done.code == 1 and "configure and make first" in done.err, done
    done = command.run("reconnect", program=COMPARE)
    assert done.code == 2 and "no such workload: reconnect" in done.err, done
    done = command.run("--tls", "--build", os.path.dirname(
        os.path.dirname(PROGRAM)), "children", program=COMPARE,
                       env={**os.environ, "LATCHKEY_ZK": "127.0.0.1:1"})
    assert done.code == 1 and "begins with tls://" in done.err, done


def unreachable_server_is_an_error():
    done = bench("get-seq", "127.0.0.1:1", "1", code=1)
    assert done.out == "" and "127.0.0.1:1" in done.err, done


def marks_enclose_the_measured_region():
    done = bench("get-seq", zk.connect, "3",
                 env={**os.environ, "BENCH_MARK": "1"})
    lines = done.out.splitlines()
    assert lines[:2] == ["@begin", "@end"] and len(lines) == 3, done
    facts(lines[2], "get-seq", 3)


# ---- workloads --------------------------------------------------------------

def reads_and_creates():
    one("get-pipelined", 50, "window=7", "size=3", window="7")
    one("get-pipelined", 3, window="1000")
    said = one("get-seq", 5, allocs="0")
    assert 0 < float(said["p50_us"]) <= float(said["p99_us"]), said
    one("create-delete", 50, "window=7", window="7")


def listings():
    one("children", 2, "names=30", names="30")


def locks():
    said = one("lock-uncontended", 4)
    assert 0 < float(said["acquire_p50_us"]) <= float(said["acquire_p99_us"])
    for mode in "sessions", "shared":
        said = one("lock-contended", 3, "each=2", "hold=1000", "mode=" + mode,
                   count=6, mode=mode)
        assert (0 < float(said["handoff_p50_us"]) <=
                float(said["handoff_p99_us"])), said
    one("lock-contended", 1, "each=1", count=1)


def sessions():
    said = one("sessions", 5)
    assert int(said["heap_per_session"]) > 1000, said


def connections():
    for session in "new", "resumed":
        one("connect", 3, "session=" + session, session=session)


def idle_until_its_input_ends():
    with command.start("idle", zk.connect, "2", program=PROGRAM,
                       stdin=-1) as process:
        assert process.stdout.readline() == "@ready\n"
        process.stdin.write("not yet\n")
        process.stdin.flush()
        assert process.poll() is None
        done = process.finish()
    assert done.code == 0, done
    facts(done.out.rstrip("\n"), "idle", 2)


def many_watches_fire():
    done = bench("watch-storm", zk.connect, "9", "window=4")
    first, second = done.out.splitlines()
    assert facts(first, "watch-set", 9)["window"] == "4"
    assert facts(second, "watch-fire", 9)["by"] == "us"


def many_watches_fire_from_outside():
    with tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, "go")
        os.mkfifo(go)
        with command.start("watch-storm", zk.connect, "3", program=PROGRAM,
                           env={**os.environ, "BENCH_GO": go}) as process:
            with open(go) as f:
                count, root = f.read().split()
            assert count == "3", count
            assert facts(process.stdout.readline().rstrip("\n"), "watch-set", 3)
            names = command.children(root)
            assert len(names) == 3, names
            for name in names:
                assert process.poll() is None
                command.expect_exit(0, "set", root + "/" + name, "now")
            done = process.finish()
    assert done.code == 0, done
    assert facts(done.out.rstrip("\n"), "watch-fire", 3)["by"] == "others"


def nothing_is_left():
    assert command.children("/") == ["zookeeper"], command.children("/")


live.run(usage_errors_name_the_option, comparison_refuses_unknown_words,
         live.together(unreachable_server_is_an_error,
                       marks_enclose_the_measured_region, reads_and_creates,
                       listings, locks, sessions, connections,
                       idle_until_its_input_ends,
                       many_watches_fire, many_watches_fire_from_outside),
         nothing_is_left)
