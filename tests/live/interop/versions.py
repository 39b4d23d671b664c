# SPDX-License-Identifier: Apache-2.0
"""The versions of the servers and of the libraries that are compared, for the
output of the comparison."""

import os
import subprocess


def _of_package(package):
    """The upstream version of an installed package of Debian, or None."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True)
    except FileNotFoundError:
        return None
    return done.stdout.partition("-")[0] if done.returncode == 0 else None


def _of_kazoo():
    try:
        import kazoo.version
    except ImportError:
        return None
    return kazoo.version.__version__


def line(*names):
    """"ZooKeeper 3.8.0, Curator 5.4.0", for these names; those that are not
    installed are left out."""
    versions = {
        "ZooKeeper": os.environ.get("LATCHKEY_ZOOKEEPER") or
                     _of_package("libzookeeper-java"),
        "Curator": os.environ.get("LATCHKEY_CURATOR") or
                   _of_package("libcurator-recipes-java"),
        "kazoo": _of_kazoo(),
        "go-zookeeper": _of_package("golang-github-samuel-go-zookeeper-dev"),
        "libzookeeper": _of_package("libzookeeper-st-dev")}
    return ", ".join("%s %s" % (name, versions[name])
                     for name in names if versions[name])
