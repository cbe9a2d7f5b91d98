"""The compiled core and the NumPy path: the same bytes, and which of them is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from octave_quant import OctaveFormat, core, dequantize, numpy_path, path, quantize
from octave_quant.rows import Rows

FORMATS = [
    OctaveFormat(head_size, rope_dim, v_bits, compact)
    for head_size in range(64, 513, 64)
    for rope_dim in {0, 64, head_size}
    for v_bits in (3, 4)
    for compact in (False, True)
    if not compact or head_size & (head_size - 1) == 0
]
ELEMENTS = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}

needs_core = pytest.mark.skipif(core.why_absent() is not None, reason=f"no compiled core: {core.why_absent()}")


def vectors(rng: np.random.Generator, shape: tuple[int, ...], element: str, kind: str) -> NDArray[Any]:
    """Random vectors; ``kind`` is "bits" (anything, NaN and Inf among it), "scales", "ties" or "nonfinite"."""
    if kind == "bits":
        width = np.uint32 if element == "float32" else np.uint16
        return rng.integers(0, 1 << 8 * np.dtype(width).itemsize, shape, width).view(ELEMENTS[element])
    x = rng.standard_normal(shape, np.float32)
    if kind == "ties":
        x = np.sign(x) * (rng.random(shape) < rng.random())
    else:
        # Far past fp16 on both sides: subnormals, scales that saturate, and energies that overflow fp32.
        x = np.ldexp(x, rng.integers(-145, 125, (*shape[:-1], 1)) // rng.integers(1, 8)).astype(np.float32)
    if kind == "nonfinite":
        spoilt = rng.random(shape) < 0.01
        x[spoilt] = rng.choice(np.array([np.nan, np.inf, -np.inf], np.float32), int(spoilt.sum()))
    if element == "bfloat16":
        return (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    with np.errstate(over="ignore"):
        return x.astype(ELEMENTS[element])


def both_encode(key: Rows, value: Rows, fmt: OctaveFormat, num_threads: int | None = None) -> NDArray[np.uint8]:
    """The slots, which the two paths must agree on."""
    shape = (*key.values.shape[:2], fmt.slot_bytes)
    ours, theirs = np.full(shape, 1, np.uint8), np.full(shape, 2, np.uint8)
    core.encode(key, value, fmt, ours, num_threads=num_threads)
    numpy_path.encode(key, value, fmt, theirs)
    np.testing.assert_array_equal(ours, theirs)
    return ours


def both_decode(slots: NDArray[np.uint8], fmt: OctaveFormat, rotated: bool) -> None:
    ours, theirs = np.full((2, 2, *slots.shape[:2], fmt.head_size), 7, np.float32)
    core.decode(slots, fmt, rotated, ours[0], ours[1])
    numpy_path.decode(slots, fmt, rotated, theirs[0], theirs[1])
    numbers = ~np.isnan(theirs)
    np.testing.assert_array_equal(np.isnan(ours), ~numbers)
    np.testing.assert_array_equal(ours[numbers].view(np.uint32), theirs[numbers].view(np.uint32))


@needs_core
@given(
    fmt=st.sampled_from(FORMATS),
    element=st.sampled_from(sorted(ELEMENTS)),
    kind=st.sampled_from(["bits", "scales", "ties", "nonfinite"]),
    tokens=st.integers(0, 5),
    heads=st.integers(0, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_both_paths_give_the_same_bytes(
    fmt: OctaveFormat, element: str, kind: str, tokens: int, heads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    shape = (tokens, heads, fmt.head_size)
    key, value = (Rows(vectors(rng, shape, element, kind), element) for _ in range(2))
    slots = both_encode(key, value, fmt)
    for read in (slots, rng.integers(0, 256, slots.shape, np.uint8)):
        for rotated in (False, True):
            both_decode(read, fmt, rotated)


@needs_core
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: f"{fmt.head_size}-{fmt.rope_dim}-{fmt.kernel_code}")
def test_every_format(fmt: OctaveFormat) -> None:
    rng = np.random.default_rng(fmt.head_size + fmt.rope_dim)
    key, value = (Rows(vectors(rng, (9, 2, fmt.head_size), "float16", "scales"), "float16") for _ in range(2))
    both_decode(both_encode(key, value, fmt), fmt, False)


@needs_core
@pytest.mark.parametrize("element", sorted(ELEMENTS))
def test_strides_and_odd_addresses(element: str) -> None:
    fmt = OctaveFormat(128, 64, 4)
    rng = np.random.default_rng(3)
    itemsize = np.dtype(ELEMENTS[element]).itemsize
    # Rows one byte off their alignment, heads before tokens, the tokens from the last to the first.
    raw = rng.integers(0, 256, 1 + 2 * 3 * 7 * 160 * itemsize, np.uint8)[1:].view(ELEMENTS[element])
    key, value = raw.reshape(2, 3, 7, 160).swapaxes(1, 2)[:, ::-1, :, 5 : 5 + fmt.head_size]
    assert not key.flags.aligned
    slots = both_encode(Rows(key, element), Rows(value, element), fmt)

    memory = np.full(7 * 3 * (fmt.slot_bytes + 3) + 1, 9, np.uint8)
    spaced = memory[1:].reshape(3, 7, fmt.slot_bytes + 3).swapaxes(0, 1)[..., 1 : 1 + fmt.slot_bytes]
    core.encode(Rows(key, element), Rows(value, element), fmt, spaced)
    np.testing.assert_array_equal(spaced, slots)
    both_decode(spaced, fmt, False)
    # Nothing between the slots is touched.
    spaced[...] = 9
    assert (memory == 9).all()


@needs_core
@pytest.mark.parametrize("num_threads", [1, 2, 3, 64])
def test_any_number_of_threads(num_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "_available_cores", lambda: 64)
    fmt = OctaveFormat(64, 64, 3)
    rng = np.random.default_rng(4)
    key, value = (Rows(rng.standard_normal((7, 2, 64), np.float32), "float32") for _ in range(2))
    slots = both_encode(key, value, fmt, num_threads)
    one, many = np.zeros((2, 2, 7, 2, 64), np.float32)
    core.decode(slots, fmt, False, one[0], one[1], num_threads=1)
    core.decode(slots, fmt, False, many[0], many[1], num_threads=num_threads)
    np.testing.assert_array_equal(one, many)
    assert one.all(axis=-1).any()


@pytest.mark.parametrize(
    ("cores", "tokens", "asked", "parts"),
    [
        (4, 4096, None, 4),
        (4, 4096, 3, 3),
        (4, 4096, 9, 4),
        (4, 2, 9, 2),
        (4, 1024, None, 1),
        (4, 2048, None, 2),
        (4, 0, 2, 1),
    ],
)
def test_work_is_shared(
    cores: int, tokens: int, asked: int | None, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "_available_cores", lambda: cores)
    done: list[slice] = []
    core._share(done.append, tokens, 256, asked)
    assert len(done) == parts
    assert [token for part in sorted(done, key=lambda part: part.start) for token in range(part.start, part.stop)] == [
        *range(tokens)
    ]


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing remembered of which path there is."""
    for remembered in (path._named, core.why_absent):
        remembered.cache_clear()
    yield
    for remembered in (path._named, core.why_absent):
        remembered.cache_clear()


