# SPDX-License-Identifier: Apache-2.0
"""latchkey ls -l -R, tree."""

import re
import sys

sys.path.append(sys.path[0] + "/../support")

import command
from command import expect_exit, run, start
import live
import worker

zk = command.serve()


def create_nodes(*paths):
    for path in paths:
        expect_exit(0, "create", "-p", path)


def stat_of(path):
    """The output of stat --json, without the path."""
    facts = expect_exit(0, "stat", "--json", path).json()[0]
    del facts["path"]
    return facts


def output_lines(*words):
    return expect_exit(0, *words).out.splitlines()


def R_lists_all_descendants():
    create_nodes("/R/b/c/d", "/R/b-", "/R/b/a", "/R/a", "/R/b/c-", "/R/\u00fc/x")
    # Siblings in the order of their bytes, each in front of its descendants.
    wanted = ["a", "b", "b/a", "b/c", "b/c/d", "b/c-", "b-", "\u00fc",
              "\u00fc/x"]
    assert output_lines("ls", "-R", "/R") == wanted
    assert expect_exit(0, "ls", "--recursive", "--json", "/R").json() == [
        {"path": "/R", "children": wanted}]
    assert output_lines("ls", "-R", "/R/a") == []
    assert output_lines("ls", "-R", "/R/b/c") == ["d"]
    everything = run("ls", "-R", "/").out.split()
    assert "R/b/c/d" in everything and "zookeeper/config" in everything
    assert output_lines("ls", "-R", "-z", zk.connect + "/R/b", "/") == [
        "a", "c", "c/d", "c-"]
    done = run("ls", "-R", "/R/none")
    assert done.code == 1 and "no such node" in done.err, done


def l_prints_the_stat_of_each_child():
    expect_exit(0, "create", "/l")
    expect_exit(0, "create", "/l/plain", "12345")
    expect_exit(0, "set", "/l/plain", "123456")  # 6 bytes, version 1
    create_nodes("/l/full/a", "/l/full/b")
    with start("create", "-e", "/l/owned") as owner:
        owner.stdout.readline()  # waits until the node exists
        facts = {name: stat_of("/l/" + name)
                 for name in ("full", "owned", "plain")}
        lines = [line.split() for line in output_lines("ls", "-l", "/l")]
        # Children, bytes of data, version, time of the last change, session.
        assert lines == [
            ["2", "0", "0", facts["full"]["mtime"], "-", "full"],
            ["0", "0", "0", facts["owned"]["mtime"],
             facts["owned"]["ephemeral_owner"], "owned"],
            ["0", "6", "1", facts["plain"]["mtime"], "-", "plain"]], lines
        assert output_lines("ls", "--long", "-R", "/l")[1].endswith(" full/a")
        (listed,) = expect_exit(0, "ls", "-l", "--json", "/l").json()
        assert listed == {"path": "/l", "children": [
            {"name": name, **facts[name]} for name in facts]}, listed
        (deep,) = expect_exit(0, "ls", "-lR", "--json", "/l").json()
        assert deep["children"][0] == listed["children"][0], deep
        assert deep["children"][1]["name"] == "full/a", deep
        owner.terminate()


def tree_indents_children():
    create_nodes("/tree/b/c/d", "/tree/b-", "/tree/a")
    with start("create", "-e", "/tree/a/mine") as owner:
        owner.stdout.readline()
        assert output_lines("tree", "/tree") == [
            "/tree", "  a", "    mine  (ephemeral)", "  b", "    c", "      d",
            "  b-"]
        facts = expect_exit(0, "tree", "--json", "/tree").json()
        owner.terminate()
    assert output_lines("tree", "/tree/b-") == ["/tree/b-"]
    assert output_lines("tree", "-z", zk.connect + "/tree/b", "/") == [
        "/", "  c", "    d"]

    def node(name, *children, ephemeral=False):
        return {"name": name, "ephemeral": ephemeral, "children": list(children)}

    def root(path, *children):
        return {"path": path, "ephemeral": False, "children": list(children)}

    assert facts == [root(
        "/tree", node("a", node("mine", ephemeral=True)),
        node("b", node("c", node("d"))), node("b-"))], facts
    assert expect_exit(0, "tree", "--json", "/tree/b-").json() == [
        root("/tree/b-")]
    done = run("tree", "/none")
    assert done.code == 1 and "no such node" in done.err, done


def unreadable_nodes_are_reported():
    create_nodes("/shut/a/b", "/shut/c")
    # The ACL of /shut/b permits to create children, and not to read it.
    expect_exit(0, "create", "--acl", "world:anyone:c", "/shut/b")
    expect_exit(0, "create", "/shut/b/hidden")
    done = run("ls", "-R", "/shut")
    assert done.code == 125 and done.out.split() == ["a", "a/b", "b", "c"]
    assert "1 node not read" in done.err and "--auth-file" in done.err, done
    done = run("ls", "-lR", "/shut")
    # All columns of a node without a Stat are hyphens.
    assert re.search(r"^ +-( +-)* +b$", done.out, re.M), done
    done = run("tree", "/shut")
    assert done.code == 125 and "  b  (not readable)\n" in done.out, done
    (facts,) = run("tree", "--json", "/shut").json()
    assert facts["children"][1] == {"name": "b", "children": []}, facts
    (facts,) = run("ls", "-lR", "--json", "/shut").json()
    assert facts["children"][2] == {"name": "b"}, facts
    done = run("ls", "-R", "/shut/b")
    assert done.code == 125 and done.out == "", done


def large_tree_is_listed_completely():
    """The tree has more nodes than the command sends requests at a time."""
    process = worker.Worker()
    client = process.client(zk.connect)
    client.create("/large")
    children = ["/large/%d" % i for i in range(30)]
    grandchildren = ["%s/%d" % (child, i) for child in children
                     for i in range(20)]
    for paths in (children, grandchildren):
        for request in [client.submit("create", path=path, data=b"")
                        for path in paths]:
            request.succeeds()
    process.close()
    listed = output_lines("ls", "-R", "/large")
    assert sorted("/large/" + name for name in listed) == sorted(
        children + grandchildren)
    # The tree has one line more, for /large.
    assert len(output_lines("tree", "/large")) == 1 + len(listed)
    assert len(output_lines("ls", "-l", "/large")) == len(children)


def usage_error_exits_with_125():
    for verb in ("ls", "tree"):
        assert "usage: latchkey " + verb in expect_exit(0, verb, "--help").out
        assert "must begin with" in expect_exit(125, verb, "-v", "x").err
        assert 'must not contain "//"' in expect_exit(125, verb, "/x//y").err
    assert "unknown option" in expect_exit(125, "tree", "-R", "/x").err


live.run(live.together(
    R_lists_all_descendants,
    l_prints_the_stat_of_each_child,
    tree_indents_children,
    unreadable_nodes_are_reported,
    usage_error_exits_with_125),
    large_tree_is_listed_completely)
