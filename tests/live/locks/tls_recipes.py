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
        "holder_knows_its_node_its_token_and_its_deadline__multi_lock",
        "break_after_any_request_loses_no_node_and_no_place__single_node",
    ),
    "locks/lock.py": (
        "identities_are_sent_again_before_lock_requests",
    ),
    "locks/rwlock.py": (
        "readers_share_and_writers_exclude_all",
        "writer_downgrades_to_reader",
    ),
    "locks/semaphore.py": (
        "semaphore_grants_no_more_than_its_permits",
        "several_permits_are_acquired_together",
    ),
    "locks/multilock.py": (
        "readers_and_writers_may_be_members",
    ),
    "locks/single.py": (
        "waiters_acquire_one_after_the_other",
    ),
    "nodes/subscribe.py": (
        "change_of_children_costs_an_event_and_a_request",
        "change_of_data_costs_a_request",
    ),
    "faults/leader_faults.py": (
        "candidate_is_elected_though_the_connection_breaks",
        "deposed_leader_takes_part_again",
        "member_joins_though_the_connection_breaks",
        "roster_is_reported_though_the_connection_breaks",
    ),
    "nodes/nodes.py": (
        "reliable_write_of_an_expired_session_completes",
    ),
    "command/cli_run.py": (
        "lock_is_held_while_command_runs_and_free_afterwards",
        "command_finds_the_lock_in_its_environment",
        "servers_come_from_the_option_or_the_environment",
        "lock_path_is_below_the_chroot",
    ),
    "command/cli_elect.py": (
        "next_candidate_leads_when_the_leader_is_killed",
        "leader_and_candidates_are_shown",
    ),
    "command/cli_join.py": (
        "member_is_listed_while_command_runs",
        "deleted_member_joins_again",
    ),
}

# Tests of faults/ensemble.py, which start their own servers.
ENSEMBLE = (
    "xids_continue_at_another_server",
    "client_moves_when_its_server_is_removed_from_the_list",
    "session_survives_a_killed_follower",
    "lock_survives_servers_that_are_killed",
)


def run(*words, **environment):
    return subprocess.run(
        words, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_tests(name, tests, **environment):
    """Run these tests of a file, and check that each has passed."""
    done = run(sys.executable, os.path.join(FOLDER, name), *tests,
               **environment)
    passed = [line.partition(":")[0] for line in done.stdout.splitlines()
              if ": ok, " in line]
    assert done.returncode == 0 and sorted(passed) == sorted(tests), (
        done.stdout)


def on_shared_server(name):
    def test():
        run_tests(name, SHARED[name], LATCHKEY_TEST_SERVER=zk.facts)
    test.__name__ = name
    return test


def clients_under_test_speak_tls():
    with relay.Relay(zk.connect) as proxy, worker.Worker() as process:
        direct = process.client(zk.connect)
        direct.wait_for_state("connected")
        assert direct.facts().server == zk.tls_addresses[0]
        behind_relay = process.client(proxy.address)
        behind_relay.wait_for_state("connected")
        assert behind_relay.facts().server == proxy.address
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as plain:
            plain.sendall(b"ruok of TLS?")
            alert = b"\x15"  # the type of a TLS record
            assert plain.recv(100)[:1] in (b"", alert)
        for client in (direct, behind_relay):
            client.do("close")


def library_requests_work_over_tls():
    done = run(worker.program("client/client_ops"), CK_RUN_CASE="data")
    assert done.returncode == 0, done.stdout


def blocking_locks_work_over_tls():
    done = run(worker.program("client/sync_calls"), CK_RUN_CASE="locks")
    assert done.returncode == 0, done.stdout


def command_finds_servers_and_certificates_in_the_environment():
    """script/server puts the servers, the CA and a client certificate into the
    environment."""
    no_system_cas = {"SSL_CERT_FILE": "/dev/null"}
    done = run(zkserver.SCRIPT, "with", "--tls", "--tls-client-auth", "need",
               "--", command.PROGRAM, "run", "--acl", "x509:CN=alice,O=latchkey"
               ":rwcda", "/l", "echo", "inside", **no_system_cas)
    assert done.returncode == 0 and done.stdout == "inside\n", done


def sessions_and_locks_survive_faults_over_tls():
    run_tests("faults/ensemble.py", ENSEMBLE)


with zkserver.Server("--tick", "500") as zk:
    live.run(clients_under_test_speak_tls,
             *(on_shared_server(name) for name in SHARED))
live.run(
    library_requests_work_over_tls,
    blocking_locks_work_over_tls,
    command_finds_servers_and_certificates_in_the_environment,
    sessions_and_locks_survive_faults_over_tls,
)
