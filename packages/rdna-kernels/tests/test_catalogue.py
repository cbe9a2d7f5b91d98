from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_catalogue import entry, fake_catalogue
from rdna_kernels import Catalogue, MissingBuildError
from rdna_kernels.catalogue import nearest
from rdna_registry import TARGETS, builds


def test_installed_objects_are_those_that_the_registry_asks_for() -> None:
    catalogue = Catalogue.installed()
    assert catalogue is Catalogue.installed()
    assert catalogue.targets == tuple(sorted(target.name for target in TARGETS))
    assert catalogue.compiler
    for target in catalogue.targets:
        wanted = {build.name: build.configuration for build in builds(target)}
        assert {record.name for record in catalogue.records if record.target == target} == set(wanted)
        for name, configuration in wanted.items():
            record = catalogue.record(name, target)
            code = catalogue.code(name, target)
            assert code.startswith(b"\x7fELF")
            assert (record.operation, record.configuration) == ("decode", configuration)
            assert (record.scratch_bytes, record.vgpr_spills, record.sgpr_spills) == (0, 0, 0)
            assert record.waves_per_simd >= 1
            assert 0 < record.code_bytes < len(code)


def test_what_is_not_built_is_named_with_what_is(tmp_path: Path) -> None:
    catalogue = fake_catalogue(tmp_path)
    with pytest.raises(MissingBuildError, match="no kernel is built for gfx1150; built targets: gfx1151"):
        catalogue.code("decode_h64", "gfx1150")
    with pytest.raises(
        MissingBuildError, match=r"decode_h64 is not built for gfx1151; \d+ builds are, the nearest decode_h"
    ):
        catalogue.record("decode_h64", "gfx1151")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("decode_h64_r16_w16_s0_p1_l0_d0_bf16", ["decode_h64_r16_w8_s0_p1_l0_d0_bf16"]),
        (
            "decode_h160_r16_w4_s0_p0_l1_d0_fp16",
            ["decode_h192_r16_w4_s0_p0_l1_d0_fp16", "decode_h128_r16_w4_s0_p0_l1_d0_fp16"],
        ),
        (
            "decode_h1024_r16_w4_s0_p0_l1_d0_fp16",
            ["decode_h512_r16_w4_s0_p0_l1_d0_fp16", "decode_h256_r16_w4_s0_p0_l1_d0_fp16"],
        ),
    ],
)
def test_the_nearest_builds_to_one_that_is_not_there(name: str, wanted: list[str]) -> None:
    built = [build.name for build in builds()]
    assert nearest(name, built)[: len(wanted)] == wanted
    assert len(nearest(name, built)) == 3
    assert nearest(name, []) == []


@pytest.mark.parametrize("content", ["garbage", "[]", '{"name": "a"}'])
def test_a_damaged_record_of_the_users_builds_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"compiler": "c", "builds": [entry("a", "gfx1151")]}))
    (tmp_path / "user" / "gfx1151").mkdir(parents=True)
    (tmp_path / "user" / "gfx1151" / "b.json").write_text(content)
    with pytest.raises(MissingBuildError, match=r"b\.json .* cannot be read .*build --clean"):
        _ = Catalogue(tmp_path, tmp_path / "user").records


def test_an_empty_folder_and_a_lost_object_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingBuildError, match=r"there are no built kernels.*uv sync"):
        _ = Catalogue(tmp_path).records
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(MissingBuildError, match="there are no built kernels"):
        _ = Catalogue(tmp_path).records
    (tmp_path / "manifest.json").write_text(json.dumps({"compiler": "c", "builds": [entry("a", "gfx1151")]}))
    with pytest.raises(
        MissingBuildError, match=r"a is listed for gfx1151, .* cannot be read .*/a\.hsaco came with.*uv"
    ):
        Catalogue(tmp_path).code("a", "gfx1151")
