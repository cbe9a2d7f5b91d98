"""Tables in terminals of any width, and in pipes."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
from rdna_bench import decode_cells
from rdna_bench.cli import app
from rdna_bench.fitted import PIPE_WIDTH, Fitted
from rdna_bench.published import published_counts, published_times
from rich import box
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

NAMES = ("alpha", "beta", "gamma", "delta")


def shown(width: int, expendable: tuple[str, ...] = ("gamma", "beta")) -> str:
    table = Table(title="greek", box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for name in NAMES:
        table.add_column(name, no_wrap=True, justify="right")
    table.add_row("12345678", "23456789", "34567890", "45678901")
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(Fitted(table, expendable))
    return console.export_text()


def test_all_columns_where_there_is_room() -> None:
    text = shown(60)
    assert all(name in text for name in NAMES)
    assert "left out" not in text


@pytest.mark.parametrize(("width", "gone"), [(40, ["gamma"]), (24, ["gamma", "beta"])])
def test_columns_are_left_out_in_their_order_and_named(width: int, gone: list[str]) -> None:
    text = " ".join(shown(width).split())
    headings = text.split("─")[0]
    assert [name for name in NAMES if name not in headings] == [name for name in NAMES if name in gone]
    assert f"left out for want of room: {', '.join(gone)}; a wider" in text
    assert "12345678" in text
    assert "45678901" in text
    assert "…" not in text


def test_cells_are_folded_where_nothing_else_helps() -> None:
    text = shown(12)
    assert "cells are folded" in " ".join(text.split())
    digits = "".join(character for character in text.split("cells")[0] if character.isdigit())
    assert sorted(digits) == sorted("12345678" + "45678901")
    assert "…" not in text


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode_cells, "published_times", lambda: published_times()[:1])
    monkeypatch.setattr(decode_cells, "published_counts", lambda: published_counts()[8:10])


@pytest.mark.usefixtures("few_cells")
def test_a_table_of_cells_in_a_pipe_and_in_a_narrow_terminal() -> None:
    wide, narrow = (
        CliRunner().invoke(app, ["decode", "--table"], env={"COLUMNS": columns}).stdout for columns in (None, "80")
    )
    assert "…" not in wide + narrow
    assert "left out for want" not in wide
    assert max(map(len, narrow.splitlines())) <= 80 < max(map(len, wide.splitlines())) <= PIPE_WIDTH
    assert all(heading in wide for heading in ("LDS/key", "WMMA", "stalled", "instr/key"))
    assert "left out for want of room: LDS/key, WMMA, stalled" in narrow
    for heading in ("modelled", "published", "ratio", "14/2 x 64, 1 new", "requested"):
        assert heading in narrow


def test_a_real_pipe() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "rdna_bench", "decode", "--context", "64", "--features"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    headings = "features workgroups wave-instructions added transcendental LDS bytes requested of scratch besides"
    assert headings in [" ".join(line.split()) for line in done.stdout.splitlines()]
