"""python -m rdna_kernels build: what it builds, where, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import rdna_kernels.__main__ as command
from device_build import PACKAGE
from fake_catalogue import write_catalogue
from problem import make_problem
from rdna_kernels import Catalogue, EmulatedExecutor, MissingBuildError
from rdna_kernels.user_build import BuildError, build, compiler
from rdna_kernels.user_folder import cache_folder, user_folder
from rdna_registry import Build, builds
from verdict import entry_of

NAME = "decode_h64_r16_w4_s0_p0_l0_d0_fp16"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ROCM_PATH", raising=False)


def test_build_list_and_clean(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = write_catalogue(tmp_path / "installed", "gfx1151", {})
    monkeypatch.setattr(Catalogue, "installed", lambda: catalogue)
    monkeypatch.setattr(command, "sources_folder", lambda: PACKAGE)
    monkeypatch.setattr(command, "user_folder", lambda: user_folder(PACKAGE))
    monkeypatch.setattr(command, "builds", lambda head_sizes: [Build.from_name(NAME)])
    assert command.main(["build", "--target", "gfx1150"]) == 0
    told = capsys.readouterr()
    assert "untested" in told.err
    assert f"[1/1] {NAME} for gfx1150" in told.err
    folder = user_folder(PACKAGE)
    assert folder is not None
    assert sorted(path.name for path in folder.rglob("*")) == [f"{NAME}.hsaco", f"{NAME}.json", "gfx1150"]
    found = Catalogue(catalogue.folder, folder)
    assert found.targets == ("gfx1150",)
    assert found.code(NAME, "gfx1150").startswith(b"\x7fELF")
    assert command.main(["build", "--target", "gfx1150"]) == 0
    assert capsys.readouterr().out.startswith("0 built")
    (folder / "gfx1150" / f"{NAME}.hsaco").unlink()
    assert command.main(["build", "--target", "gfx1150"]) == 0
    assert capsys.readouterr().out.startswith("1 built")
    assert found.code(NAME, "gfx1150").startswith(b"\x7fELF")
    assert command.main(["build", "--list"]) == 0
    assert f"gfx1150 {NAME}" in capsys.readouterr().out
    assert command.main(["build", "--clean"]) == 0
    assert not cache_folder().exists()


def test_a_head_size_that_no_wheel_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A call says which command helps; after that command the same call runs, in the same process."""
    folder = user_folder(PACKAGE)
    catalogue = Catalogue(write_catalogue(tmp_path / "installed", "gfx1151", {}).folder, folder)
    monkeypatch.setattr(Catalogue, "installed", lambda: catalogue)
    monkeypatch.setattr(command, "sources_folder", lambda: PACKAGE)
    monkeypatch.setattr(command, "user_folder", lambda: folder)
    problem = make_problem([70, 3], head_size=72, max_query_len=2)
    executor = EmulatedExecutor(checks="all")
    with pytest.raises(MissingBuildError) as missing:
        problem.run(executor)
    told = re.search(
        r"To build it here: python -m rdna_kernels (build --target gfx1151 --head-size 72)$", str(missing.value)
    )
    assert told is not None
    every = builds(head_sizes=(72,))
    assert {wanted.head_size for wanted in every} == {72}
    needed = entry_of(problem).build
    assert needed in every
    monkeypatch.setattr(command, "builds", lambda head_sizes: [needed] if head_sizes == (72,) else [])
    assert command.main(told[1].split()) == 0
    assert problem.error(executor) <= problem.tolerance
    assert command.main(["build", "--list"]) == 0
    assert f"gfx1151 {needed.name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "gfx1170"], "invalid choice: 'gfx1170'"),
        (["--head-size", "70"], "70 given; allowed: a multiple of 8 up to 512, for rows are loaded 16 bytes at a time"),
        (["--head-size", "520"], "520 given; allowed: a multiple of 8 up to 512"),
        (["--head-size", "large"], "'large' is no whole number"),
    ],
)
def test_what_is_refused_by_name(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command.main(["build", *arguments])
    assert message in capsys.readouterr().err


def test_a_source_that_does_not_compile_leaves_nothing(tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    for name in ("csrc", "cmake"):
        shutil.copytree(PACKAGE / name, sources / name)
    (sources / "csrc" / "decode" / "decode.hip").write_text("#error no\n")
    with pytest.raises(BuildError, match="does not compile"):
        build(sources, tmp_path / "out", [Build.from_name(NAME)], "gfx1151", lambda _: None)
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["gfx1151"]


def test_the_clang_of_a_rocm_makes_the_same_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a stand-in: a folder laid out as ROCm's, whose programs are those of ziglang."""
    build(PACKAGE, tmp_path / "ziglang", [Build.from_name(NAME)], "gfx1151", lambda _: None)
    called = tmp_path / "called"
    clang, linker, _ = compiler()
    for program, words in (("clang", clang), ("ld.lld", linker)):
        file = tmp_path / "rocm" / "llvm" / "bin" / program
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\necho {program} >> {called}\nexec {shlex.join(words)} "$@"\n')
        file.chmod(0o755)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    build(PACKAGE, tmp_path / "out", [Build.from_name(NAME)], "gfx1151", lambda _: None)
    assert called.read_text().split() == ["clang", "ld.lld"]
    made, wanted = (tmp_path / folder / "gfx1151" / f"{NAME}.hsaco" for folder in ("out", "ziglang"))
    assert made.read_bytes() == wanted.read_bytes()
    assert json.loads(made.with_suffix(".json").read_text())["compiler"] == "ROCm"


def test_rocm_without_clang(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"there is no .*clang"):
        compiler()


def test_another_source_has_another_folder(tmp_path: Path) -> None:
    for name in ("csrc", "cmake"):
        shutil.copytree(PACKAGE / name, tmp_path / name)
    assert user_folder(tmp_path) == user_folder(PACKAGE)
    (tmp_path / "csrc" / "decode" / "decode.hip").write_text("")
    assert user_folder(tmp_path) != user_folder(PACKAGE)
    assert user_folder(tmp_path / "absent") is None
