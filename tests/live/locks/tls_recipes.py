# SPDX-License-Identifier: Apache-2.0
"""Every recipe, the session and `latchkey run` over TLS. This runs other tests
with LATCHKEY_TEST_TLS=1, on one server and on an ensemble. See support/tls.py."""

import os
import socket
import subprocess
import sys

os.environ["LATCHKEY_TEST_TLS"] = "1"

sys.path.append(sys.path[0] + "/../support")

import command
import live
import worker
import relay
import zkserver

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Tests that share one server and do not stop it.
SHARED = {
    "client/session.py": (
        "client_reconnects_after_a_broken_connection",
        "broken_handshake_is_repeated",
        "many_watches_are_reregistered_in_several_requests",
        "resumed_session_moves_to_another_client",
    ),
    "locks/conformance.py": (
        "free_lock_is_acquired_with_these_requests__mutex",
        "waiters_are_granted_in_the_order_of_their_requests__mutex",
        "release_wakes_one_of_a_hundred__mutex",
        "cancel_ends_the_acquire_before_it_returns__mutex",
    ),
    "locks/lock.py": (
        "identities_are_sent_again_before_lock_requests",
    ),
    "locks/rwlock.py": (
        "readers_share_and_writers_exclude_all",
        "writer_downgrades_to_reader",
        "a_mutex_and_a_read_write_lock_exclude_each_other",
    ),
    "locks/semaphore.py": (
        "semaphore_grants_no_more_than_its_permits",
        "several_permits_are_acquired_together",
    ),
    "locks/multilock.py": (
        "members_share_one_token",
        "readers_and_writers_may_be_members",
    ),
    "locks/single.py": (
        "waiters_acquire_one_after_the_other",
        "create_in_doubt_is_resolved",
    ),
    "nodes/subscribe.py": (
        "children_cost_a_request_and_an_event_each",
        "data_cost_a_request_and_an_event_each",
    ),
    "nodes/nodes.py": (
        "reliable_write_ends_with_an_expired_session",
    ),
    "command/cli_run.py": (
        "lock_is_held_while_command_runs_and_free_afterwards",
        "command_finds_the_lock_in_its_environment",
        "servers_come_from_the_option_or_the_environment",
        "lock_path_is_below_the_chroot",
    ),
}

# Tests that start their own servers.
ENSEMBLE = (
    "xids_continue_at_another_server",
    "client_moves_when_its_server_is_removed_from_the_list",
    "session_survives_a_killed_follower",
    "a_lock_survives_servers_that_are_killed",
)


def run(*words, **environment):
    return subprocess.run(
        words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_file(name, tests, **environment):
    done = run(sys.executable, os.path.join(FOLDER, name), *tests,
               **environment)
    passed = [line.partition(":")[0] for line in done.stdout.splitlines()
              if ": ok, " in line]
    assert done.returncode == 0 and sorted(passed) == sorted(tests), (
        done.stdout)


def on_shared_server(name):
    def test():
        run_file(name, SHARED[name], LATCHKEY_TEST_SERVER=zk.facts)
    test.__name__ = name
    return test


def clients_under_test_speak_tls():
    with relay.Relay(zk.connect) as way, worker.Worker() as process:
        straight = process.client(zk.connect)
        straight.state("connected")
        assert straight.facts().server == zk.tls_addresses[0]
        around = process.client(way.address)
        around.state("connected")
        assert around.facts().server == way.address
        with socket.create_connection(("127.0.0.1", way.port), 10) as plain:
            plain.sendall(b"ruok of TLS?")
            assert plain.recv(100)[:1] in (b"", b"\x15")  # an alert
        for client in (straight, around):
            client.do("close")


def requests_of_the_library():
    done = run(worker.program("client/client_ops"), CK_RUN_CASE="data")
    assert done.returncode == 0, done.stdout


def locks_of_the_blocking_interface():
    done = run(worker.program("client/sync_calls"), CK_RUN_CASE="locks")
    assert done.returncode == 0, done.stdout


def command_finds_all_in_the_environment():
    """script/server puts the servers, the CA and a client certificate into the
    environment."""
    nowhere = {"SSL_CERT_FILE": "/dev/null"}
    done = run(zkserver.SCRIPT, "with", "--tls", "--tls-client-auth", "need",
               "--", command.PROGRAM, "run", "--acl", "x509:CN=alice,O=latchkey"
               ":rwcda", "/l", "echo", "inside", **nowhere)
    assert done.returncode == 0 and done.stdout == "inside\n", done


def session_moves_in_an_ensemble():
    run_file("faults/ensemble.py", ENSEMBLE)


with zkserver.Server("--tick", "500") as zk:
    live.run(clients_under_test_speak_tls,
             *(on_shared_server(name) for name in SHARED))
live.run(
    requests_of_the_library,
    locks_of_the_blocking_interface,
    command_finds_all_in_the_environment,
    session_moves_in_an_ensemble,
)
