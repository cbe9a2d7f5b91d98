from __future__ import annotations

import logging
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from rdna_vllm import VllmMissingError, register


@pytest.fixture(autouse=True)
def _as_in_a_new_process() -> None:
    register.cache_clear()


def test_vllm_finds_it() -> None:
    [plugin] = entry_points(group="vllm.general_plugins", name="rdna_vllm")
    assert plugin.load() is register


def test_without_vllm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(VllmMissingError, match=f"vLLM is not installed in {sys.prefix}: install vllm"):
        register()


def test_with_vllm_it_says_once_that_nothing_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "vllm").mkdir()
    (tmp_path / "vllm" / "__init__.py").write_text("raise AssertionError('the plugin must not import vLLM')")
    monkeypatch.syspath_prepend(tmp_path)
    with caplog.at_level(logging.WARNING):
        register()
        register()
    [record] = caplog.records
    assert "has no attention backend yet" in record.getMessage()
