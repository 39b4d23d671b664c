#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Contenders for one lock of kazoo, as in `latchkey-bench lock-contended`, whose
line of figures it prints:

    contended.py HOST:PORT N each=TURNS hold=MICROSECONDS mode=sessions|shared
"""

import os
import sys
import threading
import time

from kazoo.client import KazooClient


class Queue:
    """What all contenders share. Only the holder changes it."""

    def __init__(self):
        self.released = None
        self.handoffs = []  # in microseconds

    def granted(self):
        if self.released is not None:
            self.handoffs.append((time.perf_counter() - self.released) * 1e6)

    def contend(self, lock, turns, hold):
        for _ in range(turns):
            lock.acquire()
            self.granted()
            if hold > 0:
                time.sleep(hold / 1e6)
            self.released = time.perf_counter()
            lock.release()

    def quantile(self, share):
        return self.handoffs[int(share * (len(self.handoffs) - 1) + 0.5)]


def connect(hosts):
    client = KazooClient(hosts, timeout=30)
    client.start()
    return client


def main():
    hosts, contenders = sys.argv[1], int(sys.argv[2])
    options = dict(word.split("=") for word in sys.argv[3:])
    clients = [connect(hosts) for _ in range(
        contenders if options["mode"] == "sessions" else 1)]
    queue = Queue()
    threads = [threading.Thread(target=queue.contend, args=(
        clients[n % len(clients)].Lock("/peers-kazoo"), int(options["each"]),
        int(options["hold"]))) for n in range(contenders)]
    before, began = os.times(), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds, after = time.perf_counter() - began, os.times()
    queue.handoffs.sort()
    print("lock-contended %d %.6f %.6f %.6f 0 mode=%s handoff_p50_us=%.1f "
          "handoff_p99_us=%.1f" % (
              contenders * int(options["each"]), seconds,
              after.user - before.user, after.system - before.system,
              options["mode"], queue.quantile(0.5), queue.quantile(0.99)))
    sys.stdout.flush()
    os._exit(0)  # the clients have threads


if __name__ == "__main__":
    main()