@needs_core
@pytest.mark.usefixtures("fresh")
def test_the_core_is_used_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(path.VARIABLE, raising=False)
    assert path.active().NAME == "core"


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("platform.machine", lambda: "aarch64", "the core is built for Linux on x86-64, not for"),
        ("octave_quant.core._cpu_features", lambda: frozenset({"fma"}), "this CPU lacks abm, avx2, bmi1, bmi2, f16c"),
        ("octave_quant.core._LIBRARY", "absent.so", "absent.so is not installed; build the package"),
    ],
)
def test_numpy_serves_where_there_is_no_core(
    attribute: str, value: object, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if core.why_absent() is not None and attribute != "platform.machine":
        pytest.skip("another reason comes first here")
    core.why_absent.cache_clear()
    monkeypatch.setattr(attribute, value)
    monkeypatch.delenv(path.VARIABLE, raising=False)
    assert path.active().NAME == "numpy"
    absent = core.why_absent()
    assert absent is not None
    assert reason in absent
    monkeypatch.setenv(path.VARIABLE, "core")
    with pytest.raises(
        ImportError, match=r"OCTAVE_QUANT_PATH asks for the compiled core, and .*; unset it to use NumPy"
    ):
        path.active()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("name", ["numpy", pytest.param("core", marks=needs_core)])
def test_the_environment_chooses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(path.VARIABLE, name)
    calls: list[str] = []

    def noted(module: path.Path) -> Callable[..., None]:
        encode = module.encode

        def run(*given: Any) -> None:
            calls.append(module.NAME)
            encode(*given)

        return run

    for module in (numpy_path, core):
        monkeypatch.setattr(module, "encode", noted(module))
    fmt = OctaveFormat(64, 0, 4)
    key = np.ones((1, 1, 64), np.float32)
    k, v = dequantize(quantize(key, key, fmt), fmt)
    assert calls == [name]
    np.testing.assert_allclose(v, key, atol=0.3)
    np.testing.assert_allclose(k, key, atol=0.5)


@pytest.mark.usefixtures("fresh")
def test_other_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(path.VARIABLE, "gpu")
    with pytest.raises(ValueError, match="OCTAVE_QUANT_PATH is 'gpu'; it must be core, numpy or unset"):
        path.active()
