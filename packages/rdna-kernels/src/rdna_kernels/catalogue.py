"""The built code objects: which builds exist for which target, and their bytes."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdna_registry import BUILDABLE_TARGETS, TARGETS, Build, builds

from rdna_kernels.errors import MissingBuildError
from rdna_kernels.user_folder import user_folder

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

MANIFEST = "manifest.json"
_COMPILED_TARGETS = frozenset(target.name for target in (*TARGETS, *BUILDABLE_TARGETS))


@dataclass(frozen=True)
class BuildRecord:
    """One built code object: its configuration and what the compiler spent on it.

    Registers are per wave (VGPR of 32 lanes x 4 bytes), LDS and scratch in bytes (a workgroup's, a lane's), code in
    bytes. They are those of the kernel of the build's name; `features_kernel` has the same, by name, of the kernel for
    calls with features, if the object holds one.
    """

    name: str
    operation: str
    configuration: Mapping[str, Any]
    target: str
    vgpr: int
    sgpr: int
    lds_bytes: int
    scratch_bytes: int
    vgpr_spills: int
    sgpr_spills: int
    waves_per_simd: int
    code_bytes: int
    compiler: str
    features_kernel: Mapping[str, int] | None = None


class Catalogue:
    """The code objects under one folder: `manifest.json` and `<target>/<build name>.hsaco`.

    `Catalogue.installed()` is the one that the package brings. Another folder of the same form (builds of your own, of
    a changed source, for a target that is not installed) can be given to an executor:
    `EmulatedExecutor(catalogue=...)`.
    """

    def __init__(self, folder: Path | Traversable, user: Path | None = None) -> None:
        """`user` is a folder that `python -m rdna_kernels build` fills: `<target>/<build name>.json` and `.hsaco`."""
        self.folder = folder
        self.user = user

    @staticmethod
    @lru_cache(maxsize=1)
    def installed() -> Catalogue:
        """The code objects that are installed with this package, and those that its user has built."""
        return Catalogue(files("rdna_kernels") / "_objects", user_folder())

    @cached_property
    def compiler(self) -> str:
        """The compiler that built the objects, as the manifest names it."""
        return str(self._manifest["compiler"])

    @cached_property
    def records(self) -> tuple[BuildRecord, ...]:
        """Every build of the manifest, in its order, then those of the user."""
        records = [BuildRecord(**entry) for entry in self._manifest["builds"]]
        keys = {(record.name, record.target) for record in records}
        return (*records, *(record for key, record in self._built_by_user.items() if key not in keys))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The targets that have at least one build, sorted."""
        return tuple(sorted({record.target for record in self.records}))

    @property
    def built_targets(self) -> str:
        """The targets for a message: their names, or "none" where nothing is built."""
        try:
            return ", ".join(self.targets) or "none"
        except MissingBuildError:
            return "none"

    def record(self, name: str, target: str) -> BuildRecord:
        """The record of a build for a target; MissingBuildError, with what there is, when it does not exist."""
        found = self._by_key.get((name, target))
        if found is None and self.user is not None:
            self._look_again()
            found = self._by_key.get((name, target))
        if found is None:
            raise MissingBuildError(self._missing(name, target))
        return found

    def code(self, name: str, target: str) -> bytes:
        """The code object (an ELF file's bytes) of a build for a target; MissingBuildError when it does not exist."""
        try:
            return self.file(name, target).read_bytes()
        except OSError as error:
            raise MissingBuildError(
                f"{name} is listed for {target}, but its object cannot be read ({error}): {self.mend(name, target)}"
            ) from error

    def file(self, name: str, target: str) -> Path | Traversable:
        """Where the code object of a build for a target lies; MissingBuildError when there is no such build."""
        record = self.record(name, target)
        users = self.user is not None and record is self._built_by_user.get((name, target))
        folder = self.user if self.user is not None and users else self.folder
        return folder / target / f"{name}.hsaco"

    def mend(self, name: str, target: str) -> str:
        """What to do about a code object that is of no use, for a message: it begins with the file."""
        file = self.file(name, target)
        if self.user is not None and file == self.user / target / f"{name}.hsaco":
            command = build_command(name, target) or "python -m rdna_kernels build"
            return f"{file} was built on this machine: remove it, and build it again with `{command}`"
        return f"{file} came with rdna-kernels: `uv sync --reinstall-package rdna-kernels`, or install the wheel again"

    def _look_again(self) -> None:
        """Forget what the user's folder held: another process may have built since."""
        for cached in ("_built_by_user", "records", "targets", "_by_key"):
            self.__dict__.pop(cached, None)

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        file = self.folder / MANIFEST
        try:
            manifest: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise MissingBuildError(
                f"there are no built kernels: {file} cannot be read ({error}); in a checkout `uv sync` builds them, "
                "elsewhere install the rdna-kernels wheel"
            ) from error
        return manifest

    @cached_property
    def _built_by_user(self) -> dict[tuple[str, str], BuildRecord]:
        found = sorted(self.user.glob("*/*.json")) if self.user is not None else []
        records = map(_read_record, found)
        return {(record.name, record.target): record for record in records}

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], BuildRecord]:
        return {(record.name, record.target): record for record in self.records}

    def _missing(self, name: str, target: str) -> str:
        if target not in self.targets:
            return (
                f"no kernel is built for {target}; built targets: {self.built_targets} ({self.folder})"
                f"{_how_to_build(name, target)}"
            )
        built = [record.name for record in self.records if record.target == target]
        return (
            f"{name} is not built for {target}; {len(built)} builds are, the nearest {', '.join(nearest(name, built))} "
            f"({self.folder}). `rdna-bench builds` lists them; a checkout builds what rdna_registry.builds() lists "
            f"with `uv sync`{_how_to_build(name, target)}"
        )


