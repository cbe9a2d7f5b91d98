"""``rdna-bench octave``: the transcriptions give the golden slots, and the command says what it measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import assert_refused, invoke
from octave_quant import CACHE_DTYPES, OctaveFormat, core, numpy_path
from rdna_bench.plain_octave import dequantize_plainly, quantize_plainly

GOLDEN = Path(__file__).parents[2] / "octave-quant" / "tests" / "data"
SPREAD = {"median", "lower", "upper"}
SMALL = ("--tokens", "9", "--heads", "2", "--head-size", "64", "--repeats", "3")


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # the rows with NaN and Inf
@pytest.mark.parametrize("name", CACHE_DTYPES)
@pytest.mark.parametrize("file", ["d128_r64.npz", "d256_r64.npz"])
def test_the_transcription_equals_the_golden_vectors(file: str, name: str) -> None:
    if not (GOLDEN / file).is_file():
        pytest.skip("the golden vectors of octave-quant's tests are not here")
    data = np.load(GOLDEN / file)
    fmt = OctaveFormat.from_cache_dtype(name, int(data["head_size"]), int(data["rope_dim"]))
    name = name.removeprefix("octave_")
    wanted = data[f"{name}_slots"]
    rows = dict(zip(data["case_names"].tolist(), data["case_rows"].tolist(), strict=True))
    left_out = np.concatenate([np.arange(*rows[case]) for case in ("scale_overflow", "nan_inf")])
    exact = np.setdiff1d(np.arange(len(wanted)), left_out)
    slots = quantize_plainly(data["K"][:, None], data["V"][:, None], fmt)[:, 0]
    np.testing.assert_array_equal(slots[exact], wanted[exact])
    key, value = dequantize_plainly(wanted[exact, None], fmt)
    np.testing.assert_array_equal(key[:, 0], data[f"{name}_k"][exact])
    np.testing.assert_array_equal(value[:, 0], data[f"{name}_v"][exact])


@pytest.mark.parametrize("name", CACHE_DTYPES)
def test_torch_gives_the_slots_of_the_transcription(name: str) -> None:
    torch = pytest.importorskip("torch")
    from rdna_bench.torch_octave import dequantize_in_torch, quantize_in_torch

    fmt = OctaveFormat.from_cache_dtype(name, 128, 64)
    key, value = np.random.default_rng(1).standard_normal((2, 20, 3, 128)).astype(np.float16)
    slots = quantize_plainly(key, value, fmt)
    packed = quantize_in_torch(torch.from_numpy(key), torch.from_numpy(value), fmt).numpy()
    # Another order of sums may move the last bit of a scale.
    assert (packed != slots).any(axis=-1).mean() < 0.1
    np.testing.assert_array_equal(packed[..., : fmt.off_scales], slots[..., : fmt.off_scales])
    for ours, theirs in zip(
        dequantize_in_torch(torch.from_numpy(slots), fmt), dequantize_plainly(slots, fmt), strict=True
    ):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-6)


@pytest.mark.parametrize("name", CACHE_DTYPES)
def test_json(name: str) -> None:
    result = invoke("octave", *SMALL, "--format", name, "--seed", "5", "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    run = json.loads(result.stdout)
    assert (run["command"], run["tokens"], run["heads"], run["cache_dtype"]) == ("octave", 9, 2, name)
    assert (run["slots"], run["input_bytes"]) == (18, 2 * 9 * 2 * 64 * 2)
    assert run["passed"]
    assert run["slots_off_plain"] <= 2
    assert run["path"] in ("core", "numpy")
    assert (run["why_no_core"] is None) == ("core" in run["implementations"])
    assert {"plain", "numpy"} <= set(run["implementations"])
    for name, one in run["implementations"].items():
        for figure in ("quantize_us", "dequantize_us", "quantize_plain_over_this", "dequantize_plain_over_this"):
            assert set(one[figure]) == SPREAD
            assert 0 < one[figure]["lower"] <= one[figure]["median"] <= one[figure]["upper"]
        if "torch" not in name:
            # The result is held in any case: K and V in fp32 are twice the input.
            assert one["dequantize_bytes"] >= 2 * run["input_bytes"]
            assert one["quantize_bytes"] >= run["slots"] * 56
    assert run["implementations"]["plain"]["quantize_plain_over_this"]["median"] == 1


def test_tables() -> None:
    result = invoke("octave", *SMALL)
    assert result.exit_code == 0, result.output
    for text in ("implementation", "plain", "numpy", "the same bytes on every path", "octave_quant.quantize uses"):
        assert text in result.stdout


def test_without_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "why_absent", lambda: "it is not built here")
    result = invoke("octave", *SMALL, "--json")
    assert result.exit_code == 0, result.output
    run = json.loads(result.stdout)
    assert run["why_no_core"] == "it is not built here"
    assert "core" not in run["implementations"]


def test_other_bytes_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = numpy_path.encode
    calls: list[int] = []

    def wrong(key: Any, value: Any, fmt: OctaveFormat, out: Any) -> None:
        encode(key, value, fmt, out)
        calls.append(1)
        out[0, 0, 0] ^= len(calls) & 1

    monkeypatch.setattr(numpy_path, "encode", wrong)
    result = invoke("octave", *SMALL, "--json")
    assert result.exit_code == 1
    assert not json.loads(result.stdout)["passed"]
    assert "verification failed" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--repeats", "2"], "2 given; it must be 3 or more"),
        (["--tokens", "0"], "0 given; it must be 1 or more"),
        (["--head-size", "65"], "head_size is 65; it must be a multiple of 64"),
        (["--rope-dim", "32"], "rope_dim is 32; it must be a multiple of 64"),
        (["--format", "octave_k2v2"], "cache dtype is 'octave_k2v2'; known are octave_k3v4"),
        (["--head-size", "192", "--format", "octave_k3v3_compact"], "a compact format needs a power of two"),
        (["--seed", "-1"], "-1 given; it must be 0 or more"),
    ],
)
def test_bad_options(arguments: list[str], message: str) -> None:
    assert_refused(message, "octave", *arguments)
