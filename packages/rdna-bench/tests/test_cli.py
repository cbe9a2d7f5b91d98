"""The command line: results on a tiny model, verification that can fail, and every kind of bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import invoke, invoke_json
from rdna_emulator import CHECKS, CheckError, LaunchError
from rdna_kernels import ArgumentError, Catalogue, ExecutorError, UnsupportedError, decode_attention
from rdna_registry import DEFAULT_TARGET, TARGETS
from tiny_model import CONTEXT, write_tiny_model

PROMPT = "the thing that they thought"


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_generate(tiny_path: Path, dtype: str) -> None:
    result = invoke_json("generate", PROMPT, "--model", tiny_path, "--tokens", "3", "--dtype", dtype, "--verify")
    assert result["generated_tokens"] == len(result["tokens"]) == 3
    # Two layers; the chunks of the prompt, and a step for every token but the first.
    assert result["launches"] == 2 * (-(-result["prompt_tokens"] // 8) + 2)
    assert sum(build["launches"] for build in result["builds"]) == result["launches"]
    assert result["target"] == DEFAULT_TARGET
    assert result["executor"] == "emulated"
    assert result["wave_instructions"] > 1000 * result["launches"]
    assert result["bytes_touched"] >= result["bytes_needed"] > 0
    assert result["verify"]["passed"]
    assert result["verify"]["attention"]["calls"] == result["launches"]
    assert 0 < result["verify"]["attention"]["worst_relative_error"] <= result["verify"]["attention"]["tolerance"]
    assert result["verify"]["tokens"]["numpy_tokens"] == result["tokens"]


def test_generate_streams_text_and_a_summary(tiny_path: Path) -> None:
    arguments = ("generate", PROMPT, "--model", tiny_path, "--tokens", "3", "--checks", "waits,bounds")
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    text = invoke_json(*arguments)["text"]
    assert result.stdout.startswith(text + "\n\nmodel")
    assert "checks: waits, bounds" in result.stdout
    assert "decode_h64_" in result.stdout


def test_generate_does_not_depend_on_pages(tiny_path: Path) -> None:
    first, second = (
        invoke_json("generate", PROMPT, "--model", tiny_path, "--tokens", "4", "--page-size", size, "--seed", seed)
        for size, seed in (("16", "0"), ("48", "5"))
    )
    assert first["tokens"] == second["tokens"]


@pytest.mark.parametrize("target", [target.name for target in TARGETS])
def test_decode(target: str) -> None:
    result = invoke_json(
        *("decode", "--target", target, "--num-q-heads", "8", "--num-kv-heads", "2", "--max-query-len", "3"),
        *("--context", "70", "--num-seqs", "2", "--window", "33", "--page-size", "32", "--verify"),
    )
    assert result["verify"]["passed"]
    assert result["target"] == target
    assert result["launches"] == 1
    assert result["bytes_needed"] == 2 * (2 * 3 * 8 * 64 * 2 + 35 * 2 * 128 * 2 + 2 * 4)


def test_decode_with_all_checks() -> None:
    result = invoke_json("decode", "--context", "40", "--checks", "all")
    assert result["checks"] == list(CHECKS)


def test_decode_seed_draws_other_inputs() -> None:
    errors = [
        invoke_json("decode", "--context", "40", "--verify", "--seed", seed)["verify"]["worst_relative_error"]
        for seed in ("0", "0", "1")
    ]
    assert errors[0] == errors[1] != errors[2]


@pytest.fixture
def wrong_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention that forgets the newest key."""

    def wrong(q: Any, kv_cache: Any, block_table: Any, seq_lens: Any, **options: Any) -> Any:
        return decode_attention(q, kv_cache, block_table, seq_lens - np.int32(1), **options)

    monkeypatch.setattr("rdna_bench.attention.decode_attention", wrong)


@pytest.mark.usefixtures("wrong_kernel")
def test_verify_notices_a_wrong_kernel(tiny_path: Path) -> None:
    result = invoke("generate", PROMPT, "--model", tiny_path, "--tokens", "4", "--verify", "--json")
    assert result.exit_code == 1
    verify = json.loads(result.stdout)["verify"]
    assert not verify["passed"]
    assert verify["attention"]["calls_over_tolerance"] > 0
    assert not verify["tokens"]["equal"]
    assert verify["tokens"]["margin"] > 0
    assert "verification failed" in result.stderr

    result = invoke("decode", "--context", "40", "--verify")
    assert result.exit_code == 1
    assert "over the fp16 tolerance of 1e-03" in result.stdout


def test_a_finding_of_a_check(monkeypatch: pytest.MonkeyPatch, tiny_path: Path) -> None:
    def found(*arguments: Any, **options: Any) -> Any:
        raise CheckError("races: two waves wrote [0x10]")

    monkeypatch.setattr("rdna_bench.attention.decode_attention", found)
    for arguments in (["decode"], ["generate", PROMPT, "--model", tiny_path]):
        result = invoke(*arguments)
        assert result.exit_code == 1
        assert "CheckError: races: two waves wrote [0x10]" in result.stderr
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "exit_code", "message"),
    [
        (ArgumentError("q is small"), 2, "Invalid value: q is small"),
        (UnsupportedError("no sinks"), 2, "Invalid value: no sinks"),
        (LaunchError("grid is large"), 2, "Invalid value: grid is large"),
        (ExecutorError("the device is gone"), 1, "ExecutorError: the device is gone"),
    ],
)
def test_a_call_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, tiny_path: Path, error: Exception, exit_code: int, message: str
) -> None:
    def refused(*arguments: Any, **options: Any) -> Any:
        raise error

    monkeypatch.setattr("rdna_bench.attention.decode_attention", refused)
    for arguments in (["decode"], ["generate", PROMPT, "--model", tiny_path]):
        result = invoke(*arguments)
        assert result.exit_code == exit_code
        assert message in result.stderr
        assert result.stdout == ""


