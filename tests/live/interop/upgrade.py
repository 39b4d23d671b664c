# SPDX-License-Identifier: Apache-2.0
"""The servers of an ensemble are replaced, one after the other, by those of other
versions of ZooKeeper, while clients hold and wait. See script/upgrade."""

import argparse
import importlib
import os
import shutil
import sys
import tempfile
import time

sys.path.append(sys.path[0] + "/../support")

import curator
import upgrade_clients
import zkserver
from live import eventually, version_at

SERVERS = 3
ROUTES = ("3.5.10,3.9.6", "3.6.4,3.7.2,3.8.6,3.9.6", "3.9.6,3.8.6")
KEEPS_FROM_S = 30       # no client loses a lock with such a session timeout
MAX_RELEASE_S = 60      # from the release until the last waiter is granted
SETTLE_TIMEOUTS = 2     # so many session timeouts show whether a session ended

MISSING = 77


# ---- what is there

def routes_that_are_there(routes):
    """The routes, each a list of versions; names those that are not there."""
    found = []
    for route in routes:
        versions = route.split(",")
        missing = [v for v in versions if not zkserver.has_version(v)]
        if missing:
            print("not tested: %s: there is no ZooKeeper %s; script/zookeeper "
                  "fetches it" % (route, ", ".join(missing)))
        else:
            found.append(versions)
    return found


def is_there(peer, find):
    """Whether `find()` finds a library; it exits the program if not."""
    try:
        find()
    except SystemExit as error:
        if error.code != MISSING:
            raise
        print("not tested: clients of %s" % peer)
        return False
    return True


class Peers:
    """Which other libraries are there."""

    def __init__(self):
        self.has_curator = is_there("Curator", curator.compile_program)
        self.kazoos = importlib.import_module("kazoos") if is_there(
            "kazoo", lambda: importlib.import_module("kazoos")) else None


# ---- one run

