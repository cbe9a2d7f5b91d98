"""``rdna-bench tune``: the command, resumed, interrupted and out of time."""

from __future__ import annotations

import json
import os
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
    other = ModelledRow(KernelVariant(64, 16, 2, 1, 16, 1), "gfx1151", 9, "another", "a test")
    old = ModelledRow(KernelVariant(64, 14, 2, 1, 16, 1), "gfx1151", 9, "the same shape", "a test")
    elsewhere = old._replace(target="gfx1100")
    table = tmp_path / "rows.csv"
    table.write_text(modelled_table([other, old, elsewhere]), encoding="utf-8")
    run = tune_json(tmp_path, "--output", str(table))
    [shape] = run["shapes"]
    assert run["complete"]
    assert (run["contexts"], run["target"]) == ([48, 256], "gfx1151")
    before, after = KernelVariant.from_name(shape["entry_before"]), KernelVariant.from_name(shape["entry"])
    assert shape["gain_percent"] > 0
    for context, launch in shape["launches"].items():
        assert launch["modelled_microseconds"] <= MOST_LOSS * shape["launches_before"][context]["modelled_microseconds"]
    assert (before.num_q_heads, before.waves) == (14, 4)
    row, *kept = parse_modelled_rows("rows.csv", table.read_text(encoding="utf-8"))
    assert [each._replace(place="") for each in kept] == [other, elsewhere]
    assert row.variant == after
    assert (row.target, row.gain_percent) == ("gfx1151", shape["gain_percent"])
    for part in ("the emulated executor (rdna-emulator ", run["date"], "contexts 48, 256"):
        assert part in row.source
    # Everything is known now, and the answer is the same.
    again = tune_json(tmp_path)
    assert again["launches"]["made"] == 0
    assert again["shapes"] == run["shapes"]
    shown = tune(tmp_path).output
    for part in ("Spearman", "14/2 x 64, 1 new", "nothing ran on a GPU", f"{shape['gain_percent']} %", "0 launches"):
        assert part in shown


def test_each_target_has_its_own_rows(tmp_path: Path) -> None:
    table, entries = tmp_path / "rows.csv", {}
    for target in ("gfx1100", "gfx1151"):
        (tmp_path / target).mkdir()
        run = tune_json(tmp_path / target, "--target", target, "--output", str(table))
        entries[target] = run["shapes"][0]["entry"]
    rows = parse_modelled_rows("rows.csv", table.read_text(encoding="utf-8"))
    assert [(row.target, row.variant.name) for row in rows] == sorted(entries.items(), reverse=True)


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
        (("--output", "."), "--output is ., which is no file: name one"),
        (("--output", "/dev/full"), "--output is /dev/full, which is no file: name one"),
        (("--output", "no_such_folder/x.csv"), "--output is no_such_folder/x.csv; there is no folder "),
        (("--output", "/proc/self/x.csv"), "--output is /proc/self/x.csv, which cannot be written ("),
        (("--state", "/dev/full"), "--state is /dev/full, which is no file: name one"),
        (("--state", "/proc/self/x"), "--state is /proc/self/x, which cannot be written ("),
        (("--num-q-heads", "7"), "7/2 x 64, 1 new: num_q_heads is 7; allowed: a multiple of num_kv_heads = 2"),
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
    file.write_text("num_q_heads,num_kv_heads,head_size,max_query_len\r\n8,2,64,1\r\n", encoding="utf-8-sig")
    assert shapes_from_table(str(file), "fp16") == [DecodeProblem(8, 2, 64, 1)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no column num_q_heads, num_kv_heads, head_size, max_query_len; it needs"),
        (b"num_q_heads,head_size\n8,64\n", "has no column num_kv_heads, max_query_len; it needs num_q_heads, "),
        (b"%\n", "shapes.csv has no shapes: below its header it needs a line for each"),
        (b"%\n8,two,64,1\n", "shapes.csv line 2: num_kv_heads is 'two'; it must be an integer, 1 or more"),
        (b"%\n8,2,64,1\n8,2,64,1e3\n", "line 3: max_query_len is '1e3'; it must be an integer, 1 or more"),
        (b"%\n-8,2,64,1\n", "line 2: num_q_heads is '-8'; it must be an integer, 1 or more"),
        (b"%,window\n8,2,64,1,-1\n", "line 2: window is '-1'; it must be an integer, 0 or more"),
        (b"%,page_size\n8,2,64,1,0\n", "line 2: page_size is '0'; it must be an integer, 1 or more"),
        (b"%\n8,2,64\n", "line 2 has no max_query_len; it must be an integer, 1 or more"),
        (b"%\n8,2,64,1,5\n", "line 2 has more values than the header has names"),
        (b"\x7fELF\x02\xff\x01", "shapes.csv, which is no text in UTF-8 (byte 5 is 0xff): name a text file"),
        (b"%\n8,2,64,#\n", "shapes.csv is no CSV file after line 1: field larger than field limit"),
    ],
    ids=str,
)
def test_a_table_of_no_shapes(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "shapes.csv"
    header = b"num_q_heads,num_kv_heads,head_size,max_query_len"
    file.write_bytes(content.replace(b"%", header).replace(b"#", 200_000 * b"1"))
    with pytest.raises(ValueError, match=re.escape(message)):
        shapes_from_table(str(file), "fp16")


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = os.write, [2_000]

    def write_some(descriptor: int, data: bytes) -> int:
        room[0] -= len(data)
        return write(descriptor, data[: max(len(data) + min(room[0], 0), 0)])

    monkeypatch.setattr(os, "write", write_some)
    failed = invoke("tune", *SHAPE, "--state", tmp_path / "state.jsonl")
    assert isinstance(failed.exception, OSError)
    assert failed.exception.filename == str(tmp_path / "state.jsonl")
    monkeypatch.setattr(os, "write", write)
    whole = (tmp_path / "state.jsonl").read_bytes().count(b"\n") - 1
    assert whole > 0
    run = tune_json(tmp_path)
    assert run["launches"]["made"] == run["launches"]["in_state"] - whole


def test_an_output_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_bytes(b"\xff\xfe")
    shown = tune(tmp_path, "--output", str(tmp_path / "rows.csv"), status=2).output.replace("\n", " ")
    assert "rows.csv, which is no text in UTF-8 (byte 0 is 0xff)" in shown
    assert [file.name for file in tmp_path.iterdir()] == ["rows.csv"]
