# SPDX-License-Identifier: Apache-2.0
"""Locks of latchkey and of other libraries contend on the same nodes, with each
recipe for a while, and a Judge finds overlaps. See script/pairings."""

import argparse
import sys

sys.path.append(sys.path[0] + "/../support")

import driver
import live
import zkserver
import contests
import versions


def test_the_driver():
    """The Judge and check_turns() must find contenders that do not exclude each
    other."""
    for recipe in (contests.trespasser, contests.mixed_layouts):
        with zkserver.Server("--tick", "500") as zk:
            run = driver.Run(zk)
            run.make(recipe)
            run.start()
            live.eventually(lambda: run.judge.overlaps,
                            "the judge finds an overlap")
            assert run.end()
            try:
                driver.check_turns(run, recipe.__name__)
            except AssertionError as e:
                assert "did not wait" in str(e), e
            else:
                raise AssertionError("check_turns() finds nothing")
            run.close()
    print("the judge finds contenders that do not exclude each other")


def main():
    tables = (contests.LOCKS, contests.LAYOUTS)
    names = {recipe.__name__: recipe for table in tables for recipe in table}
    parser = argparse.ArgumentParser(prog="pairings")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("recipe", nargs="*", choices=[[], *names],
                        metavar="RECIPE", help=", ".join(names))
    options = parser.parse_args()
    if options.recipe:
        tables = [[names[name] for name in options.recipe]]
    print(versions.line("ZooKeeper", "Curator", "kazoo"), flush=True)
    test_the_driver()
    bad = [text for table in tables for text in driver.contend(
        table, options.seconds / len(tables), options.faults)]
    for text in bad:
        print("WRONG: " + text)
    sys.exit(1 if bad else 0)


main()
