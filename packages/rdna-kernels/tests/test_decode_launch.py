"""What a call launches: build, grid, arguments, memory, scratch; on an executor that only takes notes."""

from __future__ import annotations

import dataclasses
import math
import threading
from typing import Any

import numpy as np
import pytest
from fake_catalogue import fake_catalogue
from hypothesis import given, settings
from hypothesis import strategies as st
from problem import make_problem, nan_filled
from rdna_kernels import Catalogue, LaunchRecord, MissingBuildError, decode_attention
from rdna_registry import KernelVariant, key_block, load, provenance, select
from recording_executor import RecordingExecutor


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return fake_catalogue(tmp_path_factory.mktemp("objects"))


@pytest.fixture
def executor(catalogue: Catalogue) -> RecordingExecutor:
    return RecordingExecutor(catalogue)


def address(array: np.ndarray[Any, Any]) -> int:
    return int(array.__array_interface__["data"][0])


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 70), min_size=1, max_size=3),
    gqa=st.integers(1, 32),
    num_kv_heads=st.integers(1, 3),
    tokens=st.integers(1, 8),
    pages=st.integers(1, 4),
    head_size=st.sampled_from([64, 128]),
    window=st.sampled_from([0, 1, 40]),
    layout=st.sampled_from(["HND", "NHD"]),
    dtype=st.sampled_from(["float16", "bfloat16"]),
)
def test_arguments_describe_the_arrays(
    catalogue: Catalogue, lengths: list[int], gqa: int, num_kv_heads: int, tokens: int, pages: int, **shape: Any
) -> None:
    executor = RecordingExecutor(catalogue)
    problem = make_problem(
        lengths, gqa=gqa, num_kv_heads=num_kv_heads, max_query_len=tokens, page_size=16 * pages, **shape
    )
    q, kv, table = problem.q, problem.kv_cache, problem.block_table
    out = problem.run(executor)
    (launch,) = executor.launches
    entry = select(
        gqa * num_kv_heads, num_kv_heads, shape["head_size"], tokens, 16 * pages, 1, shape["window"],
        shape["dtype"], len(lengths) > 1,
    )  # fmt: skip
    assert launch["name"] == entry.build.name
    # As many segments as there would be of a sequence that fills its row of the block table.
    blocks = -(-table.shape[1] * 16 * pages // key_block(entry))
    segments = max(1, min(entry.max_segments, blocks // entry.min_segment_blocks))
    assert launch["grid"] == (segments, num_kv_heads * entry.row_groups, len(lengths))
    assert launch["block"] == 32 * entry.waves
    memory = launch["memory"]
    expected = {
        "q": address(q),
        "kv_cache": address(kv),
        "block_table": address(table),
        "seq_lens": address(problem.seq_lens),
        "out": address(out),
        "partial_acc": address(memory[5][1]),
        "partial_max": address(memory[6][1]),
        "partial_sum": address(memory[7][1]),
        "counters": address(memory[8][1]),
        "table_columns": problem.block_table.shape[1],
        "num_kv_heads": num_kv_heads,
        "gqa": gqa,
        "max_query_len": tokens,
        "page_size": 16 * pages,
        "window": shape["window"],
        "row_groups": entry.row_groups,
        "max_segments": segments,
        "min_segment_blocks": entry.min_segment_blocks,
        **dict.fromkeys(("sinks", "alibi_slopes", "plan", "lse", "features"), 0),
        **dict.fromkeys(("slope_factor", "softcap", "softcap_inverse"), 0.0),
        "scale_log2": np.float32(math.log2(math.e) / math.sqrt(shape["head_size"])),
    }
    got = launch["arguments"]
    strides = {name: got.pop(name) for name in list(got) if "stride" in name}
    assert got == expected
    # The strides say where the last element of each array is.
    for name, array, axes in (
        ("q", q, ["q_stride_token", "q_stride_head"]),
        ("out", out, ["out_stride_token", "out_stride_head"]),
        ("kv_cache", kv, ["kv_stride_block", "kv_stride_head", "kv_stride_token"]),
        ("block_table", table, ["block_table_stride"]),
    ):
        last = tuple(size - 1 for size in array.shape)
        unit = 4 if name == "block_table" else 16
        reach = unit * sum(index * strides[axis] for index, axis in zip(last, axes, strict=False))
        end = np.lib.array_utils.byte_bounds(array)[1] - address(array)
        assert reach + (last[-1] + 1) * array.itemsize == end, name
    assert [name for name, _ in memory] == [
        "q", "kv_cache", "block_table", "seq_lens", "out", "partials", "partials", "partials", "counters",
    ]  # fmt: skip
    assert all(array is given for (_, array), given in zip(memory, [q, kv, table, problem.seq_lens, out], strict=False))
    slots = len(lengths) * num_kv_heads * entry.row_groups * entry.max_segments * entry.rows_padded
    assert [array.shape for _, array in memory[5:]] == [
        (slots, shape["head_size"]), (slots,), (slots,), (4 * len(lengths) * num_kv_heads * entry.row_groups,),
    ]  # fmt: skip


def test_scale_and_output_are_the_callers(executor: RecordingExecutor) -> None:
    problem = make_problem([40], scale=0.25)
    out = nan_filled(problem.q.shape, np.float16)
    assert problem.run(executor, out=out) is out
    assert executor.launches[0]["arguments"]["scale_log2"] == np.float32(0.25 * math.log2(math.e))
    made = problem.run(executor, out=None)
    assert made.shape == out.shape
    assert made.dtype == out.dtype
    assert address(made) % 16 == 0


def test_each_code_object_is_loaded_once(executor: RecordingExecutor) -> None:
    for length in (5, 20, 300):
        make_problem([length]).run(executor)
    assert executor.loads == 1
    make_problem([5], dtype="bfloat16").run(executor)
    assert executor.loads == 2


def test_the_record_says_what_ran(executor: RecordingExecutor) -> None:
    records: list[LaunchRecord] = []
    problem = make_problem([5, 6], gqa=7)
    problem.run(executor, report=records)
    problem.run(executor)
    entry = select(14, 2, 64, 1, 16, 1, 0, "fp16", True)
    workgroups = 2 * entry.row_groups * 2
    assert records == [
        LaunchRecord(
            operation="decode",
            build=entry.build.name,
            target="gfx1151",
            executor="recording",
            workgroups=workgroups,
            counts={"wave_instructions": 0},
            provenance=provenance(entry),
            device="recording",
            runtime="none",
        )
    ]
    assert records[0].provenance.startswith(("tuned: ", "derived: "))


def test_a_variant_overrides_the_registrys_choice(executor: RecordingExecutor) -> None:
    problem = make_problem([5000])
    chosen = select(8, 2, 64, 1, 16, 1, 0, "fp16", False)
    given = dataclasses.replace(chosen, max_segments=chosen.max_segments + 2, min_segment_blocks=3)
    records: list[LaunchRecord] = []
    problem.run(executor, variant=given, report=records)
    assert executor.launches[0]["grid"][0] == chosen.max_segments + 2
    assert executor.launches[0]["arguments"]["min_segment_blocks"] == 3
    assert records[0].provenance.startswith("given: ")


def test_a_build_that_is_not_there_is_named_and_nothing_is_made(executor: RecordingExecutor) -> None:
    problem = make_problem([40])
    chosen = select(8, 2, 64, 1, 16, 1, 0, "fp16", False)
    other = dataclasses.replace(chosen, waves=16, head_dim_split=2)
    with pytest.raises(MissingBuildError, match=f"{other.build.name} is not built for gfx1151"):
        problem.run(executor, variant=other, out=None)
    assert executor.made == []


def test_no_sequences_give_an_empty_output_without_a_launch(executor: RecordingExecutor) -> None:
    problem = make_problem([])
    assert problem.run(executor, out=None).shape == (0, 8, 64)
    assert executor.launches == []


def test_scratch_is_made_once_and_grows(executor: RecordingExecutor) -> None:
    small, large = make_problem([40]), make_problem([40, 9, 1])
    small.run(executor)
    small.run(executor)
    assert len(executor.made) == 4
    large.run(executor)
    assert len(executor.made) == 8
    small.run(executor)
    assert len(executor.made) == 8
    first, _, grown, last = (launch["memory"][8][1] for launch in executor.launches)
    assert address(first) != address(grown) == address(last)
    assert last.shape == first.shape


def test_scratch_of_a_launch_that_failed_is_not_used_again(executor: RecordingExecutor) -> None:
    problem = make_problem([40])
    problem.run(executor)
    executor.fail = True
    with pytest.raises(RuntimeError, match="the launch failed"):
        problem.run(executor)
    executor.fail = False
    problem.run(executor)
    assert len(executor.made) == 8


def test_the_callers_scratch_is_used_and_nothing_allocated(executor: RecordingExecutor) -> None:
    problem = make_problem([40, 3])
    entry = select(8, 2, 64, 1, 16, 1, 0, "fp16", True)
    (rows, width), _, counters = entry.scratch_shapes()
    scratch = (
        np.zeros((2 * rows + 5, width), np.float32),
        np.zeros(2 * rows, np.float32),
        np.zeros(2 * rows, np.float32),
        np.zeros(2 * counters + 1, np.int32),
    )
    problem.run(executor, scratch=scratch)
    assert executor.made == []
    for (_, used), given_array in zip(executor.launches[0]["memory"][5:], scratch, strict=True):
        assert address(used) == address(given_array)
    assert [used.shape[0] for _, used in executor.launches[0]["memory"][5:]] == [
        2 * rows,
        2 * rows,
        2 * rows,
        2 * counters,
    ]


def test_threads_do_not_share_scratch(catalogue: Catalogue) -> None:
    inside = threading.Barrier(2, timeout=30)

    class Meeting(RecordingExecutor):
        def launch(self, *arguments: Any, **options: Any) -> Any:
            inside.wait()
            return super().launch(*arguments, **options)

    executor = Meeting(catalogue)
    threads = [threading.Thread(target=make_problem([40]).run, args=(executor,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    one, other = (address(launch["memory"][8][1]) for launch in executor.launches)
    assert one != other


def test_views_with_gaps_are_taken_as_they_are(executor: RecordingExecutor) -> None:
    fused = np.zeros((3, 12 + 8, 64), np.float16)
    cache = np.zeros((6, 5, 16, 160), np.float16)[::2, 1:3, :, 16:144]
    tables = np.zeros((3, 9), np.int32)
    lengths = np.full(9, 5, np.int32)
    out = decode_attention(fused[:, :12], cache, tables[:, :2], lengths[3:6], executor=executor)
    assert out.shape == (3, 12, 64)
    arguments = executor.launches[0]["arguments"]
    assert (arguments["q_stride_token"], arguments["q_stride_head"]) == (20 * 64 // 8, 64 // 8)
    assert arguments["kv_stride_block"] == 2 * 5 * 16 * 160 // 8
    assert (arguments["kv_stride_head"], arguments["kv_stride_token"]) == (16 * 160 // 8, 160 // 8)
    assert arguments["block_table_stride"] == 9


def test_output_may_interleave_with_the_query(executor: RecordingExecutor) -> None:
    fused = np.zeros((3, 16, 64), np.float16)
    problem = make_problem([4, 4, 4])
    fused[:, :8] = problem.q
    problem.q = fused[:, :8]
    assert problem.run(executor, out=fused[:, 8:]).base is fused


@pytest.mark.parametrize("entry", [select(8, 2, 64, 1, 16, 1, 0, "fp16"), select(32, 8, 128, 4, 16, 1, 0, "bf16")])
def test_the_registry_finds_this_package(entry: KernelVariant) -> None:
    kernel: Any = load(entry)
    assert kernel is not None
    assert kernel.keywords == {"variant": entry, "max_query_len": entry.max_query_len, "window": entry.window}


def test_an_entry_without_a_build_has_no_kernel() -> None:
    assert load(dataclasses.replace(select(8, 2, 64, 1, 16, 1, 0, "fp16"), waves=16, head_dim_split=2)) is None
