"""Tensors: on the CPU they run emulated, on a ROCm device on that GPU; and the operators that torch knows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hip_stand_in import GLOBAL_CAPTURE, OnDevice, StandIn, stand_in
from oracle import relative_error
from problem import Problem, make_problem
from rdna_kernels import ArgumentError, EmulatedExecutor, ExecutorError, HipExecutor, LaunchRecord, decode_attention
from rdna_kernels.executors import hip
from rdna_registry import make_scratch, select
from verdict import lse_is_right, plan_of

torch: Any = pytest.importorskip("torch", reason="torch is in a dependency group of its own")

ENTRY = select(8, 2, 64, 1, 16, 1, 0, "fp16", True)


def tensor(array: np.ndarray[Any, Any]) -> Any:
    """A tensor over the array's memory."""
    if array.dtype == np.dtype(ml_dtypes.bfloat16):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def values(out: Any) -> np.ndarray[Any, Any]:
    numbers: np.ndarray[Any, Any] = out.detach().float().numpy()
    return numbers


def tensors(problem: Problem) -> tuple[Any, ...]:
    return tuple(map(tensor, (problem.q, problem.kv_cache, problem.block_table, problem.seq_lens)))


def finite(problem: Problem) -> Problem:
    problem.kv_cache[~np.isfinite(problem.kv_cache.astype(np.float32))] = 0
    return problem


def test_importing_the_package_does_not_import_torch() -> None:
    program = "import sys, rdna_kernels; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["HND", "NHD"])
def test_tensors_of_the_cpu_run_emulated(dtype: str, layout: str) -> None:
    problem = make_problem([300, 17, 0], dtype=dtype, layout=layout, max_query_len=2)
    records: list[LaunchRecord] = []
    q, *rest = tensors(problem)
    out = decode_attention(q, *rest, max_query_len=2, report=records)
    assert out.dtype == q.dtype
    assert relative_error(values(out), problem.exact()) <= problem.tolerance
    assert records[0].executor == "emulated"
    given = torch.full_like(out, float("nan"))
    scratch = make_scratch(select(8, 2, 64, 2, 16, 1, 0, dtype, True), "cpu", 3)
    executor = EmulatedExecutor("gfx1100", checks="all")
    assert decode_attention(q, *rest, max_query_len=2, out=given, scratch=scratch, executor=executor) is given
    assert relative_error(values(given), problem.exact()) <= problem.tolerance


def test_tensors_and_arrays_of_the_host_go_together() -> None:
    problem = make_problem([40])
    q, cache, table, _ = tensors(problem)
    out = decode_attention(q, problem.kv_cache, table, problem.seq_lens)
    assert isinstance(out, torch.Tensor)
    out = decode_attention(problem.q, cache, problem.block_table, problem.seq_lens)
    assert isinstance(out, np.ndarray)
    assert relative_error(out, problem.exact()) <= problem.tolerance


def test_values_of_tensors_are_checked() -> None:
    problem = make_problem([40, 3])
    problem.seq_lens[1] = 9999
    with pytest.raises(ArgumentError, match=r"seq_lens\[1\] = 9999 needs"):
        decode_attention(*tensors(problem))


def test_tensors_that_no_executor_reaches() -> None:
    problem = make_problem([40])
    q, cache, table, lengths = tensors(problem)
    with pytest.raises(ExecutorError, match=r"q: torch\.Tensor on meta.*different places"):
        decode_attention(q.to("meta"), cache, table, lengths)
    with pytest.raises(ExecutorError, match=r"seq_lens: torch\.Tensor on meta"):
        decode_attention(q, cache, table, lengths.to("meta"))
    with pytest.raises(ExecutorError, match="cannot be reached"):
        decode_attention(q.to_sparse(), cache, table, lengths)


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning")
@pytest.mark.parametrize("name", ["q", "seq_lens"])
def test_masked_tensors_are_refused(name: str) -> None:
    given = dict(zip(("q", "kv_cache", "block_table", "seq_lens"), tensors(make_problem([40])), strict=True))
    given[name] = torch.masked.masked_tensor(given[name], torch.ones_like(given[name], dtype=torch.bool))
    with pytest.raises(ArgumentError, match=f"^{name} is a MaskedTensor, and kernels read no mask"):
        decode_attention(**given)


