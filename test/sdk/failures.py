"""failures.py KNOWN RESULT.xml...: counts the tests of JUnit files, and tells the failures that KNOWN does not list, and what
it lists that fails no more. KNOWN has lines of "CLASS::TEST: why", in which * is anything. Exit code 1: there are new
failures, or a file of no tests."""

import os
import sys
from fnmatch import fnmatchcase
from xml.etree import ElementTree


def known(path):
    with open(path, encoding="utf-8") as lines:
        return [line.split(": ", 1)[0].strip() for line in lines if line.strip() and not line.startswith("#")]


def main():
    listed, failed, seen, empty = known(sys.argv[1]), {}, set(), []
    for path in sys.argv[2:]:
        counts = {"passed": 0, "failed": 0, "skipped": 0}
        for case in ElementTree.parse(path).iter("testcase") if os.path.exists(path) else []:
            name = f"{case.get('classname')}::{case.get('name')}"
            seen.add(name)
            problem = case.find("failure") if case.find("failure") is not None else case.find("error")
            state = "failed" if problem is not None else "skipped" if case.find("skipped") is not None else "passed"
            counts[state] += 1
            if problem is not None:
                failed[name] = (problem.get("message") or "").splitlines()[:1]
        print(path, counts)
        if counts["passed"] + counts["failed"] == 0:
            empty.append(path)
    new = {name: why for name, why in failed.items() if not any(fnmatchcase(name, p) for p in listed)}
    for name, why in sorted(new.items()):
        print("NEW", name, *why)
    for name in sorted(seen - failed.keys()):
        if any(fnmatchcase(name, p) for p in listed):
            print("passes now:", name)
    for pattern in listed:
        if not any(fnmatchcase(name, pattern) for name in seen):
            print("is not there:", pattern)
    for path in empty:
        print("NO TESTS", path)
    sys.exit(1 if new or empty else 0)


if __name__ == "__main__":
    main()
