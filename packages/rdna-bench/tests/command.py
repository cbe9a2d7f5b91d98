"""The command ``rdna-bench``, run in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rdna_bench.cli import app
from typer.testing import CliRunner


def invoke(*arguments: str | Path) -> Any:
    """Run the command; a wide terminal keeps messages on one line."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "400"})


def invoke_json(*arguments: str | Path) -> dict[str, Any]:
    """What the command says with ``--json``; nothing may go wrong."""
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    value: dict[str, Any] = json.loads(result.stdout)
    return value


def assert_refused(message: str, *arguments: str) -> None:
    """The command ends with exit code 2 and a message, and prints nothing on stdout."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
