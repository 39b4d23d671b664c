# SPDX-License-Identifier: Apache-2.0
"""latchkey fence: accepted and refused tokens, many processes at once,
processes that are killed at any point, and messages."""

import collections
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run, start
import live

folder = tempfile.TemporaryDirectory()


def path(name):
    return os.path.join(folder.name, name)


def read_number(file):
    with open(file) as f:
        return int(f.read())


def larger_or_equal_tokens_are_accepted():
    file = path("plain")
    for token, code in ((7, 0), (7, 0), (6, 1), (8, 0), (7, 1), (9, 0)):
        done = run("fence", file, str(token))
        assert done.code == code and not done.out, (token, done)
        assert bool(done.err) == (code == 1), done
    assert open(file).read() == "9\n"
    done = run("fence", file, "3")
    assert done.err == "latchkey: fence: %s: token 3 is refused: token 9 was " \
        "seen, so the lock has passed to another holder\n" % file, done
    done = run("fence", "--json", file, "3")
    assert done.code == 1 and '"code":1' in done.err, done


def invalid_tokens_are_refused():
    file = path("usage")
    for words, text in ((("fence",), "FILE is missing"),
                        (("fence", file), "TOKEN is missing"),
                        (("fence", file, "1", "2"), "too many operands"),
                        (("fence", file, ""), 'TOKEN "" is not'),
                        (("fence", file, "0"), 'TOKEN "0" is not'),
                        (("fence", file, "1x"), 'TOKEN "1x" is not'),
                        (("fence", file, "18446744073709551616"), "is not")):
        done = expect_exit(125, *words)
        assert text in done.err, done
        assert not os.path.exists(file)


def file_without_a_number_is_refused_and_kept():
    file = path("no-number")
    for text in ("", "x\n", "12"):  # the number must end with a newline
        with open(file, "w") as f:
            f.write(text)
        done = expect_exit(125, "fence", file, "99")
        assert "it does not hold one decimal number" in done.err, done
        assert open(file).read() == text


def file_that_cannot_be_opened_or_created_is_named():
    done = expect_exit(125, "fence", "/proc/none", "1")
    assert done.err.startswith("latchkey: fence: /proc/none: cannot create it: "
                               ), done
    if not command.is_root():
        with open(path("shut"), "w") as f:
            f.write("1\n")
        os.chmod(path("shut"), 0o444)
        done = expect_exit(125, "fence", path("shut"), "2")
        assert "cannot open it: Permission denied" in done.err, done


def file_size_limit_keeps_the_old_token():
    file = path("limited")
    expect_exit(0, "fence", file, "1")

    def forbid_writing_to_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
    done = run("fence", file, "2", preexec_fn=forbid_writing_to_files)
    assert done.code == 125 and not done.out, done
    assert "File too large" in done.err, done
    assert open(file).read() == "1\n"
    assert not os.path.exists(file + ".latchkey-new")


def fence_started_by_flock_on_the_same_file_does_not_deadlock():
    file = path("flock")
    expect_exit(0, "fence", file, "1")
    done = run(file, command.PROGRAM, "fence", file, "2", program="flock")
    assert done.code == 0, done


# One execution of latchkey fence. The times are those of time.monotonic_ns(),
# and the code is None if the process was killed.
Try = collections.namedtuple("Try", "token begun ended code")


def tokens_of_concurrent_processes_are_monotone():
    """Each process tries random tokens, which grow with time."""
    file = path("many")
    script = """
import os, random, subprocess, sys, time
program, file, seed = sys.argv[1:]
rng = random.Random(int(seed))
for _ in range(25):
    token = rng.randrange(1, 300) + int(time.monotonic() * 1000) % 10**9
    begun = time.monotonic_ns()
    code = subprocess.call([program, "fence", file, str(token)],
                           stderr=subprocess.DEVNULL)
    print(token, begun, time.monotonic_ns(), code, flush=True)
"""
    jobs = [start("-c", script, command.PROGRAM, file, str(seed),
                  program="python3") for seed in range(12)]
    tries = []
    for job in jobs:
        done = job.finish()
        assert done.code == 0, done
        tries += [Try(*map(int, line.split()))
                  for line in done.out.splitlines()]
    check_tries(tries)
    accepted = [t.token for t in tries if t.code == 0]
    assert read_number(file) == max(accepted)
    assert not os.path.exists(file + ".latchkey-new")
    # Both results must be frequent enough to be a test.
    assert len(accepted) > 12 and any(t.code == 1 for t in tries), len(accepted)


def check_tries(tries):
    """Check the results of concurrent processes: no accepted token is smaller
    than one that was accepted before, and a token is refused only if a larger
    one was tried."""
    accepted = [t for t in tries if t.code == 0]
    for this in tries:
        assert this.code in (0, 1, None), this
        before = [t.token for t in accepted if t.ended < this.begun]
        if this.code == 0 and before:
            assert this.token >= max(before), (this, max(before))
        if this.code == 1:
            assert any(t.token > this.token and t.begun < this.ended
                       for t in tries), this