@pytest.mark.parametrize(
    "change",
    [{"softcap": "3"}, {"scale": "1"}, {"window": 1.5}, {"window": "1"}, {"q": [1.0]}, {"seq_lens": 3}, {"plan": [1]}],
    ids=str,
)
def test_the_operator_names_what_has_a_wrong_kind(change: dict[str, Any]) -> None:
    from rdna_kernels import torch_ops

    assert torch_ops is not None
    given = dict(zip(("q", "kv_cache", "block_table", "seq_lens"), tensors(make_problem([40])), strict=True))
    with pytest.raises(RuntimeError, match=f"for argument '{next(iter(change))}' but instead found type"):
        torch.ops.rdna.decode_attention(**{**given, **change})


@pytest.fixture
def rocm(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """The stand-in runtime, and a torch that says it is a ROCm build whose tensors of the CPU are device 0's."""

    class OnHip(torch.Tensor):  # type: ignore[misc]  # torch is Any here
        @property
        def device(self) -> Any:
            return torch.device("cuda:0")

    streams = {0: 0}
    monkeypatch.setattr(torch.version, "hip", "7.0.51831")
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", streams.__getitem__, raising=False)
    hip._torch_stream.cache_clear()
    with stand_in(RDNA_EMULATED_CHECKS="all") as runtime:
        runtime.tensor_type, runtime.streams = OnHip, streams
        yield runtime
    hip._torch_stream.cache_clear()


def on_hip(runtime: Any, array: Any) -> Any:
    """A tensor in the memory of a device array: the stand-in's devices share the host's."""
    import ctypes

    memory = (ctypes.c_uint8 * array.nbytes).from_address(array.address)
    kind = {"float16": torch.float16, "int32": torch.int32, "float32": torch.float32}[array.dtype.name]
    flat = torch.frombuffer(memory, dtype=kind).reshape(array.shape)
    return flat.as_subclass(runtime.tensor_type)


def test_tensors_of_a_rocm_device_run_there_on_torchs_stream(rocm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem([40, 3])
    with monkeypatch.context() as without:
        without.setattr(torch.version, "hip", None)
        ready = OnDevice(HipExecutor(), problem, ENTRY)
    stream = rocm.make("hipStreamCreateWithFlags", 1)
    rocm.streams[0] = stream.value
    arrays = [on_hip(rocm, array) for array in ready.arrays]
    out, *scratch = (on_hip(rocm, array) for array in (ready.out, *ready.scratch))
    records: list[LaunchRecord] = []
    assert decode_attention(*arrays, out=out, scratch=tuple(scratch), report=records) is out
    rocm.call("hipStreamSynchronize", stream)
    assert (records[0].executor, records[0].target) == ("hip", "gfx1151")
    assert ready.error <= problem.tolerance
    with pytest.raises(ExecutorError, match=r"kv_cache: torch\.Tensor on cpu.*different places"):
        decode_attention(arrays[0], tensor(problem.kv_cache), *arrays[2:])


def test_torch_may_allocate_an_output_while_it_captures_a_graph(rocm: Any) -> None:
    executor = HipExecutor()
    stream = rocm.make("hipStreamCreateWithFlags", 1)
    rocm.call("hipStreamBeginCapture", stream, GLOBAL_CAPTURE)
    assert executor.may_allocate(stream.value, kept=False)
    assert not executor.may_allocate(stream.value, kept=True)
    rocm.make_graph(stream)


def test_tensors_of_another_vendors_device_are_refused() -> None:
    class OnCuda(torch.Tensor):  # type: ignore[misc]  # torch is Any here
        @property
        def device(self) -> Any:
            return torch.device("cuda:0")

    q, *rest = tensors(make_problem([40]))
    with pytest.raises(ExecutorError, match=r"OnCuda on cuda:0, kv_cache: torch\.Tensor on cpu"):
        decode_attention(q.as_subclass(OnCuda), *rest)


@pytest.fixture
def operators() -> Any:
    from rdna_kernels import torch_ops

    assert torch_ops is not None
    return torch.ops.rdna


def test_the_operators_answer(operators: Any) -> None:
    problem = make_problem([40, 3], max_query_len=2, window=30, scale=0.3)
    arrays = tensors(problem)
    out = operators.decode_attention(*arrays, 2, 0.3, 30)
    assert relative_error(values(out), problem.exact()) <= problem.tolerance
    given = torch.full_like(out, float("nan"))
    operators.decode_attention_out(*arrays, given, max_query_len=2, scale=0.3, window=30)
    assert torch.equal(given, out)
    with pytest.raises(ArgumentError, match="scratch has 1 of its 4 tensors"):
        operators.decode_attention_out(*arrays, given, partial_acc=torch.zeros(4, 64))


def feature_tensors(problem: Problem) -> dict[str, Any]:
    """The arguments of a call with every feature but lse."""
    assert problem.sinks is not None
    assert problem.alibi_slopes is not None
    plan = tensor(plan_of(problem, 8))
    slopes = tensor(problem.alibi_slopes)
    return {"sinks": tensor(problem.sinks), "softcap": problem.softcap, "alibi_slopes": slopes, "plan": plan}


def test_the_operators_serve_features(operators: Any) -> None:
    problem = make_problem([700, 3], max_query_len=2, sinks=True, softcap=5.0, alibi=True)
    arrays, features = tensors(problem), feature_tensors(problem)
    out = operators.decode_attention(*arrays, 2, **features)
    assert relative_error(values(out), problem.exact()) <= problem.tolerance
    given, lse = torch.full_like(out, float("nan")), torch.full(out.shape[:2], float("nan"))
    operators.decode_attention_out(*arrays, given, 2, **features, lse=lse)
    assert torch.equal(given, out)
    assert lse_is_right(values(lse), problem.exact_with_lse()[1])


def test_opcheck(operators: Any) -> None:
    problem = finite(make_problem([40, 3]))
    arrays = tensors(problem)
    torch.library.opcheck(operators.decode_attention.default, arrays)
    given = torch.zeros_like(arrays[0])
    torch.library.opcheck(operators.decode_attention_out.default, (*arrays, given))
    names = ("partial_acc", "partial_max", "partial_sum", "counters")
    scratch = {name: torch.zeros_like(part) for name, part in zip(names, make_scratch(ENTRY, "cpu", 2), strict=True)}
    torch.library.opcheck(operators.decode_attention_out.default, (*arrays, given), scratch)
    features = feature_tensors(finite(make_problem([40, 3], sinks=True, softcap=5.0, alibi=True)))
    torch.library.opcheck(operators.decode_attention.default, arrays, features)
    features["lse"] = torch.zeros(given.shape[:2])
    torch.library.opcheck(operators.decode_attention_out.default, (*arrays, given), features)


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile(operators: Any, dynamic: bool) -> None:
    problem = finite(make_problem([40, 3]))
    q, cache, table, lengths = tensors(problem)

    sinks = torch.linspace(-1, 1, q.shape[1])

    def step(q: Any, out: Any) -> Any:
        doubled = operators.decode_attention(q * 2, cache, table, lengths, sinks=sinks, softcap=9.0) + 1
        lse = torch.zeros(q.shape[:2])
        operators.decode_attention_out(q, cache, table, lengths, out, lse=lse)
        return doubled, out * 3, lse

    compiled = torch.compile(step, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for _ in range(2):
        out, wanted_out = torch.zeros_like(q), torch.zeros_like(q)
        got, wanted = compiled(q, out), step(q, wanted_out)
        assert torch.equal(out, wanted_out)
        assert all(torch.equal(one, other) for one, other in zip(got, wanted, strict=True))