def _read_record(file: Path) -> BuildRecord:
    try:
        return BuildRecord(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise MissingBuildError(
            f"{file} of the builds made on this machine cannot be read ({error}): remove it, or all of them with "
            "`python -m rdna_kernels build --clean`, and build again"
        ) from error


def build_command(name: str, target: str) -> str | None:
    """The command that makes a build for a target on the user's machine; None for what the sources do not make."""
    try:
        wanted = Build.from_name(name)
    except ValueError:
        return None
    if target not in _COMPILED_TARGETS or wanted not in builds(head_sizes=(wanted.head_size,)):
        return None
    return f"python -m rdna_kernels build --target {target} --head-size {wanted.head_size}"


def _how_to_build(name: str, target: str) -> str:
    command = build_command(name, target)
    return f". To build it here: {command}" if command else ""


def nearest(name: str, built: Iterable[str]) -> list[str]:
    """Up to three of the `built` names that are most like a build's: of its head size, else of those next to it."""
    try:
        wanted, others = Build.from_name(name), [Build.from_name(other) for other in built]
    except ValueError:  # not the registry's names
        return sorted(built)[:3]

    def distance(build: Build) -> tuple[bool, float, float, int]:
        changes = sum(
            getattr(build, knob) != getattr(wanted, knob) for knob in ("head_dim_split", "prefetch", "v_in_lds")
        )
        octaves = abs(math.log2(build.waves / wanted.waves))
        return build.dtype is not wanted.dtype, abs(math.log2(build.rows_padded / wanted.rows_padded)), octaves, changes

    by_head_size: dict[int, list[Build]] = defaultdict(list)
    for build in sorted(others, key=distance):
        by_head_size[build.head_size].append(build)
    same = by_head_size.get(wanted.head_size)
    if same is None:
        sizes = sorted(by_head_size, key=lambda size: abs(math.log2(size / wanted.head_size)))
        same = [by_head_size[size][0] for size in sizes]
    return [build.name for build in same[:3]]
