# SPDX-License-Identifier: Apache-2.0
"""latchkey run: the end of COMMAND and its descendants when latchkey or its
supervisor is killed."""

import fcntl
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.append(sys.path[0] + "/../support")

import command
from command import start
import live

zk = command.serve()
folder = tempfile.TemporaryDirectory()

# COMMAND itself ("child"), and three descendants: one in the same process group
# ("grandchild"), one in a session of its own ("stray"), and one whose parent
# has ended ("orphan"). Each writes its process id to a file.
WITH_DESCENDANTS = """
echo $$ > $0.child
trap '' TERM INT HUP
sh -c 'echo $$ > $0.grandchild; exec sleep 600' $0 &
setsid sh -c 'echo $$ > $0.stray; exec sleep 600' $0 &
sh -c 'sh -c "echo \\$\\$ > $0.orphan; exec sleep 600" & ' $0
sleep 600 & wait
"""
PROCESSES = ("child", "grandchild", "stray", "orphan")


class JobWithDescendants:
    """latchkey with a COMMAND that has descendants. `wrapper` is a command that
    executes latchkey; `pids` are COMMAND and its descendants."""

    def __init__(self, lock, *words, wrapper=(), **options):
        base = os.path.join(folder.name, lock.strip("/"))
        line = [*wrapper, command.PROGRAM, "run", "-T", "4", *words, lock, "sh",
                "-c", WITH_DESCENDANTS, base]
        self.process = start(*line[1:], program=line[0], **options)
        self.pids = [command.wait_for_number(base + "." + name)
                     for name in PROCESSES]
        assert all(command.is_running(pid) for pid in self.pids)

    def have_ended(self):
        return not any(command.is_running(pid) for pid in self.pids)

    def wait_until_ended(self):
        live.eventually(self.have_ended, "the end of all descendants")

    def clean_up(self):
        # Killing latchkey should end the descendants. If the test has failed,
        # some may be left, so kill them.
        self.process.kill()
        try:
            self.wait_until_ended()
        finally:
            for pid in filter(command.is_running, self.pids):
                os.kill(pid, signal.SIGKILL)
            self.process.finish()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clean_up()


def killed_latchkey_ends_all_descendants():
    with JobWithDescendants("/killed") as job:
        supervisor = command.supervisor_of(job.process.pid)
        job.process.kill()
        job.wait_until_ended()
        live.eventually(lambda: not command.is_running(supervisor),
                        "the end of the supervisor")


def next_holder_begins_after_the_descendants_ended():
    with JobWithDescendants("/next") as job:
        print_running = ("for p in %s; do kill -0 $p 2>/dev/null && echo $p; "
                         "done; true" % " ".join(map(str, job.pids)))
        with start("run", "/next", "sh", "-c", print_running) as waiter:
            command.wait_until_queued("/next", 2)
            job.process.kill()
            done = waiter.finish()
            assert (done.code, done.out) == (0, ""), done


def killed_process_group_ends_all_descendants():
    with JobWithDescendants("/group", start_new_session=True) as job:
        os.killpg(job.process.pid, signal.SIGKILL)
        job.wait_until_ended()
    with JobWithDescendants("/group-fore", "--foreground",
                            start_new_session=True) as job:
        os.killpg(job.process.pid, signal.SIGKILL)
        job.wait_until_ended()


def supervisor_has_another_process_name():
    with JobWithDescendants("/name") as job:
        supervisor = command.supervisor_of(job.process.pid)
        for file in ("comm", "cmdline"):
            with open("/proc/%d/%s" % (supervisor, file)) as f:
                text = f.read()
            assert text.startswith("lk-supervisor") and "latchkey" not in text, text


def cgroup_mounts():
    """The mounts of cgroup2: (root within the hierarchy, mount point)."""
    with open("/proc/self/mountinfo") as f:
        return [line.split()[3:5] for line in f if " - cgroup2 " in line]


def cgroup_folder():
    """The directory of this process's cgroup, or None."""
    with open("/proc/self/cgroup") as f:
        match = re.search("^0::(.*)$", f.read(), re.M)
    mounts = cgroup_mounts()
    if match is None or not mounts:
        return None
    root, mount_point = mounts[0]
    root = root.rstrip("/")
    cgroup = match[1]
    if not (cgroup + "/").startswith(root + "/"):
        return None  # it is not below this mount
    return mount_point + cgroup[len(root):].rstrip("/")