class Upgrade:
    """One run: the servers go along a route. `wrong` has texts about what must
    not be; no text: the run is good."""

    def __init__(self, options, peers, route, order, timeout_s, seed):
        self.options, self.peers, self.route = options, peers, route
        self.order, self.timeout_s, self.seed = order, timeout_s, seed
        self.name = "%s, leader %s, T = %d s, seed %d" % (
            " to ".join(route), order, timeout_s, seed)
        self.settle_s = min(options.seconds, SETTLE_TIMEOUTS * timeout_s)
        self.last_grant_s = None    # from the release to the last grant
        self.left = []              # nodes after the end
        self.wrong = []

    def say(self, text):
        print("%7.1f s  %s" % (time.monotonic() - self.began, text))

    def execute(self):
        print("---- " + self.name)
        self.began = time.monotonic()
        with zkserver.Server("--zookeeper", self.route[0], "--tick",
                             str(self.options.tick), servers=SERVERS) as self.zk:
            self.run = upgrade_clients.UpgradeRun(
                self.zk, self.timeout_s * 1000, self.options,
                self.peers.has_curator, self.peers.kazoos)
            try:
                self.execute_steps()
            except (AssertionError, RuntimeError) as error:
                self.wrong.append("ended early: %s" % error)
                self.run.request_end()
            self.find_wrong()
            if self.wrong or self.run.losses:
                self.keep_logs()
            self.run.close()
        self.report()

    def execute_steps(self):
        self.start_clients()
        # A fault may kill this holder; then the first node is that of a process
        # that is gone, whose loss no client notices.
        if "loss" in self.options.plant:
            self.delete_node_of_a_holder()
        self.faults = upgrade_clients.UpgradeFaults(self.run, self.seed,
                                                    self.options.fault_every)
        self.wait_with_faults(self.settle_s)
        if "token" in self.options.plant:
            self.run.judge.note_token(self.run.waiters[-1].rival.path,
                                      "planted", 2 ** 63)
        for version in self.route[1:]:
            self.replace_servers(version)
        self.faults.heal()
        self.wait_for_clients()
        self.release()

    # ---- steps

    def start_clients(self):
        self.say("servers of %s serve" % self.route[0])
        run = self.run
        for recipe in upgrade_clients.RECIPES:
            run.make(recipe)
        if "overlap" in self.options.plant:
            run.make(upgrade_clients.trespasser)
        for holder in run.holders:
            holder.start()
        eventually(lambda: all(h.granted for h in run.holders),
                   "all holders hold", MAX_RELEASE_S)
        for contender in run.all_contenders():
            if contender not in run.holders:
                contender.start()
        self.wait_for_clients()
        self.say("clients: %s" % ", ".join("%d of %s" % (
            len(run.contenders_of(side)), side)
            for side in ("latchkey", "curator", "kazoo")))

    def wait_for_clients(self):
        """Wait until all waiters are queued, and all members have joined: also
        those of processes that were killed."""
        (members,) = self.run.queues["group"]
        eventually(lambda: all(w.is_queued() for w in self.run.waiters) and
                   len(self.nodes_in(members)) == self.options.members,
                   "all waiters are queued and all members have joined",
                   self.timeout_s + MAX_RELEASE_S)

    def nodes_in(self, path):
        found = self.run.direct.submit("children", path=path).result()
        return found.names if found.err == "0" else []

    def replace_servers(self, version):
        left = list(range(1, SERVERS + 1))
        while left:
            server = self.next_server(left)
            left.remove(server)
            self.replace_server(server, version)
            self.wait_with_faults(self.options.seconds if left
                                  else self.settle_s)
            self.say(self.progress())

    def next_server(self, left):
        """The server to replace next, of those that have the old version."""
        leader = eventually(self.zk.leader, "a leader")
        followers = [server for server in left if server != leader]
        if self.order == "first":
            return leader if leader in left else followers[0]
        return followers[0] if followers else leader

    def replace_server(self, server, version):
        mode, began = self.zk.mode(server), time.monotonic()
        self.zk.restart(server, version)
        seconds = time.monotonic() - began
        found = version_at(self.zk.addresses[server - 1])
        assert found == version, "server %d has %s" % (server, found)
        self.say("server %d, the %s, has %s after %.1f s" % (
            server, mode, version, seconds))

    def wait_with_faults(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(.2)
            self.faults.execute_if_due()

    def progress(self):
        granted = ", ".join("%s %d" % (side, self.granted(side))
                            for side in ("latchkey", "curator", "kazoo"))
        losses = self.run.count_losses()
        return "grants: %s; unsure %d, lost %d, overlaps %d; %s" % (
            granted, losses["unsure"], losses["lost"],
            len(self.run.judge.overlaps), dict(self.faults.counts))

    def delete_node_of_a_holder(self):
        """As servers would that have lost the commit of its create."""
        path = self.run.holders[0].rival.path
        node = min(self.nodes_in(path), key=lambda name: name[-10:])
        self.run.direct.do("delete", path=path + "/" + node)
        self.say("planted: deleted " + path + "/" + node)

    def release(self):
        self.wrong += ["%s has ended early" % contender.rival.name
                       for contender in self.run.all_contenders()
                       if not contender.is_alive()]
        released = time.monotonic()
        if not self.run.end():
            self.wrong.append("not all clients have ended")
        waits = [waiter.last_grant - released for waiter in self.run.waiters]
        late = [w for w in waits if not 0 <= w <= MAX_RELEASE_S]
        if late:
            self.wrong.append("%d waiters were not granted within %d s" % (
                len(late), MAX_RELEASE_S))
        self.last_grant_s = max(waits)
        # Nodes of killed processes are deleted when their sessions expire.
        self.left = self.run.wait_for_empty_queues(self.timeout_s + 15)
        self.say("released: the last waiter was granted after %.1f s; "
                 "nodes left: %d" % (self.last_grant_s, len(self.left)))

    # ---- the result

    def find_wrong(self):
        judge, losses = self.run.judge, self.run.count_losses()
        self.wrong += ["overlap: " + text for text in judge.overlaps[:5]]
        self.wrong += ["token: " + text for text in judge.smaller_tokens[:5]]
        self.wrong += ["left behind: " + path for path in self.left[:5]]
        if self.timeout_s >= KEEPS_FROM_S and losses["unsure"] + losses["lost"]:
            self.wrong.append("holders of latchkey: %d unsure, %d lost" % (
                losses["unsure"], losses["lost"]))

    def keep_logs(self):
        """Copy the transaction logs, which alone prove that servers have lost a
        commit."""
        folder = tempfile.mkdtemp(prefix="latchkey-upgrade-")
        for server in map(str, range(1, SERVERS + 1)):
            shutil.copytree(os.path.join(self.zk.dir, server),
                            os.path.join(folder, server))
        self.say("data and logs of the servers: " + folder)

    def report(self):
        for loss in self.run.losses[:20]:
            print("%s: %s" % (loss.word, loss.text))
        for text, count in self.run.count_errors().most_common(20):
            print("error: %s (%d times)" % (text, count))
        for text in self.wrong:
            print("WRONG: " + text)

    def granted(self, side):
        return sum(c.granted for c in self.run.contenders_of(side))

    # ---- the table

    def rows(self):
        """(library, grants, unsure, lost, errors) of each library."""
        losses = self.run.count_losses()
        unsure, lost = {"latchkey": losses["unsure"]}, {"latchkey": losses["lost"]}
        for side in ("curator", "kazoo"):
            peers = self.run.contenders_of(side)
            unsure[side] = sum(peer.interrupted for peer in peers)
            lost[side] = sum(peer.rival.states["lost"] for peer in peers)
        for side in unsure:
            contenders = self.run.contenders_of(side)
            yield (side, self.granted(side), unsure[side], lost[side],
                   sum(sum(c.errors.values()) for c in contenders))


def print_table(upgrades):
    print("\nunsure: holds that the library reported as unsure or suspended; lost: "
          "by latchkey, locks\nand leaderships; by Curator and kazoo, sessions")
    print("library    grants unsure   lost errors")
    for upgrade in upgrades:
        print("%s: overlaps %d, smaller tokens %d, last waiter %s s, nodes left "
              "%d, members that left %d: %s" % (
                  upgrade.name, len(upgrade.run.judge.overlaps),
                  len(upgrade.run.judge.smaller_tokens),
                  "?" if upgrade.last_grant_s is None else
                  "%.1f" % upgrade.last_grant_s, len(upgrade.left),
                  upgrade.run.count_losses()["left"],
                  "WRONG" if upgrade.wrong else "good"))
        for row in upgrade.rows():
            print("%-10s %6d %6d %6d %6d" % row)


# ---- options

def parse_options():
    parser = argparse.ArgumentParser(prog="upgrade")
    parser.add_argument("--route", action="append", metavar="VERSION,...")
    parser.add_argument("--order", action="append", choices=("last", "first"))
    parser.add_argument("--timeout", action="append", type=int, metavar="SECS")
    parser.add_argument("--tick", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault-every", type=float, default=10)
    parser.add_argument("--holders", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--peers", type=int, default=20)
    parser.add_argument("--plant", action="append", default=[],
                        choices=("overlap", "token", "loss"))
    options = parser.parse_args()
    options.route = options.route or ROUTES
    options.order = options.order or ("last", "first")
    options.timeout = options.timeout or (12, 30)
    return options


def main():
    sys.stdout.reconfigure(line_buffering=True)
    options = parse_options()
    routes = routes_that_are_there(options.route)
    if not routes:
        sys.exit(MISSING)
    peers = Peers()
    upgrades = [Upgrade(options, peers, route, order, timeout_s,
                        options.seed + number)
                for route in routes for timeout_s in options.timeout
                for order in options.order for number in range(options.runs)]
    for upgrade in upgrades:
        upgrade.execute()
    print_table(upgrades)
    sys.exit(1 if any(upgrade.wrong for upgrade in upgrades) else 0)


main()
