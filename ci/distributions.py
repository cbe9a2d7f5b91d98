"""Checks the built files of every package: ``python ci/distributions.py DIST [SECOND_BUILD]``.

Names, tags, metadata, licence, contents, sizes, and the lower bounds between the packages; with a second folder, that
both hold the same bytes. twine and check-wheel-contents check what is common to all projects.
"""

from __future__ import annotations

import argparse
import email
import hashlib
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LICENCE = "Apache-2.0"
PURE = "py3-none-any"
NATIVE = "py3-none-manylinux_2_28_x86_64"


@dataclass(frozen=True)
class Expected:
    """What the files of one package are: its wheel's tag, most bytes of either file, and what the wheel must hold."""

    tag: str
    most_bytes: int
    holds: tuple[str, ...]


EXPECTED = {
    "rdna-registry": Expected(PURE, 1_000_000, ("decode_tables.py",)),
    "octave-quant": Expected(NATIVE, 2_000_000, ("*.so",)),
    "rdna-emulator": Expected(NATIVE, 6_000_000, ("*.so",)),
    "rdna-kernels": Expected(
        PURE, 6_000_000, ("_objects/manifest.json", "*.hsaco", "_sources/csrc/decode/decode.hip", "_sources/cmake/*")
    ),
    "rdna-vllm": Expected(PURE, 500_000, ()),
    "rdna-bench": Expected(PURE, 3_000_000, ("cli.py",)),
}
SOURCE_HOLDS = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO")
UNWANTED = ("__pycache__", ".git", ".venv", ".cache", "build", "dist")


def file_names(package: str, version: str) -> tuple[str, str]:
    """The exact names of a package's source distribution and wheel."""
    stem = f"{package.replace('-', '_')}-{version}"
    return f"{stem}.tar.gz", f"{stem}-{EXPECTED[package].tag}.whl"


def wheel_metadata(wheel: Path) -> Message:
    """The METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return email.message_from_bytes(archive.read(name))


def wrong_names(folder: Path, versions: dict[str, str]) -> list[str]:
    """One line where the folder's files are not exactly those of the packages at these versions."""
    wanted = {name for package, version in versions.items() for name in file_names(package, version)}
    found = {path.name for path in folder.iterdir() if path.name != ".gitignore"}
    return [f"{folder} lacks {name}" for name in sorted(wanted - found)] + [
        f"{folder} holds {name}, which is no file of these packages and versions" for name in sorted(found - wanted)
    ]


def wrong_metadata(package: str, version: str, metadata: Message) -> list[str]:
    """One line for each field that is missing or differs."""
    name = f"{package} {version}"
    wanted = {"Name": package, "Version": version, "License-Expression": LICENCE, "Requires-Python": ">=3.10"}
    wrong = [
        f"{name}: {field} is {metadata[field]!r}, not {value!r}"
        for field, value in wanted.items()
        if metadata[field] != value
    ]
    wrong += [f"{name}: no {field}" for field in ("Summary", "License-File") if not metadata[field]]
    if not str(metadata.get_payload()).strip():
        wrong.append(f"{name}: no README in its metadata")
    return wrong


def wrong_bounds(package: str, metadata: Message, versions: dict[str, str]) -> list[str]:
    """One line for each requirement on a sibling that is not ">=" the sibling's version that is tried beside it.

    What is older than the file in the folder is tried by nobody, so no package may say that it suffices. `nox -s build`
    installs each wheel beside these very files, which tries the lower bounds; while all are first versions there are no
    older siblings to install.
    """
    wrong = []
    for text in metadata.get_all("Requires-Dist", []):
        requirement = Requirement(text)
        sibling = canonicalize_name(requirement.name)
        if sibling not in versions:
            continue
        built = Version(versions[sibling])
        lowest = [Version(bound.version) for bound in requirement.specifier if bound.operator == ">="]
        if lowest != [built] or built not in requirement.specifier:
            wrong.append(f"{package} requires {text!r}; {sibling} {built} is what it is tried with: write >={built}")
    return wrong


def matches(name: str, pattern: str) -> bool:
    return Path(name).match(pattern)