@pytest.mark.usefixtures("wrong_kernel")
def test_without_verify_nothing_is_compared() -> None:
    assert "verify" not in invoke_json("decode", "--context", "40")


def test_builds() -> None:
    records = Catalogue.installed().records
    result = invoke("builds")
    assert result.exit_code == 0, result.output
    for record in records:
        assert record.name in result.stdout
    assert f"{len(records)} builds" in result.stdout


def test_builds_of_one_target() -> None:
    result = invoke("builds", "--target", DEFAULT_TARGET, "--json")
    entries = json.loads(result.stdout)
    assert entries
    assert {entry["target"] for entry in entries} == {DEFAULT_TARGET}
    assert {entry["scratch_bytes"] for entry in entries} == {0}


COMMANDS = ("generate", "decode", "tune", "doctor", "builds", "plan", "overhead", "quality", "octave")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0
    assert f"Example: rdna-bench {command}" in result.stdout
    assert "--json" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate"], "Missing argument"),
        (["generate", ""], "the prompt is empty"),
        (["generate", " \n"], "the prompt is empty"),
        (["generate", "a\udcff"], r"the prompt 'a\udcff' is no valid UTF-8"),
        (["generate", "hi", "--target", "gfx906"], "target is 'gfx906'; allowed: one of gfx1151, gfx1100"),
        (["generate", "hi", "--dtype", "fp32"], "dtype is 'fp32'; it must be fp16 or bf16"),
        (["generate", "hi", "--checks", "bounds,luck"], "unknown check 'luck'; use none, all, or some of waits"),
        (["generate", "hi", "--checks", ""], "unknown check ''"),
        (["generate", "hi", "--page-size", "24"], "page size is 24; it must be a multiple of 16"),
        (["generate", "hi", "--page-size", "0"], "page size is 0; it must be a multiple of 16"),
        (["generate", "hi", "--tokens", "0"], "0 given; it must be 1 or more"),
        (["generate", "hi", "--tokens", "many"], "--tokens"),
        (["generate", "hi", "--seed", "-1"], "-1 given; it must be 0 or more"),
        (["generate", "hi", "--model", "no/such.gguf"], "no model file no/such.gguf"),
        (["decode", "--head-size", "65"], "head_size is 65; allowed: a multiple of 8 up to 512"),
        (["decode", "--max-query-len", "128"], "max_query_len is 128; allowed: 1 to 127"),
        (["decode", "--num-q-heads", "7", "--num-kv-heads", "2"], "num_q_heads is 7"),
        (["decode", "--context", "100000000"], "the KV cache would take"),
        (["decode", "--num-seqs", "100000", "--context", "16"], "num_seqs is 100000"),
        (["decode", "--num-q-heads", "70000", "--num-kv-heads", "70000", "--context", "16"], "num_kv_heads is 70000"),
        (["decode", "--num-q-heads", f"{10**30}", "--num-kv-heads", f"{10**30}"], f"num_kv_heads is {10**30}"),
        (["decode", "--num-q-heads", f"{10**30}", "--num-kv-heads", "1"], "allowed: at most 32 for each kv head"),
        (["decode", "--context", "16", "--window", f"{2**31}"], f"window is {2**31}; allowed: 0 to {2**31 - 1}"),
        (["decode", "--context", "16", "--seed", f"{2**70}"], f"seed is {2**70}; it may be an integer from 0"),
        (["decode", "--window", "-1"], "-1 given; it must be 0 or more"),
        (["builds", "--target", "gfx9"], "target is 'gfx9'; allowed: one of gfx1151, gfx1100"),
        (["nonsense"], "No such command 'nonsense'"),
    ],
)
def test_bad_input(arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_prompt_too_long_for_the_context(tiny_path: Path) -> None:
    result = invoke("generate", "a" * CONTEXT, "--model", tiny_path, "--tokens", "6")
    assert result.exit_code == 2
    assert f"with 6 tokens to generate, the model's context of {CONTEXT} leaves {CONTEXT - 6}" in result.stderr


def test_a_model_of_another_architecture(tmp_path: Path) -> None:
    result = invoke("generate", "hi", "--model", write_tiny_model(tmp_path / "m.gguf", architecture="gpt2"))
    assert result.exit_code == 2
    assert "architecture 'gpt2' is not served" in result.stderr


def test_a_model_file_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("no model")
    result = invoke("generate", "hi", "--model", path)
    assert result.exit_code == 2
    assert "is not a GGUF file" in result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [("builds",), ("builds", "--json")])
def test_output_that_cannot_be_written(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "rdna_bench", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "rdna-bench: stdout: No space left on device\n"
