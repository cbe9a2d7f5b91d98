from __future__ import annotations

import re
from pathlib import Path

import pytest


def test_the_readmes_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    build, target, executor, error = capsys.readouterr().out.split()
    assert build.startswith("decode_h64_r16_")
    assert (target, executor) == ("gfx1151", "emulated")
    assert float(error) <= 1e-3