def wrong_wheel(package: str, wheel: Path) -> list[str]:
    """One line for each file that a wheel lacks or should not hold."""
    module = package.replace("-", "_")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    information = f"{wheel.name.split('-')[0]}-{wheel.name.split('-')[1]}.dist-info"
    wrong = [
        f"{wheel.name} holds {name}, outside of {module}"
        for name in names
        if name.split("/")[0] not in (module, information)
    ]
    wanted: tuple[str, ...] = (f"{module}/__init__.py", f"{module}/py.typed", f"{information}/licenses/LICENSE")
    wanted += tuple(f"{module}/{name}" if not name.startswith("*") else name for name in EXPECTED[package].holds)
    wrong += [f"{wheel.name} lacks {name}" for name in wanted if not any(matches(found, name) for found in names)]
    return wrong + wrong_parts(wheel, names)


def wrong_source(sdist: Path) -> list[str]:
    """One line for each file that a source distribution lacks or should not hold."""
    with tarfile.open(sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    wrong = [f"{sdist.name} lacks {name}" for name in SOURCE_HOLDS if name not in names]
    wrong += [
        f"{sdist.name} has no {folder}/" for folder in ("src", "tests") if not any(n.startswith(folder) for n in names)
    ]
    return wrong + wrong_parts(sdist, names)


def wrong_parts(archive: Path, names: list[str]) -> list[str]:
    """One line for each name that has a part of the working tree that is not for others."""
    return [f"{archive.name} holds {name}" for name in names if set(name.split("/")) & set(UNWANTED)]


def wrong_sizes(package: str, files: list[Path]) -> list[str]:
    most = EXPECTED[package].most_bytes
    return [
        f"{path.name} has {path.stat().st_size} bytes, at most {most} are allowed"
        for path in files
        if path.stat().st_size > most
    ]


def differing(first: Path, second: Path) -> list[str]:
    """One line for each wheel or source distribution that two folders do not hold with the same bytes."""

    def digests(folder: Path) -> dict[str, str]:
        files = [path for pattern in ("*.whl", "*.tar.gz") for path in folder.glob(pattern)]
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    ours, theirs = digests(first), digests(second)
    if not ours:
        return [f"{first} holds no built files"]
    return [
        f"{name} differs between two builds" + wheel_difference(first / name, second / name)
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    ]


def wheel_difference(first: Path, second: Path) -> str:
    """The members of two wheels that differ, in words."""
    if first.suffix != ".whl" or not first.exists() or not second.exists():
        return ""
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        sums = [{member.filename: member.CRC for member in archive.infolist()} for archive in (one, other)]
    members = sorted(name for name in sums[0].keys() | sums[1].keys() if sums[0].get(name) != sums[1].get(name))
    return f": {', '.join(members[:5]) or 'only in order or attributes'}"


def versions_of(folder: Path) -> dict[str, str]:
    """The version of each package whose wheel the folder holds."""
    return {str(m["Name"]): str(m["Version"]) for m in map(wheel_metadata, sorted(folder.glob("*.whl")))}


def check(folder: Path, versions: dict[str, str]) -> list[str]:
    """Everything that is wrong with the files of these packages, one line each."""
    wrong = wrong_names(folder, versions)
    for package, version in versions.items():
        sdist, wheel = (folder / name for name in file_names(package, version))
        if not (sdist.exists() and wheel.exists()):
            continue
        metadata = wheel_metadata(wheel)
        wrong += wrong_metadata(package, version, metadata) + wrong_bounds(package, metadata, versions)
        wrong += wrong_wheel(package, wheel) + wrong_source(sdist) + wrong_sizes(package, [sdist, wheel])
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path, help="the folder of the built files")
    parser.add_argument("second", type=Path, nargs="?", help="a folder of a second build of the same commit")
    options = parser.parse_args()
    versions = versions_of(options.dist)
    wrong = [f"{options.dist} has no wheel of {package}" for package in EXPECTED.keys() - versions.keys()]
    wrong += check(options.dist, {package: version for package, version in versions.items() if package in EXPECTED})
    if options.second is not None:
        wrong += differing(options.dist, options.second)
    for line in wrong:
        print(line, file=sys.stderr)
    for path in sorted(options.dist.glob("*")):
        print(f"{path.stat().st_size:>9} bytes  {path.name}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
