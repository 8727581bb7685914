#!/usr/bin/env python3
"""Looks for modules that have no test though lists of modules name them: a renaming would break those silently.

    tests/runner/groups.py < LIST    the tests, as `cargo nextest list --message-format json` prints them

The lists are the filters in .config/nextest.toml and the modules in junit.py. A filter names modules as
`binary(B) & test(/^(one|two::three)::/)` or `package(P) & test(…)`.
"""

import json
import pathlib
import re
import sys
import tomllib

import junit

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = re.compile(r"(binary|package)\(([\w-]+)\) & test\(/\^\(([^)]*)\)::/\)")


def main():
    suites = json.load(sys.stdin)["rust-suites"].values()
    names = [(suite["package-name"], suite["binary-name"], name) for suite in suites for name in suite["testcases"]]
    missing = []
    for profile in tomllib.loads((ROOT / ".config/nextest.toml").read_text())["profile"].values():
        for override in profile.get("overrides", []):
            filter = override["filter"]
            found = MODULES.findall(filter)
            if len(found) != filter.count("test("):
                missing.append(f"the filter {filter.strip()!r} names tests in another form")
            for kind, owner, modules in found:
                at = 0 if kind == "package" else 1
                for module in modules.split("|"):
                    if not any(test[at] == owner and test[2].startswith(f"{module}::") for test in names):
                        missing.append(f".config/nextest.toml: {owner} has no test in the module {module}")
    for module in junit.KEPT_MODULES:
        if not any(module in name.split("::")[:-1] for _, _, name in names):
            missing.append(f"tests/runner/junit.py: no test is in a module {module}")
    for line in missing:
        print(line)
    sys.exit(1 if missing else 0)


main()
