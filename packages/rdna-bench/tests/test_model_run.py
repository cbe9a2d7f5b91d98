"""The main job: SmolLM2 answers with every attention through our machine code, as it does on NumPy attention."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from rdna_bench.model_file import ModelFile
from rdna_bench.model_run import GenerateOptions, ModelRun
from rdna_bench.transformer import Transformer
from rdna_emulator import CHECKS
from rdna_registry import TARGETS


def answer(file: ModelFile, model: Transformer, options: GenerateOptions) -> ModelRun:
    """Generate and verify; the text as streamed is the run's text."""
    run = ModelRun(options, file)
    run.load(model=model)
    assert "".join(run.stream()) == run.text
    run.verify()
    return run


@pytest.mark.parametrize("target", [target.name for target in TARGETS])
def test_a_short_answer(model_file: ModelFile, model: Transformer, target: str) -> None:
    options = GenerateOptions("What is the capital of France?", max_tokens=12, target=target, verify=True)
    run = answer(model_file, model, options)
    assert run.text == "The capital of France is Paris."
    assert run.passed
    assert run.run.finish == "end of text"


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "page_size"), [("fp16", 16), ("bf16", 48)])
def test_forty_tokens_with_all_checks(model_file: ModelFile, model: Transformer, dtype: str, page_size: int) -> None:
    options = GenerateOptions(
        "Explain why the sky is blue.", dtype=dtype, page_size=page_size, checks=CHECKS, verify=True, seed=3
    )
    run = answer(model_file, model, options)
    assert len(run.run.tokens) == 40
    assert run.comparison is not None
    assert run.comparison.passed, run.comparison
    if dtype == "fp16":
        assert run.tokens is not None
        assert run.tokens.equal, run.tokens


@pytest.mark.usefixtures("model_file")
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
def test_memory_of_the_command() -> None:
    command = [sys.executable, "-m", "rdna_bench", "generate", "Hello", "--tokens", "2", "--verify"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_maxrss * 1024 < 2.5e9