def killed_fence_loses_no_token():
    file = path("kill")
    rng = random.Random(int(time.time()))
    stop = time.monotonic() + 8
    latest_stop = stop + 120
    started = 0
    running = []
    tries = []  # of processes that have ended

    def go_on():
        """Whether to start more: each result must be frequent enough to be a
        test, which takes longer on a slow machine."""
        now = time.monotonic()
        codes = [t.code for t in tries]
        enough = codes.count(None) > 20 and 0 in codes and 1 in codes
        return now < stop or (not enough and now < latest_stop)

    # A process is killed within this time. It grows while none is fast enough.
    window = 0.06
    killed = 0  # since a process has ended by itself
    while go_on() or running:
        if len(running) < 6 and go_on():
            token = started + rng.randrange(1, 40)  # grows, but not always
            begun = time.monotonic_ns()
            process = subprocess.Popen(
                [command.PROGRAM, "fence", file, str(token)],
                stderr=subprocess.DEVNULL)
            started += 1
            kill_at = time.monotonic() + rng.random() * window
            running.append((process, token, begun, kill_at))
        for entry in list(running):
            process, token, begun, kill_at = entry
            code = process.poll()
            if code is None and time.monotonic() >= kill_at:
                process.kill()
                code = process.wait()
            if code is None:
                continue
            running.remove(entry)
            killed = killed + 1 if code == -signal.SIGKILL else 0
            if killed == 20:
                window, killed = 2 * window, 0
            tries.append(Try(token, begun, time.monotonic_ns(),
                             None if code == -signal.SIGKILL else code))
        time.sleep(0.001)
    check_tries(tries)
    codes = [t.code for t in tries]
    assert codes.count(None) > 20 and 0 in codes and 1 in codes, codes
    # Temporary files that killed processes have left do not disturb later ones.
    expect_exit(0, "fence", file, str(max(t.token for t in tries) + 1))
    assert not os.path.exists(file + ".latchkey-new")


def example_script():
    """The script in README.md, which must be the one of the manual page."""
    source = os.environ.get("abs_top_srcdir", ".")
    with open(os.path.join(source, "README.md")) as f:
        readme = f.read()
    begin = readme.index("    #!/bin/sh")
    script = readme[begin:readme.index("\n\n", begin)].replace("\n    ", "\n")
    with open(os.path.join(source, "man/latchkey.1")) as f:
        manual = f.read().splitlines()
    assert all(line in manual for line in script.splitlines()[-3:]), script
    return script.lstrip()


def report_of_a_late_holder_is_refused():
    directory = path("report")
    script = os.path.join(directory, "script")
    make_report = os.path.join(directory, "make-report")
    report = os.path.join(directory, "report")
    os.mkdir(directory)
    with open(make_report, "w") as f:
        f.write("#!/bin/sh\necho $LATCHKEY_FENCING_TOKEN\n")
    with open(script, "w") as f:
        f.write(example_script() + "\n")
    for file in (make_report, script):
        os.chmod(file, 0o755)
    os.symlink(command.PROGRAM, os.path.join(directory, "latchkey"))
    env = dict(os.environ, PATH=directory + ":" + os.environ["PATH"])
    tokens = []
    with command.serve() as zk:
        env["LATCHKEY_ZK"] = zk.connect
        for _ in range(3):
            expect_exit(0, "run", "/fenced", script, cwd=directory, env=env)
            tokens.append(read_number(report))
    assert tokens[0] < tokens[1] < tokens[2], tokens
    env["LATCHKEY_FENCING_TOKEN"] = str(tokens[0])  # that of an earlier holder
    done = run(program=script, cwd=directory, env=env)
    assert done.code == 1 and "is refused" in done.err, done
    assert read_number(report) == tokens[2]


def file_on_a_read_only_disk_is_a_failure():
    if not command.is_root():
        raise live.NotTested("only root can mount")
    disk = path("disk")
    os.mkdir(disk)
    script = ("mount -t tmpfs none $1 && echo 5 > $1/file && "
              "mount -o remount,ro $1 || exit 99; "
              "$0 fence $1/file 6; echo $?; $0 fence $1/new-file 6; echo $?")
    done = run("-m", "sh", "-c", script, command.PROGRAM, disk,
               program="unshare")
    if done.code != 0:
        raise live.NotTested("no mounts here: " + done.err)
    assert done.out == "125\n125\n", done
    assert done.err.count(": Read-only file system") == 2, done


live.run(
    live.together(
        larger_or_equal_tokens_are_accepted,
        invalid_tokens_are_refused,
        file_without_a_number_is_refused_and_kept,
        file_that_cannot_be_opened_or_created_is_named,
        file_size_limit_keeps_the_old_token,
        fence_started_by_flock_on_the_same_file_does_not_deadlock,
        file_on_a_read_only_disk_is_a_failure,
        report_of_a_late_holder_is_refused),
    tokens_of_concurrent_processes_are_monotone,
    killed_fence_loses_no_token)
