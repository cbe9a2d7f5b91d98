"""The compiled core: that an installation holds it, and that it asks the machine for no more than its wheel says."""

from __future__ import annotations

import platform
from importlib.resources import as_file, files

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

VARIANTS = ("v3", "v4") if platform.machine() == "x86_64" else ("native",)
GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
OLDEST_GLIBC = (2, 28)  # of the manylinux tag
LIBRARIES = (*(f"librdna_emulator_{variant}.so" for variant in VARIANTS), "libamdhip64_emulated.so")


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_needs_an_old_glibc_and_nothing_else(name: str) -> None:
    resource = files("rdna_emulator") / "_core" / name
    with as_file(resource) as path, path.open("rb") as stream:
        elf = ELFFile(stream)
        dynamic = elf.get_section_by_name(".dynamic")
        assert isinstance(dynamic, DynamicSection)
        needed = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
        assert {name for name in needed if not name.startswith("ld-linux")} <= GLIBC
        versions = elf.get_section_by_name(".gnu.version_r")
        assert isinstance(versions, GNUVerNeedSection)
        names = {auxiliary.name for _, auxiliaries in versions.iter_versions() for auxiliary in auxiliaries}
        numbers = {tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in names if name != "GLIBC_PRIVATE"}
        assert numbers
        assert max(numbers) <= OLDEST_GLIBC
