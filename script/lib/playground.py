# SPDX-License-Identifier: Apache-2.0
"""A shell to try latchkey in: script/playground [--ensemble]

Installs what is missing (script/bootstrap), builds under build/demo, starts a
private ZooKeeper server on loopback, and opens a shell in which `latchkey`, its
manual (`man latchkey`) and LATCHKEY_ZK, the servers, are set. pkg-config finds
the library. The servers, and all they kept, are gone when the shell ends.

With --ensemble there are three servers, and the shell has these commands; N is
1, 2 or 3:
  cut N     the connections between server N and the other two carry nothing;
            clients still reach it
  heal      undoes every cut
  kill N    kill -9 of server N; any other operand is for the usual kill
  start N   starts it again
  servers   address, process and mode of each
Commands may also come from standard input. With LATCHKEY_BUILD, a finished
build, nothing is installed or built.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time

import support

WELCOME = """
A private ZooKeeper server is at {servers}.
It is gone when this shell ends (exit, or ^D). Five commands to try:

  latchkey run /locks/demo -- sh -c 'echo token $LATCHKEY_FENCING_TOKEN; sleep 60' &
  latchkey run -v -w 5 /locks/demo -- echo mine      # waits 5 s, shows its position
  latchkey status /locks/demo                        # who holds, who waits
  kill %1; latchkey run /locks/demo -- echo mine     # released: a larger token
  man latchkey
"""

WELCOME_ENSEMBLE = """
Three private ZooKeeper servers are at
{servers}.
They are gone when this shell ends (exit, or ^D). Five commands to try:

  servers                                            # the leader, two followers
  latchkey run -v -T 4 /locks/demo -- sleep 300 &    # hold a lock
  kill 1; cut 2                                      # no server has a quorum now
  latchkey doctor                                    # what is wrong?
  start 1; heal                                      # all is well again
"""

# The shell reads this file when it starts. kill is also a builtin of the shell,
# and cut a program: calls that do not name a server are passed on to them.
SHELL = r"""
unset BASH_ENV
case $- in *i*)
  [ -r ~/.bashrc ] && . ~/.bashrc
  PS1='(latchkey) \w \$ '
esac
export PATH='{build}/root/bin':'{build}':$PATH
"""

SHELL_ENSEMBLE = r"""
playground() {{ # COMMAND: the reply; 1 if it begins with "error"
  local reply
  echo "$*" >'{folder}/commands' && IFS= read -r -d '' reply <'{folder}/replies'
  printf %s "$reply"
  case $reply in error*) return 1 ;; esac
}}
cut() {{
  case $#:$1 in 1:[1-3]) playground cut "$1" ;; *) command cut "$@" ;; esac
}}
kill() {{
  case $#:$1 in 1:[1-3]) playground kill "$1" ;; *) builtin kill "$@" ;; esac
}}
heal() {{
  playground heal
}}
start() {{
  playground start "$1"
}}
servers() {{
  playground servers
}}
"""


class Commands(threading.Thread):
    """Executes the commands that the shell writes to FOLDER/commands."""

    def __init__(self, ensemble, folder):
        super().__init__(daemon=True)
        self.ensemble, self.folder = ensemble, folder
        for name in ("commands", "replies"):
            os.mkfifo(os.path.join(folder, name))
        self.start()

    def run(self):
        while True:
            with open(os.path.join(self.folder, "commands")) as lines:
                words = lines.read().split()
            try:
                reply = self.obey(*words)
            except (RuntimeError, TypeError, ValueError, IndexError):
                reply = "error: cannot %s\n" % " ".join(words)
            with open(os.path.join(self.folder, "replies"), "w") as out:
                out.write(reply)

    def obey(self, verb, n=None):
        zk = self.ensemble.zk
        if verb == "servers":
            return "".join(self.line(i) for i in (1, 2, 3))
        if verb == "heal":
            self.ensemble.heal()
            self.wait()
            return "every server reaches the others again\n"
        n = int(n)
        zk.addresses[n - 1]
        if verb == "cut":
            self.ensemble.cut_off(n)
            return "server %d is cut off from the others\n" % n
        if verb == "kill":
            zk.kill(n)
            return "server %d is killed\n" % n
        zk.start(n)
        return "server %d runs\n" % n

    def wait(self):
        """Wait until all running servers serve, if they can have a quorum."""
        zk = self.ensemble.zk
        running = [n for n in (1, 2, 3) if zk.pid(n)]
        for _ in range(100):
            if len(running) < 2 or all(zk.mode(n) != "none" for n in running):
                return
            time.sleep(.1)

    def line(self, n):
        zk = self.ensemble.zk
        pid = zk.pid(n)
        mode = zk.mode(n) if pid else "killed"
        return "%d  %s  pid %s  %s\n" % (
            n, zk.addresses[n - 1], pid or "-",
            "no quorum" if mode == "none" else mode)


def shell(servers, build, folder, ensemble):
    """Run the shell; gives its exit code."""
    rc = os.path.join(folder, "rc")
    with open(rc, "w") as file:
        file.write(SHELL.format(build=build))
        if ensemble:
            file.write(SHELL_ENSEMBLE.format(folder=folder))
    manual = os.path.join(build, "root", "share", "man")
    pkgconfig = os.path.join(build, "root", "lib", "pkgconfig")
    environment = dict(
        os.environ, LATCHKEY_ZK=servers, BASH_ENV=rc,
        MANPATH=manual + ":" + os.environ.get("MANPATH", ""),
        PKG_CONFIG_PATH=pkgconfig + ":" + os.environ.get("PKG_CONFIG_PATH",
                                                         ""))
    interactive = sys.stdin.isatty()
    if interactive:
        print((WELCOME_ENSEMBLE if ensemble else WELCOME).format(
            servers=servers.replace(",", ",\n")), flush=True)
        del environment["BASH_ENV"]
    words = ["--rcfile", rc, "-i"] if interactive else []
    process = subprocess.Popen(["bash", *words], env=environment)
    while True:
        try:
            code = process.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:
            pass  # ^C interrupts the command that runs in the shell


def main():
    if sys.argv[1:] not in ([], ["--ensemble"]):
        print(__doc__.strip())
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    build = support.build()
    print("Starting private ZooKeeper servers ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="latchkey-playground.") as folder:
        if "--ensemble" not in sys.argv:
            with support.Server("--tick", "2000") as zk:
                return shell(zk.connect, build, folder, False)
        with support.Ensemble("--tick", "500") as ensemble:
            Commands(ensemble, folder)
            return shell(ensemble.zk.connect, build, folder, True)


sys.exit(main())
