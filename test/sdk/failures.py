"""failures.py KNOWN RESULT.xml...: counts the tests of JUnit files, and tells the failures that KNOWN, lines of "NAME: why"
with NAME a test's own, does not list, and those that it lists and are none any more. Exit code 1: there are new ones, or a file of no tests."""

import sys
from xml.etree import ElementTree


def known(path):
    with open(path, encoding="utf-8") as lines:
        return {line.split(":", 1)[0].strip() for line in lines if line.strip() and not line.startswith("#")}


def main():
    listed, failed, seen, empty = known(sys.argv[1]), {}, set(), []
    for path in sys.argv[2:]:
        counts = {"passed": 0, "failed": 0, "skipped": 0}
        for case in ElementTree.parse(path).iter("testcase"):
            name = case.get("name")
            seen.add(name)
            problem = case.find("failure") if case.find("failure") is not None else case.find("error")
            state = "failed" if problem is not None else "skipped" if case.find("skipped") is not None else "passed"
            counts[state] += 1
            if problem is not None:
                failed[f"{case.get('classname')}::{name}"] = (name, (problem.get("message") or "").splitlines()[:1])
        print(path, counts)
        if counts["passed"] + counts["failed"] == 0:
            empty.append(path)
    new = {case: why for case, (name, why) in failed.items() if name not in listed}
    for case, why in sorted(new.items()):
        print("NEW", case, *why)
    for name in sorted(listed & seen - {name for name, _ in failed.values()}):
        print("passes now:", name)
    for path in empty:
        print("NO TESTS", path)
    sys.exit(1 if new or empty else 0)


if __name__ == "__main__":
    main()
