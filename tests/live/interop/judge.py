# SPDX-License-Identifier: Apache-2.0
"""Finds holders that overlap. A contender enters a place of the judge after its
grant, and leaves it before its release. So contenders that are inside at the
same time have held the lock at the same time."""

import threading
import time


class Judge:
    def __init__(self):
        self._lock = threading.Lock()
        self._inside = {}       # place -> {who: weight}
        self._room = {}         # place -> [(since, largest weight)]
        self.overlaps = []
        self.most = {}          # place -> the largest number inside at once

    def room(self, place, weight, grace=0):
        """Set the largest weight inside. A smaller one takes effect after
        `grace` seconds, when earlier holders have left."""
        with self._lock:
            self._inside.setdefault(place, {})
            self._room.setdefault(place, []).append(
                (time.monotonic() + grace, weight))

    def _room_of(self, place):
        """The largest weight that is allowed now."""
        now = time.monotonic()
        words = self._room[place]
        while len(words) > 1 and words[1][0] <= now:
            words.pop(0)
        return max(weight for _, weight in words)

    def _look(self, place):
        inside = self._inside[place]
        self.most[place] = max(self.most.get(place, 0), len(inside))
        if sum(inside.values()) > self._room_of(place):
            self.overlaps.append("%s: %s" % (place, ", ".join(
                "%s (%d)" % entry for entry in sorted(inside.items()))))

    def enter(self, who, claims, certain=lambda: True):
        """Let `who` enter places with the weights {place: weight}. Gives false,
        without entering, if `certain()` is false: the holder is unsure."""
        with self._lock:
            if not certain():
                return False
            for place, weight in claims.items():
                self._inside[place][who] = weight
                self._look(place)
            return True

    def become(self, who, claims):
        """Replace the claims of a holder by smaller ones."""
        with self._lock:
            for place, weight in claims.items():
                if who in self._inside[place]:
                    self._inside[place][who] = weight

    def leave(self, who):
        """May be called without enter()."""
        with self._lock:
            for inside in self._inside.values():
                inside.pop(who, None)