def descendants_end_without_a_cgroup():
    umount_all = " && ".join("umount -l %s" % mount_point
                             for _, mount_point in cgroup_mounts()) or "true"
    hide_cgroups = ["unshare", "--mount", "sh", "-c",
                    umount_all + ' && exec "$@"', "sh"]
    if not command.is_root() or subprocess.run(
            [*hide_cgroups, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise live.NotTested("no right to hide the cgroups")
    with JobWithDescendants("/nocgroup", wrapper=hide_cgroups) as job:
        for pid in job.pids:
            with open("/proc/%d/cgroup" % pid) as f:
                assert "latchkey-" not in f.read()
        job.process.kill()
        job.wait_until_ended()
    with JobWithDescendants("/nocgroup2", "--on-lost", "kill",
                            wrapper=hide_cgroups) as job:
        node = command.status("/nocgroup2")["holders"][0]["node"]
        command.expect_exit(0, "delete", node)
        job.wait_until_ended()
        assert job.process.finish().code == 123


def without_proc_and_cgroups():
    """The beginning of a command line that runs in a mount namespace with an
    empty /proc and without cgroups."""
    umount_all = "".join("umount -l %s && " % mount_point
                         for _, mount_point in cgroup_mounts())
    wrapper = ["unshare", "--mount", "sh", "-c",
               umount_all + 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    # A build with sanitizers needs /proc.
    if not command.is_root() or subprocess.run(
            [*wrapper, command.PROGRAM, "--version"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL).returncode != 0:
        raise live.NotTested("no right to hide /proc, or the build needs it")
    return wrapper


NOT_FOUND = "processes that COMMAND has started may still run"


class JobWithoutProc(JobWithDescendants):
    """Such a job without /proc and cgroups. Its stray process cannot be found,
    and keeps its standard error open, so that is a file."""

    def __init__(self, lock, *words):
        self.err_name = os.path.join(folder.name, lock.strip("/") + ".err")
        with open(self.err_name, "w") as err:
            super().__init__(lock, "-T", "20", *words,
                             wrapper=without_proc_and_cgroups(),
                             stdout=subprocess.DEVNULL, stderr=err)
        names = dict(zip(PROCESSES, self.pids))
        self.stray = names.pop("stray")
        self.found = list(names.values())

    def wait_until_found_ended(self, *more):
        live.eventually(
            lambda: not any(map(command.is_running, [*self.found, *more])),
            "the end of all but the stray process")

    def __exit__(self, *what):
        os.kill(self.stray, signal.SIGKILL)
        super().__exit__(*what)


def descendant_that_cannot_be_found_is_reported():
    with JobWithoutProc("/noproc", "--on-lost", "kill") as job:
        node = command.status("/noproc")["holders"][0]["node"]
        command.expect_exit(0, "delete", node)
        assert job.process.wait(command.SECONDS) == 123
        with open(job.err_name) as f:
            lines = [line for line in f if NOT_FOUND in line]
        assert len(lines) == 1, lines
        job.wait_until_found_ended()
        assert command.is_running(job.stray)


def supervisor_without_proc_ends_after_latchkey():
    with JobWithoutProc("/noproc2") as job:
        supervisor = command.supervisor_of(job.process.pid)
        job.process.kill()
        job.wait_until_found_ended(supervisor)
        assert command.is_running(job.stray)


def nothing_is_reported_without_proc_if_all_have_ended():
    with start(*without_proc_and_cgroups()[1:], command.PROGRAM, "run",
               "--max-hold", "1", "--on-lost", "kill", "/noproc3", "sh", "-c",
               "sleep 600 & wait", program="unshare") as process:
        done = process.finish()
        assert done.code == 123 and NOT_FOUND not in done.err, done


def all_descendants_of_process_1_are_killed_without_proc():
    """The descendant in a session of its own cannot be listed; it ignores TERM."""
    script = "trap '' TERM; setsid sh -c 'exec sleep 600' & sleep 600 & wait"
    shell = without_proc_and_cgroups()
    with start("--pid", "--fork", *shell[1:], command.PROGRAM, "run",
               "--max-hold", "1", "--on-lost", "kill", "/noproc5", "sh", "-c",
               script, program=shell[0]) as process:
        done = process.finish()
        assert done.code == 123 and NOT_FOUND not in done.err, done


def orphans_are_reaped_without_proc():
    script = "for i in 1 2 3 4 5; do (sleep 0.1 &); done; echo up; sleep 600"
    with start(*without_proc_and_cgroups()[1:], command.PROGRAM, "run",
               "/noproc4", "sh", "-c", script, program="unshare") as process:
        assert process.stdout.readline() == "up\n", process.finish()
        supervisor = command.supervisor_of(process.pid)
        live.eventually(lambda: len(command.children_of(supervisor)) == 1,
                        "no zombie and no orphan")
        process.terminate()
        assert process.finish().code == 128 + signal.SIGTERM


def supervisor_ignores_all_signals_but_kill():
    with JobWithDescendants("/obeys") as job:
        supervisor = command.supervisor_of(job.process.pid)
        for number in set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}:
            os.kill(supervisor, number)
        # SIGSTOP cannot be ignored; latchkey continues the supervisor at once.
        os.kill(supervisor, signal.SIGSTOP)
        live.eventually(lambda: command.process_state(supervisor) == "S")
        assert all(command.is_running(pid) for pid in job.pids)


def killed_supervisor_ends_command():
    with JobWithDescendants("/supervisor") as job:
        os.kill(command.supervisor_of(job.process.pid), signal.SIGKILL)
        done = job.process.finish()
        assert done.code == 125 and "supervisor" in done.err, done
        assert job.have_ended()
        assert command.children("/supervisor") == []


def killed_supervisor_of_a_waiter_is_an_error():
    with start("run", "/early", "sleep", "600") as holder:
        command.wait_until_held("/early")
        with start("run", "/early", "true") as waiter:
            command.wait_until_queued("/early", 2)
            os.kill(command.supervisor_of(waiter.pid), signal.SIGKILL)
            done = waiter.finish()
            assert done.code == 125 and "supervisor" in done.err, done
            assert len(command.children("/early")) == 1
        holder.terminate()


def processes_that_command_leaves_are_not_killed():
    """COMMAND leaves several processes in its cgroup, and a threaded cgroup
    below it, whose cgroup.procs cannot be read. It prints the name of its
    cgroup if latchkey has made one."""
    file = os.path.join(folder.name, "daemon")
    done = command.run("run", "/daemon", "sh", "-c", """
name=$(sed -n 's,^0::.*/,,p' /proc/self/cgroup)
case $name in latchkey-*)
  mkdir "$0/$name/threads" && echo threaded > "$0/$name/threads/cgroup.type"
  echo "$name" ;;
esac
for n in 0 1 2 3 4 5; do sleep 600 > /dev/null 2>&1 & echo $! > %s.$n; done
""" % file, str(cgroup_folder()))
    assert done.code == 0, done
    pids = [command.wait_for_number("%s.%d" % (file, n)) for n in range(6)]
    for pid in pids:
        assert command.is_running(pid)
        with open("/proc/%d/cgroup" % pid) as f:
            assert "latchkey-" not in f.read()
        os.kill(pid, signal.SIGKILL)
    assert done.out == "" or not cgroup_exists(done.out.strip()), done


def kill_supervisor_beside_other_children(lock, *wrapper):
    """A shell starts a child and then executes latchkey, so latchkey has a child
    that is not of COMMAND and must not be killed. COMMAND has two descendants in
    other sessions, of which one has no variable of latchkey's. `wrapper` is a
    command that executes the shell. Gives what latchkey prints, and the three
    process ids."""
    base = os.path.join(folder.name, lock.strip("/"))
    stray = "setsid %s sh -c 'echo $$ > %s; exec sleep 600 2>/dev/null' & "
    script = "".join((stray % ("", base + ".stray"),
                      stray % ("env -i " + "PATH=$PATH", base + ".bare"),
                      "sleep 600"))
    line = [*wrapper, "sh", "-c", 'sleep 600 >/dev/null 2>&1 & '
            'echo $! > %s; exec "$0" run %s sh -c "$1" >/dev/null' %
            (base, lock), command.PROGRAM, script]
    with start(*line[1:], program=line[0]) as process:
        pids = [command.wait_for_number(base + end)
                for end in ("", ".stray", ".bare")]
        (supervisor,) = set(command.children_of(process.pid)) - {pids[0]}
        os.kill(supervisor, signal.SIGKILL)
        err = process.communicate(timeout=command.SECONDS)[1]
        assert process.returncode == 125, err
        return err, pids


def children_from_before_exec_are_not_killed():
    err, (foreign, *descendants) = kill_supervisor_beside_other_children(
        "/foreign", "unshare", "-m", "sh", "-c",
        "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"", "sh")
    stray, bare = descendants
    assert command.is_running(foreign)
    assert not command.is_running(stray)
    assert command.is_running(bare)
    assert "process %d (sleep) may be one" % bare in err, err
    assert "process %d " % foreign not in err, err
    for pid in (foreign, bare):
        os.kill(pid, signal.SIGKILL)


def orphans_of_an_earlier_child_are_not_killed():
    """The child from before exec() has ended, and has left a process that
    latchkey has adopted."""
    file = os.path.join(folder.name, "left")
    with start("-m", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup; "
               "(sleep 1; setsid sleep 600 >/dev/null 2>&1 & echo $! > %s) & "
               'exec "$0" run /left sleep 600' % file, command.PROGRAM,
               program="unshare") as process:
        left = command.wait_for_number(file)
        live.eventually(lambda: left in command.children_of(process.pid))
        (supervisor,) = live.eventually(lambda: [
            pid for pid in command.children_of(process.pid)
            if command.children_of(pid)])
        os.kill(supervisor, signal.SIGKILL)
        assert process.wait(command.SECONDS) == 125
        assert command.is_running(left)
        os.kill(left, signal.SIGKILL)


def cgroup_tells_which_children_are_of_command():
    if not can_make_cgroups():
        raise live.NotTested("no control group can be made")
    err, (foreign, *descendants) = kill_supervisor_beside_other_children(
        "/foreign-group")
    assert command.is_running(foreign)
    os.kill(foreign, signal.SIGKILL)
    assert not any(map(command.is_running, descendants)), err
    assert "may be one" not in err, err


def abandoned_cgroups_are_removed():
    if not can_make_cgroups():
        raise live.NotTested("no control group can be made")
    own = os.getpid() * 16
    names = ["latchkey-%016x" % (own + n) for n in range(4)]
    paths = [os.path.join(cgroup_folder(), name)
             for name in [*names, "latchkey-%d" % own]]
    abandoned, young, locked, full, other = paths
    try:
        for path in paths:
            os.mkdir(path)
        lock = os.open(locked, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_SH)
        with start("600", program="sleep") as member:
            with open(full + "/cgroup.procs", "w") as procs:
                procs.write(str(member.pid))
            # From here on a latchkey of another test may remove `abandoned`.
            for path in (locked, full, other, abandoned):
                os.utime(path, (0, 0))
            command.expect_exit(0, "run", "/abandoned", "true")
            left = [path for path in paths if os.path.exists(path)]
            member.kill()
            member.wait()
        os.close(lock)
        assert left == [young, locked, full, other], left
    finally:
        for path in filter(os.path.exists, paths):
            live.eventually(lambda p=path: not os.rmdir(p) or True)


def can_make_cgroups():
    """Whether latchkey can make a cgroup below the current one, and the kernel
    has cgroup.kill."""
    base = cgroup_folder()
    if base is None:
        return False
    probe = "%s/probe-%d" % (base, os.getpid())
    try:
        os.mkdir(probe)
    except OSError:
        return False
    able = os.access(probe + "/cgroup.kill", os.W_OK)
    os.rmdir(probe)
    return able


def cgroups_of(pid):
    """The names of the cgroups that latchkey has made for its descendants."""
    found = set()
    for child in command.children_of(pid):
        found |= cgroups_of(child)
        try:
            with open("/proc/%d/cgroup" % child) as f:
                found |= set(re.findall(r"latchkey-[0-9a-f]+", f.read()))
        except OSError:
            pass  # the process has ended
    return found


def cgroup_exists(name):
    return bool(glob.glob("/sys/fs/cgroup/**/" + name, recursive=True))


def nested_runs_leave_no_cgroup_behind():
    inner = os.path.join(folder.name, "inner")
    with start("run", "-T", "4", "--on-lost", "kill", "/outer",
               command.PROGRAM, "run", "-T", "4", "/inner", "sh", "-c",
               "echo $$ > %s; sleep 600" % inner) as process:
        command.wait_for_number(inner)
        names = cgroups_of(process.pid)
        if len(names) < 2:
            raise live.NotTested("no right to make cgroups")
        assert all(cgroup_exists(name) for name in names)
        command.expect_exit(0, "delete",
                            command.status("/outer")["holders"][0]["node"])
        assert process.finish().code == 123
    for name in names:
        live.eventually(lambda: not cgroup_exists(name), "no cgroup " + name)


def cgroup_is_removed_at_exit():
    with start("run", "/left", "sleep", "600") as process:
        command.wait_until_held("/left")
        names = cgroups_of(process.pid)
        assert all(cgroup_exists(name) for name in names)
        process.terminate()
        process.finish()
    for name in names:
        live.eventually(lambda: not cgroup_exists(name), "no cgroup " + name)


live.run(
    live.together(
        killed_latchkey_ends_all_descendants,
        next_holder_begins_after_the_descendants_ended,
        killed_process_group_ends_all_descendants,
        supervisor_has_another_process_name,
        descendants_end_without_a_cgroup,
        descendant_that_cannot_be_found_is_reported,
        supervisor_without_proc_ends_after_latchkey,
        nothing_is_reported_without_proc_if_all_have_ended,
        all_descendants_of_process_1_are_killed_without_proc,
        orphans_are_reaped_without_proc,
        supervisor_ignores_all_signals_but_kill,
        killed_supervisor_ends_command,
        killed_supervisor_of_a_waiter_is_an_error,
        processes_that_command_leaves_are_not_killed,
        children_from_before_exec_are_not_killed,
        orphans_of_an_earlier_child_are_not_killed,
        cgroup_tells_which_children_are_of_command,
        abandoned_cgroups_are_removed,
        nested_runs_leave_no_cgroup_behind),
    cgroup_is_removed_at_exit)
