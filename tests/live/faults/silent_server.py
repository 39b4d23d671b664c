# SPDX-License-Identifier: Apache-2.0
"""Three servers, of which one stops replying without closing a connection: the
jobs of latchkey run keep their locks."""

import re
import sys
import time

sys.path.append(sys.path[0] + "/../support")

import live
import relay
import zkserver
from command import start

SESSION_S = 4  # the session timeout
HOLDERS = 15


def start_job(path, connect, *job):
    """Start a job with a lock; gives the process, and the address of the server
    that its client has chosen."""
    process = start("run", "-v", "-T", str(SESSION_S), "-z", connect, path, *job)
    server = None
    for line in process.stderr:
        new_session = re.search(r"latchkey: (127\S+): new session", line)
        server = new_session.group(1) if new_session else server
        if "obtained" in line:
            return process, server
    raise AssertionError("no lock: %s" % process.wait())


def jobs_keep_their_locks_when_their_server_is_stopped():
    holders = []
    try:
        for n in range(HOLDERS):
            # The heartbeats of the jobs are due at different times.
            holders.append(start_job("/silent-%d" % n, zk.connect,
                                     "sleep", "600"))
            time.sleep(SESSION_S / 4 / HOLDERS)
        time.sleep(SESSION_S)
        followers = [n for n in (1, 2, 3) if zk.mode(n) == "follower"]
        on_server = {n: [p for p, server in holders
                         if server == zk.addresses[n - 1]] for n in followers}
        silent = max(followers, key=lambda n: len(on_server[n]))
        assert on_server[silent], "no client is connected to a follower"
        zk.stop(silent)
        time.sleep(1.3 * SESSION_S)
        ended = [p.poll() for p in on_server[silent]]
        assert ended == [None] * len(ended), ended
        for process in on_server[silent]:
            process.terminate()
            err = process.finish().err
            assert "no reply to multi for" in err, err
            assert "the lease is running out" not in err, err
    finally:
        for process, _ in holders:
            process.kill()
            process.wait()
        for n in (1, 2, 3):
            zk.cont(n)


def release_goes_through_another_server():
    """The server of a job, here a relay, falls silent; then the job ends."""
    zk.wait()
    with relay.Relay(zk.addresses[0]) as wire:
        connect = ",".join([wire.address] + zk.addresses[1:])
        for n in range(30):
            process, server = start_job("/release-%d" % n, connect, "sleep", "1")
            with process:
                if server != wire.address:  # the client chooses at random
                    process.terminate()
                    process.finish()
                    continue
                wire.freeze()
                done = process.finish()
            assert done.code == 0 and "warning" not in done.err, done
            assert "resumed session" in done.err, done
            return
    raise AssertionError("no client has chosen the relay")


with zkserver.Server("--tick", "500", servers=3) as zk:
    live.run(
        jobs_keep_their_locks_when_their_server_is_stopped,
        release_goes_through_another_server,
    )
