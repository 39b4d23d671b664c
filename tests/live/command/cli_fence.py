# SPDX-License-Identifier: Apache-2.0
"""latchkey fence: accepted and refused tokens, many processes at once,
processes that are killed at any point, and messages."""

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
    for text in ("", "x\n", "12"):
        with open(file, "w") as f:
            f.write(text)
        assert "it does not hold one decimal number" in expect_exit(125, "fence", file, "99").err
        assert open(file).read() == text


def unwritable_file_is_named():
    done = expect_exit(125, "fence", "/proc/none", "1")
    assert done.err.startswith("latchkey: fence: /proc/none: cannot create it: "
                               ), done
    if not command.is_root():
        with open(path("shut"), "w") as f:
            f.write("1\n")
        os.chmod(path("shut"), 0o444)
        done = expect_exit(125, "fence", path("shut"), "2")
        assert "cannot open it: Permission denied" in done.err, done
    file = path("limited")
    expect_exit(0, "fence", file, "1")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    done = run("fence", file, "2", preexec_fn=limit)
    assert done.code == 125 and not done.out, done  # standard error is a pipe
    assert "File too large" in done.err, done
    assert open(file).read() == "1\n" and os.listdir(folder.name).count(
        "limited.latchkey-new") == 0


def fence_below_flock_of_the_same_file_does_not_deadlock():
    file = path("flock")
    expect_exit(0, "fence", file, "1")
    done = run(file, command.PROGRAM, "fence", file, "2", program="flock")
    assert done.code == 0, done


def tokens_of_concurrent_processes_are_monotone():
    """Each process tries random tokens. An accepted token must not be smaller
    than one that was accepted before the process began."""
    file = path("many")
    script = """
import os, random, subprocess, sys, time
program, file, seed = sys.argv[1:]
rng = random.Random(int(seed))
for _ in range(25):
    token = rng.randrange(1, 1000) + int(time.monotonic() * 1000) % 10**9
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
        tries += [tuple(map(int, line.split()))
                  for line in done.out.splitlines()]
    check_tries(tries)
    accepted = [t for t in tries if t[3] == 0]
    assert read_number(file) == max(t[0] for t in accepted)
    assert len(accepted) > 12 and any(t[3] == 1 for t in tries), len(accepted)
    assert sorted(os.listdir(folder.name)).count("many.latchkey-new") == 0


def check_tries(tries):
    """Check the results of concurrent processes. A try is (token, time of its
    begin, time of its end, exit code); the code is None if it was killed."""
    accepted = [t for t in tries if t[3] == 0]
    for token, begun, ended, code in tries:
        assert code in (0, 1, None), (token, code)
        before = [t[0] for t in accepted if t[2] < begun]
        if code == 0 and before:
            assert token >= max(before), (token, max(before))
        if code == 1:  # a larger token was tried before this try ended
            assert any(t[0] > token and t[1] < ended for t in tries), token


def killed_fence_loses_no_token():
    file = path("kill")
    rng = random.Random(int(time.time()))
    stop = time.monotonic() + 8
    tries = []
    running = []
    killed = 0
    while time.monotonic() < stop or running:
        if time.monotonic() < stop and len(running) < 6:
            token = len(tries) + rng.randrange(1, 40)
            begun = time.monotonic_ns()
            process = subprocess.Popen(
                [command.PROGRAM, "fence", file, str(token)],
                stderr=subprocess.DEVNULL)
            tries.append(None)
            running.append((process, token, begun, len(tries) - 1,
                            time.monotonic() + rng.random() * 0.06))
        for entry in list(running):
            process, token, begun, at, kill_at = entry
            code = process.poll()
            if code is None and time.monotonic() >= kill_at:
                process.kill()
                process.wait()
                code = process.returncode
            if code is None:
                continue
            running.remove(entry)
            killed += code == -9
            tries[at] = (token, begun, time.monotonic_ns(),
                         None if code == -9 else code)
        time.sleep(0.001)
    check_tries(tries)
    assert killed > 20, killed
    assert any(t[3] == 0 for t in tries) and any(t[3] == 1 for t in tries)
    # Temporary files that killed processes have left do not disturb later ones.
    expect_exit(0, "fence", file, str(max(t[0] for t in tries) + 1))
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
    at = path("report")
    os.mkdir(at)
    with open(os.path.join(at, "make-report"), "w") as f:
        f.write("#!/bin/sh\necho $LATCHKEY_FENCING_TOKEN\n")
    with open(os.path.join(at, "this"), "w") as f:
        f.write(example_script() + "\n")
    for name in ("make-report", "this"):
        os.chmod(os.path.join(at, name), 0o755)
    os.symlink(command.PROGRAM, os.path.join(at, "latchkey"))
    env = dict(os.environ, PATH=at + ":" + os.environ["PATH"])
    seen = []
    with command.serve() as zk:
        env["LATCHKEY_ZK"] = zk.connect
        for _ in range(3):
            expect_exit(0, "run", "/fenced", "./this", cwd=at, env=env)
            seen.append(read_number(os.path.join(at, "report")))
    assert seen == sorted(set(seen)), seen
    env["LATCHKEY_FENCING_TOKEN"] = str(seen[0])  # that of an earlier holder
    done = run(program=os.path.join(at, "this"), cwd=at, env=env)
    assert done.code == 1 and "is refused" in done.err, done
    assert read_number(os.path.join(at, "report")) == seen[2]


def file_on_a_read_only_disk_is_a_failure():
    if not command.is_root():
        raise live.NotTested("only root can mount")
    at = path("disk")
    os.mkdir(at)
    script = ("mount -t tmpfs none $1 && echo 5 > $1/file && "
              "mount -o remount,ro $1 || exit 99; "
              "$0 fence $1/file 6; echo $?; $0 fence $1/other 6; echo $?")
    done = run("-m", "sh", "-c", script, command.PROGRAM, at,
               program="unshare")
    if done.code != 0:
        raise live.NotTested("no mounts here: " + done.err)
    assert done.out == "125\n125\n", done
    assert done.err.count(": Read-only file system") == 2, done


live.run(
    live.together(
        larger_or_equal_tokens_are_accepted,
        invalid_tokens_are_refused,
        unwritable_file_is_named,
        fence_below_flock_of_the_same_file_does_not_deadlock,
        file_on_a_read_only_disk_is_a_failure,
        report_of_a_late_holder_is_refused),
    tokens_of_concurrent_processes_are_monotone,
    killed_fence_loses_no_token)
