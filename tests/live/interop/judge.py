# SPDX-License-Identifier: Apache-2.0
"""Finds holders that overlap. A resource stands for what a lock protects. A
contender enters it after its grant, and leaves it before its release. So
contenders that are inside at the same time have held the lock at the same
time."""

import collections
import threading
import time


class Judge:
    def __init__(self):
        self._lock = threading.Lock()
        self._holders = {}      # resource -> {contender: weight}
        self._limits = {}       # resource -> [(since, largest sum of weights)]
        self._last_tokens = {}  # resource -> (largest token, its contender)
        self.overlaps = []      # texts
        self.smaller_tokens = []  # texts
        self.most_holders = {}  # resource -> the largest number inside at once

    def set_limit(self, resource, limit, grace_s=0):
        """Set the largest sum of weights that may be inside. It takes effect
        after `grace_s`; until then, the old one is allowed, too."""
        with self._lock:
            self._holders.setdefault(resource, {})
            self._limits.setdefault(resource, []).append(
                (time.monotonic() + grace_s, limit))

    def _limit_of(self, resource):
        """The largest sum of weights that is allowed now."""
        now = time.monotonic()
        limits = self._limits[resource]
        while len(limits) > 1 and limits[1][0] <= now:
            limits.pop(0)
        return max(limit for _, limit in limits)

    def allows(self, *all_claims):
        """Whether contenders with these claims may be inside together."""
        weights = collections.Counter()
        for claims in all_claims:
            weights.update(claims)
        with self._lock:
            return all(weight <= self._limit_of(resource)
                       for resource, weight in weights.items())

    def _check_limit(self, resource):
        holders = self._holders[resource]
        self.most_holders[resource] = max(len(holders),
                                          self.most_holders.get(resource, 0))
        if sum(holders.values()) > self._limit_of(resource):
            self.overlaps.append("%s: %s" % (resource, ", ".join(
                "%s (%d)" % entry for entry in sorted(holders.items()))))

    def enter(self, contender, claims, certain=lambda: True):
        """Let the contender enter resources, with the weights
        {resource: weight}. If `certain()` is false, the holder is unsure: it
        does not enter, and this gives false."""
        with self._lock:
            if not certain():
                return False
            for resource, weight in claims.items():
                self._holders[resource][contender] = weight
                self._check_limit(resource)
            return True

    def reduce(self, contender, claims):
        """Replace the claims of a holder by smaller ones."""
        with self._lock:
            for resource, weight in claims.items():
                if contender in self._holders[resource]:
                    self._holders[resource][contender] = weight

    def leave(self, contender):
        """May be called without enter(). Gives whether the contender was
        inside."""
        with self._lock:
            left = [holders.pop(contender, None)
                    for holders in self._holders.values()]
        return any(weight is not None for weight in left)

    def note_token(self, resource, contender, token):
        """Check that the fencing token of a grant is larger than those of the
        grants before."""
        with self._lock:
            last, holder = self._last_tokens.get(resource, (-1, None))
            if token <= last:
                self.smaller_tokens.append("%s: %s has %#x after %s with %#x" % (
                    resource, contender, token, holder, last))
            else:
                self._last_tokens[resource] = token, contender
