# SPDX-License-Identifier: Apache-2.0
"""A candidate in an Election of kazoo, controlled by lines of standard input:
kazoo_candidate.py CONNECT SESSION_S PATH NAME. It prints a line "leads" when it
leads, and one line in reply to each command: "begin", "resign",
"participants"."""

import sys
import threading

import kazoo.client
import kazoo.recipe.election


class Candidate:
    def __init__(self, connect, session_s, path, name):
        client = kazoo.client.KazooClient(connect, timeout=float(session_s))
        client.start(30)
        self.election = kazoo.recipe.election.Election(client, path, name)

    def lead(self):
        print("leads", flush=True)
        self.over.wait()

    def begin(self):
        self.over = threading.Event()
        self.thread = threading.Thread(
            target=self.election.run, args=(self.lead,), daemon=True)
        self.thread.start()
        return "begun"

    def resign(self):
        self.over.set()
        self.thread.join(30)
        return "resigned"

    def participants(self):
        return ",".join(self.election.contenders())


candidate = Candidate(*sys.argv[1:])
for line in sys.stdin:
    command = getattr(candidate, line.strip())
    print(command(), flush=True)
