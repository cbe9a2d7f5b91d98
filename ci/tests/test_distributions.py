"""What ci/distributions.py says of good and of wrong files, and ci/release.py of changelogs, tags and trees."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest
from distributions import EXPECTED, check, differing, file_names, versions_of
from release import problems, wrong_changelog

VERSION = "0.1.0"
DATED = f"# Changelog\n\n## {VERSION} (2026-01-31)\n\n- First version.\n"


def metadata(package: str, *requirements: str) -> str:
    lines = ["Metadata-Version: 2.4", f"Name: {package}", f"Version: {VERSION}", "Summary: Something"]
    lines += ["License-Expression: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.10"]
    return "\n".join([*lines, *(f"Requires-Dist: {text}" for text in requirements), "", "A readme"])


def write_files(folder: Path, package: str, *requirements: str, extra: str = "") -> None:
    """A source distribution and a wheel with the least that the checks ask for, and one more member."""
    folder.mkdir(exist_ok=True)
    sdist, wheel = file_names(package, VERSION)
    module = package.replace("-", "_")
    information = f"{module}-{VERSION}.dist-info"
    held = [name if not name.startswith("*") else f"a{name[1:]}" for name in EXPECTED[package].holds]
    members = [*(f"{module}/{name}" for name in ("__init__.py", "py.typed", *held)), f"{information}/licenses/LICENSE"]
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        for name in [*members, *filter(None, [extra])]:
            archive.writestr(zipfile.ZipInfo(name), "")
        archive.writestr(zipfile.ZipInfo(f"{information}/METADATA"), metadata(package, *requirements))
    names = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", "src/a.py", "tests/test_a.py")
    with tarfile.open(folder / sdist, "w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"{module}-{VERSION}/{name}"), io.BytesIO())


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    write_files(folder, "rdna-registry", "numpy>=2.0")
    write_files(folder, "rdna-vllm", "rdna-registry>=0.1")
    return folder


def test_good_files_pass(dist: Path) -> None:
    versions = versions_of(dist)
    assert versions == {"rdna-registry": VERSION, "rdna-vllm": VERSION}
    assert check(dist, versions) == []


@pytest.mark.parametrize(
    ("requirement", "extra", "finding"),
    [
        ("rdna-registry", "", "write >=0.1.0"),
        ("rdna-registry>=0.0.9", "", "write >=0.1.0"),
        ("rdna-registry>=0.2", "", "write >=0.1.0"),
        ("numpy", "tests/test_a.py", "outside of rdna_vllm"),
        ("numpy", "rdna_vllm/__pycache__/a.pyc", "__pycache__"),
    ],
)
def test_wrong_wheel_is_named(dist: Path, requirement: str, extra: str, finding: str) -> None:
    write_files(dist, "rdna-vllm", requirement, extra=extra)
    findings = check(dist, versions_of(dist))
    assert len(findings) == 1
    assert finding in findings[0]


def test_wrong_file_names_are_named(dist: Path) -> None:
    wheel = dist / file_names("rdna-vllm", VERSION)[1]
    wheel.rename(dist / wheel.name.replace("any", "linux_x86_64"))
    assert [line.split()[1] for line in check(dist, versions_of(dist))] == ["lacks", "holds"]


def test_two_builds_that_differ(dist: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    shutil.copytree(dist, second)
    assert differing(dist, second) == []
    write_files(second, "rdna-vllm", "rdna-registry>=0.1", extra="rdna_vllm/more.py")
    assert [line.split(": ")[1] for line in differing(dist, second)] == ["rdna_vllm/more.py"]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (DATED, None),
        (DATED.replace("2026-01-31", "unreleased"), "unreleased"),
        (DATED.replace(VERSION, "0.2.0"), "needs '## 0.1.0 (a date)'"),
        (DATED.replace("- First version.", ""), "says nothing"),
        ("# Changelog\n", "needs"),
    ],
)
def test_changelog(text: str, finding: str | None) -> None:
    findings = wrong_changelog(text, "rdna-vllm", VERSION)
    assert (findings == []) if finding is None else (finding in findings[0])


def test_release_of_a_small_tree(dist: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for package in ("rdna-registry", "rdna-vllm"):
        folder = root / "packages" / package
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{package}"\nversion = "{VERSION}"\n')
        (folder / "CHANGELOG.md").write_text(DATED)

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@localhost"]
        subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "Two packages.")
    packages = ["rdna-registry", "rdna-vllm"]
    assert [line.split()[-1] for line in problems(root, dist, packages)] == [f"{p}-v{VERSION}" for p in packages]
    for package in packages:
        git("tag", f"{package}-v{VERSION}")
    assert problems(root, dist, packages) == []
    (root / "new").write_text("")
    assert "not committed: new" in problems(root, dist, packages)[0]
    assert "run nox -s build" in problems(root, tmp_path / "absent", packages)[-1]
