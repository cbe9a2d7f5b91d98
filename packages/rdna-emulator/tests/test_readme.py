"""The README's example, as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from device_compiler import compile_hip

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def _block(language: str) -> str:
    [block] = re.findall(rf"```{re.escape(language)}\n(.*?)```", README, re.DOTALL)
    return str(block)


def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    (tmp_path / "saxpy.hsaco").write_bytes(compile_hip(_block("c++"), "gfx1151", tmp_path, "-g", "-O3"))
    script = tmp_path / "example.py"
    script.write_text(_block("python"), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert _comparable(done.stdout) == _comparable(_block("text"))


def _comparable(text: str) -> str:
    """Without addresses, and without the lines that the tests put before a source."""
    return re.sub(r"at \S*\.hip:\d+", "at a line", re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)).strip()
