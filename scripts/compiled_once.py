"""Checks that the tests and the package use the same features of their dependencies.

Cargo compiles a crate again for each set of its features, and with it all that rests on it; so it does where the tests
link a crate that the package needs for macros alone. The feature `as-tested` of gristmill-python has all that the tests
add. Exits with 1, and says what to write there, where some are missing.
"""

import os
import subprocess
import sys
from collections import defaultdict

CARGO = os.environ.get("CARGO", "cargo")


def features(*of: str) -> dict[str, set[frozenset[str]]]:
    """The sets of features with which each crate is compiled, by its name and version."""
    tree = subprocess.run(
        [CARGO, "tree", "--locked", "--prefix", "none", "--format", "{p}\t{f}", *of],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    found = defaultdict(set)
    for line in tree.splitlines():
        if line:
            crate, names = line.removesuffix(" (*)").split("\t")
            found[crate.split(" (")[0]].add(frozenset(filter(None, names.split(","))))
    return found


def main() -> int:
    """Compares the two, and returns the exit status."""
    of_package = ["--package", "gristmill-python", "--features", "as-tested", "--edges"]
    of_tests = ["--workspace", "--features", "gristmill-python/as-tested", "--edges"]
    package, tests = features(*of_package, "normal"), features(*of_tests, "normal,dev")
    twice = [(crate, names) for crate, sets in sorted(package.items()) for names in sets - tests[crate]]
    for crate, names in twice:
        nearest = min(tests[crate], key=lambda other: len(other ^ names))
        print(f"{crate} is compiled twice: the tests have its features {sorted(nearest - names)}, too", file=sys.stderr)

    linked = features(*of_package, "normal,no-proc-macro")
    linked_by_tests = features(*of_tests, "normal,dev,no-proc-macro")
    needed = features(*of_package, "normal,build")
    apart = [crate for crate in sorted(needed) if crate not in linked and needed[crate] & linked_by_tests[crate]]
    for crate in apart:
        print(f"{crate} is compiled twice: the tests link it, the package has it for macros alone", file=sys.stderr)
    if twice or apart:
        print("add them to the dependencies of `as-tested` in crates/gristmill-python/Cargo.toml", file=sys.stderr)
    return 1 if twice or apart else 0


if __name__ == "__main__":
    sys.exit(main())
