# SPDX-License-Identifier: Apache-2.0
"""Who is inside of what, by the word of those who hold: they enter after they
were granted and leave before they let go, so whoever is inside with too many
others held with them."""

import threading
import time


class Judge:
    def __init__(self):
        self._lock = threading.Lock()
        self._inside = {}       # place -> {who: weight}
        self._room = {}         # place -> [(from when, how much)]
        self.overlaps = []
        self.most = {}          # place -> how many were inside at once

    def room(self, place, weight, grace=0):
        """So much may be inside. Less than before counts after `grace`
        seconds, when who came in by the old word has left."""
        with self._lock:
            self._inside.setdefault(place, {})
            self._room.setdefault(place, []).append(
                (time.monotonic() + grace, weight))

    def _room_of(self, place):
        """The most that was allowed lately."""
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
        """`claims` are {place: weight}. False: it is not certain any more."""
        with self._lock:
            if not certain():
                return False
            for place, weight in claims.items():
                self._inside[place][who] = weight
                self._look(place)
            return True

    def become(self, who, claims):
        """Who is inside, and needs less from now on."""
        with self._lock:
            for place, weight in claims.items():
                if who in self._inside[place]:
                    self._inside[place][who] = weight

    def leave(self, who):
        """Also where it is not inside."""
        with self._lock:
            for inside in self._inside.values():
                inside.pop(who, None)
