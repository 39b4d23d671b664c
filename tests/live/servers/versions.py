# SPDX-License-Identifier: Apache-2.0
"""script/server starts other versions of ZooKeeper, also one for each server,
and replaces them while the ensemble serves. Those that script/zookeeper has
fetched are tested."""

import subprocess
import sys

sys.path.append(sys.path[0] + "/../support")

import command
import differences
import live
import zkserver
from live import NotTested, version_at

FOUND = zkserver.fetched_versions()


def need_versions():
    if not FOUND:
        raise NotTested("no other version of ZooKeeper is there: "
                        "script/zookeeper fetches them")


def each_version_serves():
    need_versions()
    for version in FOUND:
        with zkserver.Server("--zookeeper", version) as zk:
            assert version_at(zk.connect) == version
            done = command.expect_exit(0, "doctor", "-z", zk.connect)
            assert "ZooKeeper %s, standalone" % version in done.out, done


def single_node_that_may_not_be_read_is_held():
    """A server that does not show its Stat hides whether it is ephemeral."""
    need_versions()
    for version in FOUND:
        with zkserver.Server("--zookeeper", version) as zk:
            where = ("-z", zk.connect)
            with command.start("create", "-e", "--acl", "world:anyone:cdwa",
                               *where, "/lock") as holder:
                holder.stdout.readline()
                status = ("status", "--layout", "single", *where, "/lock")
                done = command.expect_exit(1, *status)
                assert done.out.startswith("/lock: held\nholds  "), done
                assert "token" not in done.out, done
                assert "token" not in command.expect_exit(
                    1, *status, "--json").out
                done = command.run("revoke", *status[1:])
                if differences.has("EXISTS_NEEDS_READ", version):
                    assert done.code == 125, done
                    assert "no permission to read the node" in done.err, done
                else:
                    assert done.code == 0, done
                holder.terminate()


def each_server_has_its_version_and_may_get_another_one():
    need_versions()
    old, new = FOUND[0], FOUND[-1]
    with zkserver.Server("--zookeeper", old, "--zookeeper", "2=" + new,
                         servers=3) as zk:
        assert [version_at(a) for a in zk.addresses] == [old, new, old]
        zk.restart(1, new)
        assert [version_at(a) for a in zk.addresses] == [new, new, old]
        zk.restart(1)
        assert version_at(zk.addresses[0]) == new


def refusal(*options):
    """The error of script/server with these options."""
    done = subprocess.run([zkserver.SCRIPT, "with", *options, "true"],
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode != 0, done
    return done.stderr


def unknown_version_is_refused():
    error = refusal("--zookeeper", "1.2.3")
    assert "there is no version 1.2.3" in error, error


def settings_that_a_version_lacks_are_refused():
    for version, option, value, key, first in (
            ("3.5.10", "--backlog", "5", "--backlog", "3.6.0"),
            ("3.6.4", "--property", "zookeeper.enforceQuota=true",
             "zookeeper.enforceQuota", "3.7.0"),
            ("3.5.10", "--config", "observerMasterPort=2889",
             "observerMasterPort", "3.6.0")):
        for servers in (version, "1=" + version):
            error = refusal("--zookeeper", servers, option, value)
            assert "ZooKeeper %s has no %s, which came with %s" % (
                version, key, first) in error, error
    error = refusal("--property", "zookeeper.enforceQuotas=true")
    assert "no first version of it" in error, error


def verbs_that_need_a_newer_server_say_so():
    if not zkserver.has_version(zkserver.TOO_OLD):
        raise NotTested("there is no ZooKeeper %s" % zkserver.TOO_OLD)
    reason = "the server is too old; ZooKeeper 3.5.9 or newer is needed"
    with zkserver.Server("--zookeeper", zkserver.TOO_OLD) as zk:
        where = ("-z", zk.connect)
        for verb, *operands in (
                ("run", "/lock", "true"),
                ("run", "--layout", "single", "/lock", "true"),
                ("run", "-p", "2", "/lock", "true"),
                ("elect", "/election", "true"),
                ("join", "/group", "true"),
                ("create", "/node"),
                ("create", "-e", "/node"),
                ("create", "-c", "/node")):
            done = command.run(verb, *where, *operands)
            assert done.code == 125 and reason in done.err, (verb, done)
        done = command.expect_exit(1, "doctor", *where)
        assert "3.4.14 is too old; 3.5.9 or newer is needed" in done.out, done


def observer_follows_without_a_vote():
    with zkserver.Server("--observer", "3", servers=3) as zk:
        assert zk.mode(3) == "observer"
        zk.kill(3)
        zk.start(3)
        assert zk.mode(3) == "observer"
        zk.kill(zk.follower())  # the leader is then without a quorum
        live.eventually(lambda: zk.leader() is None)


live.run(unknown_version_is_refused,
         settings_that_a_version_lacks_are_refused,
         observer_follows_without_a_vote, each_version_serves,
         verbs_that_need_a_newer_server_say_so,
         single_node_that_may_not_be_read_is_held,
         each_server_has_its_version_and_may_get_another_one)
