from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_says() -> None:
    [source] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(source, {})
    said = re.findall(r"^print\(.*\)  # (.*?)(?::.*)?$", source, re.MULTILINE)
    assert printed.getvalue().split("\n") == [*said, ""]
