# SPDX-License-Identifier: Apache-2.0
"""Finds holders that overlap. A contender enters a place of the judge after its
grant, and leaves it before its release. So contenders that are inside at the
same time have held the lock at the same time."""

import threading
import time


class Judge:
    def __init__(self):
        self._lock = threading.Lock()
        self._inside = {}       # place -> {contender: weight}
        self._rooms = {}        # place -> [(since, largest sum of weights)]
        self.overlaps = []      # texts
        self.max_inside = {}    # place -> the largest number inside at once

    def set_room(self, place, room, grace_s=0):
        """Set the largest sum of weights that may be inside. It takes effect
        after `grace_s`; until then, the old one is allowed, too."""
        with self._lock:
            self._inside.setdefault(place, {})
            self._rooms.setdefault(place, []).append(
                (time.monotonic() + grace_s, room))

    def _room_of(self, place):
        """The largest sum of weights that is allowed now."""
        now = time.monotonic()
        rooms = self._rooms[place]
        while len(rooms) > 1 and rooms[1][0] <= now:
            rooms.pop(0)
        return max(room for _, room in rooms)

    def _check_room(self, place):
        inside = self._inside[place]
        self.max_inside[place] = max(self.max_inside.get(place, 0), len(inside))
        if sum(inside.values()) > self._room_of(place):
            self.overlaps.append("%s: %s" % (place, ", ".join(
                "%s (%d)" % entry for entry in sorted(inside.items()))))

    def enter(self, contender, claims, certain=lambda: True):
        """Let the contender enter places with the weights {place: weight}. If
        `certain()` is false, the holder is unsure: it does not enter, and this
        gives false."""
        with self._lock:
            if not certain():
                return False
            for place, weight in claims.items():
                self._inside[place][contender] = weight
                self._check_room(place)
            return True

    def reduce(self, contender, claims):
        """Replace the claims of a holder by smaller ones."""
        with self._lock:
            for place, weight in claims.items():
                if contender in self._inside[place]:
                    self._inside[place][contender] = weight

    def leave(self, contender):
        """May be called without enter()."""
        with self._lock:
            for inside in self._inside.values():
                inside.pop(contender, None)
