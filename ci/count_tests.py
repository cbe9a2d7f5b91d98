"""Adds up the JUnit reports of a folder and prints the sum as the last line, for whoever reads the end of a log."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree


def count(report: Path) -> Counter[str]:
    """How many tests of one report passed, failed (errors included) and were skipped."""
    total: Counter[str] = Counter()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
        failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
        total.update(passed=tests - failed - skipped, failed=failed, skipped=skipped)
    return total


def line(total: Counter[str]) -> str:
    return f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped"


def main(folder: Path) -> int:
    """Prints one line for each report and the sum; 1 when nothing passed or something failed."""
    total: Counter[str] = Counter()
    for report in sorted(folder.glob("*.xml")):
        counted = count(report)
        print(f"{report.stem}: {line(counted)}")
        total += counted
    print(line(total))
    return 0 if total["passed"] and not total["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
