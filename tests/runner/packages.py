#!/usr/bin/env python3
"""Prints what the tests of each package of the workspace depend on within the repository.

    tests/runner/packages.py

A line for each package, its fields separated by tabs: its name, its folder, and all folders that its tests
depend on. Packages whose tests run programs depend on all that these are made of. A folder comes before
those that contain it.
"""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The tests of these folders, and of crates that depend on these ones, run programs and components.
RUN_ALL = ("tests", "examples")
MADE_OF_ALL = {"tidepool-tests", "tidepool-image"}
EVERYTHING = ["engine", "host", "wit", "proto", "js", "tests", "examples"]
# What engine and host are generated from.
CONTRACTS = ["wit", "proto"]


def main():
    command = ["cargo", "metadata", "--format-version=1", "--no-deps", "--locked"]
    out = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    packages = {package["name"]: package for package in json.loads(out)["packages"]}

    def with_dependencies(name):
        seen, waiting = set(), [name]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                # Only the package itself is built with what its tests need.
                is_first = len(seen) == 1
                waiting += [found["name"] for found in packages[name]["dependencies"]
                            if found["name"] in packages and (is_first or found["kind"] != "dev")]
        return seen

    def folder(name):
        return str(pathlib.Path(packages[name]["manifest_path"]).parent.relative_to(ROOT))

    for name in sorted(packages, key=folder, reverse=True):
        needed = with_dependencies(name)
        folders = sorted(map(folder, needed)) + CONTRACTS
        if folder(name).split("/")[0] in RUN_ALL or needed & MADE_OF_ALL:
            folders = EVERYTHING
        print(name, folder(name), " ".join(folders), sep="\t")


main()
