#!/usr/bin/env python3
"""Reads what nextest wrote about a run (JUnit XML).

    tests/runner/junit.py failed ATTEMPTS FOLDER FILE …    failed tests
    tests/runner/junit.py passed PACKAGE … -- FILE …    of these packages, those of which no test failed

`failed` prints a line for each test, its fields separated by tabs. For one that may run again, if there is
more than one attempt: `again`, `test`, binary and name, `flaky` or `suspect`, and the first line of its
failure; its whole output is written into the folder. For another: `why`, binary and name, and that line.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree

# Whole programs, and the checks of what a host's storage keeps. The tests of single crates have no
# retry: they depend on nothing but their input.
RETRIED = re.compile(r"(tidepool-tests|tidepool-bench)::(process|peers|measured)$|tidepool-contract(::.*)?$"
                     r"|tidepool-host::power_cut$")
# Tests of what is kept, lost or delivered: a failure is a defect of the program until its cause is
# known.
KEPT_BINARIES = re.compile(r"tidepool-contract(::.*)?$|tidepool-host::power_cut$")
KEPT_MODULES = ("kill", "durability", "disk_full", "replay_cut", "damaged_log", "wal_columns", "faults",
                "forward", "ship", "migration", "migration_formats", "migration_kinds", "migration_starts", "gathered_log")


def cases(files):
    """Binary, name, and the failure or nothing, of each test."""
    for file in files:
        for suite in xml.etree.ElementTree.parse(file).getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                failure = case.find("failure")
                yield suite.get("name"), case, case.find("error") if failure is None else failure


def is_kept(binary, name):
    return bool(KEPT_BINARIES.match(binary)) or any(module in KEPT_MODULES for module in name.split("::")[:-1])


def first_line(failure, output):
    """What a panic says, or the first line otherwise, and where it is."""
    message = (failure.get("message") or failure.text or "").strip().split("\n")[0]
    # The reason of a panic is on the line after its place.
    panic = re.search(r"panicked at (.*):\n(.*)", output)
    return (f"{panic[2]} ({panic[1]})" if panic else message).replace("\t", " ")


def failed(attempts, folder, files):
    for binary, case, failure in cases(files):
        name = case.get("name")
        if failure is None:
            continue
        outputs = [failure.text or ""] + [part.text or "" for part in case if part.tag.startswith("system-")]
        output = "\n".join(outputs)
        if attempts == 1 or not RETRIED.match(binary):
            print("why", f"{binary} {name}", first_line(failure, output), sep="\t")
            continue
        file = re.sub(r"[^A-Za-z0-9_-]", "_", f"{binary} {name}") + ".1.log"
        (pathlib.Path(folder) / file).write_text(output)
        verdict = "suspect" if is_kept(binary, name) else "flaky"
        print("again", "test", f"{binary} {name}", verdict, first_line(failure, output), sep="\t")


def passed(packages, files):
    failed = {binary.split("::")[0] for binary, _, failure in cases(files) if failure is not None}
    print(*(package for package in packages if package not in failed), sep="\n")


def main():
    match sys.argv[1:]:
        case ["failed", attempts, folder, *files]:
            failed(int(attempts), folder, files)
        case ["passed", *arguments] if "--" in arguments:
            at = arguments.index("--")
            passed(arguments[:at], arguments[at + 1:])
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
