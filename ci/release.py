"""The release of the packages: ``python ci/release.py DIST``, where DIST is what ``nox -s build`` made.

It checks the tree, the tags, the changelogs and the files, and says what would be published. Only ``--publish`` hands
the files to ``uv publish``, which takes the place and the credentials from its own settings.
A release of package P at version V is a commit with the tag P-vV whose changelog has the entry "## V (a date)".
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from distributions import EXPECTED, check, file_names

ROOT = Path(__file__).parents[1]
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def declared_version(package: Path) -> str:
    """The version in a package's pyproject.toml."""
    found = re.search(r'^version = "([^"]+)"$', (package / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{package / 'pyproject.toml'} has no version")
    return found[1]


def wrong_changelog(text: str, name: str, version: str) -> list[str]:
    """One line when a changelog's first entry is not a dated one of this version, with something in it."""
    _, *entries = re.split(r"^## ", text, flags=re.MULTILINE)
    head, _, body = entries[0].partition("\n") if entries else ("", "", "")
    found = re.fullmatch(r"(\S+) \((.*)\)", head.strip())
    if found is None or found[1] != version:
        return [f"{name}: the first entry of CHANGELOG.md is {head.strip()!r}; {version} needs '## {version} (a date)'"]
    if not DATE.fullmatch(found[2]):
        return [f"{name}: CHANGELOG.md says {version} ({found[2]}); write the day of the release, as 2026-01-31"]
    return [] if body.strip() else [f"{name}: the entry of {version} in CHANGELOG.md says nothing"]


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def wrong_tree(root: Path, versions: dict[str, str]) -> list[str]:
    """One line for uncommitted changes, and for each tag that is not at the commit that is checked out."""
    wrong = []
    if changed := git(root, "status", "--porcelain"):
        wrong.append(f"the tree has changes that are not committed: {', '.join(changed.split()[1::2][:5])}")
    tags = git(root, "tag", "--points-at", "HEAD").split()
    wrong += [
        f"{package}: the commit has no tag {package}-v{version}"
        for package, version in versions.items()
        if f"{package}-v{version}" not in tags
    ]
    return wrong


def problems(root: Path, dist: Path, packages: list[str]) -> list[str]:
    """Everything that stands against a release, one line each."""
    versions = {package: declared_version(root / "packages" / package) for package in packages}
    wrong = wrong_tree(root, versions)
    for package, version in versions.items():
        text = (root / "packages" / package / "CHANGELOG.md").read_text(encoding="utf-8")
        wrong += wrong_changelog(text, package, version)
    return wrong + (check(dist, versions) if dist.is_dir() else [f"there is no folder {dist}: run nox -s build"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path, help="the folder that holds the built files, and nothing else")
    parser.add_argument("--package", action="append", choices=sorted(EXPECTED), help="only this one; may be repeated")
    parser.add_argument("--publish", action="store_true", help="publish when nothing is wrong")
    options = parser.parse_args()
    packages = options.package or list(EXPECTED)
    if wrong := problems(ROOT, options.dist, packages):
        print(*wrong, sep="\n", file=sys.stderr)
        print(f"nothing is published: {len(wrong)} findings", file=sys.stderr)
        return 1
    files = [
        str(options.dist / name)
        for package in packages
        for name in file_names(package, declared_version(ROOT / "packages" / package))
    ]
    print("publishing:" if options.publish else "would publish:", *files, sep="\n  ", flush=True)
    return subprocess.run(["uv", "publish", *files], check=False).returncode if options.publish else 0


if __name__ == "__main__":
    sys.exit(main())
