# SPDX-License-Identifier: Apache-2.0
"""Every recipe, the session and `latchkey run` once over TLS: tests that there
are, run again with the switch of tls.py, on one server and on an ensemble."""

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

# On one server for all, which these leave alone.
SHARED = {
    "client/session.py": (
        "a_broken_connection_is_replaced",
        "a_handshake_may_break_anywhere",
        "many_watches_come_back_in_pieces",
        "another_connection_can_take_the_session",
    ),
    "locks/conformance.py": (
        "free_lock_is_acquired_with_these_requests__mutex",
        "waiters_are_granted_in_the_order_of_their_requests__mutex",
        "release_wakes_one_of_a_hundred__mutex",
        "cancel_ends_the_acquire_before_it_returns__mutex",
    ),
    "locks/lock.py": (
        "identities_are_there_before_the_lock_is",
    ),
    "locks/rwlock.py": (
        "readers_share_and_writers_are_alone",
        "who_writes_may_read_and_go_on_reading",
        "a_mutex_and_a_read_write_lock_exclude_each_other",
    ),
    "locks/semaphore.py": (
        "so_many_and_no_more",
        "many_are_taken_at_once_or_not_at_all",
    ),
    "locks/multilock.py": (
        "all_are_held_with_one_token",
        "readers_and_writers_may_be_members",
    ),
    "locks/single.py": (
        "one_after_the_other",
        "a_create_in_doubt_is_settled",
    ),
    "nodes/subscribe.py": (
        "children_cost_a_request_and_an_event_each",
        "data_cost_the_same",
    ),
    "nodes/nodes.py": (
        "a_session_that_ends_takes_no_write_with_it",
    ),
    "command/cli_run.py": (
        "lock_is_held_while_command_runs_and_free_afterwards",
        "command_finds_the_lock_in_its_environment",
        "servers_come_from_the_option_or_the_environment",
        "a_chroot_is_part_of_the_servers",
    ),
}

# With servers of its own.
ENSEMBLE = (
    "xids_go_on_at_another_server",
    "a_client_moves_when_its_server_is_taken_off_the_list",
    "a_follower_in_use_is_killed",
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
    """Of script/server with: servers, CA, and a certificate to show."""
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
