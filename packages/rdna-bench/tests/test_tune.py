"""``rdna-bench tune``: the command, resumed, interrupted and out of time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import invoke
from rdna_bench.decode_inputs import DecodeInputs, DecodeProblem
from rdna_bench.tune_search import MOST_LOSS
from rdna_bench.tune_shapes import shapes_from_options, shapes_from_table
from rdna_registry import KernelVariant
from rdna_registry.decode_modelled import ModelledRow, modelled_table, parse_modelled_rows

SHAPE = ("--num-q-heads", "14", "--num-kv-heads", "2", "--head-size", "64", "--seq-len", "48", "--seq-len", "256")


def tune(folder: Path, *arguments: str, status: int = 0) -> Any:
    result = invoke("tune", *SHAPE, "--state", folder / "state.jsonl", *arguments)
    assert result.exit_code == status, result.output
    return result


def tune_json(folder: Path, *arguments: str) -> Any:
    return json.loads(tune(folder, "--json", *arguments).stdout)


def test_a_run_and_its_table(tmp_path: Path) -> None:
    other = ModelledRow(KernelVariant(64, 16, 2, 1, 16, 1), 9, "another", "a test")
    old = ModelledRow(KernelVariant(64, 14, 2, 1, 16, 1), 9, "the same shape", "a test")
    table = tmp_path / "rows.csv"
    table.write_text(modelled_table([other, old]), encoding="utf-8")
    run = tune_json(tmp_path, "--output", str(table))
    [shape] = run["shapes"]
    assert run["complete"]
    assert (run["contexts"], run["target"]) == ([48, 256], "gfx1151")
    before, after = KernelVariant.from_name(shape["entry_before"]), KernelVariant.from_name(shape["entry"])
    assert shape["gain_percent"] > 0
    for context, launch in shape["launches"].items():
        assert launch["modelled_microseconds"] <= MOST_LOSS * shape["launches_before"][context]["modelled_microseconds"]
    assert (before.num_q_heads, before.waves) == (14, 4)
    kept, row = parse_modelled_rows("rows.csv", table.read_text(encoding="utf-8"))[::-1]
    assert kept.models == "another"
    assert row.variant == after
    assert row.gain_percent == shape["gain_percent"]
    for part in ("the emulated executor (rdna-emulator ", run["date"], "gfx1151", "contexts 48, 256"):
        assert part in row.source
    # Everything is known now, and the answer is the same.
    again = tune_json(tmp_path)
    assert again["launches"]["made"] == 0
    assert again["shapes"] == run["shapes"]
    shown = tune(tmp_path).output
    for part in ("Spearman", "14/2 x 64, 1 new", "nothing ran on a GPU", f"{shape['gain_percent']} %", "0 launches"):
        assert part in shown


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "whole").mkdir()
    whole = tune_json(tmp_path / "whole")
    launches = iter(range(7))
    measure = DecodeInputs.measure

    def interrupted(*arguments: Any) -> Any:
        if next(launches, None) is None:
            raise KeyboardInterrupt
        return measure(*arguments)

    monkeypatch.setattr(DecodeInputs, "measure", interrupted)
    assert "the same command goes on" in tune(tmp_path, status=130).output
    assert len((tmp_path / "state.jsonl").read_bytes().splitlines()) == 1 + 7
    monkeypatch.setattr(DecodeInputs, "measure", measure)
    run = tune_json(tmp_path)
    assert run["launches"]["made"] == whole["launches"]["made"] - 7
    assert run["shapes"] == whole["shapes"]


def test_launches_of_other_code_are_made_again(tmp_path: Path) -> None:
    first = tune_json(tmp_path)
    state = tmp_path / "state.jsonl"
    state.write_text(state.read_text().replace('"code":"', '"code":"0'), encoding="utf-8")
    second = tune_json(tmp_path)
    assert second["launches"]["made"] == first["launches"]["made"]
    assert second["launches"]["in_state"] == 2 * first["launches"]["made"]


def test_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr("rdna_bench.tune_run.time", SimpleNamespace(monotonic=lambda: next(clock)))
    run = tune_json(tmp_path, "--budget", "5.5", "--max-query-len", "1", "--max-query-len", "2")
    assert not run["complete"]
    assert run["launches"]["made"] == 5
    assert run["shapes"] == []
    shown = tune(tmp_path, "--budget", "5.5").output
    assert "the budget is spent: 1 shape left" in shown
    assert re.search(r"^5 launches; .*state\.jsonl holds 10$", shown, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seq-len", "0"), "it must be 1 or more"),
        (("--budget", "0"), "it must be above 0"),
        (("--page-size", "24"), "a multiple of 16"),
        (("--max-query-len", "60"), "a context of 48 tokens is shorter than the query of 14/2 x 64, 60 new"),
        (("--head-size", "64", "--page-size", "16", "--page-size", "16", "--page-size", "16"), "is given 2 times"),
        (("--seq-len", "1048577"), "at most 1048576 are tuned for"),
        (("--output", "."), ". is no file"),
        (("--output", "no_such_folder/x.csv"), "is no folder that this user can write to"),
        (("--table", "missing.csv"), "no table missing.csv: name a CSV file, published or registry"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_input(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in " ".join(tune(tmp_path, *arguments, status=2).output.replace("│", " ").split())
    assert not (tmp_path / "state.jsonl").exists()


@pytest.mark.parametrize("content", ["my notes", '{"modelled_microseconds":1}', "notes\nof two lines\n"])
def test_a_state_that_is_another_file_stays_as_it_is(tmp_path: Path, content: str) -> None:
    (tmp_path / "state.jsonl").write_text(content, encoding="utf-8")
    shown = " ".join(tune(tmp_path, status=2).output.replace("│", " ").split())
    assert "line 1 is no line of a tuning state" in shown
    assert (tmp_path / "state.jsonl").read_text(encoding="utf-8") == content


def test_one_file_for_two_things(tmp_path: Path) -> None:
    assert "is given twice" in tune(tmp_path, "--output", str(tmp_path / "state.jsonl"), status=2).output.replace(
        "\n", " "
    )


def test_an_output_that_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    shown = tune(tmp_path, "--output", str(tmp_path / "notes.csv"), status=2).output
    assert "notes.csv line 1, column 1: 'a'; rule: the header is" in shown
    assert (tmp_path / "notes.csv").read_text(encoding="utf-8") == "a,b\n1,2\n"


def test_shapes_of_options() -> None:
    shapes = shapes_from_options("bf16", num_q_heads=[8, 16], num_kv_heads=[2], head_size=[64], max_query_len=[1, 4])
    assert shapes == [DecodeProblem(8, 2, 64, 1, dtype="bf16"), DecodeProblem(16, 2, 64, 4, dtype="bf16")]


def test_shapes_of_tables(tmp_path: Path) -> None:
    assert len(shapes_from_table("published", "fp16")) == 52
    registry = shapes_from_table("registry", "fp16")
    assert len(registry) == 320
    assert {shape.window for shape in registry} >= {0, 512}
    file = tmp_path / "shapes.csv"
    file.write_text(
        "num_kv_heads,num_q_heads,head_size,max_query_len,window,note\n2,8,64,1,512,x\n2,8,64,1,,y\n2,8,64,1,0,z\n",
        encoding="utf-8",
    )
    assert shapes_from_table(str(file), "fp16") == [DecodeProblem(8, 2, 64, 1, 512), DecodeProblem(8, 2, 64, 1)]
    file.write_text("num_q_heads,num_kv_heads,head_size,max_query_len\n8,two,64,1\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"shapes\.csv line 2: .* are not all integers"):
        shapes_from_table(str(file), "fp16")
    file.write_text("num_q_heads,head_size\n8,64\n", encoding="utf-8")
    with pytest.raises(ValueError, match="has no column num_kv_heads, max_query_len; it needs num_q_heads, "):
        shapes_from_table(str(file), "fp16")
